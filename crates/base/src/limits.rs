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
/// Largest READ and WRITE: what Linux clients ask for at most over TCP.
pub const IO_SIZE_MAX: u32 = 1 << 20;

// --- probe and analytics ----------------------------------------------------------------------

/// Memory of the flight recorder, all cores together: minutes at ordinary load, about 12 s at
/// 350 000 operations per second.
pub const RECORDER_BYTES: usize = 256 << 20;
/// Client addresses that get a row of their own in one life of the server; later ones are `other`.
pub const CLIENT_NAMES_MAX: usize = 65_536;
/// Records that one idle turn of a core aggregates at most: about 40 µs.
pub const AGGREGATE_SLICE: u64 = 1024;
/// Records that wait until an idle turn aggregates them, unless [`AGGREGATE_DELAY_NS`] has passed:
/// few enough to be in the first-level cache still, enough to share the cost of one clock reading.
pub const AGGREGATE_BATCH: u64 = 256;
/// Longest time in ns that records wait for the batch to fill.
pub const AGGREGATE_DELAY_NS: u64 = 10_000_000;
/// A second stays open on a core for this many ns after its end, for stamps that were taken before.
pub const SECOND_GRACE_NS: u64 = 50_000_000;
/// Distinct (operation, client, user, share, status) that a core counts in one second.
pub const COMBINATIONS_MAX: usize = 4096;
/// Distinct (operation, client, share) whose latencies a core keeps apart in one second: 4 KiB each.
pub const LATENCY_GROUPS_MAX: usize = 512;
/// Distinct (file, operation) that a core counts before it drops the least busy half.
pub const FILES_MAX: usize = 8192;
/// Rows by file that a core hands to the collector each second; busier ones first.
pub const FILES_TOP: usize = 256;
/// Finished seconds that a core keeps for a collector that is late; then the oldest are dropped.
pub const SECONDS_PENDING_MAX: usize = 16;
/// How long after the end of a second the collector takes it, in ns.
pub const COLLECT_AFTER_NS: u64 = 150_000_000;
/// How long after its end the collector waits for a core that does not answer, in ns.
pub const COLLECT_WAIT_NS: u64 = 1_500_000_000;
/// Files kept in each stored second; the rest is `other`.
pub const STORED_FILES_MAX: usize = 50;
/// Clients, users and shares kept in each stored second; the rest is `other`.
pub const STORED_PEERS_MAX: usize = 200;
/// Clients whose latencies are kept apart in each stored second.
pub const STORED_LATENCY_PEERS_MAX: usize = 50;
/// Seconds kept in memory for graphs of the present: five minutes.
pub const SECONDS_IN_MEMORY: usize = 300;
/// Names of clients, users and files remembered between seconds.
pub const NAMES_REMEMBERED_MAX: usize = 65_536;
/// Seconds that wait for a subscriber; one that is slower loses the oldest, and is told.
pub const SUBSCRIBER_QUEUE_MAX: usize = 30;
/// Subscribers at once.
pub const SUBSCRIBERS_MAX: usize = 256;
/// Points of one answer; a longer interval is answered by the minute or the hour.
pub const POINTS_MAX: u64 = 20_000;
/// Rows of one answer.
pub const ROWS_MAX: usize = 1000;
/// Distinct elements that one question to the recorder may count.
pub const RECORDER_ROWS_MAX: usize = 1_000_000;
/// Largest frame in a statistics segment, in bytes; a longer one is damage.
pub const FRAME_MAX: usize = 4 << 20;
/// Largest block of a sealed segment once unpacked, in bytes.
pub const BLOCK_MAX: usize = 256 << 20;
/// How long statistics by second are kept, in s: a week.
pub const KEEP_SECONDS_S: u64 = 7 * 86_400;
/// How long statistics by minute are kept, in s: a quarter.
pub const KEEP_MINUTES_S: u64 = 92 * 86_400;
/// How long statistics by hour are kept, in s: five years.
pub const KEEP_HOURS_S: u64 = 5 * 366 * 86_400;
/// Statistics on disk, all fidelities together, in bytes; beyond it the oldest seconds go first.
pub const STORE_BYTES_MAX: u64 = 4 << 30;
/// Switchings of collection that are remembered, to mark what the recorder has not seen.
pub const PAUSES_MAX: usize = 256;

// --- serve: budgets ---------------------------------------------------------------------------

/// Connections served at once; descriptors are shared between these and open files.
pub const CONNECTIONS_MAX: usize = 10_000;
/// Operations one connection may do before others get their turn.
pub const TURN_OPS_MAX: usize = 64;
/// Time one connection may take before others get their turn.
pub const TURN_TIME_MAX: Duration = Duration::from_micros(200);
