//! How much has come over each stream for data: acknowledged to the source, which retains it until
//! then.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::TcpStream;
use std::sync::{Arc, Mutex, Weak};

use base::limits::{DSYNC_STREAMS_EVER, DSYNC_TAKEN_BYTES};
use wire::dsync::{Message, Taken};

use super::Shared;
use super::failed::{Failed, broken};
use crate::error::{SyncError, Why};
use crate::events::Event;
use crate::link::Out;
use crate::stop::lock;
use crate::streams::shut;
use crate::tree::Tree;

/// The streams, by the numbers with which they have begun.
#[derive(Default)]
pub struct Intake(Mutex<HashMap<u32, Stream>>);

/// One that has come up.
#[derive(Default)]
struct Stream {
    socket: Weak<TcpStream>,
    /// Bytes of frames that were taken.
    taken: u64,
    /// How many of them were acknowledged.
    acknowledged: u64,
    /// Whether its end was reported.
    ended: bool,
}

impl Intake {
    /// Enters one that has come up; false if the source has abandoned it already.
    ///
    /// # Errors
    /// [`SyncError::Broken`]: there is another of its number, or there are too many.
    pub fn enter(&self, number: u32, socket: &Arc<TcpStream>) -> Result<bool, SyncError> {
        let mut streams = lock(&self.0);
        let room = streams.len() < DSYNC_STREAMS_EVER;
        match streams.entry(number) {
            Entry::Occupied(abandoned) if abandoned.get().ended => Ok(false),
            Entry::Vacant(new) if room => {
                let socket = Arc::downgrade(socket);
                new.insert(Stream { socket, ..Stream::default() });
                Ok(true)
            }
            Entry::Occupied(_) => Err(SyncError::Broken("duplicate stream number")),
            Entry::Vacant(_) => Err(SyncError::Broken("too many streams")),
        }
    }
}

impl Stream {
    /// Sends how much was taken, under the lock, so that the acknowledged count only grows.
    fn acknowledge(&mut self, number: u32, out: &Out) -> Result<(), Why> {
        self.acknowledged = self.taken;
        let taken = Taken { stream: number, bytes: self.taken, ended: self.ended };
        out.send(&Message::Taken(taken))
    }
}

impl<T: Tree> Shared<T> {
    /// A frame of this many bytes was taken; acknowledged once [`DSYNC_TAKEN_BYTES`] are
    /// outstanding.
    pub(super) fn took(&self, number: u32, bytes: u64) -> Result<(), Why> {
        let mut streams = lock(&self.intake.0);
        let Some(stream) = streams.get_mut(&number) else { return Ok(()) };
        stream.taken += bytes;
        let much = stream.taken - stream.acknowledged >= DSYNC_TAKEN_BYTES;
        if much { stream.acknowledge(number, &self.out) } else { Ok(()) }
    }

    /// Acknowledges what was taken since the last time.
    pub(super) fn acknowledge_taken(&self) {
        for (number, stream) in lock(&self.intake.0).iter_mut() {
            if !stream.ended && stream.taken > stream.acknowledged {
                // An error means that the run is ending.
                let _unheard = stream.acknowledge(*number, &self.out);
            }
        }
    }

    /// A stream has ended before the run: the rest of what it had comes another way.
    pub(super) fn lost(&self, number: u32) {
        let mut streams = lock(&self.intake.0);
        let Some(stream) = streams.get_mut(&number).filter(|stream| !stream.ended) else { return };
        stream.ended = true;
        // As above.
        let _unheard = stream.acknowledge(number, &self.out);
        let left = streams.values().filter(|stream| !stream.ended).count();
        drop(streams);
        (self.report)(Event::Lost(left));
    }

    /// The source abandons a stream. The thread of the stream sends how much it has taken when it
    /// ends; for a stream that never came up, that nothing was taken is sent here.
    pub(super) fn abandon_stream(&self, number: u32) -> Result<(), Failed> {
        let mut streams = lock(&self.intake.0);
        let room = streams.len() < DSYNC_STREAMS_EVER;
        match streams.entry(number) {
            Entry::Occupied(up) => {
                if let Some(socket) = up.get().socket.upgrade() {
                    shut(&socket);
                }
                Ok(())
            }
            Entry::Vacant(never) if room => {
                let stream = never.insert(Stream { ended: true, ..Stream::default() });
                Ok(stream.acknowledge(number, &self.out)?)
            }
            Entry::Vacant(_) => broken("too many streams"),
        }
    }
}
