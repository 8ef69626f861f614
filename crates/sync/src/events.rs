//! What a run reports while it goes on: what is done, how far it is, and its data streams.

use std::sync::Arc;

use wire::dsync::Note;

use crate::load::Progress;

/// What people are told of while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Something is done, or found.
    Note(Note),
    /// How far it is.
    Progress(Progress),
    /// A stream has come up beside the control stream, or there will be none.
    Carried(Carried),
    /// A stream has broken; so many are left. What it had goes over these, or over the control
    /// stream.
    Lost(usize),
}

/// What carries the content of files between two machines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Carried {
    /// Streams that have come up; none, and the control stream carries all.
    pub streams: usize,
    /// How long a connection took to come up: a round trip, in nanoseconds.
    pub rtt_ns: u64,
    /// What decides how much is on its way: at this side, and at the other.
    pub congestion: [String; 2],
    /// Why there are none.
    pub why: String,
}

/// Takes what people are told, from any thread.
pub type Report = Arc<dyn Fn(Event) + Send + Sync>;
