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
/// Switchings of collection that are remembered, to mark what the recorder has not seen.
pub const PAUSES_MAX: usize = 256;

// --- serve: budgets ---------------------------------------------------------------------------

/// Connections served at once; descriptors are shared between these and open files.
pub const CONNECTIONS_MAX: usize = 10_000;
/// Operations one connection may do before others get their turn.
pub const TURN_OPS_MAX: usize = 64;
/// Time one connection may take before others get their turn.
pub const TURN_TIME_MAX: Duration = Duration::from_micros(200);

// --- control: the admin listener and the local socket -------------------------------------------

/// Admin connections served at once: a browser opens six, scripts a few.
pub const ADMIN_CONNECTIONS_MAX: usize = 256;
/// Time a client has for the TLS handshake, and then for each request head.
pub const ADMIN_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time given to admin connections when the server ends.
pub const ADMIN_DRAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// Largest request body of the API, in bytes: every body so far is a few fields.
pub const API_BODY_MAX: usize = 64 << 10;
/// Largest request head of the API, in bytes: a worksheet's stream names many statistics.
pub const API_HEAD_MAX: usize = 64 << 10;
/// Live streams at once; each has a thread that waits for the next second.
pub const API_STREAMS_MAX: usize = 64;
/// Statistics in one live stream: more panels than a screen holds.
pub const API_STREAM_STATS_MAX: usize = 64;
/// Seconds a live stream may lag behind before it loses some.
pub const API_STREAM_BUFFER: usize = 16;
/// Between two signs of life on a stream without data, below the idle limit of proxies.
pub const API_STREAM_KEEPALIVE: Duration = Duration::from_secs(15);
/// Queries of stored statistics that run at once; they read files, and 2 leave cores for service.
pub const API_QUERIES_MAX: usize = 2;
/// Queries that wait for their turn; more are told to come back.
pub const API_QUERIES_WAITING_MAX: usize = 64;
/// Points of one answer per row: several screens wide, and an answer stays in the megabytes.
pub const API_POINTS_MAX: i64 = 20_000;
/// Points aimed at when the caller names no step: two hours of seconds.
pub const API_POINTS_DEFAULT: i64 = 7_200;
/// Rows of one answer when the caller does not say.
pub const API_TOP_DEFAULT: usize = 20;
/// Rows of one answer at most.
pub const API_TOP_MAX: usize = 1_000;
/// Sessions kept; the one unused for longest makes room.
pub const SESSIONS_MAX: usize = 1_000;
/// A session ends after this time without a request.
pub const SESSION_IDLE: Duration = Duration::from_secs(12 * 3600);
/// A session ends after this time whatever happens.
pub const SESSION_AGE: Duration = Duration::from_secs(7 * 24 * 3600);
/// The one-time sign-in URL is good for this time: started in the evening, opened next morning.
pub const LOGIN_ONCE_AGE: Duration = Duration::from_secs(24 * 3600);
/// Unused one-time sign-in URLs kept.
pub const LOGIN_ONCE_MAX: usize = 16;
/// Wrong passwords that a peer may send before it must wait.
pub const SIGN_IN_FREE_FAILURES: u32 = 5;
/// The longest wait after wrong passwords; it starts at a second and doubles.
pub const SIGN_IN_WAIT_MAX: Duration = Duration::from_secs(60);
/// Wrong passwords are forgotten after this time.
pub const SIGN_IN_MEMORY: Duration = Duration::from_secs(15 * 60);
/// Peers whose wrong passwords are remembered; the oldest makes room.
pub const SIGN_IN_PEERS_MAX: usize = 1_024;
/// Sign-ins that wait for the password hash (one at a time: it costs 19 MiB and some 20 ms).
pub const SIGN_IN_WAITING_MAX: usize = 16;
/// Longest user name, in bytes.
pub const USER_NAME_MAX: usize = 64;
/// Longest password, in bytes.
pub const PASSWORD_MAX: usize = 1_024;
/// Largest answer that the command line takes from a server, in bytes.
pub const CLIENT_ANSWER_MAX: usize = 64 << 20;
/// Time the command line waits for an answer.
pub const CLIENT_TIMEOUT: Duration = Duration::from_secs(30);
