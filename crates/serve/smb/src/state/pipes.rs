//! A pipe that is open, between two requests.

use wire::smb::rpc::Association;

use files::held::HeldBytes;

/// A pipe that is open.
pub(crate) struct Pipe {
    /// The conversation of remote procedure calls.
    pub association: Association,
    /// What is to be read.
    pub answer: Vec<u8>,
    /// Up to where that was read.
    pub at: usize,
    /// What that takes of the client's part.
    pub held: HeldBytes,
}
