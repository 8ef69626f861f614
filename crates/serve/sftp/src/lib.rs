//! SFTP: the server over a byte channel, and the SSH transport that brings such channels.
//!
//! Many requests of a channel are in progress at once, and are answered in the order in which they
//! are done. Those that concern the same file, or of which one changes a name that the other has in
//! its path, are done in the order in which they came.
//!
//! - [`channel`]: what carries it; [`stdio`]: standard input and output, for one.
//! - [`conn`]: takes requests from a channel and sends the replies.
//! - `dispatch`: what a request is, which ones it waits for, and what is measured of it.
//! - [`state`]: what a channel has: open handles. `order`: which requests wait for which.
//! - `open`, `io`, `attr`, `dir`, `names`, `extended`: the requests, by family.
//! - [`ssh`]: connections that bring channels. [`server`]: the service that serves them,
//!   and [`node`]: its settings and state.
//! - [`dsync`]: the other subsystem, the answering side of dsync.
//! - `status`: the one table of errors. `longname`: a line of a listing.

// Failures of the file contract carry attributes by value: to box them would cost an allocation for
// each failed operation.
#![allow(clippy::result_large_err)]

mod attr;
pub mod channel;
pub mod conn;
mod dir;
mod dispatch;
pub mod dsync;
mod extended;
mod io;
mod longname;
mod names;
pub mod node;
mod open;
mod order;
pub mod server;
pub mod ssh;
pub mod state;
mod status;
pub mod stdio;

use std::sync::Arc;

pub use self::dispatch::op::EXTENSIONS;
pub use self::state::Session;
use files::VPath;
pub use files::settings::{LoginRoot, Uploads};
pub use vfs::identity::Owners;

/// How channels are served.
#[derive(Clone)]
pub struct Settings {
    /// What others see of an upload; whole is only one that does not read.
    pub uploads: Uploads,
    /// Permission bits that new files and directories do not get.
    pub umask: u32,
    /// What clients see as `/`: the list of shares, or something in it.
    pub root: VPath,
    /// Names of users and groups, for listings.
    pub owners: Arc<dyn Owners>,
    /// In which order the client sends the arguments of SYMLINK.
    pub symlink: SymlinkOrder,
}

impl Default for Settings {
    fn default() -> Self {
        let (uploads, root) = (Uploads::default(), VPath::ROOT);
        let symlink = SymlinkOrder::OpenSsh;
        Self { uploads, umask: 0o022, root, owners: Arc::new(()), symlink }
    }
}

/// The order of SYMLINK's arguments, of which there are two in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymlinkOrder {
    /// The target first, as OpenSSH has had it from the beginning, and with it nearly all clients.
    OpenSsh,
    /// The link first, as draft-ietf-secsh-filexfer-02 §6.10 has it.
    Draft,
}

/// Clients that look at the server's name: one that is not OpenSSH's gets the draft's order. As
/// their own names begin (libssh is not libssh2).
const BY_SERVER_NAME: [&[u8]; 4] = [b"libssh_", b"libssh-", b"WinSCP", b"AsyncSSH"];

impl SymlinkOrder {
    /// What a client uses with this server, by the name with which it has introduced itself (RFC
    /// 4253 §4.2, without `SSH-2.0-`).
    pub fn of(client: &[u8]) -> Self {
        match BY_SERVER_NAME.iter().any(|name| client.starts_with(name)) {
            true => Self::Draft,
            false => Self::OpenSsh,
        }
    }
}
