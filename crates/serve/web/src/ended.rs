//! Why a connection of HTTP/1 or HTTP/2 ends before its end.

use std::io;

use engine::transport::link::ReceiveError;
use engine::transport::send::SendError;
use engine::transport::tls::TlsError;

use super::head::HeadError;

/// Request Timeout (RFC 9110 §15.5.9): the peer did not send its request in time.
pub(super) const TOO_SLOW: u16 = 408;

/// Why a connection ended before its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    /// The peer has closed it.
    #[error("closed by the peer")]
    Closed,
    /// The peer takes too long.
    #[error("the peer is too slow")]
    TooSlow,
    /// The peer sent what is no HTTP.
    #[error(transparent)]
    Malformed(#[from] HeadError),
    /// An answer broke off.
    #[error("a response failed: {0}")]
    Broken(String),
    /// It could not be sent.
    #[error(transparent)]
    Send(#[from] SendError),
    /// It could not be received.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    /// The TLS session was not set up.
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    /// The socket failed.
    #[error("socket: {0}")]
    Io(#[from] io::Error),
}
