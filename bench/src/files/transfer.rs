//! One turn: connections that are signed in, then the files, with the time it takes and the CPU
//! that the server uses meanwhile.

use std::io;
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::Duration;

use base::clock::{Deadline, NS_PER_S, monotonic_ns};
use base::limits::LAB_STREAM_BUFFER;
use lab::client::service::{self, Failure, Session};
use serde::{Deserialize, Serialize};

use super::case::{Case, Work};
use super::peers::{Endpoint, Peer};
use super::tree::{TransferFolder, Tree};
use crate::cpu;
use crate::room::ReservedPages;

/// How long small files are moved for the warm-up.
const WARM_TIME: Duration = Duration::from_millis(200);
/// How long large files are moved, at most: they are never cut off.
const NO_END: Duration = Duration::from_secs(3600);

/// What a turn came to.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Figure {
    /// From the first file's begin to the last one's end, seconds.
    pub seconds: f64,
    /// Files that were moved.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// CPU time of the server, seconds.
    pub server_s: f64,
    /// CPU time of the client, seconds.
    pub client_s: f64,
}

impl Figure {
    /// MB/s, or files/s of small ones.
    pub fn speed(&self, case: &Case) -> f64 {
        let amount = if case.is_small() { self.files as f64 } else { self.bytes as f64 / 1e6 };
        amount / self.seconds
    }

    /// CPU time of the server: seconds per 10^9 bytes, or µs for each small file.
    pub fn cost(&self, case: &Case) -> f64 {
        if case.is_small() {
            self.server_s * 1e6 / self.files.max(1) as f64
        } else {
            self.server_s * 1e9 / self.bytes.max(1) as f64
        }
    }
}

/// How much is compared of what comes and goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Sizes.
    Sizes,
    /// All content.
    Content,
}

/// Moves some files and compares all their content.
///
/// # Errors
/// When anything is refused, or is not what it should be.
pub fn warm_up(case: &Case, tree: &Tree, peer: &Peer, way: &Endpoint) -> io::Result<()> {
    turn(&tree.warm(case), tree, peer, way, (WARM_TIME, Look::Content)).map(drop)
}

/// The turn of a server; small files are begun for `time` at most. Also what was agreed on.
///
/// # Errors
/// When anything is refused, or files are not whole afterwards.
pub fn run(
    case: &Case,
    tree: &Tree,
    peer: &Peer,
    way: &Endpoint,
    time: Duration,
) -> io::Result<(Figure, Option<String>)> {
    turn(case, tree, peer, way, (time, Look::Sizes))
}

fn turn(
    case: &Case,
    tree: &Tree,
    peer: &Peer,
    way: &Endpoint,
    (time, look): (Duration, Look),
) -> io::Result<(Figure, Option<String>)> {
    let place = tree.place(case);
    if case.work == Work::Upload {
        let folder = format!("{}/{}", way.at.path, place.folder());
        let made = service::open(&way.at, None).map(|mut s| s.make_folder(&folder, true));
        made.map_err(io::Error::other)?.map_err(broken)?;
    }
    let time = if case.is_small() { time } else { NO_END };
    let written = if case.work == Work::Upload { u64::from(case.files) * case.size } else { 0 };
    let room = ReservedPages::hold(written)?;
    let mut sessions = Vec::new();
    for _ in 0..case.streams {
        sessions.push(service::open(&way.at, None).map_err(io::Error::other)?);
    }
    let job = Job { case, tree, place: &place, root: &way.at.path, time, look };
    drop(room);
    let (before, own) = (peer.group.cpu_at_rest()?, cpu::own()?);
    let start = monotonic_ns();
    let done = job.all_streams(&mut sessions)?;
    let end = monotonic_ns();
    let own = cpu::own()? - own;
    // Sessions end only afterwards: neither signing in nor taking leave is counted.
    let used = peer.group.cpu_at_rest()? - before;
    let cipher = sessions.iter().find_map(|session| session.cipher());
    drop(sessions);
    if case.work == Work::Upload {
        tree.check(&place, case.size, &done, look == Look::Content)?;
    }
    tree.clear(case, &place);
    let files = done.len() as u64;
    let figure = Figure {
        seconds: (end - start) as f64 / NS_PER_S as f64,
        files,
        bytes: files * case.size,
        server_s: used,
        client_s: own,
    };
    Ok((figure, cipher))
}

fn broken(failure: Failure) -> io::Error {
    io::Error::other(lab::client::ClientError::from(failure))
}

/// What the streams of a turn have in common.
struct Job<'a> {
    case: &'a Case,
    tree: &'a Tree,
    place: &'a TransferFolder,
    root: &'a str,
    time: Duration,
    look: Look,
}

impl Job<'_> {
    /// The numbers of the files that were moved.
    fn all_streams(&self, sessions: &mut [Box<dyn Session>]) -> io::Result<Vec<u32>> {
        let barrier = Barrier::new(sessions.len());
        let results: Mutex<Vec<io::Result<Vec<u32>>>> = Mutex::default();
        std::thread::scope(|scope| {
            for (stream, session) in (0..).zip(sessions.iter_mut()) {
                let (barrier, results) = (&barrier, &results);
                scope.spawn(move || {
                    barrier.wait();
                    let done = self.one_stream(session.as_mut(), stream).map_err(broken);
                    results.lock().unwrap_or_else(PoisonError::into_inner).push(done);
                });
            }
        });
        let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        let all = results.into_iter().collect::<io::Result<Vec<_>>>()?;
        Ok(all.into_iter().flatten().collect())
    }

    fn one_stream(&self, session: &mut dyn Session, stream: u32) -> Result<Vec<u32>, Failure> {
        let mut buffer = vec![0; LAB_STREAM_BUFFER];
        let (mut done, end) = (Vec::new(), Deadline::after(self.time));
        for file in (stream..self.case.files).step_by(self.case.streams as usize) {
            if end.passed() {
                break;
            }
            let path = format!("{}/{}", self.root, self.place.file(file));
            match self.case.work {
                Work::Download => self.download(session, &path, &mut buffer)?,
                Work::Upload => self.upload(session, &path)?,
            }
            done.push(file);
        }
        Ok(done)
    }

    fn download(
        &self,
        session: &mut dyn Session,
        path: &str,
        buffer: &mut [u8],
    ) -> Result<(), Failure> {
        session.open_read(path, 0, None)?;
        let mut at = 0;
        loop {
            let n = session.read(buffer)?;
            let part = buffer.get(..n).unwrap_or_default();
            if self.look == Look::Content && !self.tree.is_content(at, part) {
                return Err(wrong(path, "another content came"));
            }
            at += n as u64;
            if n == 0 {
                break;
            }
        }
        if at != self.case.size {
            return Err(wrong(path, &format!("{at} bytes came of {}", self.case.size)));
        }
        session.close_read()
    }

    fn upload(&self, session: &mut dyn Session, path: &str) -> Result<(), Failure> {
        session.open_write(path, self.case.size)?;
        let mut left = self.case.size;
        while left > 0 {
            let here = self.tree.block.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            for piece in self.tree.block.get(..here).unwrap_or_default().chunks(LAB_STREAM_BUFFER) {
                session.write(piece)?;
            }
            left -= here as u64;
        }
        session.close_write()
    }
}

fn wrong(path: &str, why: &str) -> Failure {
    Failure::Broken(lab::client::ClientError::Protocol(format!("{path}: {why}")))
}
