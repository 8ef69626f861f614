//! Limits of the link emulator (`plimsoll bridge`). Part of [`super`], where all others are.

use std::time::Duration;

// --- lab: the emulated link -------------------------------------------------------------------

/// Largest packet that a device hands over at once, its header of offloads apart: what the kernel
/// makes of segments that go together.
pub const BRIDGE_PACKET_MAX: usize = 64 << 10;
/// Smallest segment that a packet is cut into: below the smallest MSS that Linux takes (48), a
/// packet of 64 KiB would be thousands.
pub const BRIDGE_SEGMENT_MIN: usize = 48;
/// Bytes that one direction may have in flight. 10 Gbit/s at 400 ms; beyond it packets are dropped,
/// which spoils the run.
pub const BRIDGE_FLIGHT_BYTES: u64 = 512 << 20;
/// Pieces that one direction may have in flight: each costs some hundred bytes in addition to its
/// content.
pub const BRIDGE_FLIGHT_PIECES: usize = 1 << 20;
/// Segments of one packet that follow each other within this time leave together, when the last one
/// is due: at 1 Gbit/s 16 of them, at 50 Mbit/s each alone. A fifth of the 1 ms that delay may be
/// off by, and a system call for each segment would cost half a core at 1 Gbit/s.
pub const BRIDGE_TRAIN: Duration = Duration::from_micros(200);
/// A direction looks at its clock at least so often, so that a thread that was not let run finds
/// out, and how long. Costs below 1 % of a core.
pub const BRIDGE_TICK: Duration = Duration::from_millis(1);
/// Packets read, and pieces delivered, before the clock is looked at again: with 64 KiB each they
/// take half a millisecond, so that a longer turn was one in which the thread was not let run.
pub const BRIDGE_BATCH: usize = 8;
/// Packets that the kernel keeps for a direction that is not reading: 10 ms at 10 Gbit/s of
/// 1500 bytes each.
pub const BRIDGE_DEVICE_QUEUE: u32 = 10_000;
/// Lateness that is never held against a run: what `plimsoll bridge` promises.
pub const BRIDGE_LATE_MIN: Duration = Duration::from_millis(1);
/// Lateness that is tolerated, as a part of the round trip, where that is more.
pub const BRIDGE_LATE_OF_RTT: f64 = 0.01;
/// Packets that may be later than tolerated, as a part of all; as a part of the time, how long a
/// direction may not have been let run: the 99th percentile decides.
pub const BRIDGE_SPOILED_SHARE: f64 = 0.01;
/// One pause of a direction that spoils a run however long that is: TCP sees it as an outage.
pub const BRIDGE_PAUSE_MAX: Duration = Duration::from_millis(100);
/// Longest delay: 30 s is the way to the moon and back a dozen times.
pub const BRIDGE_DELAY_MAX: Duration = Duration::from_secs(30);
/// Highest rate in bits per second; the time of a byte is then 80 ps, kept exactly.
pub const BRIDGE_RATE_MAX: u64 = 100_000_000_000;
/// Lowest rate in bits per second.
pub const BRIDGE_RATE_MIN: u64 = 1_000;
/// Round trip that `queue=auto` counts at least, so that a short link has room for bursts.
pub const BRIDGE_QUEUE_RTT_MIN: Duration = Duration::from_millis(20);
/// The least that `queue=auto` gives: one packet of the kernel's, with all its segments, and a bit.
pub const BRIDGE_QUEUE_MIN: u64 = 128 << 10;
/// Longest line between a bridge and the program that controls it.
pub const BRIDGE_LINE_MAX: usize = 64 << 10;
/// How long a bridge waits for the line of a connected program; it serves one at a time.
pub const BRIDGE_ASK_MAX: Duration = Duration::from_secs(2);
/// Bridges that a server queries each second for its statistics: a machine has cores for a few.
pub const BRIDGES_WATCHED_MAX: usize = 16;
/// How long all of them together may take to answer, of the second that is put together: an answer
/// takes less than a millisecond, and one that its machine does not let run is queried again.
pub const BRIDGES_WATCH_WAIT: Duration = Duration::from_millis(50);
/// Longest name: the device is named after it, and Linux has 15 bytes for that.
pub const BRIDGE_NAME_MAX: usize = 15;

// --- wire: frames between two hosts -----------------------------------------------------------

/// Frames that may come out of order: those of 25 ms at 1 Gbit/s. An older one is refused, since it
/// may be a duplicate.
pub const BRIDGE_REPLAY_WINDOW: u64 = 2_048;
/// Largest frame on the way between two hosts: fits into an Ethernet packet with IPv6 and UDP.
pub const BRIDGE_DATAGRAM_MAX: usize = 1_452;
/// How often the calling side repeats its greeting until there is a reply, and both send a
/// keepalive.
pub const BRIDGE_CALL_EVERY: Duration = Duration::from_millis(250);
/// A peer that sends nothing for this long is called again: a dozen keepalives were lost.
pub const BRIDGE_SILENCE_MAX: Duration = Duration::from_secs(3);
/// Frames that the kernel may keep for the end of a pair, in bytes; it gives what it may.
pub const BRIDGE_SOCKET_BUFFER: usize = 8 << 20;

// --- lab: sweeps over the emulated link -------------------------------------------------------

/// Most points of a sweep: at some seconds for each repetition, a day.
pub const SWEEP_POINTS_MAX: usize = 1_000;
/// Most connections at once: each has two threads.
pub const SWEEP_CONNECTIONS_MAX: u32 = 64;
/// Smallest window or block: 64 KiB of the source at 100 Mbit/s are some 800 bytes.
pub const SWEEP_WINDOW_MIN: u64 = 64;
/// Largest: what 512 MB of the source are at 1 Gbit/s, with room; the way holds little more.
pub const SWEEP_WINDOW_MAX: u64 = 128 << 20;
/// Bytes that a connection may always have in flight: some packets of the largest kind.
pub const SWEEP_FLIGHT_MIN: u64 = 256 << 10;
/// A point counts only after this long, ...
pub const SWEEP_WARM: Duration = Duration::from_millis(300);
/// ... this many round trips, in which TCP's window doubles from 14 KB to 64 MB, ...
pub const SWEEP_WARM_RTTS: f64 = 14.0;
/// ... and this many blocks. It then counts for ...
pub const SWEEP_WARM_BLOCKS: f64 = 2.0;
/// ... this long, ...
pub const SWEEP_MEASURED: Duration = Duration::from_secs(1);
/// ... this many round trips, ...
pub const SWEEP_RTTS: f64 = 8.0;
/// ... and this many blocks.
pub const SWEEP_BLOCKS: f64 = 4.0;
/// A folder for temporary files that is younger is not taken for left behind, whatever it looks
/// like: making it and locking it are two steps.
pub const LAB_FOLDER_YOUNG: Duration = Duration::from_secs(10);
/// Round trips with nothing else in flight by which the distance is measured, at least, ...
pub const SWEEP_PROBES: u64 = 5;
/// ... and for how long: short ones vary with what else the machine does.
pub const SWEEP_PROBED: Duration = Duration::from_millis(300);
/// How often a point is measured that the link itself has spoiled.
pub const SWEEP_ATTEMPTS: u32 = 4;
/// By how much, in percent, a point may be off the model before the sweep reports it.
pub const SWEEP_OFF_PERCENT: f64 = 10.0;
/// Blocks of a file that an NFS client reads repeatedly: files of all clients together stay in
/// memory.
pub const SWEEP_FILE_BLOCKS: u64 = 4;
/// How many times what the link carries in a point's time a file is that is fetched: it is sparse,
/// and must not end before the point does, since the next one begins with some round trips.
pub const SWEEP_FILE_TIMES: f64 = 2.0;
/// The link of a point ends automatically after this long, should nothing else end it.
pub const SWEEP_LINK_MAX: Duration = Duration::from_secs(600);
