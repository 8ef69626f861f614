//! What a run reports while it is in progress: what is done, how far it is, and its data streams.

use std::sync::Arc;

use wire::dsync::Note;

use crate::load::Progress;

/// Events for the user while a run is in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Something is done, or found.
    Note(Note),
    /// How far it is.
    Progress(Progress),
    /// A data stream has come up, or there will be none.
    Carried(Carried),
    /// A stream has broken; this many are left. Its data goes over these, or over the control
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
    /// The congestion control algorithms: of this side, and of the other.
    pub congestion: [String; 2],
    /// Why there are none.
    pub why: String,
}

/// Takes events, from any thread.
pub type Report = Arc<dyn Fn(Event) + Send + Sync>;
