//! Why a connection ends.

use verbs::VerbsError;
use wire::rpc::CallError;

use super::credits::Exceeded;

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    /// The service is ending and every call has its reply.
    #[error("service ends")]
    Drained,
    /// The client has more calls in progress than it was granted.
    #[error("the client has exceeded its credits")]
    Credits,
    /// It was idle, and a new one has no permit.
    #[error("idle for the longest time, and a new connection needs its permit")]
    Evicted,
    /// The client has done nothing of what it has to for its replies.
    #[error("the client is too slow")]
    TooSlow,
    /// What came is no RPC.
    #[error("not RPC over RDMA")]
    Malformed,
    /// A call's header made no sense.
    #[error("bad call: {0}")]
    BadCall(#[from] CallError),
    /// Reading a call's header panicked.
    #[error("reading a call panicked")]
    Panicked,
    /// An error of the device.
    #[error(transparent)]
    Verbs(#[from] VerbsError),
}

impl From<Exceeded> for Ended {
    fn from(_: Exceeded) -> Self {
        Self::Credits
    }
}
