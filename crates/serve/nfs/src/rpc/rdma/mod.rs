//! RPC over RDMA (RFC 8166): messages by SEND, large parts of them by reading and writing the
//! client's memory. Beside the framing of streams; above it a message is whole, and nothing knows
//! how it came.
//!
//! - [`conn`]: a connection; what waits, and the order of things; [`ended`]: why it ends.
//!   [`listen`]: takes connections.
//! - [`call`]: a call that has come: read from the client where it says so.
//! - [`reply`]: what a reply becomes, pure. [`send`]: what it takes to send it. [`room`]: what a
//!   connection waits for that has no room.
//! - [`credits`]: how many calls a client may have under way, pure. [`permits`]: how many
//!   connections.
//! - [`stats`]: what is counted.

mod call;
mod conn;
mod credits;
mod ended;
mod listen;
mod permits;
mod reply;
mod room;
mod send;
mod stats;

pub(super) use self::listen::serve;
pub use self::stats::RdmaStats;
