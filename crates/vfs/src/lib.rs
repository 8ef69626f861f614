//! The file contract that every protocol serves from, and the back ends behind it.
//!
//! - [`fs`]: the contract: [`fs::FileSystem`], what goes in and what comes out.
//! - [`status`]: the one list of ways an operation fails; each protocol has one table from it.
//! - [`attr`]: attributes of a file, and the changes that a caller may ask for.
//! - [`acl`]: POSIX access control lists, and how NFSv4 sees them.
//! - [`cred`]: the identity of the caller; [`rights`]: what the mode bits grant it.
//! - [`identity`]: sign-in, for protocols with users.
//! - [`lun`]: block storage, and what initiators of one logical unit share.
//! - [`transfers`]: the record of a finished file transfer.
//! - [`handle`]: names for files that survive restart and rename.
//! - [`name`]: names in a directory, checked.
//! - [`flush`]: group commit: one flush serves all callers that wait for it.
//! - [`share`]: shares by name and by handle; a read-only one refuses changes.
//! - [`locks`]: the one table of opens, locks and leases of all protocols.
//! - [`notice`]: changes of directories, for clients that wait for one.
//! - [`recovery`]: clients that held state when the server ended, and may reclaim it.
//! - [`journal`]: records by key that outlive the server.
//! - [`mapped`]: parts of files that are sent without a copy in user space.
//! - [`cache_drop`]: files taken out of the page cache, and the proof of it.
//! - [`turn`]: what the READs of one batch share.
//! - [`work`]: what one request may still cost.
//! - [`paths`]: the bounded table from file ids to names, for statistics.
//! - [`host`]: back end over a Linux directory; [`mem`]: back end in memory.
//! - [`conformance`]: what every back end must do, as functions for its tests.

// An error carries the attributes that its reply shows; boxing them would put an allocation on
// the path of every failed LOOKUP.
#![allow(clippy::result_large_err)]

pub mod access;
pub mod acl;
pub mod attr;
pub mod cache_drop;
pub mod conformance;
pub mod cred;
pub mod dos;
pub mod flush;
pub mod fold;
pub mod fs;
pub mod handle;
pub mod host;
pub mod identity;
pub mod journal;
pub mod locks;
pub mod lun;
pub mod mapped;
pub mod mem;
pub mod name;
pub mod notice;
pub mod paths;
pub mod recovery;
pub mod rights;
pub mod share;
mod spread;
pub mod status;
pub mod transfers;
pub mod turn;
pub mod work;
