//! Why a connection has ended.

use engine::transport::send::SendError;
use thiserror::Error;
use wire::iscsi::frame::CutError;

/// Why a connection has ended.
#[derive(Debug, Error)]
pub enum Ended {
    /// The peer closed it, or nothing more can be received.
    #[error("closed by the peer")]
    Gone,
    /// Nothing more can be sent.
    #[error(transparent)]
    Send(#[from] SendError),
    /// What came is no PDU: the peer or the network is at fault.
    #[error("no PDU: {0}")]
    Cut(#[from] CutError),
    /// It broke a rule of the protocol; a Reject was sent.
    #[error("a PDU that cannot be handled")]
    Broken,
    /// It has logged out, or its login was refused.
    #[error("logged out")]
    LoggedOut,
    /// It answers nothing.
    #[error("no reply to a ping")]
    Silent,
    /// It sends too little of the data that it owes.
    #[error("too slow")]
    TooSlow,
    /// Another login has taken its place.
    #[error("replaced by another login")]
    Replaced,
    /// It did not log out in time when it was asked to.
    #[error("the service or the session was ended")]
    TimeUp,
}
