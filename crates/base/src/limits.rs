//! All limits, timeouts and sizes of the program, each with its reason.
//!
//! Sections follow the crates; the limits of the administration are in `limits/administration.rs`,
//! those of the services that transfer files in `limits/files.rs` and in files named after the
//! service. A limit on the request path has a statistic that shows it.

use std::time::Duration;

mod administration;
mod agent;
mod bridge;
mod dsync;
mod echo;
mod files;
mod ftp;
mod http;
mod iscsi;
mod rdma;
mod sending;
mod sftp;
mod smb;
mod ssh;
mod storage;
mod webdav;

pub use administration::*;
pub use agent::*;
pub use bridge::*;
pub use dsync::*;
pub use echo::*;
pub use files::*;
pub use ftp::*;
pub use http::*;
pub use iscsi::*;
pub use rdma::*;
pub use sending::*;
pub use sftp::*;
pub use smb::*;
pub use ssh::*;
pub use storage::*;
pub use webdav::*;

// --- wire: what a peer may send ---------------------------------------------------------------

/// Largest record (RPC message) that is accepted, in bytes: a 1 MiB WRITE with its headers and the
/// largest credentials fits.
pub const RPC_RECORD_MAX: usize = (1 << 20) + (64 << 10);
/// Most fragments that may make up one record: kernel clients send one, libraries cut a WRITE of
/// 1 MiB into pieces of 2 KiB.
pub const RPC_FRAGMENTS_MAX: usize = 1024;
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
/// Longest name or path that is decoded. It exceeds both limits, so that a name beyond NAME_MAX or
/// a link beyond PATH_MAX gets NFS3ERR_NAMETOOLONG, not GARBAGE_ARGS.
pub const NFS3_STRING_MAX: usize = 2 * PATH_MAX;
/// Memory that an idle connection retains for assembling records of several fragments; the rest is
/// freed as soon as the record has been handled.
pub const RPC_SCRATCH_KEEP: usize = 64 << 10;
/// Most entries of a list in a MOUNT or port mapper reply; such lists are only displayed.
pub const MOUNT_LIST_MAX: usize = 10_000;
/// Most authentication flavours that a MOUNT reply may list; a handful exist.
pub const MOUNT_FLAVORS_MAX: usize = 32;
/// Longest universal address, network identifier or owner of rpcbind (RFC 1833 sets no limit).
pub const RPCB_STRING_MAX: usize = 255;
/// Largest READ and WRITE: the most that Linux clients request over TCP.
pub const IO_SIZE_MAX: u32 = 1 << 20;

// --- probe and analytics ----------------------------------------------------------------------

/// Memory of the flight recorder, all cores together: minutes at ordinary load, about 12 s at
/// 350 000 operations per second.
pub const RECORDER_BYTES: usize = 256 << 20;
/// Bytes of a ring of the flight recorder that are prefaulted at a time, before they are reached: a
/// huge page. Memory that is never needed is not allocated.
pub const RECORDER_CHUNK: usize = 2 << 20;
/// A core without operations for this long frees the memory of its records: their cause has been
/// examined by then, and statistics of those seconds are on disk.
pub const RECORDER_IDLE: Duration = Duration::from_secs(3_600);
/// At most this part of the memory that the process may use: full from 2 GiB on.
pub const RECORDER_MEMORY_PART: u64 = 8;
/// Client addresses with a row each in one run of the server; later ones are `other`.
pub const CLIENT_NAMES_MAX: usize = 65_536;
/// Records that one idle turn of a core aggregates at most: about 40 µs.
pub const AGGREGATE_SLICE: u64 = 1024;
/// Records that wait until an idle turn aggregates them, unless [`AGGREGATE_DELAY_NS`] has passed:
/// few enough to be in the first-level cache still, enough to share the cost of one clock reading.
pub const AGGREGATE_BATCH: u64 = 256;
/// Longest time in ns that records wait for the batch to fill.
pub const AGGREGATE_DELAY_NS: u64 = 10_000_000;
/// A second stays open on a core for this many ns after its end, for time stamps that were taken
/// before.
pub const SECOND_GRACE_NS: u64 = 50_000_000;
/// Distinct (operation, client, user, share, status) that a core counts in one second.
pub const COMBINATIONS_MAX: usize = 4096;
/// Distinct (operation, client, share) with a latency histogram each on a core in one second: 4 KiB
/// each.
pub const LATENCY_GROUPS_MAX: usize = 512;
/// Distinct (file, operation) that a core counts before it drops the least busy half.
pub const FILES_MAX: usize = 8192;
/// Rows by file that a core passes to the collector each second; busier ones first.
pub const FILES_TOP: usize = 256;
/// Finished seconds that a core retains for a collector that is late; then the oldest are dropped.
pub const SECONDS_PENDING_MAX: usize = 16;
/// How long after the end of a second the collector takes it, in ns.
pub const COLLECT_AFTER_NS: u64 = 150_000_000;
/// How long after its end the collector waits for a core, in ns: on an overloaded machine a thread
/// may be delayed for seconds, and what comes later is lost.
pub const COLLECT_WAIT_NS: u64 = 5_000_000_000;
/// Files in each stored second; the rest is `other`.
pub const STORED_FILES_MAX: usize = 50;
/// Clients, users and shares in each stored second; the rest is `other`.
pub const STORED_PEERS_MAX: usize = 200;
/// Clients with a latency histogram each in each stored second.
pub const STORED_LATENCY_PEERS_MAX: usize = 50;
/// Seconds retained in memory for graphs of the present: five minutes.
pub const SECONDS_IN_MEMORY: usize = 300;
/// Names of clients, users and files remembered between seconds.
pub const NAMES_REMEMBERED_MAX: usize = 65_536;
/// Seconds that wait for a subscriber; a slower one loses the oldest, and the number lost is
/// reported to it.
pub const SUBSCRIBER_QUEUE_MAX: usize = 30;
/// Subscribers at once.
pub const SUBSCRIBERS_MAX: usize = 256;
/// Rows of one table while a minute or an hour is added up, some 150 bytes each; beyond it the
/// least busy become `other` before the end.
pub const SUM_ROWS_MAX: usize = 32_768;
/// How many times as many elements are retained during the sum as in its result: an element that
/// becomes busy late is found too, and the error bound stays small.
pub const SUM_KEYS_FACTOR: usize = 4;
/// Points of one response; a longer interval is answered by the minute or the hour.
pub const POINTS_MAX: u64 = 20_000;
/// Rows of one response.
pub const ROWS_MAX: usize = 1000;
/// Values of all rows of one response, 16 bytes each: a thousand rows of two thousand points, or a
/// hundred of [`POINTS_MAX`]. Beyond it there are fewer rows, and the response indicates it.
pub const ANSWER_VALUES_MAX: usize = 2 << 20;
/// Memory of the sums from which a response is built, in bytes: a hundred thousand elements. Beyond
/// it the least busy half become `other`, and the error bound covers what they had.
pub const ANSWER_BYTES_MAX: usize = 32 << 20;
/// Longest interval of a query to the recorder, in s, counted back from its end: it is first
/// counted by the second, and the recorder of an idle server reaches back for months.
pub const RECORDER_SPAN_MAX_S: u64 = 2 * 86_400;
/// Largest frame in a statistics segment, in bytes; a longer one is damage.
pub const FRAME_MAX: usize = 4 << 20;
/// Largest block of a sealed segment that is read, and largest dictionary once unpacked, in bytes:
/// the size of blocks that were written before [`PACK_BYTES_MAX`].
pub const BLOCK_MAX: usize = 256 << 20;
/// Bytes of frames, and of the names that they add, that are packed at once. Compressing takes
/// about eleven times as much, once an hour and in addition to all other memory.
pub const PACK_BYTES_MAX: usize = 1 << 20;
/// Names in the dictionary of the segment that is being written, some 200 bytes each; then a new
/// dictionary begins. A second has some hundreds of names, most of them those of the second before.
pub const DICTIONARY_NAMES_MAX: u64 = 16_384;
/// Bytes of those names.
pub const DICTIONARY_BYTES_MAX: usize = 2 << 20;
/// Retention of statistics by second, in s: a week.
pub const KEEP_SECONDS_S: u64 = 7 * 86_400;
/// Retention of statistics by minute, in s: a quarter.
pub const KEEP_MINUTES_S: u64 = 92 * 86_400;
/// Retention of statistics by hour, in s: five years.
pub const KEEP_HOURS_S: u64 = 5 * 366 * 86_400;
/// Statistics on disk, all fidelities together, in bytes; beyond it the oldest seconds are removed
/// first.
pub const STORE_BYTES_MAX: u64 = 4 << 30;
/// Range of the retention that an administrator may set, in s: from an hour, which is the shortest
/// segment, to fifty years.
pub const KEEP_RANGE_S: (u64, u64) = (3_600, 50 * 366 * 86_400);
/// Range of the disk space for statistics, in bytes: from some hours of seconds to a petabyte.
pub const STORE_BYTES_RANGE: (u64, u64) = (64 << 20, 1 << 50);
/// Pauses of the collection that are remembered, to mark intervals without records.
pub const PAUSES_MAX: usize = 256;

// --- serve: budgets ---------------------------------------------------------------------------

/// Connections served at once; descriptors are shared between these and open files.
pub const CONNECTIONS_MAX: usize = 10_000;
/// This part of the connection permits is reserved for each service, so that the others cannot use
/// up all; the rest is first come, first served.
pub const CONNECTIONS_SURE_PART: usize = 16;
/// One client leaves this part of the permits that are not reserved to other clients. A site behind
/// one address still gets thousands.
pub const CONNECTIONS_CLIENT_LEAVES: usize = 4;
/// Connections that have lost their permits to new ones and have not ended yet are at most this
/// part of all, so that their descriptors fit what [`DESCRIPTORS_OTHER_PART`] leaves.
pub const CONNECTIONS_CLOSING_PART: usize = 8;
/// Interval at which a listener checks for one that has ended, while new connections wait in its
/// backlog: each ends when its task runs next.
pub const CONNECTIONS_CLOSING_LOOK: Duration = Duration::from_millis(1);
/// Checks before new connections are refused instead.
pub const CONNECTIONS_CLOSING_LOOKS_MAX: usize = 100;
/// One client leaves this part of the budgets of a core to others: of bytes, of pending requests,
/// and of records above the limit. Large records of others need a quarter in addition to the
/// quarter that is reserved for small ones ([`SMALL_RECORDS_PART`]).
pub const BUFFERED_CLIENT_LEAVES: usize = 2;
/// This part of the descriptors is for neither connections nor open files: the admin listener, the
/// store, operations in progress.
pub const DESCRIPTORS_OTHER_PART: usize = 8;
/// Operations of one connection in a batch, before other connections are served.
pub const TURN_OPS_MAX: usize = 64;
/// Time of one connection's batch, before other connections are served.
pub const TURN_TIME_MAX: Duration = Duration::from_micros(200);
/// Operations of one connection that may wait for the pool or a flush at once; a kernel client
/// keeps 64 to 128 calls in flight, a load client up to 256.
pub const CONNECTION_REQUESTS_MAX: usize = 256;
/// Bytes of an RPC reply without data: attributes, a handle, a path at most.
pub const REPLY_SMALL: usize = 4 << 10;
/// Operations waiting for the pool or a flush at once, over all connections: each holds its record
/// and its reply, so this bounds memory together with [`BUFFERED_BYTES_MAX`].
pub const REQUESTS_MAX: usize = 16_384;
/// Bytes of requests and replies held at once, over all connections of a service: 256 streams of
/// 1 MiB.
pub const BUFFERED_BYTES_MAX: usize = 256 << 20;
/// At most this part of the memory that the process may use, for each of the four services: full
/// from 4 GiB on. Together with the recorder that is three eighths; the rest is for what does not
/// grow with load, for tables with separate limits, and for the page cache.
pub const BUFFERED_MEMORY_PART: u64 = 16;
/// Minimum for each core, whatever the memory: one record of 1 MiB, and a quarter for small ones
/// ([`SMALL_RECORDS_PART`]), with a margin.
pub const BUFFERED_CORE_MIN: usize = 2 << 20;
/// The duplicate request cache has this part of the bytes that NFS may hold.
pub const REPLAY_BUFFERED_PART: usize = 8;
/// Records of one core that may be received although its bytes are used up, so that some connection
/// makes progress.
pub const OVERDRAFTS_MAX: usize = 8;
/// Large records leave this part of the bytes to small ones: 1 024 small receive buffers.
pub const SMALL_RECORDS_PART: usize = 4;
/// Receive buffer of an active connection; one read takes hundreds of small calls.
pub const RECEIVE_BUFFER: usize = 64 << 10;
/// Records of at least this size get a separate receive buffer, which the pool can take over
/// without another copy of the data.
pub const LARGE_RECORD: usize = 32 << 10;
/// Data of a READ from which on it is sent from the page cache: below, a copy costs less than the
/// system calls that avoid it.
pub const SEND_FILE_MIN: usize = 64 << 10;
/// Bytes of a file that are mapped at a time for sending: a stream sets one up sixteen times less
/// often than it reads, and a page table of 32 KiB serves it.
pub const MAPPED_WINDOW: usize = 16 << 20;
/// Windows of one open file: as many readers of one large file as do not evict each other's
/// windows.
pub const MAPPED_PER_FILE: usize = 8;
/// Windows in all, well below the 65 530 mappings that Linux gives a process: 32 GiB of page cache.
pub const MAPPED_MAX: usize = 2048;
/// Replies collected before they are sent, in bytes: what fits the second-level cache together with
/// what is read into it.
pub const SEND_BATCH_MAX: usize = 256 << 10;
/// Arrivals recorded while a connection waits for its peer, each time more bytes were received: as
/// many as a connection has large requests in flight. Later bytes count from when they are
/// received.
pub const ARRIVALS_MAX: usize = 64;
/// Replies that are sent by one call: as many as a connection answers in one turn.
pub const SEND_PARTS_MAX: usize = TURN_OPS_MAX;
/// Small buffers that a core retains for connections that wake up (64 KiB each). With a thousand
/// connections some hundreds wait at once until their peers receive replies; a buffer beyond these
/// is allocated each time, with its page faults.
pub const BUFFERS_KEPT: usize = 256;
/// Reply buffers grown by large reads that a core retains (about 1.3 MiB each).
pub const LARGE_REPLIES_KEPT: usize = 4;
/// Large buffers retained for all connections (about 1 MiB each).
pub const LARGE_BUFFERS_KEPT: usize = 32;
/// A record that has begun must be complete within this time.
pub const RECORD_TIME_MAX: Duration = Duration::from_secs(30);
/// Interval of checks of a record that has begun. While other connections wait for the budget, a
/// connection that received nothing of its record for this long is closed.
pub const RECORD_LOOK: Duration = Duration::from_secs(1);
/// A peer that receives nothing of its replies for this long is disconnected.
pub const SEND_TIME_MAX: Duration = Duration::from_secs(30);
/// Least rate of a peer that sends or receives data, in bytes/s, once [`PEER_PATIENCE`] is used up:
/// the setting of Apache's mod_reqtimeout (MinRate=500). A modem of 9 600 baud is faster.
pub const PEER_RATE_MIN: u64 = 500;
/// How long such a peer may be idle; transferred bytes add to it at [`PEER_RATE_MIN`]. It is
/// nginx's timeout between two pieces of a body (client_body_timeout).
pub const PEER_PATIENCE: Duration = Duration::from_secs(60);
/// Interval of checks whether a peer receives what is queued in the kernel for it: often enough to
/// notice a stalled one in time, seldom enough to cost nothing.
pub const SEND_LOOK: Duration = Duration::from_secs(1);
/// Idle time after which a connection is probed, so that a vanished peer is noticed.
pub const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
/// Time for a service to finish accepted requests before it is ended regardless.
pub const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);
/// Largest READDIR and READDIRPLUS reply: some hundreds of names with attributes, read in one turn.
pub const READDIR_REPLY_MAX: u32 = 64 << 10;
/// Interval of a core's idle work (aggregation, gauges), while it has operations.
pub const CORE_TICK: Duration = Duration::from_millis(20);
/// The same for a core without operations, at most: it ends each second for the statistics.
pub const CORE_REST_MAX: Duration = Duration::from_secs(1);
/// Operations of a core after which it aggregates without waiting for its tick: as many as one
/// slice takes, so that aggregation keeps up with any load.
pub const CORE_BURST_OPS: usize = AGGREGATE_SLICE as usize;
/// Slices that a core aggregates at one tick at most (some 0.5 ms), to catch up after a stall.
pub const CORE_TICK_SLICES: usize = 16;
/// Accepted sockets that may wait for one core to take them.
pub const ACCEPT_QUEUE: usize = 1024;
/// Length of the kernel's queue of connections not accepted yet.
pub const LISTEN_BACKLOG: i32 = 4096;
/// Pause after a failed accept (no descriptors left), so that it does not spin.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

// --- serve: the pool for operations that block ------------------------------------------------

/// Threads for blocking operations, for each core; they wait for disks, not for processors.
pub const POOL_THREADS_PER_CORE: usize = 8;
/// Most threads for blocking operations.
pub const POOL_THREADS_MAX: usize = 64;
/// Operations that may wait for a pool thread.
pub const POOL_QUEUE_MAX: usize = 8192;
/// Part of the pool's threads that one client leaves to others, at least one: however long the
/// operations of one client take, the first of another finds a thread.
pub const POOL_CLIENT_LEAVES: usize = 4;
/// One client's share of the pool's queue is this part of it, so that eight can fill it, not one.
pub const POOL_CLIENT_PART: usize = 8;

// --- serve: duplicate requests and mounts -----------------------------------------------------

/// Replies in the duplicate request cache, over all clients; at 20 000 changes a second, seconds.
pub const REPLAY_ENTRIES_MAX: usize = 65_536;
/// Bytes of these replies, unless the memory of the machine makes the limit lower
/// ([`REPLAY_BUFFERED_PART`]).
pub const REPLAY_BYTES_MAX: usize = 32 << 20;
/// Age at which a cached reply is dropped: two retransmissions of a Linux client over TCP.
pub const REPLAY_AGE_MAX: Duration = Duration::from_secs(120);
/// Bytes of the arguments in the checksum that distinguishes two calls with the same XID.
pub const REPLAY_CHECKSUM_BYTES: usize = 256;
/// Retransmissions of one call that may wait for its end; further ones are dropped.
pub const REPLAY_WAITERS_MAX: usize = 4;
/// Shards of the table, with a lock each.
pub const REPLAY_SHARDS: usize = 16;
/// Mounts remembered for DUMP.
pub const MOUNTS_MAX: usize = 1024;

// --- vfs: descriptors, caches, tables ---------------------------------------------------------

/// Most files a back end keeps an O_PATH descriptor on; the descriptor budget may lower it.
pub const NODES_MAX: usize = 262_144;
/// One of this many descriptors that the process may have can be held for files that are retained
/// because they are open with state (NFSv4) or a transfer reads or writes them: as many as
/// [`NODES_MAX`] under the usual limit, and half of what one share may hold in all, which leaves
/// the rest for files that are not open.
pub const RETAINED_PART: usize = 4;
/// Attempts to retain a file that is being evicted at the same moment.
pub const RETAIN_TRIES: usize = 3;
/// Fewest, whatever the descriptor budget: with fewer no share can be served usefully.
pub const NODES_MIN: usize = 64;
/// Parts that the table of nodes is cut into, each with its own lock: many more than cores.
pub const NODE_SHARDS: usize = 64;
/// Most descriptors opened for reading or writing that are retained for the next caller.
pub const OPEN_FILES_MAX: usize = 65_536;
/// Most of these on one file: callers with different credentials.
pub const OPEN_FILES_PER_NODE: usize = 8;
/// Listings of one directory that continue where they stopped; further ones seek.
pub const DIR_STREAMS_PER_NODE: usize = 4;
/// The same of all directories of all shares: each holds a descriptor and [`DIR_BUFFER`], 32 MiB
/// together.
pub const DIR_STREAMS_MAX: usize = 1_024;
/// Bytes of directory entries read at once: about 1 000 names, and what a parked listing holds.
pub const DIR_BUFFER: usize = 32 << 10;
/// Files with unstable writes not yet on disk; beyond it a write is flushed before its reply,
/// because each of them pins a descriptor.
pub const DIRTY_NODES_MAX: usize = 4_096;
/// Failed flushes that are recorded separately per file; further ones are merged, so that a loss is
/// reported too often rather than not at all.
pub const FLUSH_FAILURES_KEPT: usize = 8;
/// Callers per file that are recorded as notified of a failed flush; beyond it all are notified
/// again.
pub const FLUSH_TOLD_MAX: usize = 16;
/// Threads that flush. A flush waits for the device, and devices want a few at a time.
pub const FLUSH_THREADS: usize = 8;
/// Replies waiting for a flush at once; the request budgets of the callers are far below it.
pub const FLUSH_WAITING_MAX: usize = 65_536;
/// Granularity of times up to which the change time alone distinguishes changes, in nanoseconds: a
/// tick of the kernel's clock, by which finer ones are set.
pub const TIME_DELTA_FINE_NS: u32 = 10_000_000;
/// Directories on the path from a file to the root of its share: a tree as deep as COPY supports,
/// copied to the deepest directory that a path names.
pub const DEPTH_MAX: usize = DAV_TREE_DEPTH_MAX + TRANSFER_PATH_MAX / 2;
/// Directories visited on the path from one to the root, to find its ancestors: those of a share,
/// and as many above its root.
pub const ANCESTORS_MAX: usize = 2 * DEPTH_MAX;
/// Directory entries visited by a search for a cold handle: some 10 ms.
pub const COLD_SEARCH_ENTRIES_MAX: usize = 65_536;
/// Further directories known to hold a file: renamed or linked across directories.
pub const KNOWN_PARENTS_MAX: usize = 8;
/// Directories in the durable table (no kernel handles), about 200 bytes of memory each: a
/// directory that Plimsoll removes leaves it, the others stay until this many newer ones have been
/// added.
pub const KNOWN_DIRS_MAX: usize = 262_144;
/// Files in the durable table: those renamed or linked across directories, as long as they last.
pub const KNOWN_MOVED_MAX: usize = 262_144;
/// File systems without an identity that are recorded for a share: the current one at its path, and
/// earlier ones. Handles of the earlier ones are stale until they are mounted again.
pub const FILE_SYSTEMS_KEPT: usize = 8;
/// Entries of a share's root by which a file system without an identity is recognised at its next
/// mount: some of them are replaced meanwhile, and each is looked up at the start.
pub const ROOT_ENTRIES_KEPT: usize = 16;
/// Entries of the root from which those are chosen, directories first.
pub const ROOT_ENTRIES_READ: usize = 32;
/// Memory in which the durable table's file is cached, in bytes: it is read once, at the start, and
/// written in groups; the database itself would take up to a gibibyte.
pub const TABLE_CACHE: usize = 4 << 20;
/// How long a new directory may wait before it is written to the durable table.
pub const TABLE_WRITE_EVERY: Duration = Duration::from_secs(1);
/// Names remembered for statistics: some 100 bytes each.
pub const NAMES_MAX: usize = 131_072;
/// Recently looked-up names that are found without a walk: some 100 bytes each.
pub const NAMES_RECENT_MAX: usize = 65_536;
/// A file that changed later than this ago may change again with the same change time: two of the
/// slowest kernel ticks (10 ms), and a margin for clocks read in between.
pub const CHANGE_SETTLED: Duration = Duration::from_millis(50);
/// Interval of sweeps of one part of the table of held files; each part is swept every 32 s.
pub const SWEEP_EVERY: Duration = Duration::from_millis(500);
/// Files up to which the whole table is swept at once, every 32 s: some milliseconds of work, where
/// the thread of each share would wake twice a second for an empty part.
pub const SWEEP_ALL_MAX: usize = 1_024;
/// How long the result of a search through the tree is reused for handles that are not found: a
/// flood of stale handles costs one search in this time.
pub const COLD_SEARCH_FRESH: Duration = Duration::from_secs(2);
/// Most shares: ids are 16 bits and the table is searched on every call.
pub const SHARES_MAX: usize = 1_024;

// --- lab: agents and their connections --------------------------------------------------------

/// Most operations one load connection keeps in flight; a transaction number has room for 16 bits
/// of slot, and beyond some hundreds a connection only queues.
pub const LAB_SLOTS_MAX: u32 = 1024;
/// Largest message between controller and agent: a sample with its histogram takes a few KiB.
pub const LAB_MESSAGE_MAX: usize = 4 << 20;
/// Interval of the heartbeats of agents; a lost agent is noticed after some missed beats.
pub const LAB_HEARTBEAT: Duration = Duration::from_millis(200);
/// Most memory that a client registers for RDMA: what its threads move at once. Beyond, they wait
/// for each other.
pub const LAB_RDMA_REGISTERED_MAX: usize = 512 << 20;
/// A client that gets no reply at all for this long fails.
pub const LAB_SILENCE_MAX: Duration = Duration::from_secs(30);
/// Events of all agents that may wait for the controller: some seconds of samples of 1 000 agents.
pub const LAB_EVENTS_MAX: usize = 16_384;
/// Windows of one step that are retained: a step of an hour at four a second.
pub const LAB_WINDOWS_MAX: usize = 16_384;
/// Bytes that a client of FTP, SFTP or HTTP passes to the kernel at a time: the cost of system
/// calls is negligible, and the second-level cache holds it.
pub const LAB_STREAM_BUFFER: usize = 256 << 10;
/// Longest head of an HTTP response that a client accepts; servers send some hundred bytes.
pub const LAB_HTTP_HEAD_MAX: usize = 64 << 10;
/// Longest listing of a directory that a client accepts: some ten thousand names of one run.
pub const LAB_LIST_MAX: usize = 16 << 20;
/// Bytes of a read or write of SFTP, if the server allows it: below the 256 KiB that OpenSSH
/// accepts as a packet.
pub const LAB_SFTP_PIECE: u32 = 255 << 10;
/// The same for a server that sends no limits: what every server accepts.
pub const LAB_SFTP_PIECE_COMMON: u32 = 32 << 10;
/// Bytes of SFTP requests in flight for one file: as many as `sftp` of OpenSSH has (64 of 32 KiB),
/// and half of a channel's window.
pub const LAB_SFTP_FLIGHT: usize = 2 << 20;
/// Handles that a client of SFTP keeps open for reads at random offsets.
pub const LAB_SFTP_KEPT: usize = 64;
/// Content that a comparison holds, so that generating it costs nothing during the transfer.
pub const LAB_CONTENT_MAX: u64 = 512 << 20;
/// Arrivals of an open loop that may wait in a client: 16 bytes each.
pub const LAB_OPEN_QUEUE_MAX: u32 = 1_000_000;
/// Most rounds of a comparison: every sample is in its result.
pub const LAB_ROUNDS_MAX: u32 = 1_000;

// --- appliance --------------------------------------------------------------------------------

/// Client processes of the demo: as many as the first published summary of this kind had.
pub const DEMO_CLIENTS: u32 = 8;

// --- wire: NFS version 4 ------------------------------------------------------------------------

/// NFSv4 file handles are at most 128 bytes (RFC 8881 §3.1, NFS4_FHSIZE).
pub const NFS4_FHSIZE: usize = 128;
/// Owners, client ids and their like are at most 1 024 bytes (RFC 8881 §3.1, NFS4_OPAQUE_LIMIT).
pub const NFS4_OPAQUE_LIMIT: usize = 1024;
/// Longest name, link target or text that is decoded, so that one beyond the limits gets
/// NFS4ERR_NAMETOOLONG and not BADXDR.
pub const NFS4_STRING_MAX: usize = 2 * PATH_MAX;
/// Words of a bitmap that are decoded: RFC 8881 uses three; the rest is for clients of newer
/// versions, and for clients that probe with attributes that do not exist.
pub const NFS4_BITMAP_WORDS_MAX: usize = 64;
/// Entries of an access control list in one message: more than any file system stores.
pub const NFS4_ACES_MAX: usize = 1024;
/// Parts of a path in `fs_locations`, and locations in it.
pub const NFS4_PATH_PARTS_MAX: usize = 256;
/// Security flavours in SECINFO, BACKCHANNEL_CTL, CREATE_SESSION; stateids of TEST_STATEID;
/// segments of READ_PLUS; names of LISTXATTRS: some thousand fill a record.
pub const NFS4_LIST_MAX: usize = 4096;
/// Algorithms of EXCHANGE_ID's SP4_SSV, servers of COPY, layouts and their like.
pub const NFS4_SMALL_LIST_MAX: usize = 64;

// --- serve: NFS version 4 -----------------------------------------------------------------------

/// Operations of one COMPOUND: a kernel client sends up to 8, scripted ones some dozens, and each
/// costs a record of statistics until the reply leaves.
pub const NFS4_OPS_MAX: u32 = 128;
/// Bytes of one COMPOUND's results where no session sets a limit: one full READ and what goes
/// with it, or several small ones. Beyond it NFS4ERR_RESOURCE.
pub const NFS4_REPLY_MAX: usize = IO_SIZE_MAX as usize + (256 << 10);
/// Largest READDIR result, as for version 3.
pub const NFS4_READDIR_MAX: u32 = READDIR_REPLY_MAX;
/// Pieces of data and holes in one READ_PLUS: each costs two system calls; a client requests the
/// rest.
pub const READ_PLUS_PIECES: u32 = 64;
/// The lease, and with it the grace period, unless set otherwise: what every server uses.
pub const NFS4_LEASE_DEFAULT: Duration = Duration::from_secs(90);

// --- vfs: locks, leases, records of clients -----------------------------------------------------

/// Longest owner of a lock: an `nlm4` owner is up to 1 024 bytes (NFSv4's limit too), with a number
/// of 8 before it.
pub const LOCK_OWNER_MAX: usize = 1_032;
/// Parts of the lock table, each with its own lock: many more than cores.
pub const LOCK_SHARDS: usize = 64;
/// Counters of changes in progress: many more than changes, so that a lease is seldom refused
/// because of another file's change (64 bytes each).
pub const LOCK_CHANGING_SLOTS: usize = 8_192;
/// Counters of leases: more than twice as many as leases of a busy server, so that an operation
/// seldom looks for leases because of another file's (8 bytes each).
pub const LOCK_LEASED_SLOTS: usize = 1 << 18;
/// Of what the others leave of a limit, the part that remains for yet others: one address may have
/// three quarters of what the other addresses have left, and one client three quarters of what the
/// others of its address have left. So a new client always finds some.
pub const LOCK_PART_LEFT: u64 = 4;
/// Shards of the account of what each address and client holds, with a lock each.
pub const LOCK_PART_SHARDS: usize = 16;
/// Opens of all clients: some 100 bytes each.
pub const OPENS_MAX: u64 = 1_000_000;
/// Opens of one file: they are searched linearly.
pub const OPENS_PER_FILE_MAX: usize = 10_000;
/// Byte-range locks of all clients: some 100 bytes each.
pub const LOCKS_MAX: u64 = 1_000_000;
/// Locks on one file: more than any program is known to take.
pub const LOCKS_PER_FILE_MAX: usize = 8_192;
/// Locks of a file that are searched linearly. A search visits one group of these and the summary
/// of each of the others: about the square root of [`LOCKS_PER_FILE_MAX`] is best.
pub const LOCK_GROUP_MAX: usize = 96;
/// How long a request that must not be granted during the grace period waits for its end: as long
/// as clients of SMB wait for a response.
pub const GRACE_WAIT_MAX: Duration = Duration::from_secs(60);
/// Steps in which the clock of a file system moves at most (CONFIG_HZ=100): a file that was made
/// right after the grace period began may seem that much older.
pub const FILE_CLOCK_STEP: Duration = Duration::from_millis(10);
/// Requests that wait for a lock, of all clients; each holds a continuation.
pub const LOCK_WAITERS_MAX: u64 = 65_536;
/// Requests that wait for locks on one file.
pub const LOCK_WAITERS_PER_FILE_MAX: usize = 1_024;
/// Edges of the wait-for graph that are followed to find a deadlock; Linux follows 10.
pub const LOCK_DEADLOCK_DEPTH: usize = 64;
/// The time for a client of SMB to acknowledge a lease break before it loses the lease: that of
/// Windows (MS-SMB2 §3.3.2.5).
pub const LEASE_BREAK_TIME: Duration = Duration::from_secs(35);
/// A change of a file that the back end sees within this time after a write of the holder of its
/// delegation for writing is attributed to that write: inotify reports it some milliseconds later,
/// on a busy machine much later.
pub const LEASE_WRITE_ECHO: Duration = Duration::from_secs(2);
/// Leases of all clients: some 250 bytes each.
pub const LEASES_MAX: u64 = 262_144;
/// Leases on one file: a program file that a whole cluster runs.
pub const LEASES_PER_FILE_MAX: usize = 4_096;
/// Entries of an access control list: what fits a page, and what ext4 stores.
pub const ACL_ENTRIES_MAX: usize = 510;
/// Longest value of an extended attribute (`XATTR_SIZE_MAX` of Linux).
pub const XATTR_VALUE_MAX: usize = 64 << 10;
/// Longest list of names of extended attributes (`XATTR_LIST_MAX` of Linux).
pub const XATTR_LIST_MAX: usize = 64 << 10;
/// Most bytes that one COPY copies before its progress is reported to the caller: some 100 ms where
/// blocks cannot be shared.
pub const COPY_TURN_MAX: u64 = 128 << 20;
/// Bytes copied at once where the kernel cannot copy between the files (copy_file_range(2)).
pub const COPY_BUFFER: usize = 1 << 20;

/// Longest name of a client with its principal, in bytes: NFSv4 allows 1 024 for the name.
pub const CLIENT_RECORD_MAX: usize = 4_096;
/// Clients on record: as many as connections, with a margin for clients that come and go.
pub const CLIENT_RECORDS_MAX: usize = 16_384;
/// Length at which the file of client records is rewritten, in bytes: all clients with the longest
/// names fit, and ordinary ones many times over.
pub const CLIENT_RECORDS_FILE_MAX: u64 = 128 << 20;

// --- serve: state of NFS version 4 --------------------------------------------------------------

/// Clients at once, confirmed or not: some kilobytes each.
pub const NFS4_CLIENTS_MAX: usize = 65_536;
/// Those of one address: one client for each host is the rule, and behind an address that many
/// hosts share there are hundreds; it takes 16 addresses to fill the table.
pub const NFS4_CLIENTS_PER_ADDRESS_MAX: usize = NFS4_CLIENTS_MAX / 16;
/// Sessions of one client: Linux makes one for each transport trunk, a few in all.
pub const NFS4_SESSIONS_PER_CLIENT_MAX: usize = 64;
/// Slots of a session: Linux requests 64, and more has shown no gain.
pub const NFS4_SLOTS_MAX: u32 = 128;
/// Least size of request and response of a channel: below it SEQUENCE and one operation with a
/// file handle and a name do not fit (NFS4ERR_TOOSMALL).
pub const NFS4_CHANNEL_MIN: u32 = 384;
/// Longest reply that a slot caches: replies to operations that are not idempotent are shorter.
pub const NFS4_CACHED_REPLY_MAX: u32 = 8_192;
/// Replies up to this length are cached though the client did not request it (sa_cachethis).
pub const NFS4_SMALL_REPLY: usize = 1_024;
/// Bytes of the state of all clients: stateids, owners, slots and the replies in them. A client
/// that is used a lot takes some 100 KiB, so that thousands fit.
pub const NFS4_STATE_BYTES_MAX: usize = 512 << 20;
/// Of these, those of the clients of one address: a site behind one address has hundreds.
pub const NFS4_STATE_BYTES_PER_ADDRESS_MAX: usize = NFS4_STATE_BYTES_MAX / 2;
/// Bytes that a stateid, an owner or a session is counted for, in addition to its variable parts.
pub const NFS4_STATE_BYTES: usize = 384;
/// Opens, locks and delegations of one client.
pub const NFS4_STATES_PER_CLIENT_MAX: usize = 100_000;
/// Open and lock owners of one 4.0 client, of which the last replies are cached.
pub const NFS4_OWNERS_PER_CLIENT_MAX: usize = 10_000;
/// Longest result of a sequenced 4.0 operation that is cached: LOCK's denial names an owner.
pub const NFS4_OWNER_REPLY_MAX: usize = 2_048;
/// Shards of the tables of clients and of sessions, with a lock each.
pub const NFS4_STATE_SHARDS: usize = 64;
/// Courtesy state is retained this long, unless another client needs what it holds.
pub const NFS4_COURTESY: Duration = Duration::from_secs(24 * 3600);

// --- export rules -----------------------------------------------------------------------------

/// Rules of one share: they are evaluated in order when a connection first uses it.
pub const EXPORT_RULES_MAX: usize = 1000;
/// Bytes of a file of export rules.
pub const EXPORTS_FILE_MAX: u64 = 1 << 20;
/// Clients that EXPORT lists for a share; the list is only displayed.
pub const MOUNT_GROUPS_MAX: usize = 256;
/// Hosts that one rule may match through a group.
pub const EXPORT_HOSTS_MAX: usize = 10_000;
/// Groups within groups: deeper than in practice, and low enough to end a cycle.
pub const EXPORT_GROUP_DEPTH: usize = 16;

/// Closed opens of one client, of which the owners are remembered: a CLOSE is retransmitted soon or
/// never.
pub const NFS4_CLOSED_MAX: usize = 64;
/// Names in a tree in memory, in addition to its bytes: some 200 bytes each.
pub const MEM_NAMES_MAX: u64 = 4_194_304;

// --- lab: NFSv4.1 clients ---------------------------------------------------------------------

/// An operation that gets NFS4ERR_DELAY or NFS4ERR_GRACE while a client of NFSv4.1 prepares is
/// retried after this time, as Linux does, for at most [`LAB_SILENCE_MAX`] in all.
pub const LAB_RETRY_PAUSE: Duration = Duration::from_millis(100);
/// Interval at which an idle client renews its lease: well below the 60 s that is the shortest
/// lease in wide use.
pub const LAB_RENEW_EVERY: Duration = Duration::from_secs(15);
/// Time for a client that ends to return its opens, its session and its client id; what remains
/// expires with the lease.
pub const LAB_LEAVE_MAX: Duration = Duration::from_secs(2);
/// Operations of a compound that a client requests: the deepest path of a target and the operations
/// around it.
pub const LAB_COMPOUND_OPS: u32 = 64;

// --- serve: callbacks and delegations -----------------------------------------------------------

/// Callbacks that one peer may leave unanswered; a session has fewer slots, delegations of a 4.0
/// client are recalled one file at a time.
pub const BACK_CALLS_MAX: usize = 1_024;
/// Timeout for the connection to a client for callbacks.
pub const DIAL_TIME_MAX: Duration = Duration::from_secs(5);
/// A connection for callbacks is closed after this idle time; the next callback opens another.
pub const DIAL_IDLE: Duration = Duration::from_secs(60);
/// Connections for callbacks at once: each has a descriptor, of which [`DESCRIPTORS_OTHER_PART`]
/// leaves some thousands.
pub const DIALS_MAX: usize = 512;
/// Of these, those to one address: a machine has one client of NFSv4.0, or a few in containers. A
/// client that cannot be called gets no delegations.
pub const DIALS_PER_ADDRESS_MAX: usize = 32;
/// Longest reply to a callback.
pub const DIAL_BUFFER_MAX: usize = 64 << 10;
/// Connections of one session for callbacks: Linux binds one for each of its `nconnect`.
pub const NFS4_BACK_LINES_MAX: usize = 16;
/// Slots of a back channel: Linux offers 16, and no client has more recalls pending at once.
pub const NFS4_BACK_SLOTS_MAX: u32 = 16;
/// A call to a client that is unanswered for a third of the lease, but at least and at most this
/// long, shows that the client is unreachable.
pub const NFS4_CALLBACK_TIME_MIN: Duration = Duration::from_secs(1);
/// See [`NFS4_CALLBACK_TIME_MIN`].
pub const NFS4_CALLBACK_TIME_MAX: Duration = Duration::from_secs(10);
/// Delegations of all clients: some 500 bytes each. The table of leases can hold all of them.
pub const NFS4_DELEGATIONS_MAX: u64 = 100_000;
/// Delegations of one client: as many inodes as Linux caches without being short of memory.
pub const NFS4_DELEGATIONS_PER_CLIENT_MAX: u64 = 20_000;
/// Delegations of the clients of one address.
pub const NFS4_DELEGATIONS_PER_ADDRESS_MAX: u64 = NFS4_DELEGATIONS_MAX / 2;
/// A file with a recalled delegation gets no other for this time, the same as in knfsd.
pub const NFS4_DELEGATION_PAUSE: Duration = Duration::from_secs(30);
/// Time for the holder of a delegation for writing to report unflushed attributes (CB_GETATTR)
/// before the delegation is recalled: a client that is alive replies in milliseconds.
pub const NFS4_ATTRIBUTES_WAIT: Duration = Duration::from_secs(1);
/// How long such a reply is reused: the shortest interval of CB_GETATTR for one file.
pub const NFS4_ATTRIBUTES_FRESH: Duration = Duration::from_secs(1);
/// Slots for the last conflict of files (by a hash); two files in one slot share the pause.
pub const NFS4_DELEGATION_SLOTS: usize = 4_096;

// --- NLM, NSM, port mapper -----------------------------------------------------------------------

/// Longest host name, owner, cookie or handle of NLM and NSM (LM_MAXSTRLEN, SM_MAXSTRLEN and
/// MAXNETOBJ_SZ of XNFS).
pub const NLM_STRING_MAX: usize = 1024;
/// Hosts that hold locks or have lately: as many as can be on record.
pub const NLM_HOSTS_MAX: usize = CLIENT_RECORDS_MAX;
/// Of these, those at one address: enough for a site behind one address, and a limit for a host
/// that invents names.
pub const NLM_HOSTS_PER_ADDRESS_MAX: usize = 1_024;
/// Locked files of which the handles are remembered for one host, so that it can release a lock on
/// a file that is gone: some 150 bytes each. For further files it cannot.
pub const NLM_FILES_PER_HOST_MAX: usize = 65_536;
/// Blocked lock requests, and grants that are not acknowledged yet, of all hosts: some 500 bytes
/// and perhaps a task each.
pub const NLM_BLOCKED_MAX: usize = 16_384;
/// Of these, those of one host.
pub const NLM_BLOCKED_PER_HOST_MAX: usize = 1_024;
/// Of these, those of all hosts of one address.
pub const NLM_BLOCKED_PER_ADDRESS_MAX: usize = NLM_BLOCKED_MAX / 4;
/// Calls to clients in flight at once, to all hosts: each may have a socket.
pub const NLM_CALLS_MAX: usize = 64;
/// Calls to one address in flight at once, so that an address that does not respond delays only its
/// own calls, whatever host names it sends.
pub const NLM_CALLS_PER_HOST_MAX: usize = 2;
/// Replies to `*_MSG` calls that wait to be sent; more are dropped, as datagrams would be.
pub const NLM_MESSAGES_MAX: usize = 1_024;
/// Of these, those to one address: as many calls as a client has in flight.
pub const NLM_MESSAGES_PER_HOST_MAX: usize = 128;
/// Timeout of one call to a host: a client on a slow link, over TCP.
pub const NLM_CALL_TIME_MAX: Duration = Duration::from_secs(5);
/// Pause after the first unanswered call; doubled each time.
pub const NLM_RETRY_FIRST: Duration = Duration::from_millis(500);
/// Longest pause between two attempts of one call.
pub const NLM_RETRY_MAX: Duration = Duration::from_secs(10);
/// A lock that was granted while its client could not be reached is released after this time. A
/// Linux client automatically retries every 30 s; two of these pass.
pub const NLM_GRANT_TIME_MAX: Duration = Duration::from_secs(75);
/// Attempts to notify a host of a restart of the server end after this time, as in sm-notify.
pub const NSM_NOTIFY_TIME_MAX: Duration = Duration::from_secs(15 * 60);
/// Ports below this are reserved for privileged programs of a host (`IPPORT_RESERVED`):
/// notifications of a restart from other ports are ignored. Linux's sm-notify uses one of these.
pub const RESERVED_PORTS_END: u16 = 1_024;
/// Inactive clients of other protocols that are expired for one conflicting request.
pub const NLM_WAY_MAX: usize = 16;
/// Interval of the search for hosts that hold nothing any more.
pub const NLM_SWEEP_EVERY: Duration = Duration::from_secs(60);
/// Longest datagram or record that a small service (port mapper, NSM over UDP) accepts: the largest
/// message that any of them uses, with credentials.
pub const SMALL_RECORD_MAX: usize = 4 << 10;
/// How long such a connection may be idle.
pub const SMALL_IDLE_MAX: Duration = Duration::from_secs(10);
/// Datagrams with a reply that may block that are processed at once; more are dropped, and are
/// retransmitted.
pub const SMALL_BLOCKING_MAX: usize = 4;
/// Programs registered with the port mapper, versions and transports counted each.
pub const PORTMAP_ENTRIES_MAX: usize = 64;

// --- serve: RPC with TLS ------------------------------------------------------------------------

/// Time a peer has for the TLS handshake after the probe: two round trips and a signature.
pub const TLS_HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// Bytes that are encrypted at once: with the overhead of their four TLS records they fit a buffer
/// of [`RECEIVE_BUFFER`], so that the same buffers are used.
pub const TLS_SEND_PIECE: usize = RECEIVE_BUFFER - 512;
/// Largest file of certificates, keys or CAs that is read, in bytes: a system's whole store has
/// some 200 KiB.
pub const TLS_FILE_MAX: u64 = 4 << 20;
/// A failed handshake is logged on standard error at most this often; the statistic counts them
/// all.
pub const TLS_TELL_EVERY: Duration = Duration::from_secs(60);

// --- NFSv4: what is remembered of clients that are gone -----------------------------------------

/// Client ids that are remembered as expired: 8 bytes each. Clients beyond it get
/// NFS4ERR_STALE_CLIENTID, and establish a new one all the same.
pub const NFS4_EXPIRED_MAX: usize = 1_024;

// --- the administrator's view of NFS clients -----------------------------------------------------

/// Addresses of one NFSv4 client that are remembered for the administrator: of a machine with more
/// addresses the latest ones are shown.
pub const NFS4_CLIENT_ADDRESSES_MAX: usize = 8;
/// Rows of clients, opens or locks in one response of the API: a response of a few megabytes, which
/// indicates when there are more.
pub const API_STATE_ROWS_MAX: usize = 10_000;
/// Counting the table of opens and locks for statistics may take one part in this many of one core:
/// a table that takes longer is counted less often than once a second.
pub const STATE_TALLY_COST: u32 = 50;
/// Characters that are shown of the name of a peer or of its owners.
pub const SHOWN_NAME_MAX: usize = 256;

// --- vfs: changes by others ---------------------------------------------------------------------

/// Bytes of events of changed files that are read from the kernel at once: 256 events.
pub const WATCH_EVENTS_BYTES: usize = 4 << 10;

// --- NFSv4: names of owners ---------------------------------------------------------------------

/// Bytes of a file of users or groups that are read: some hundred thousand lines.
pub const NFS4_NAMES_FILE_MAX: u64 = 16 << 20;
