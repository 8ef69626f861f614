//! SMB 2.0.2 to 3.1.1 (MS-SMB2): shares for Windows, macOS, Linux and whatever else speaks it.
//!
//! A request is tried as soon as it is taken. One that has to wait is suspended, and continues as a
//! task on the connection's core over [`files`]: many are at once, those of a compound one after
//! the other. Negotiation and sign-in are done in order, before anything else of the connection is
//! looked at.
//!
//! - [`server`]: the service; `settings`: how it is set; `start`: its start. [`conn`]: one
//!   connection, the only part that does I/O; `connection`: what all parts know of it.
//! - `receive`: from a `frame` to requests: credits, signatures, encryption. `compound`: executes
//!   the requests of a frame, after all that must be true of them. `dispatch`: which function does
//!   a command. `request`, `reply`: what a command is given, returns and writes. `answers`: from
//!   answers to a frame. `few`: a list of one, as most are.
//! - `negotiate`, `auth`: how a connection begins. `tree`, `create`, `close`, `io`, `lock`,
//!   `leases`, `dir`, `info`, `set_info`, `security`, `ioctl`, `pipe`: requests by family.
//!   `in_use`: what is open in the way of a rename. `names`, `facts`: paths and attributes as
//!   Windows has them.
//! - [`state`]: what is remembered between two requests: credits, sessions, opens, names to be
//!   removed. `broken`: what ends a connection.
//! - `status`: the one table of errors. [`node`]: what can be set and seen.

// Failures of the file contract carry attributes by value: to box them would cost an allocation for
// each failed operation.
#![allow(clippy::result_large_err)]

mod answers;
mod auth;
mod broken;
mod channels;
mod close;
mod compound;
pub mod conn;
mod connection;
mod create;
mod dir;
mod dispatch;
mod durable;
mod facts;
mod few;
mod frame;
mod grace;
pub mod handles;
mod in_use;
mod info;
mod instances;
mod io;
mod ioctl;
mod leases;
mod lock;
mod names;
mod negotiate;
pub mod node;
mod parking;
mod pipe;
mod receive;
mod reply;
mod request;
mod security;
pub mod server;
mod set_info;
mod settings;
mod snapshots;
mod start;
pub mod state;
mod status;
mod tree;

pub use self::server::Server;
pub use self::settings::{Encryption, Settings};
pub use self::status::recorded;
