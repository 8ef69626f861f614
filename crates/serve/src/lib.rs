//! From the socket to the file contract and back: transports, and one crate for each protocol.
//!
//! The crates are in folders next to this one (`engine`, `files`, `ftp`, `sftp`, `web` for `http`,
//! `nfs`, `iscsi`, `smb`); this one names them for all others, and has the test service `echo`.
//!
//! - [`exec`]: the engine that executes every operation: inline, on the pool, after a flush.
//! - [`transport`]: one runtime for each core, listeners, budgets, buffers.
//! - [`pool`]: a bounded pool of threads for operations that block, fair to clients.
//! - [`files`]: what the services that transfer files share.
//! - [`ftp`]: FTP and FTPS.
//! - [`rpc`]: ONC RPC connections, for all programs on them.
//! - [`http`]: HTTP/1.1 and HTTP/2.
//! - [`iscsi`]: logical units for initiators of iSCSI.
//! - [`nfs3`]: MOUNT version 3 and NFS version 3.
//! - [`nfs4`]: NFS version 4.0, 4.1 and 4.2: compounds and the operations on files.
//! - [`nlm`]: locks of NFSv3 clients, and restart notifications.
//! - [`portmap`]: the ports of these programs.
//! - [`sftp`]: SFTP, the SSH transport below it, and the server side of dsync on a share.
//! - [`smb`]: SMB 2.1 to 3.1.1.
//!
//! The crates of FTP, SFTP and HTTP have the same files: `conn.rs` is the only one that does I/O,
//! `dispatch.rs` finds the function of an operation and notes its facts, `state.rs` is pure, with
//! the time as an argument, and `status.rs` holds the only table of errors. RPC programs have no
//! `conn.rs` of their own (`rpc/conn.rs`), and those without state no `state.rs`.

// Failures of the file contract carry attributes by value: to box them would cost an allocation for
// each failed operation.
#![allow(clippy::result_large_err)]

#[cfg(feature = "test-services")]
pub mod echo;

pub use engine::{exec, pool, transport};
pub use nfs::{nfs3, nfs4, nlm, portmap, rpc};
pub use {files, ftp, iscsi, sftp, smb, web as http};

#[cfg(test)]
mod tests;
