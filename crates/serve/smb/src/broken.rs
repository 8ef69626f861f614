//! Rules of the protocol of which a breach ends a connection.

use thiserror::Error;
use wire::smb::codec::SmbError;
use wire::smb::crypto::CryptoError;

/// Why a connection is ended: the peer's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Broken {
    /// What came is no message.
    #[error("no message: {0}")]
    Message(#[from] SmbError),
    /// What came cannot be decrypted.
    #[error("no encrypted message: {0}")]
    Crypto(#[from] CryptoError),
    /// A number was used that was not granted.
    #[error("credits overdrawn")]
    Credits,
    /// Something that may not be asked in this state of a connection.
    #[error("out of order")]
    Order,
    /// A signature is wrong: what came was changed on the way.
    #[error("a signature that does not fit")]
    Signature,
    /// The negotiation was not what the client has sent.
    #[error("a negotiation that was changed on the way")]
    Negotiation,
}
