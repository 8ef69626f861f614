//! Pieces of files on their way: over whichever stream for data is free, or over the control stream
//! where there are none. Which of the two is known before the first piece leaves, so that what is
//! for control never waits behind data that could have gone elsewhere.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::limits::{DSYNC_BULK_QUEUE, DSYNC_SEND_BYTES};
use wire::dsync::{Data, Message, frame};

use crate::error::{SyncError, Why};
use crate::link::{Out, Pace, Stop, Watched};
use crate::streams::tls::Stream;
use crate::streams::{Hooks, Streams};

/// Pieces that wait for a stream.
pub struct Bulk {
    state: Arc<Watched<State>>,
    out: Out,
    pace: Arc<Pace>,
}

#[derive(Default)]
struct State {
    carrier: Carrier,
    frames: VecDeque<Vec<u8>>,
    ended: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Carrier {
    /// Streams may still come up.
    #[default]
    Awaited,
    Streams,
    Control,
}

impl Bulk {
    /// Nothing waits.
    pub fn new(out: &Out, pace: &Arc<Pace>, stop: &Arc<Stop>) -> Arc<Self> {
        let state = Watched::new(State::default(), stop);
        Arc::new(Self { state, out: out.clone(), pace: Arc::clone(pace) })
    }

    /// What is done with streams.
    pub fn hooks(self: &Arc<Self>, stop: &Arc<Stop>) -> Hooks {
        let (serves, hears, stop) = (Arc::clone(self), Arc::clone(self), Arc::clone(stop));
        let stream = move |stream: Stream, streams: &Streams| {
            let failed = serves.serve(stream, streams).err();
            if let Some(e) = failed.and_then(|e| streams.failed(SyncError::Link(e))) {
                stop.fail(e);
            }
        };
        Hooks { stream: Box::new(stream), alone: Box::new(move || hears.alone()) }
    }

    /// There are no streams.
    pub fn alone(&self) {
        self.decide(Carrier::Control);
    }

    /// There is nothing more.
    pub fn end(&self) {
        self.state.change(|state| state.ended = true);
    }

    fn decide(&self, carrier: Carrier) {
        self.state.change(|state| {
            if state.carrier == Carrier::Awaited {
                state.carrier = carrier;
            }
        });
    }

    /// Sends a piece.
    ///
    /// # Errors
    /// Why the run ends.
    pub fn send(&self, data: &Data<'_>) -> Result<(), Why> {
        let mut bytes = Vec::new();
        frame::put(&Message::Data(data.clone()), &mut bytes);
        let mut bytes = Some(bytes);
        let left = self.state.wait(|state| match state.carrier {
            Carrier::Awaited => None,
            Carrier::Control => Some(bytes.take()),
            Carrier::Streams if state.frames.len() < DSYNC_BULK_QUEUE => {
                state.frames.extend(bytes.take());
                Some(None)
            }
            Carrier::Streams => None,
        })?;
        left.map_or(Ok(()), |bytes| self.out.send_frame(bytes))
    }

    /// Sends through a stream what waits, until there is nothing more.
    fn serve(&self, mut stream: Stream, streams: &Streams) -> std::io::Result<()> {
        self.decide(Carrier::Streams);
        while let Some(bytes) = self.next() {
            self.pace.write(&mut stream, &bytes)?;
            streams.moved.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The next frames; many small ones at once. `None` after the last.
    fn next(&self) -> Option<Vec<u8>> {
        let next = self.state.wait(|state| {
            let Some(mut bytes) = state.frames.pop_front() else {
                return state.ended.then_some(None);
            };
            while let Some(more) = state.frames.front()
                && bytes.len() + more.len() <= DSYNC_SEND_BYTES
            {
                bytes.extend_from_slice(more);
                state.frames.pop_front();
            }
            Some(Some(bytes))
        });
        next.ok().flatten()
    }
}
