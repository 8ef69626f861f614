//! RPC over RDMA (RFC 8166): messages by SEND, large parts of them by reading and writing the
//! client's memory. The counterpart of the framing of streams; the layers above it see complete
//! messages, and do not depend on the transport.
//!
//! - [`conn`]: a connection; its queues and their order; [`ended`]: why it ends. [`listen`]:
//!   accepts connections.
//! - [`call`]: a call that has arrived, with the chunks that it is read from.
//! - [`reply`]: the chunks of a reply, pure. [`send`]: what it takes to send it. [`room`]: what a
//!   connection waits for that has no room.
//! - [`credits`]: how many calls a client may have in flight, pure. [`permits`]: how many
//!   connections.
//! - [`stats`]: the counters of RDMA.

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
