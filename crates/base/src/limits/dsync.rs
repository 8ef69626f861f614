//! Limits of dsync: frames, what is in flight, what is kept in memory. Part of [`super`], where
//! all others are.

use std::time::Duration;

// --- wire: what the other side may send -------------------------------------------------------

/// Largest frame, its length word apart: an entry with the most extended attributes that we carry
/// fits, and so does a piece of a file.
pub const DSYNC_FRAME_MAX: usize = 1 << 20;
/// Bytes of a file in one frame: large enough that a frame's own cost does not count, small enough
/// that a slow link shows progress.
pub const DSYNC_PIECE: usize = 256 << 10;
/// Most entries of a directory in one frame.
pub const DSYNC_ENTRIES_MAX: usize = 4_096;
/// Bytes of entries that are gathered before a frame of them leaves.
pub const DSYNC_ENTRIES_BYTES: usize = 64 << 10;
/// Most extended attributes of one entry; file systems hold some tens.
pub const DSYNC_XATTRS_MAX: usize = 256;
/// Most bytes of the extended attributes of one entry, names included: eight of the longest values
/// that Linux has.
pub const DSYNC_XATTRS_BYTES: usize = 512 << 10;
/// Most rules of a run, those of files of rules included.
pub const DSYNC_RULES_MAX: usize = 1_000;
/// Longest pattern of a rule, so that the most rules of the longest kind fit into a frame's half.
pub const DSYNC_PATTERN_MAX: usize = 512;
/// Longest sentence for people.
pub const DSYNC_TEXT_MAX: usize = 1_024;
/// Longest directory of the answering side, as it is named there.
pub const DSYNC_PLACE_MAX: usize = super::PATH_MAX;
/// Most sums of blocks in one frame: 24 bytes each, half a frame.
pub const DSYNC_SUMS_MAX: usize = 20_000;
/// Longest address of a machine, as text: IPv6 with a zone.
pub const DSYNC_ADDRESS_MAX: usize = 64;

/// Longest name of an owner or a group: Linux has 32 bytes, directory services have more.
pub const DSYNC_OWNER_MAX: usize = 256;

// --- sync: streams for data -------------------------------------------------------------------

/// Most streams of a run: 1 Gbit/s at a round trip of 200 ms is 25 MB, which some 16 streams hold
/// with the 2 MB of window that Linux gives each by default; more help where packets get lost. Each
/// costs a thread and a socket at both sides.
pub const DSYNC_STREAMS_MAX: usize = 64;
/// By how much the rate must have increased for the number of streams to be doubled again, in
/// percent: more than a rate varies anyway, less than what twice as many bring where they are the
/// limit.
pub const DSYNC_GROWTH_PERCENT: u64 = 25;
/// Shortest time over which a rate is measured, in nanoseconds: long enough not to be noise.
pub const DSYNC_GROWTH_NS: u64 = 200_000_000;
/// Round trips over which a rate is measured: what a new stream brings is seen after one.
pub const DSYNC_GROWTH_TRIPS: u64 = 2;
/// Periods without an increase of the rate; their mean is the rate of the current number of
/// streams: where windows open, or packets get lost, a single period is not significant.
pub const DSYNC_GROWTH_CALM: u64 = 2;
/// Round trip from which a run begins with [`DSYNC_STREAMS_FAR`] streams, in nanoseconds: below it
/// one stream has grown to 1 Gbit/s within the time over which the first rate is measured.
pub const DSYNC_FAR_NS: u64 = 20_000_000;
/// It then begins with one stream for each of this many nanoseconds of it: TCP begins each with
/// some ten packets and doubles that with each round trip, so four begin where one is after two of
/// them, ...
pub const DSYNC_STREAM_EACH_NS: u64 = 5_000_000;
/// ... and sixteen after four. More would fill a link of 10 Mbit/s at 200 ms as they begin.
pub const DSYNC_STREAMS_FAR: usize = 16;
/// A queue stands before the link when packets take longer than the minimum by this percentage, ...
pub const DSYNC_QUEUED_PERCENT: u64 = 25;
/// ... and by this many microseconds: less is caused by the hosts.
pub const DSYNC_QUEUED_US: u64 = 2_000;
/// Bytes of files that go over the control stream while streams for data have yet to come up, which
/// takes three round trips. What it carries in these, beginning slowly as every connection, is some
/// hundred KiB at most; without distance streams come up in about 10 ms, 1 MiB at 1 Gbit/s. More
/// would keep messages waiting behind it: at 10 Mbit/s they wait 0.8 s for this.
pub const DSYNC_EARLY: u64 = 1 << 20;
/// How long streams may keep a run waiting for them: three round trips of 300 ms. Then the control
/// stream carries on, [`DSYNC_EARLY`] with each [`DSYNC_TICK`] in which all before it has left.
pub const DSYNC_AWAITED: Duration = Duration::from_secs(1);
/// How long a stream may take to come up. A firewall that drops packets is detected after that
/// time, and the run continues over the one stream that it has.
pub const DSYNC_CONNECT_TIMEOUT: Duration = Duration::from_secs(4);
/// How long an unknown peer at the port may take for the handshake and the token.
pub const DSYNC_TOKEN_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections that have not shown the token yet: as many as a doubling brings at once. More are
/// closed.
pub const DSYNC_STREAMS_PENDING: usize = DSYNC_STREAMS_MAX;
/// Frames that wait for a stream: 16 MiB at most.
pub const DSYNC_BULK_QUEUE: usize = 64;
/// Unsent bytes in a stream's socket above which the kernel takes no more (TCP_NOTSENT_LOWAT):
/// frames that wait in the process go to whichever stream is free.
pub const DSYNC_NOTSENT: u32 = 512 << 10;
/// Parts of one file that have come with gaps between them: what lies in the sockets of the most
/// streams, in pieces of some KiB.
pub const DSYNC_GAPS_MAX: usize = 128 << 10;

/// Numbers of streams that a destination remembers, those that broke or never came up included:
/// each attempt to reach the other side takes one.
pub const DSYNC_STREAMS_EVER: usize = 4 * DSYNC_STREAMS_MAX;
/// Bytes that were given to streams and are not reported as taken: they are held to be sent over
/// another stream if one breaks. 10 Gbit/s at a round trip of 200 ms; beyond it the source waits.
pub const DSYNC_UNTAKEN: u64 = 256 << 20;
/// Bytes taken from a stream after which that is reported at once; less is reported with the next
/// tick.
pub const DSYNC_TAKEN_BYTES: u64 = 1 << 20;
/// How often taken bytes are reported, and streams are checked.
pub const DSYNC_TICK: Duration = Duration::from_millis(250);
/// How long a run waits before it reconnects after its connection broke: an ssh that was restarted
/// accepts connections then. Twice as long each time after, ...
pub const DSYNC_AGAIN_FIRST: Duration = Duration::from_secs(1);
/// ... and at most this long: an outage of a minute ends unnoticed.
pub const DSYNC_AGAIN_LONGEST: Duration = Duration::from_secs(60);
/// Exit code of ssh where it failed itself (ssh(1)), and not the program that it has started.
pub const DSYNC_SSH_FAILED: i32 = 255;
/// How long nothing of what a stream carries may be taken, while others make progress, before it is
/// abandoned: longer than TCP needs to recover a route that was lost for some seconds.
pub const DSYNC_STREAM_PATIENCE: Duration = Duration::from_secs(20);
/// Factor of that time if no other stream makes progress either: a disk may stand still for all.
pub const DSYNC_PATIENCE_ALONE: u32 = 6;

// --- sync: what a run holds -------------------------------------------------------------------

/// Bytes of entries that the source may be ahead of the destination's plan: 40 MB/s of them at a
/// round trip of 200 ms, and what the destination keeps of them at most.
pub const DSYNC_SCAN_WINDOW: u64 = 8 << 20;
/// Bytes that a run holds of names, of directories that wait to be walked, of files with several
/// names, and of data that was sent and not acknowledged, at either side: some 14 million names of
/// 20 bytes. A directory with more names is reported as failed; more directories that wait end the
/// run; more files with several names are copied as separate files; data waits.
pub const DSYNC_RUN_BYTES: u64 = 1 << 30;
/// The same of a run on a share, within the server: 1.8 million names.
pub const DSYNC_SHARE_RUN_BYTES: u64 = 128 << 20;
/// The same of all runs on shares.
pub const DSYNC_SHARE_BYTES: u64 = 512 << 20;
/// The same of the runs of one address: three runs as large as they may be. A quarter is left to
/// others, so that one of them can have all that a run may have.
pub const DSYNC_SHARE_BYTES_CLIENT_MAX: u64 = DSYNC_SHARE_BYTES / 4 * 3;
/// Bytes by which a run takes its part of the memory of all runs: a lock for some thousand names.
pub const DSYNC_RESERVE_STEP: u64 = 64 << 10;
/// What holding a name takes in addition to its bytes.
pub const DSYNC_NAME_OVERHEAD: u64 = 48;
/// Files that are asked for and not yet whole: small files of 16 KiB fill 1 Gbit/s at a round trip
/// of 200 ms with some 1 600 of them.
pub const DSYNC_NEEDS_MAX: usize = 4_096;
/// One in this many operations on files is timed for its wait, and counts for all: the clock of a
/// thread costs as much as a small operation. A small file takes some ten: not a multiple of this,
/// so that each kind is timed in turn.
pub const DSYNC_TIMED_EACH: u64 = 7;
/// Threads that read files at the source, and that write them at the destination: enough to have
/// a disk's queue filled, few enough for a small machine.
pub const DSYNC_THREADS: usize = 4;
/// Frames that wait for a thread which writes files: 8 MiB each at most.
pub const DSYNC_WRITE_QUEUE: usize = 32;
/// Frames that wait to be sent: the link is kept filled while a file is opened.
pub const DSYNC_SEND_QUEUE: usize = 64;
/// How long messages wait for more after the last send: far below the shortest round trip that
/// matters, and long enough for the messages about tens of small files.
pub const DSYNC_GATHER: Duration = Duration::from_millis(1);
/// How often it is checked meanwhile whether enough wait: half of [`DSYNC_SEND_QUEUE`].
pub const DSYNC_GATHER_LOOK: Duration = Duration::from_micros(250);
/// Bytes of frames that go out in one write: small files leave many at a time.
pub const DSYNC_SEND_BYTES: usize = 256 << 10;
/// Size from which a file is lent by a source to a destination of the same process: below it, to
/// ask costs as much as the bytes.
pub const DSYNC_LEND_MIN: u64 = 64 << 10;
/// How long ago a file must have been changed to be lent, in nanoseconds: its time of change is as
/// coarse as a tick of the kernel, 10 ms at most, and a change within the same would not be seen.
pub const DSYNC_STILL_NS: i128 = 20_000_000;
/// Bytes of a file that the kernel is asked to copy at once: progress is seen, and a run ends,
/// after that.
pub const DSYNC_LENT_MAX: u64 = 32 << 20;
/// Names of owners and groups of a run; what has others keeps its number.
pub const DSYNC_OWNERS_MAX: usize = 64 << 10;
/// Room for an entry of the name service: a group comes with all its members.
pub const DSYNC_OWNER_ENTRY_MAX: usize = 4 << 20;
/// Bytes out of the middle of a piece that are packed to see whether it shrinks: a thirty-second of
/// the work for what does not.
pub const DSYNC_PACK_SAMPLE: usize = 8 << 10;
/// Frames that must wait for the link before pieces are packed: then it is what limits the run.
pub const DSYNC_PACK_WAIT: usize = DSYNC_BULK_QUEUE / 8;
/// Files of several names that are remembered until all their names were found; more are copied as
/// files of their own, which is reported.
pub const DSYNC_LINKS_MAX: usize = 1_000_000;
/// Entries below which a path may lie: more than any path of PATH_MAX has.
pub const DSYNC_DEPTH_MAX: usize = super::PATH_MAX / 2;
/// Runs that answer on shares at once: each has a dozen threads that wait, and keeps a disk busy.
pub const DSYNC_SHARE_RUNS: usize = 16;
/// The same of one address: a quarter is left to others.
pub const DSYNC_SHARE_RUNS_CLIENT_MAX: usize = DSYNC_SHARE_RUNS / 4 * 3;
/// Operations of a run that wait to be recorded by the core of its connection.
pub const DSYNC_RECORDS: usize = 1_024;
/// Bytes that go from a run to its channel at once.
pub const DSYNC_SHARE_PIPE: usize = 64 << 10;
/// Nanoseconds between two reports of progress.
pub const DSYNC_PROGRESS_NS: u64 = 250_000_000;
/// Nanoseconds over which a displayed rate is measured: long enough to be read, short enough to be
/// true.
pub const DSYNC_RATE_NS: u64 = 2_000_000_000;
/// Longest single pause of a source with a limited rate: short enough for an even stream.
pub const DSYNC_PAUSE_NS: u64 = 100_000_000;
/// Size from which a changed file is sent by differences: below it, sums and answers cost as much
/// as the file.
pub const DSYNC_DELTA_MIN: u64 = 64 << 10;
/// Temporary files with blocks that are laid before it is known whether they stay: one for the file
/// that is compared, and one for the next, each of which may take the size of its file on the disk.
pub const DSYNC_LAID_MAX: usize = 2;
/// Consecutive blocks that are not at their positions, after which some are skipped: in a file with
/// an insertion no later block is at its position.
pub const DSYNC_MISSES: u64 = 64;
/// Bytes of a part between blocks at their positions that is sent before it can be known whether it
/// was moved there: what one write changes.
pub const DSYNC_EARLY_MAX: u64 = 1 << 20;
/// One in this many bytes of a file may be sent like that; it is wasted if all of the file has
/// moved.
pub const DSYNC_EARLY_OF: u64 = 32;
/// Parts of a file that may be left between blocks at their places: each is a gap at the other side
/// until it comes, which has room for as many again out of streams, and of those that are sent
/// early half of these. Behind them nothing is looked for at its place.
pub const DSYNC_LEFT_MAX: usize = DSYNC_GAPS_MAX / 2;
/// Smallest block that is compared.
pub const DSYNC_BLOCK_MIN: u64 = 4 << 10;
/// Largest block: it is held in memory, and sent whole when a byte of it has changed.
pub const DSYNC_BLOCK_MAX: u64 = 128 << 10;
/// Blocks for each of which a thread makes sums: 2 MiB and more, for less none is started.
pub const DSYNC_SUMS_EACH: usize = 512;
/// Most blocks of a file for which sums are sent; beyond 128 GiB a file is sent whole.
pub const DSYNC_BLOCKS_MAX: usize = 1 << 20;
/// Bytes of an index that is kept, at most: some hundred million entries.
pub const DSYNC_INDEX_MAX: u64 = 16 << 30;
/// Bytes of an index between two places that are remembered of it: a look for an entry reads so
/// much, and the places of the largest index take 8 MiB.
pub const DSYNC_INDEX_BLOCK: u64 = 16 << 10;
/// Bytes of what one side of an index is called: a host, and two paths of PATH_MAX.
pub const DSYNC_INDEX_PLACE_MAX: usize = 8 << 10;
/// The coarsest times of change that a file system keeps, in nanoseconds: FAT has every second
/// second. Times further apart are different ones.
pub const DSYNC_TIME_STEP_MAX_NS: u64 = 2_000_000_000;
/// How long ago a file must have been changed for its sum to be stored if change times are whole
/// seconds, in nanoseconds: as coarse as two seconds on FAT, and a bit.
pub const DSYNC_COARSE_NS: i128 = 2_100_000_000;

// --- runs on directories of shares within this machine ----------------------------------------

/// Files that a run may have open in the table of opens of the server that shares its directory:
/// those of all threads of a run, many times over.
pub const DSYNC_GUARD_OPENS_MAX: usize = 4_096;
/// Files and directories that a server hides, as it lists them to a run: folders and files of
/// all logical units, with what lies above them.
pub const DSYNC_GUARD_HIDDEN_MAX: usize = 65_536;
/// How soon a run retries a file that a client holds a delegation for.
pub const DSYNC_GUARD_AGAIN: Duration = Duration::from_millis(20);
/// How often a run that waits for the end of a grace period, which wakes it, checks whether it is
/// to continue: a change of its user's access to the share is no event. A run of replication, a
/// process without the table of locks, repeats its request this often. A grace period is long.
pub const DSYNC_GRACE_LOOK: Duration = Duration::from_millis(200);
