//! SSH connections below the SFTP server: the transport of [`wire::ssh`] on a socket, sign-in, and
//! channels with the subsystems `sftp` and `dsync`. Nothing else is available: no shell, no
//! commands, no forwarding.
//!
//! - `conn`: drives one connection. [`Ssh`]: what all of them share.
//! - `auth`: user authentication; `keys`: verification of keys and certificates.
//! - [`unsigned`]: connections before sign-in.
//! - [`mismatch`]: clients without an algorithm in common.
//! - `session`: the connection protocol; `pipe`: a channel as the SFTP server sees it.
//! - [`host_keys`]: the server's own keys, in a directory.

use std::sync::Arc;

use vfs::identity::{Identity, Person};
use vfs::transfers::Security;
use wire::ssh::transport::ServerSetup;

mod auth;
mod conn;
pub mod host_keys;
mod keys;
pub mod mismatch;
mod pipe;
mod session;
pub mod unsigned;

pub use conn::serve;
pub use mismatch::Mismatches;
pub use pipe::{SshInput, SshOutput};
pub use unsigned::Unsigned;

use engine::transport::Budgets;
use files::SignIns;

/// The methods of sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Methods {
    /// By password, with the method `password` or `keyboard-interactive`.
    pub password: bool,
    /// By public key or certificate.
    pub key: bool,
}

/// What all connections share.
pub struct Ssh {
    /// Name, algorithms and keys of the server.
    pub setup: Arc<ServerSetup>,
    /// What is shown before signing in.
    pub banner: Option<String>,
    /// The methods of sign-in.
    pub methods: Methods,
    /// The users that may sign in.
    pub identity: Arc<dyn Identity>,
    /// Threads that judge passwords.
    pub sign_ins: Arc<SignIns>,
    /// Where failures are counted.
    pub budgets: Arc<Budgets>,
    /// Connections before sign-in.
    pub unsigned: Unsigned,
    /// Clients without an algorithm in common.
    pub mismatches: Mismatches,
}

/// What a channel is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subsystem {
    /// SFTP.
    Sftp,
    /// The answering side of dsync.
    Dsync,
}

impl Subsystem {
    fn named(name: &[u8]) -> Option<Self> {
        match name {
            b"sftp" => Some(Self::Sftp),
            b"dsync" => Some(Self::Dsync),
            _ => None,
        }
    }
}

/// A channel on which a server is to begin, with its user.
pub struct Started {
    /// Which server.
    pub subsystem: Subsystem,
    /// The user that has signed in.
    pub person: Arc<Person>,
    /// The name of the client software, as in `SSH-2.0-NAME`.
    pub software: Vec<u8>,
    /// What protects the connection.
    pub security: Option<Security>,
    /// What comes.
    pub input: SshInput,
    /// What goes.
    pub output: SshOutput,
}

#[cfg(test)]
mod tests;
