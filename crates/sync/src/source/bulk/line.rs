//! A stream for data, and the frames on it that are not acknowledged: they take another route if
//! the stream breaks.

use std::collections::VecDeque;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use base::limits::DSYNC_PATIENCE_ALONE;
use wire::dsync::frame::{self, HEAD};

use crate::error::SyncError;

#[cfg(test)]
mod tests;

/// What a stream carries.
pub struct Line {
    /// What it lies on.
    pub socket: Arc<TcpStream>,
    /// Whether it was abandoned.
    pub broken: bool,
    /// Frames that were given to it and not taken, with where each lot of them ends in all that was
    /// given to it.
    lots: VecDeque<(u64, Arc<Vec<u8>>)>,
    given: u64,
    taken: u64,
    /// When something was taken last, or something was given to it that had nothing.
    moved_ns: u64,
}

impl Line {
    /// One that carries nothing.
    pub fn new(socket: Arc<TcpStream>, now_ns: u64) -> Self {
        let lots = VecDeque::new();
        Self { socket, broken: false, lots, given: 0, taken: 0, moved_ns: now_ns }
    }

    /// Gives it some frames.
    pub fn give(&mut self, frames: Vec<u8>, now_ns: u64) -> Arc<Vec<u8>> {
        if self.lots.is_empty() {
            self.moved_ns = now_ns;
        }
        self.given += frames.len() as u64;
        let frames = Arc::new(frames);
        self.lots.push_back((self.given, Arc::clone(&frames)));
        frames
    }

    /// `bytes` bytes were taken since its begin; the number of retained bytes that this releases.
    ///
    /// # Errors
    /// [`SyncError::Broken`]: more than was given, or less than before.
    pub fn take(&mut self, bytes: u64, now_ns: u64) -> Result<u64, SyncError> {
        if bytes < self.taken || bytes > self.given {
            return Err(SyncError::Broken("an acknowledgement of data that was not sent"));
        }
        if bytes > self.taken {
            (self.taken, self.moved_ns) = (bytes, now_ns);
        }
        let mut freed = 0;
        while let Some((_, lot)) = self.lots.pop_front_if(|(end, _)| *end <= bytes) {
            freed += lot.len() as u64;
        }
        Ok(freed)
    }

    /// Bytes that are held.
    pub fn held(&self) -> u64 {
        self.lots.iter().map(|(_, lot)| lot.len() as u64).sum()
    }

    /// The frames that were not taken, one by one.
    ///
    /// # Errors
    /// [`SyncError::Broken`]: what was taken ends within a frame.
    pub fn rest(&self) -> Result<Vec<Vec<u8>>, SyncError> {
        let mut rest = Vec::new();
        for (end, lot) in &self.lots {
            let mut at = end - lot.len() as u64;
            let mut bytes = lot.as_slice();
            while let Some(head) = bytes.first_chunk::<HEAD>() {
                let (frame, next) = bytes.split_at(bytes.len().min(HEAD + frame::length(*head)?));
                if at >= self.taken {
                    rest.push(frame.to_vec());
                } else if at + frame.len() as u64 > self.taken {
                    return Err(SyncError::Broken("an acknowledgement of a part of a frame"));
                }
                (at, bytes) = (at + frame.len() as u64, next);
            }
        }
        Ok(rest)
    }
}

/// The streams that stand still: nothing of what they carry was taken for as long as `timeout`,
/// and meanwhile something of what others carry; or for several times as long, whatever others do.
pub fn still<'a>(
    lines: impl Iterator<Item = (&'a u32, &'a Line)> + Clone,
    now_ns: u64,
    timeout: Duration,
) -> Vec<u32> {
    let timeout = timeout.as_nanos() as u64;
    let stands = |line: &Line, long: u64| {
        !line.broken && !line.lots.is_empty() && now_ns.saturating_sub(line.moved_ns) >= long
    };
    let others_go = |number: u32, line: &Line| {
        lines.clone().any(|(other, it)| {
            *other != number && it.taken > 0 && it.moved_ns >= line.moved_ns + timeout / 2
        })
    };
    let is_still = |(number, line): &(&u32, &Line)| {
        stands(line, timeout * u64::from(DSYNC_PATIENCE_ALONE))
            || (stands(line, timeout) && others_go(**number, line))
    };
    lines.clone().filter(is_still).map(|(number, _)| *number).collect()
}
