//! What the services that transfer files share: users that have signed in, the resolution of a path
//! to a file of a share, reading, writing and changing it, and the statistics of that. It is not a
//! protocol: FTP, SFTP and HTTP build on it as the RPC programs build on [`nfs::rpc`].
//!
//! A connection lives on one core, as an asynchronous task over [`Core`]. Operations on files are
//! tried at once, and run on the pool if they would wait; what was changed is on disk before they
//! return.
//!
//! - [`core`]: what the connections of one core share; operations on files as the engine
//!   ([`engine::exec`]) runs them.
//! - [`caller`]: the user at the other end; [`sign_in`]: authentication.
//! - [`path`]: paths from the list of shares on. `walk`: their resolution to a file.
//! - [`node`]: a file that was found, or a place for one; [`list`]: what is in a directory;
//!   [`held`]: what clients hold between requests, each its part.
//! - [`reader`] and [`upload`]: the data of files, [`append`]: at their end, [`copy`]: from one
//!   into another; [`change`]: everything else about them; [`serial`]: steps that exclude each
//!   other.
//! - [`set_aside`]: temporary names of files that are replaced.
//! - [`settings`]: the common settings.
//! - [`opened`]: the entry of a transfer in the one table of opens and locks; [`grace`]: waiting
//!   until clients of NFS have reclaimed theirs.
//! - [`transfer`]: the entry of a transfer in the transfer log.
//! - [`measure`]: the caller and the file in the record of an operation.

// Failures of the file contract carry attributes by value: to box them would cost an allocation for
// each failed operation.
#![allow(clippy::result_large_err)]

pub mod append;
pub mod caller;
pub mod change;
pub mod copy;
pub mod core;
pub mod grace;
pub mod held;
pub mod list;
pub mod measure;
pub mod node;
pub mod opened;
pub mod path;
pub mod reader;
pub mod recall;
pub mod serial;
pub mod set_aside;
pub mod settings;
pub mod sign_in;
pub mod transfer;
pub mod upload;
pub mod walk;

use std::sync::Arc;

use vfs::identity::Identity;
use vfs::locks::LockTable;
use vfs::share::{Service, Shares};
use vfs::transfers::Log;

pub use self::caller::Caller;
pub use self::core::Core;
pub use self::node::{Node, PathTarget, Spot};
pub use self::path::VPath;
pub use self::sign_in::SignIns;
pub use self::transfer::Transfer;
pub use self::walk::Links;
use engine::exec::Engine;
pub use engine::exec::Span;
pub use measure::SpanFacts;

/// What a service is made of: the same over all its starts.
pub struct Files {
    /// Which one.
    pub service: Service,
    /// Served shares.
    pub shares: Arc<Shares>,
    /// The table of all protocols.
    pub locks: Arc<LockTable>,
    /// What executes its operations.
    pub engine: Arc<Engine>,
    /// The users that may sign in.
    pub identity: Arc<dyn Identity>,
    /// Threads that judge passwords.
    pub sign_ins: Arc<SignIns>,
    /// The log of transfers that have ended.
    pub transfers: Arc<dyn Log>,
}
