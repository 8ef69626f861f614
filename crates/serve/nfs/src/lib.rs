//! NFS and what belongs to it, over ONC RPC.
//!
//! - [`rpc`]: connections of ONC RPC, over TCP, UDP and RDMA, for all programs.
//! - [`nfs3`]: MOUNT version 3 and NFS version 3.
//! - [`nfs4`]: NFS version 4.0, 4.1 and 4.2: compounds and the operations on files.
//! - [`nlm`]: locks of NFSv3 clients, and restart notifications.
//! - [`portmap`]: the ports of these programs.

// Failures of the file contract carry attributes by value: to box them would cost an allocation for
// each failed operation.
#![allow(clippy::result_large_err)]

pub mod nfs3;
pub mod nfs4;
pub mod nlm;
pub mod portmap;
pub mod rpc;
