//! SMB 2.1 to 3.1.1 (MS-SMB2): messages of both directions, as types that encode and decode
//! themselves, and what they carry: SPNEGO, NTLM, security descriptors, MS-RPC.
//!
//! Offsets in SMB2 messages count from the header, so a decoder of a body takes the message from
//! its header on, and `put` appends a body to a message that has its header already.
//!
//! *Layout*
//! - [`codec`]: reader, fixed layouts, errors. [`utf16`], [`time`]: text and FILETIME.
//! - [`frame`]: messages on a TCP connection. [`header`]: the header of every message and that of
//!   an encrypted one. [`status`]: NTSTATUS.
//! - [`negotiate`], [`session`], [`tree`], [`create`] with [`contexts`], [`io`], [`dir`], [`info`],
//!   [`ioctl`], [`lock`], [`lease`], [`notify`]: bodies by command. [`class`]: what QUERY_INFO and
//!   SET_INFO carry.
//! - [`ntlm`], [`spnego`]: authentication. [`sid`], [`security`]: access control.
//! - [`rpc`]: named pipes with the list of shares (MS-SRVS). [`snapshot`]: previous versions.
//! - [`crypto`]: keys, signatures, encryption. [`charge`]: bytes and credits of a request.

#[macro_use]
pub mod codec;

pub mod charge;
pub mod class;
pub mod contexts;
pub mod create;
pub mod crypto;
pub mod dir;
pub mod durable;
pub mod frame;
pub mod header;
pub mod info;
pub mod io;
pub mod ioctl;
pub mod lease;
pub mod lock;
pub mod negotiate;
pub mod notify;
pub mod ntlm;
pub mod rpc;
pub mod security;
pub mod session;
pub mod sid;
pub mod snapshot;
pub mod spnego;
pub mod status;
pub mod time;
pub mod tree;
pub mod utf16;

#[cfg(test)]
mod tests;
