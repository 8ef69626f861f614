//! NFS version 4: minor versions 0 (RFC 7530, RFC 7531), 1 (RFC 8881, RFC 5662), 2 (RFC 7862,
//! RFC 7863) and extended attributes (RFC 8276). Both directions of every operation and of the
//! callbacks that a server without pNFS and directory delegations makes.
//!
//! A COMPOUND is a header and operations that are decoded one at a time
//! ([`CompoundArgs`], [`ArgOp::decode`]): what is wrong with one must not touch those before it.
//! Members carry the names of the RFC without their prefix, which is their documentation.

mod acl;
mod attr;
mod bitmap;
mod callback;
mod compound;
mod copy;
mod dir;
mod io;
mod lock;
mod names;
mod op;
mod open;
mod pnfs;
mod session;
mod status;
mod types;
mod xattr;

pub use acl::*;
pub use attr::*;
pub use bitmap::Bitmap4;
pub use callback::*;
pub use compound::*;
pub use copy::*;
pub use dir::*;
pub use io::*;
pub use lock::*;
pub use names::*;
pub use op::{CbOpnum4, Opnum4};
pub use open::*;
pub use pnfs::*;
pub use session::*;
pub use status::Nfsstat4;
pub use types::*;
pub use xattr::*;

/// RPC program number, the same as that of version 3.
pub const NFS4_PROGRAM: u32 = 100_003;
/// Version of the program.
pub const NFS_V4: u32 = 4;
/// NULL.
pub const NFSPROC4_NULL: u32 = 0;
/// COMPOUND.
pub const NFSPROC4_COMPOUND: u32 = 1;
/// Callback program that 4.1 clients are called with unless they choose another number.
pub const NFS4_CALLBACK: u32 = 0x4000_0000;
/// Version of the callback program.
pub const NFS_CB: u32 = 1;
/// CB_NULL.
pub const CB_NULL: u32 = 0;
/// CB_COMPOUND.
pub const CB_COMPOUND: u32 = 1;

#[cfg(test)]
mod arb;
#[cfg(test)]
mod tests;
