//! An authentication in progress, between two messages of SESSION_SETUP.

use wire::smb::crypto::Preauth;
use wire::smb::ntlm::Challenge;

/// An authentication in progress.
pub(crate) struct Setup {
    /// The integrity of its messages, and of the negotiation.
    pub preauth: Preauth,
    /// When it began.
    pub began_ns: u64,
    /// Messages of the client so far.
    pub rounds: u32,
    /// Whether it is within SPNEGO.
    pub wrapped: bool,
    /// The list of mechanisms, as the client has encoded it.
    pub mechanisms: Vec<u8>,
    /// The client's first message of NTLM, and the server's.
    pub exchange: Option<(Vec<u8>, Challenge, Vec<u8>)>,
}
