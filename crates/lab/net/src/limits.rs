//! Bounds of profiles and of what runs them. A profile is text that a user wrote, possibly with a
//! mistake in a count: each bound refuses it in words before memory or threads are used up.

use std::time::Duration;

/// Bytes of a profile. The longest of uperf's own has 4 KiB.
pub const TEXT_MAX: usize = 1 << 20;
/// Elements within elements; a profile has four levels.
pub const DEPTH_MAX: usize = 8;
/// Elements of a profile.
pub const ELEMENTS_MAX: usize = 20_000;
/// Attributes of an element; a transaction has three.
pub const ATTRIBUTES_MAX: usize = 16;
/// Words in `options`; uperf takes 100.
pub const OPTIONS_MAX: usize = 100;
/// Notes of a profile, about options that are ignored.
pub const NOTES_MAX: usize = 100;
/// Groups of a profile.
pub const GROUPS_MAX: usize = 64;
/// Threads of all groups together: each is a thread at both ends. The largest of uperf's own
/// profiles has 3,000.
pub const THREADS_MAX: u32 = 4_096;
/// Connections that a thread has open at once under one number.
pub const CONNECTIONS_MAX: u32 = 10_000;
/// Hosts that a profile names, each with an agent.
pub const HOSTS_MAX: usize = 64;
/// Bytes of one transfer: the buffer that is sent from has this size.
pub const TRANSFER_MAX: u32 = 64 << 20;
/// Bytes of one datagram over IPv4.
pub const DATAGRAM_MAX: u32 = 65_507;
/// Bytes of one receive call at most: a buffer of each thread.
pub const RECEIVE_MAX: u32 = 256 << 10;
/// Files of one `sendfilev`.
pub const FILES_MAX: u32 = 10_000;
/// Bytes of the file that `sendfile` sends when the profile states no size.
pub const FILE_BYTES: u32 = 1 << 20;
/// Transactions of a second, for each thread.
pub const RATE_MAX: u32 = 10_000_000;
/// A transaction by duration ends after a day.
pub const DURATION_MAX: Duration = Duration::from_secs(86_400);
/// How long a call of a thread waits until it looks whether the transaction has ended.
pub const SLICE: Duration = Duration::from_millis(50);
/// How long a connection may make no progress, if its flowop has no `timeout`: then the peer is
/// named as the one that does not read, send, accept or connect.
pub const SILENCE_MAX: Duration = Duration::from_secs(10);
/// As much more for each thread of the profile: with thousands of threads on a few processors each
/// waits for its turn, of some milliseconds, behind all others.
pub const SILENCE_EACH: Duration = Duration::from_millis(10);
/// How long a peer has to state which connection it opens.
pub const HELLO_MAX: Duration = Duration::from_secs(5);
/// How often a datagram that opens a connection is repeated.
pub const HELLO_AGAIN: Duration = Duration::from_millis(100);
/// Connections that were accepted and have not stated which they are.
pub const STRANGERS_MAX: usize = 1_024;
/// Backlog of a listening socket (listen(2)): the value that uperf uses.
pub const BACKLOG: i32 = 10_240;
/// Faults of a transaction that an agent describes; it counts the others.
pub const FAULTS_MAX: usize = 16;
/// Stack of a thread: it runs one function that calls the kernel.
pub const STACK: usize = 256 << 10;
/// Windows of a transaction in which threads count, 24 bytes each: with four windows a second those
/// of the first hour. The result has as many.
pub const WINDOWS_MAX: usize = base::limits::LAB_WINDOWS_MAX;
/// Latencies that a thread collects before it adds them to those of its group.
pub const LATENCIES: usize = 256;
