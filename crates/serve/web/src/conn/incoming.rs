//! The body of a request that is being received, with the length or the chunks that its head
//! states.

use base::clock::monotonic_ns;

use super::super::chunked::{ChunkStep, Chunks};
use super::super::head::Framing;
use super::super::request::{BodyError, Take};
use super::Ended;
use super::wire::Wire;
use engine::transport::pace::SlowPeerBudget;

/// How much is still to come.
enum Rest {
    Bytes(u64),
    Chunks(Chunks),
    /// Reading has failed: the end of the body is unknown.
    Lost,
}

/// A body that is being received.
pub struct Http1Body<'a> {
    wire: &'a mut Wire,
    rest: Rest,
    /// Whether the client waits for 100 (Continue).
    expects: bool,
    pace: SlowPeerBudget,
}

impl<'a> Http1Body<'a> {
    pub fn new(wire: &'a mut Wire, framing: Framing, expects: bool) -> Self {
        let rest = match framing {
            Framing::Length(length) => Rest::Bytes(length),
            Framing::Chunked => Rest::Chunks(Chunks::default()),
        };
        let pace = wire.pace();
        Self { wire, rest, expects, pace }
    }

    /// A body with `left` bytes to come, of a client that does not wait for 100 (Continue).
    pub fn resume(wire: &'a mut Wire, left: u64) -> Self {
        let pace = wire.pace();
        Self { wire, rest: Rest::Bytes(left), expects: false, pace }
    }

    /// How much is still to come; `None` if that is not known, or may never come.
    pub fn left(&self) -> Option<u64> {
        match &self.rest {
            Rest::Bytes(0) => Some(0),
            Rest::Chunks(chunks) if chunks.has_ended() => Some(0),
            _ if self.expects => None,
            Rest::Bytes(left) => Some(*left),
            Rest::Chunks(_) | Rest::Lost => None,
        }
    }

    /// Reads to its end, if that comes soon; returns whether it came.
    pub async fn discard(&mut self, max: u64) -> bool {
        let (mut all, mut part) = (0, Vec::new());
        while all <= max {
            part.clear();
            match self.take(&mut part, 1 << 14).await {
                Ok(0) => return true,
                Ok(count) => all += count as u64,
                Err(_) => return false,
            }
        }
        false
    }

    async fn next(&mut self, into: &mut Vec<u8>, upto: usize) -> Result<usize, BodyError> {
        let room = upto.saturating_sub(into.len());
        if room == 0 || self.left() == Some(0) {
            return Ok(0);
        }
        if std::mem::take(&mut self.expects) {
            self.wire.out.vec().extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
            self.wire.flush(false).await.map_err(|_| BodyError::Gone)?;
        }
        loop {
            let here = self.wire.input();
            let (skip, data) = match &mut self.rest {
                Rest::Lost => return Err(BodyError::Malformed),
                Rest::Bytes(left) => (0, capped(*left, room)),
                Rest::Chunks(chunks) if chunks.left() > 0 => (0, capped(chunks.left(), room)),
                Rest::Chunks(chunks) => match chunks.step(here) {
                    Ok(ChunkStep::End) => return Ok(0),
                    Ok(ChunkStep::Skip(count)) => (count, 0),
                    // The chunk's data: none of it is taken here.
                    Ok(ChunkStep::Data(_)) | Err(_) => return Err(BodyError::Malformed),
                },
            };
            if skip > 0 {
                self.wire.consume(skip);
                if self.left() == Some(0) {
                    return Ok(0);
                }
                continue;
            }
            if data > 0 {
                let count = self.data(into, data).await?;
                match &mut self.rest {
                    Rest::Bytes(left) => *left -= count as u64,
                    Rest::Chunks(chunks) => chunks.took(count as u64),
                    Rest::Lost => {}
                }
                return Ok(count);
            }
            in_time(&mut self.pace, self.wire.receive()).await?;
        }
    }

    /// Up to `most` bytes of data, from what is here or what comes next.
    async fn data(&mut self, into: &mut Vec<u8>, most: usize) -> Result<usize, BodyError> {
        let here = self.wire.input();
        if here.is_empty() {
            return in_time(&mut self.pace, self.wire.receive_into(into, most)).await;
        }
        let count = here.len().min(most);
        into.extend_from_slice(here.get(..count).unwrap_or_default());
        self.wire.consume(count);
        Ok(count)
    }
}

fn capped(left: u64, room: usize) -> usize {
    usize::try_from(left).map_or(room, |left| left.min(room))
}

async fn in_time(
    pace: &mut SlowPeerBudget,
    receive: impl Future<Output = Result<usize, Ended>>,
) -> Result<usize, BodyError> {
    let left = pace.left().ok_or(BodyError::TooSlow)?;
    let since = monotonic_ns();
    let received = tokio::time::timeout(left, receive).await;
    let count = received.as_ref().map_or(0, |got| *got.as_ref().unwrap_or(&0));
    pace.waited_since(since, count as u64);
    match received {
        Err(_) => Err(BodyError::TooSlow),
        Ok(Err(_) | Ok(0)) => Err(BodyError::Gone),
        Ok(Ok(count)) => Ok(count),
    }
}

impl Take for Http1Body<'_> {
    async fn take(&mut self, into: &mut Vec<u8>, upto: usize) -> Result<usize, BodyError> {
        let taken = self.next(into, upto).await;
        if taken.is_err() {
            self.rest = Rest::Lost;
        }
        taken
    }
}
