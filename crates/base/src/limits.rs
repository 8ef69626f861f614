//! Every limit, timeout and size of the program, in one place, each with its reason.
//!
//! Sections follow the rooms. A limit on the request path has a statistic that shows it.

use std::time::Duration;

// --- wire: what a peer may send ---------------------------------------------------------------

/// Largest record (RPC message) we take, in bytes: a 1 MiB WRITE with its headers and the largest
/// credentials fits with room to spare.
pub const RPC_RECORD_MAX: usize = (1 << 20) + (64 << 10);
/// Most fragments that may make up one record; a real client sends one, some send a few.
pub const RPC_FRAGMENTS_MAX: usize = 64;
/// Longest credential or verifier body (RFC 5531 §8.2).
pub const RPC_AUTH_MAX: usize = 400;
/// Most supplementary groups in AUTH_SYS (RFC 5531, appendix A).
pub const AUTH_SYS_GIDS_MAX: usize = 16;
/// Longest AUTH_SYS machine name (RFC 5531, appendix A).
pub const AUTH_SYS_NAME_MAX: usize = 255;
/// Longest path of MOUNT (RFC 1813, MNTPATHLEN) and of symbolic links (PATH_MAX).
pub const PATH_MAX: usize = 4096;
/// Longest file name (NAME_MAX of every Linux file system).
pub const NAME_MAX: usize = 255;
/// NFSv3 file handles are at most 64 bytes (RFC 1813, NFS3_FHSIZE).
pub const NFS3_FHSIZE: usize = 64;
/// Longest name or path that is decoded. Longer than either may be, so that a name beyond NAME_MAX or
/// a link beyond PATH_MAX is answered with NFS3ERR_NAMETOOLONG, not with GARBAGE_ARGS.
pub const NFS3_STRING_MAX: usize = 2 * PATH_MAX;
/// Memory that a connection keeps for assembling records of several fragments; more is given
/// back at the next such record.
pub const RPC_SCRATCH_KEEP: usize = 64 << 10;
/// Most entries of a list that a MOUNT or port mapper reply may bring; such lists are for people.
pub const MOUNT_LIST_MAX: usize = 10_000;
/// Most authentication flavours that a MOUNT reply may list; a handful exist.
pub const MOUNT_FLAVORS_MAX: usize = 32;
/// Longest universal address, network identifier or owner of rpcbind (RFC 1833 leaves it open).
pub const RPCB_STRING_MAX: usize = 255;
/// Largest READ and WRITE: what Linux clients ask for at most over TCP.
pub const IO_SIZE_MAX: u32 = 1 << 20;

// --- probe and analytics ----------------------------------------------------------------------

/// Memory of the flight recorder, all cores together: minutes at ordinary load, about 12 s at
/// 350 000 operations per second.
pub const RECORDER_BYTES: usize = 256 << 20;

// --- serve: budgets ---------------------------------------------------------------------------

/// Connections served at once; descriptors are shared between these and open files.
pub const CONNECTIONS_MAX: usize = 10_000;
/// Operations one connection may do before others get their turn.
pub const TURN_OPS_MAX: usize = 64;
/// Time one connection may take before others get their turn.
pub const TURN_TIME_MAX: Duration = Duration::from_micros(200);
