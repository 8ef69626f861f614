//! iSCSI (RFC 7143): PDUs, text negotiation, login and CHAP, of both sides. What the commands
//! carry is in [`crate::scsi`].
//!
//! Sequence numbers are [`Serial`]s; a LUN is its eight bytes as a number ([`crate::scsi::lun`]).
//! Reserved fields are not looked at, as the RFC demands (§11).
//!
//! - [`frame`]: PDUs cut out of a stream, with their digests ([`digest`]), and the other way.
//! - [`bhs`]: the basic header segment, opcodes, and what can be wrong with a PDU.
//! - [`request`], [`response`]: all that an initiator sends, and all that a target does.
//! - [`command`], [`data`], [`nop`], [`tmf`], [`login`], [`text`], [`logout`], [`snack`],
//!   [`async_message`], [`reject`]: the PDUs of each topic.
//! - [`pairs`], [`keys`], [`negotiate`]: text, the keys of the RFC, how values come about.
//! - [`login_phase`], [`login_initiator`]: the login of either side; [`chap`]: its CHAP.
//! - [`serial`]: arithmetic of sequence numbers (RFC 1982).

pub mod async_message;
pub mod bhs;
pub mod chap;
pub mod command;
pub mod data;
pub mod digest;
pub mod frame;
pub mod keys;
pub mod login;
pub mod login_initiator;
pub mod login_phase;
pub mod logout;
pub mod negotiate;
pub mod nop;
pub mod pairs;
mod reason;
pub mod reject;
pub mod request;
pub mod response;
pub mod serial;
pub mod snack;
pub mod text;
pub mod tmf;

#[cfg(test)]
mod arb;
#[cfg(test)]
mod login_tests;
#[cfg(test)]
mod tests;

pub use bhs::{Bhs, InitiatorSn, Opcode, PduError, RESERVED_TAG, TargetSn};
pub use digest::Digests;
pub use frame::{CutError, Framed, Framer};
pub use request::Request;
pub use response::Response;
pub use serial::Serial;
