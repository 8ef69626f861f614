//! SSH (RFC 4251 to 4254): messages and keys, and the transport of both sides as a machine that
//! takes and gives bytes.
//!
//! - [`codec`]: the data types. [`message`]: the messages.
//! - [`key`]: public keys and signatures; [`cert`]: OpenSSH's certificates; [`authorized`]: lines
//!   of authorized keys.
//! - [`host_key`]: keys that a server proves itself with.
//! - [`kex`]: agreeing on algorithms and keys; [`packet`]: packets under those keys.
//! - [`transport`]: versions, key exchange and packets put together, without any I/O.
//! - [`flow`]: windows of channels.
//!
//! What is there and what is not, with the reasons: `docs/protocols/sftp.md`. All cryptography is
//! that of aws-lc-rs.

pub mod authorized;
pub mod cert;
pub mod codec;
pub mod flow;
pub mod host_key;
pub mod kex;
pub mod key;
pub mod message;
pub mod packet;
pub mod transport;

#[cfg(test)]
pub(crate) mod tests;
