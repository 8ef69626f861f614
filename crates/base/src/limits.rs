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
/// Longest name or path that is decoded. Longer than either may be, so that a name beyond NAME_MAX
/// or a link beyond PATH_MAX is answered with NFS3ERR_NAMETOOLONG, not with GARBAGE_ARGS.
pub const NFS3_STRING_MAX: usize = 2 * PATH_MAX;
/// Memory that an idle connection keeps for assembling records of several fragments; more is given
/// back as soon as the record was handled.
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

// --- vfs: descriptors, caches, tables ---------------------------------------------------------

/// Most files a back end keeps an O_PATH descriptor on; the descriptor budget may lower it.
pub const NODES_MAX: usize = 262_144;
/// Fewest, whatever the descriptor budget says: below this nothing can be served sensibly.
pub const NODES_MIN: usize = 64;
/// Parts that the table of nodes is cut into, each with its own lock: many more than cores.
pub const NODE_SHARDS: usize = 64;
/// Most descriptors opened for reading or writing that are kept for the next caller.
pub const OPEN_FILES_MAX: usize = 65_536;
/// Most of these on one file: callers with different credentials.
pub const OPEN_FILES_PER_NODE: usize = 8;
/// Listings of one directory that go on where they stopped; further ones seek.
pub const DIR_STREAMS_PER_NODE: usize = 4;
/// Bytes of directory entries read at once: about 1 000 names, and what a parked listing holds.
pub const DIR_BUFFER: usize = 32 << 10;
/// Files with unstable writes not yet on disk; beyond it a write is flushed before its reply,
/// because each of them pins a descriptor.
pub const DIRTY_NODES_MAX: usize = 4_096;
/// Failed flushes remembered apart per file; further ones are merged, which errs towards telling.
pub const FLUSH_FAILURES_KEPT: usize = 8;
/// Callers remembered per file as told about a failed flush; beyond it all are told again.
pub const FLUSH_TOLD_MAX: usize = 16;
/// Threads that flush. A flush waits for the device, and devices want a few at a time.
pub const FLUSH_THREADS: usize = 8;
/// Replies waiting for a flush at once; the callers' budgets of requests are far below it.
pub const FLUSH_WAITING_MAX: usize = 65_536;
/// Directories on the way from a file to the root of its share (PATH_MAX allows no more).
pub const DEPTH_MAX: usize = 2_048;
/// Directory entries looked at when a cold handle has to be searched for: some 10 ms.
pub const COLD_SEARCH_ENTRIES_MAX: usize = 65_536;
/// Further directories known to hold a file: renamed or linked across directories.
pub const KNOWN_PARENTS_MAX: usize = 8;
/// Directories in the durable table (no kernel handles): about 100 bytes of memory each.
pub const KNOWN_DIRS_MAX: usize = 262_144;
/// Files in the durable table: those renamed or linked across directories.
pub const KNOWN_MOVED_MAX: usize = 262_144;
/// How long a newly met directory may wait before it is written to the durable table.
pub const TABLE_WRITE_EVERY: Duration = Duration::from_secs(1);
/// Names remembered for statistics: some 100 bytes each.
pub const NAMES_MAX: usize = 131_072;
/// Most shares: ids are 16 bits and the table is searched on every call.
pub const SHARES_MAX: usize = 1_024;
