//! The files that are coming, for all threads that take pieces of them: those that hear the control
//! stream, and one for each stream of data.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use base::limits::DSYNC_GAPS_MAX;
use wire::dsync::frame::HEAD;
use wire::dsync::{Bytes, Data, End, Message, Meta, Outcome, Whole, frame};

use super::aside::Aside;
use super::extents::Extents;
use super::failed::{Failed, broken};
use super::laid::Laid;
use super::tracker::Job;
use super::{Shared, why};
use crate::digest::{self, Digest};
use crate::error::SyncError;
use crate::link::read_frame;
use crate::stop::{Stop, Watched, lock};
use crate::streams::tls::Stream;
use crate::streams::{Hooks, Streams, shut};
use crate::tree::{Tree, split};

/// A file that is coming.
pub struct Writing<T: Tree> {
    /// What was asked for; nothing any more when it has ended.
    pub job: Option<Job>,
    /// What it is to be.
    pub wanted: Meta,
    /// Where it is written, once there is something to write.
    pub aside: Option<Arc<Aside<T>>>,
    /// The file with blocks of the old one, until this one is restarted.
    pub laid: Option<Arc<Laid<T>>>,
    /// Why it cannot be.
    pub failed: Option<String>,
    /// What it replaces, once something is taken of that.
    pub old: Option<Arc<T::File>>,
    /// How often it was restarted.
    pub turn: u32,
    pub digest: Digest,
    /// The ranges that have come since the last restart.
    covered: Extents,
    /// Pieces that have come, of all turns.
    pieces: u64,
    /// How it ends, when all pieces have come.
    pub ended: Option<End>,
}

type SharedWriting<T> = Arc<Mutex<Writing<T>>>;

/// All files that are coming, by the number of their request, each with its number of restarts.
pub struct Files<T: Tree> {
    state: Arc<Watched<State<T>>>,
}

struct State<T: Tree> {
    open: HashMap<u64, (u32, SharedWriting<T>)>,
    /// Whether the run has ended.
    closed: bool,
}

impl<T: Tree> Files<T> {
    /// None.
    pub fn new(stop: &Arc<Stop>) -> Self {
        Self { state: Watched::new(State { open: HashMap::new(), closed: false }, stop) }
    }

    /// One that has begun.
    pub fn get(&self, id: u64) -> Option<SharedWriting<T>> {
        self.state.look(|state| state.open.get(&id).map(|(_, file)| Arc::clone(file)))
    }

    /// One that has begun, and its number of restarts.
    fn get_turn(&self, id: u64) -> Option<(u32, SharedWriting<T>)> {
        let of = |(turn, file): &(u32, SharedWriting<T>)| (*turn, Arc::clone(file));
        self.state.look(|state| state.open.get(&id).map(of))
    }

    /// That the run has not ended.
    pub fn still_open(&self) -> Result<(), Failed> {
        match self.state.look(|state| state.closed) {
            false => Ok(()),
            true => Err(Failed::Run(SyncError::Gone)),
        }
    }

    /// Enters one that begins.
    pub fn insert(&self, id: u64, writing: Writing<T>) -> Result<(), Failed> {
        let entered = self.state.change(|state| {
            let file = Arc::new(Mutex::new(writing));
            let room = !state.closed;
            if room {
                state.open.insert(id, (0, file));
            }
            room
        });
        if entered { Ok(()) } else { Err(Failed::Run(SyncError::Gone)) }
    }

    /// Sets the number of restarts: threads that wait for a piece of it may look again.
    pub fn turn(&self, id: u64, turn: u32) {
        self.state.change(|state| {
            if let Some((known, _)) = state.open.get_mut(&id) {
                *known = turn;
            }
        });
    }

    /// It has ended: a piece that waited for its begin waits in vain.
    pub fn remove(&self, id: u64) {
        self.state.change(|state| state.open.remove(&id));
    }

    /// All of them, and there will be no more.
    fn close(&self) -> Vec<SharedWriting<T>> {
        self.state.change(|state| {
            state.closed = true;
            state.open.drain().map(|(_, (_, file))| file).collect()
        })
    }
}

impl<T: Tree> Writing<T> {
    /// One of which nothing has come.
    pub fn new(job: Job, wanted: Meta) -> Self {
        Self {
            job: Some(job),
            wanted,
            aside: None,
            laid: None,
            failed: None,
            old: None,
            turn: 0,
            digest: Digest::default(),
            covered: Extents::default(),
            pieces: 0,
            ended: None,
        }
    }

    /// Restarts it, without anything that has come; the number of restarts.
    pub fn restart(&mut self, wanted: Meta) -> u32 {
        (self.wanted, self.digest, self.covered) = (wanted, Digest::default(), Extents::default());
        self.turn = self.turn.saturating_add(1);
        self.laid = None;
        if let Some(job) = &mut self.job {
            job.kept = 0;
        }
        self.turn
    }

    /// A piece has come. It must lie within the file, and on no other.
    pub fn cover(&mut self, hole: u64, offset: u64, length: u64) -> Result<(), Failed> {
        let (start, end) = self.within(hole, offset, length)?;
        if !self.covered.add(start, end) {
            return broken("overlapping blocks");
        }
        if self.covered.count() > DSYNC_GAPS_MAX {
            return broken("a file with more gaps than streams can leave");
        }
        self.count()
    }

    /// Up to where there may be something that has not come: of the old file, or of what a run
    /// has left.
    pub fn had(&self) -> u64 {
        let kept = self.job.as_ref().map_or(0, |job| job.kept);
        if self.laid.is_some() { self.wanted.size } else { kept }
    }

    /// The ranges that have not come.
    pub fn gaps(&self) -> Vec<(u64, u64)> {
        self.covered.gaps(self.wanted.size)
    }

    /// What a piece covers, which must lie within the file.
    pub fn within(&self, hole: u64, offset: u64, length: u64) -> Result<(u64, u64), Failed> {
        let (start, end) = (offset.checked_sub(hole), offset.checked_add(length));
        let within = start.zip(end).filter(|(_, end)| *end <= self.wanted.size && length > 0);
        within.map_or_else(|| broken("a block outside its file"), Ok)
    }

    /// Counts a piece that has come.
    pub fn count(&mut self) -> Result<(), Failed> {
        self.pieces += 1;
        match &self.ended {
            _ if self.job.is_none() => broken("a block of a finished file"),
            Some(end) if end.pieces < self.pieces => broken("more blocks than announced"),
            _ => Ok(()),
        }
    }

    /// Takes the end, if all has come that comes before it.
    pub fn take_end(&mut self) -> Result<Option<End>, Failed> {
        match &self.ended {
            Some(end) if end.pieces < self.pieces => broken("more blocks than announced"),
            Some(end) if end.pieces == self.pieces => Ok(self.ended.take()),
            _ => Ok(None),
        }
    }
}

impl<T: Tree> Shared<T> {
    /// Does something with what is written, as long as nothing failed.
    pub(super) fn try_aside(
        &self,
        writing: &mut Writing<T>,
        work: impl FnOnce(&Aside<T>) -> io::Result<()>,
    ) {
        if writing.failed.is_some() {
            return;
        }
        let Some(job) = &writing.job else { return };
        if writing.aside.is_none() {
            match self.create(job, &writing.wanted) {
                Ok(aside) => writing.aside = Some(Arc::new(aside)),
                Err(e) => writing.failed = Some(why(&e)),
            }
        }
        if let Some(aside) = &writing.aside {
            writing.failed = work(aside).err().map(|e| why(&e));
        }
    }

    /// Takes a piece from the control stream: its file has begun, and may have been restarted since
    /// the piece was given to a stream that broke.
    pub(super) fn data(&self, data: &Data<'_>) -> Result<(), Failed> {
        match self.files.get_turn(data.id) {
            Some((turn, file)) if data.turn <= turn => self.piece(&file, data),
            _ => broken("data for an unknown file"),
        }
    }

    /// Takes a piece from a stream of data, which may have come before its file has begun.
    fn early(&self, data: &Data<'_>) -> Result<(), Failed> {
        let find = |state: &mut State<T>| match state.open.get(&data.id) {
            Some((turn, file)) if data.turn <= *turn => Some(Some(Arc::clone(file))),
            None if !self.tracker.knows(data.id) => Some(None),
            _ => None,
        };
        // What has come is taken also when the run is ending, for the next one.
        let found = match self.files.state.look(find) {
            Some(found) => found,
            None => self.files.state.wait(find)?,
        };
        let Some(file) = found else { return broken("data for an unknown file") };
        self.piece(&file, data)
    }

    /// Takes a file at once, from whichever stream.
    pub(super) fn whole(&self, whole: Whole<'_>) -> Result<(), Failed> {
        let Whole { id, meta, hash, unpacked, bytes } = whole;
        let wanted = self.wanted_file(meta)?;
        let length = if unpacked > 0 { u64::from(unpacked) } else { bytes.len() as u64 };
        if length != wanted.size {
            return broken("a file of the wrong size");
        }
        self.files.still_open()?;
        let (pieces, why) = (u64::from(length > 0), Bytes(Vec::new()));
        let end = End { id, outcome: Outcome::WHOLE, hash, pieces, meta: None, why };
        let job = self.begun(id, &wanted)?;
        let writing = Writing { ended: Some(end), ..Writing::new(job, wanted) };
        let file = Mutex::new(writing);
        match length {
            0 => self.end_if_whole(id, &mut lock(&file)),
            _ => self.piece(&file, &Data { id, turn: 0, hole: 0, offset: 0, unpacked, bytes }),
        }
    }

    fn piece(&self, file: &Mutex<Writing<T>>, data: &Data<'_>) -> Result<(), Failed> {
        let bytes = &*self.unpacker.bytes(data.bytes, data.unpacked)?;
        let (came, length) = (data.bytes.len() as u64, bytes.len() as u64);
        // Without the lock, so that no other thread waits for it.
        let hash = digest::piece(data.offset, bytes);
        let mut writing = lock(file);
        // Checked under the lock: it may have been restarted since it was looked up.
        if data.turn == writing.turn {
            writing.cover(data.hole, data.offset, length)?;
            writing.digest.add(hash);
            self.clear(&mut writing, (data.offset - data.hole, data.offset));
            self.try_aside(&mut writing, |aside| self.tree.write(&aside.file, bytes, data.offset));
        } else {
            writing.count()?;
        }
        self.tracker.count(|counts| {
            counts.bytes_received += came;
            counts.bytes_done += length;
        });
        self.end_if_whole(data.id, &mut writing)
    }

    /// Ends a file when its end and all its pieces have come.
    pub(super) fn end_if_whole(&self, id: u64, writing: &mut Writing<T>) -> Result<(), Failed> {
        let Some(end) = writing.take_end()? else { return Ok(()) };
        let failed = self.complete(writing, &end);
        if let Some(job) = writing.job.take() {
            self.conclude(id, &job, failed);
        }
        Ok(())
    }

    /// The run has ended before its work was done: incomplete files are retained to be resumed by
    /// the next run, or removed.
    pub(super) fn abandon(&self) {
        for file in self.files.close() {
            let mut writing = lock(&file);
            let Some(job) = writing.job.take() else { continue };
            let left = self.aside_for(split(&job.path).1, writing.wanted.size);
            let stays = |aside: &Arc<Aside<T>>| left.as_ref() == Some(&aside.name);
            if writing.failed.is_some() || !writing.aside.as_ref().is_some_and(stays) {
                self.give_up(&mut writing);
            }
        }
    }
}

/// What a destination does with streams of data.
pub(super) fn hooks<T: Tree>(shared: &Arc<Shared<T>>, calls: bool, stop: &Arc<Stop>) -> Hooks {
    let (takes, tells, stop) = (Arc::clone(shared), shared.out.clone(), Arc::clone(stop));
    let stream = move |stream: Stream, streams: &Streams| {
        let (number, socket) = (stream.number, Arc::clone(&stream.socket));
        let ended = match takes.intake.enter(number, &socket) {
            Ok(true) => take_all(&takes, stream),
            // The source has given it up before.
            Ok(false) => return,
            Err(e) => Err(Failed::Run(e)),
        };
        match ended {
            _ if streams.closed() => {}
            // What it has not brought comes another way.
            Ok(()) | Err(Failed::Run(SyncError::Gone | SyncError::Link(_))) => {
                shut(&socket);
                takes.lost(number);
            }
            Err(e) => drop(e.stop(&stop)),
        }
    };
    let alone = move || {
        if calls {
            // An error means that the run is ending.
            let _unheard = tells.send(&Message::Alone(()));
        }
    };
    Hooks { stream: Box::new(stream), alone: Box::new(alone) }
}

/// Takes what comes over a stream of data, until it ends.
fn take_all<T: Tree>(shared: &Shared<T>, mut stream: Stream) -> Result<(), Failed> {
    let number = stream.number;
    while let Some(body) = read_frame(&mut stream).map_err(Failed::Run)? {
        let bytes = (body.len() + HEAD) as u64;
        match frame::message(&body).map_err(|e| Failed::Run(e.into()))? {
            Message::Data(data) => shared.early(&data)?,
            Message::Whole(whole) => shared.whole(whole)?,
            _ => return broken("an unexpected message on a data stream"),
        }
        shared.took(number, bytes)?;
    }
    Ok(())
}
