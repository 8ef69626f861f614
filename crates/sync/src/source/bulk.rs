//! Pieces of files in flight: over whichever stream for data is free, or over the control stream
//! where there are none. While it is not known yet whether there will be streams, the first pieces
//! go over the control stream: enough to keep the link busy meanwhile, and few enough that control
//! messages do not wait long behind them. Each piece is routed once: what the control stream was
//! given is not given to a stream, whatever becomes of those.
//!
//! What a stream was given is retained until the other side acknowledges it. When a stream breaks,
//! or stands still, both sides settle how much of it was taken, and the rest goes over the others;
//! over the control stream where none is left.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use base::clock::monotonic_ns;
use base::limits::{
    DSYNC_AWAITED, DSYNC_BULK_QUEUE, DSYNC_EARLY, DSYNC_PACK_WAIT, DSYNC_SEND_BYTES,
    DSYNC_STREAMS_EVER, DSYNC_UNTAKEN,
};
use wire::dsync::{Broken, Message, Taken, frame};

use crate::error::{SyncError, Why};
use crate::events::{Event, Report};
use crate::link::{Out, RateLimiter, spawn};
use crate::load::waits;
use crate::memory::{Reserved, RunMemory};
use crate::pack::Packer;
use crate::stop::{Stop, Watched};
use crate::streams::tls::Stream;
use crate::streams::{Hooks, Streams, shut};

mod line;
#[cfg(test)]
mod tests;

use line::Line;

/// Pieces that wait for a stream.
pub struct Bulk {
    state: Arc<Watched<State>>,
    out: Out,
    pace: Arc<RateLimiter>,
    /// Bytes of [`State::early`] at once.
    early: u64,
    report: Report,
    /// Packs pieces, if they may be.
    packer: Option<Packer>,
    /// Whether this machine has no processor left to pack with.
    pub full: AtomicBool,
    /// How long pieces have waited for room, in nanoseconds.
    pub room_ns: AtomicU64,
}

struct State {
    carrier: Carrier,
    /// Bytes that may still go over the control stream before it is known what carries them.
    early: u64,
    /// Since when streams are awaited.
    awaited_ns: Option<u64>,
    frames: VecDeque<Vec<u8>>,
    /// The streams that are up, by their numbers.
    lines: HashMap<u32, Line>,
    /// Numbers of streams that the other side has seen end before they were up here.
    gone: HashSet<u32>,
    /// Bytes that all of them hold, as far as there was memory for them: each may have some frames
    /// beyond it, so that it is never idle.
    held: Reserved,
    beyond: u64,
    ended: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Carrier {
    /// Streams may still come up.
    #[default]
    Awaited,
    /// There are, or were, some.
    Streams,
    /// There never were any.
    Control,
}

/// Which way a piece goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route {
    /// Behind the messages sent before.
    Control,
    /// With whichever stream is free.
    Stream,
}

impl State {
    fn new(early: u64, held: Reserved) -> Self {
        let (frames, lines, gone) = Default::default();
        let (carrier, awaited_ns) = Default::default();
        Self { carrier, early, awaited_ns, frames, lines, gone, held, beyond: 0, ended: false }
    }

    /// Holds the next frames for a stream, if there is memory for them or it holds none.
    fn hold_next(&mut self, idle: bool) -> Option<Vec<u8>> {
        let full = self.held.used() + self.beyond >= DSYNC_UNTAKEN;
        if full && !idle {
            return None;
        }
        let bytes = self.pop()?;
        let length = bytes.len() as u64;
        if self.held.grow(length).is_err() {
            if !idle {
                self.frames.push_front(bytes);
                return None;
            }
            self.beyond += length;
        }
        Some(bytes)
    }

    /// Notes that bytes are not held any more.
    fn release(&mut self, bytes: u64) {
        let beyond = bytes.min(self.beyond);
        self.beyond -= beyond;
        self.held.shrink(bytes - beyond);
    }

    /// The route of a piece of `bytes` bytes; `None` if it has to wait.
    fn way(&mut self, bytes: u64) -> Option<Route> {
        match self.carrier {
            Carrier::Awaited => {
                self.early = self.early.checked_sub(bytes)?;
                Some(Route::Control)
            }
            Carrier::Control => Some(Route::Control),
            Carrier::Streams => (self.frames.len() < DSYNC_BULK_QUEUE).then_some(Route::Stream),
        }
    }

    /// Lets so much go over the control stream again if streams were awaited for long enough.
    fn allow_more(&mut self, now_ns: u64, early: u64) {
        let awaited = self.awaited_ns.map_or(0, |since| now_ns.saturating_sub(since));
        if self.carrier == Carrier::Awaited && awaited >= DSYNC_AWAITED.as_nanos() as u64 {
            self.early = early;
        }
    }

    /// The next frames; many small ones at once.
    fn pop(&mut self) -> Option<Vec<u8>> {
        let mut bytes = self.frames.pop_front()?;
        while let Some(more) = self.frames.front()
            && bytes.len() + more.len() <= DSYNC_SEND_BYTES
        {
            bytes.extend_from_slice(more);
            self.frames.pop_front();
        }
        Some(bytes)
    }
}

impl Bulk {
    /// Nothing waits.
    pub fn new(
        out: &Out,
        pace: &Arc<RateLimiter>,
        pack: bool,
        report: &Report,
        (stop, memory): (&Arc<Stop>, &Arc<RunMemory>),
    ) -> Arc<Self> {
        // Where the rate is limited, a second of it at most: what is for control goes with it.
        let early = pace.rate().map_or(DSYNC_EARLY, |rate| rate.min(DSYNC_EARLY));
        Arc::new(Self {
            state: Watched::new(State::new(early, memory.reserve()), stop),
            out: out.clone(),
            pace: Arc::clone(pace),
            early,
            report: Arc::clone(report),
            packer: pack.then(Packer::default),
            full: AtomicBool::new(false),
            room_ns: AtomicU64::new(0),
        })
    }

    /// What is done with streams.
    pub fn hooks(self: &Arc<Self>, stop: &Arc<Stop>) -> Hooks {
        self.state.change(|state| state.awaited_ns = Some(monotonic_ns()));
        let (serves, hears, stop) = (Arc::clone(self), Arc::clone(self), Arc::clone(stop));
        let stream = move |stream: Stream, streams: &Streams| {
            if let Err(e) = serves.serve(stream, streams) {
                stop.fail(e);
            }
        };
        Hooks { stream: Box::new(stream), alone: Box::new(move || hears.alone()) }
    }

    /// Sends over the control stream what streams have left behind when none is left.
    ///
    /// # Errors
    /// No thread can be had.
    pub fn start_rest(self: &Arc<Self>) -> Result<JoinHandle<()>, SyncError> {
        let bulk = Arc::clone(self);
        spawn("rest", move || {
            while let Some(bytes) = bulk.next(None)
                && bulk.out.send_frame(bytes.to_vec()).is_ok()
            {}
        })
    }

    /// There are no streams.
    pub fn alone(&self) {
        self.state.change(|state| {
            if state.carrier == Carrier::Awaited {
                state.carrier = Carrier::Control;
            }
        });
    }

    /// There is nothing more.
    pub fn end(&self) {
        self.state.change(|state| state.ended = true);
    }

    /// Sends a message with these bytes. They are compressed if that saves enough; the message then
    /// contains their original length.
    ///
    /// # Errors
    /// Why the run ends.
    pub fn send(
        &self,
        content: &[u8],
        message: impl for<'b> FnOnce(u32, &'b [u8]) -> Message<'b>,
    ) -> Result<(), Why> {
        waits(&self.room_ns, || self.queue(content, message))
    }

    fn queue(
        &self,
        content: &[u8],
        message: impl for<'b> FnOnce(u32, &'b [u8]) -> Message<'b>,
    ) -> Result<(), Why> {
        let packed = self.packer.as_ref().filter(|_| self.limits()).and_then(|p| p.pack(content));
        let (unpacked, content) = match &packed {
            Some(packed) => (content.len() as u32, packed.as_slice()),
            None => (0, content),
        };
        let (length, mut bytes) = (content.len() as u64, Vec::new());
        frame::put(&message(unpacked, content), &mut bytes);
        let mut bytes = Some(bytes);
        let (left, none_up) = self.state.wait(|state| match state.way(length)? {
            Route::Control => Some((bytes.take(), false)),
            Route::Stream => {
                state.frames.extend(bytes.take());
                Some((None, state.lines.is_empty()))
            }
        })?;
        match left {
            Some(bytes) => return self.out.send_frame(bytes),
            // The thread that sends the rest waits for that.
            None if none_up => self.state.wake(),
            None => self.state.wake_worker(),
        }
        Ok(())
    }

    /// Whether the link is the limit: pieces wait for it, and the processors have time.
    fn limits(&self) -> bool {
        let waits = self.state.look(|state| match state.carrier {
            // Little may leave yet.
            Carrier::Awaited => true,
            Carrier::Streams => state.frames.len() >= DSYNC_PACK_WAIT,
            Carrier::Control => self.out.waiting() >= DSYNC_PACK_WAIT,
        });
        waits && !self.full.load(Ordering::Relaxed)
    }

    /// Sends through a stream what waits, until there is nothing more, or it breaks.
    fn serve(&self, mut stream: Stream, streams: &Streams) -> Result<(), SyncError> {
        let number = stream.number;
        let line = Line::new(Arc::clone(&stream.socket), monotonic_ns());
        let entered = self.state.change(|state| {
            let gone = state.gone.contains(&number);
            if !gone && state.lines.contains_key(&number) {
                return Err(SyncError::Broken("duplicate stream number"));
            }
            if !gone {
                state.carrier = Carrier::Streams;
                state.lines.insert(number, line);
            }
            Ok(!gone)
        })?;
        if !entered {
            return Ok(());
        }
        while let Some(bytes) = self.next(Some(number)) {
            if self.pace.write(&mut stream, &bytes).is_err() {
                if !streams.closed() {
                    self.give_up(number);
                }
                break;
            }
        }
        Ok(())
    }

    /// The next frames for a stream, or for the control stream. `None` after the last, or for a
    /// stream that was abandoned.
    fn next(&self, number: Option<u32>) -> Option<Arc<Vec<u8>>> {
        let ready = |state: &mut State| {
            if state.ended {
                return Some(None);
            }
            match number {
                None if state.lines.is_empty() => state.pop().map(|bytes| Some(Arc::new(bytes))),
                None => None,
                Some(number) => {
                    let Some(line) = state.lines.get(&number).filter(|line| !line.broken) else {
                        return Some(None);
                    };
                    let idle = line.held() == 0;
                    let bytes = state.hold_next(idle)?;
                    let line = state.lines.get_mut(&number);
                    Some(line.map(|line| line.give(bytes, monotonic_ns())))
                }
            }
        };
        let next = match number {
            None => self.state.wait(ready),
            Some(_) => self.state.wait_for_work(ready),
        };
        // There is room again.
        self.state.wake();
        next.ok().flatten()
    }

    /// Abandons a stream. What it holds waits until the other side has reported what it took.
    fn give_up(&self, number: u32) {
        let first = self.state.change(|state| {
            let line = state.lines.get_mut(&number).filter(|line| !line.broken)?;
            line.broken = true;
            Some(Arc::clone(&line.socket))
        });
        if let Some(socket) = first {
            shut(&socket);
            // An error means that the run is ending.
            let _unheard = self.out.send(&Message::Broken(Broken { stream: number }));
        }
    }

    /// Abandons the streams that stand still, and lets the run continue without those that have not
    /// come up yet: a firewall may drop what is sent to them.
    pub fn look_after(&self, timeout: Duration) {
        let now = monotonic_ns();
        if self.out.waiting() == 0 {
            self.state.change(|state| state.allow_more(now, self.early));
        }
        for number in self.state.change(|state| line::still(state.lines.iter(), now, timeout)) {
            self.give_up(number);
        }
    }

    /// The other side acknowledges what it took from a stream.
    ///
    /// # Errors
    /// [`SyncError::Broken`]: it cannot have.
    pub fn taken(&self, taken: &Taken) -> Result<(), SyncError> {
        let now = monotonic_ns();
        let lost = self.state.change(|state| {
            let Some(line) = state.lines.get_mut(&taken.stream) else {
                let early = taken.ended && taken.bytes == 0;
                state.gone.insert(taken.stream);
                return match early && state.gone.len() <= DSYNC_STREAMS_EVER {
                    true => Ok(None),
                    false => Err(SyncError::Broken("a report about an unknown stream")),
                };
            };
            let freed = line.take(taken.bytes, now)?;
            if !taken.ended {
                state.release(freed);
                return Ok(None);
            }
            let (rest, socket) = (line.rest()?, Arc::clone(&line.socket));
            let freed = freed + line.held();
            state.lines.remove(&taken.stream);
            state.release(freed);
            rest.into_iter().rev().for_each(|frame| state.frames.push_front(frame));
            Ok(Some((socket, state.lines.len())))
        })?;
        if let Some((socket, left)) = lost {
            // Its thread may be writing to it.
            shut(&socket);
            (self.report)(Event::Lost(left));
        }
        Ok(())
    }
}
