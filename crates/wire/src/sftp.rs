//! SSH File Transfer Protocol, version 3 (draft-ietf-secsh-filexfer-02), and the extensions that
//! OpenSSH has added (its file PROTOCOL, section 4): what it calls version 3 is what every client
//! speaks.
//!
//! Names are bytes. A packet is a length, a type and a body ([`packet`]); a request and its reply
//! carry the same id. Integers are as in XDR; strings have no padding.
//!
//! - [`packet`]: cutting packets, and writing them.
//! - [`attrs`]: attributes of a file.
//! - [`request`], [`extended`]: what clients ask.
//! - [`reply`], [`names`]: what servers answer.

mod arguments;
pub mod attrs;
mod data;
pub mod extended;
pub mod names;
pub mod packet;
pub mod reply;
pub mod request;

#[cfg(test)]
mod tests;

pub use attrs::{Attrs, Owner, Times};
pub use data::{Data, HandleBytes, PathBytes, Str};
pub use extended::Extended;
pub use names::{Name, NamesEncoder};
pub use packet::{PacketType, begin_packet, end_packet};
pub use reply::{Reply, StatusCode};
pub use request::{OpenFlags, Request};

/// The version of the protocol that this is.
pub const SFTP_VERSION: u32 = 3;
