//! Limits of SSH connections.

use std::time::Duration;

/// Largest packet that is taken, in bytes, its own length not counted: what OpenSSH takes.
pub const SSH_PACKET_MAX: usize = 256 << 10;
/// Data that one packet of a channel may bring, in bytes: large enough that the cost of a packet
/// does not count, small enough that its plain text stays in the second-level cache.
pub const SSH_DATA_MAX: u32 = 64 << 10;
/// Clients without an algorithm in common with the service that its state lists.
pub const SSH_MISMATCHES_KEPT: usize = 8;
/// Bytes of a text from them that are retained: some twenty names of algorithms.
pub const SSH_MISMATCH_BYTES_MAX: usize = 400;
/// Such clients are at most one line of the log in this time.
pub const SSH_MISMATCH_LOG_EVERY: Duration = Duration::from_secs(60);
/// Window of a channel, in bytes, and so what a peer may have sent before it is read: 200 MB/s at
/// 20 ms, 40 MB/s at 100 ms.
pub const SSH_WINDOW: u32 = 4 << 20;
/// Window of a channel on which no server has begun, in bytes: nothing reads what arrives there,
/// and clients send their request first. It grows to [`SSH_WINDOW`] when the server begins.
pub const SSH_WINDOW_BEGIN: u32 = 32 << 10;
/// Channels of one connection that get the whole window; clients use one. Others work as well, only
/// not as fast over a long way.
pub const SSH_WINDOWS_MAX: usize = 4;
/// Bytes sealed for sending that wait for the socket; then channels wait. What the second-level
/// cache holds in addition to the data it is made from.
pub const SSH_SEND_BATCH: usize = 256 << 10;
/// Receive buffer of a connection that is doing something, in bytes: the largest packet, its length
/// and MAC, and some of the next.
pub const SSH_RECEIVE_BUFFER: usize = SSH_PACKET_MAX + (64 << 10);
/// Receive buffers that a core keeps for connections that wake up.
pub const SSH_BUFFERS_KEPT: usize = 16;
/// Longest line of a version, with its end (RFC 4253, section 4.2).
pub const SSH_VERSION_MAX: usize = 255;
/// Lines that a server may send before its version.
pub const SSH_LINES_MAX: usize = 64;
/// Answers that wait for the end of a key exchange, in bytes: the peer may still send requests
/// until it has seen that one has begun.
pub const SSH_HELD_MAX: usize = 256 << 10;
/// New keys are made after this time.
pub const SSH_REKEY_TIME: Duration = Duration::from_secs(3600);
/// New keys are made after this many packets in one direction, well before their 32-bit sequence
/// number wraps around (RFC 4344, section 3.1).
pub const SSH_REKEY_PACKETS: u64 = 1 << 31;
/// Time from the connection to the end of the authentication: OpenSSH's LoginGraceTime.
pub const SSH_LOGIN_TIME: Duration = Duration::from_secs(120);
/// Time from the connection to the first keys.
pub const SSH_HANDSHAKE_TIME: Duration = Duration::from_secs(20);
/// A key re-exchange must end within this time.
pub const SSH_REKEY_PATIENCE: Duration = Duration::from_secs(60);
/// Failed attempts of one connection to sign in: OpenSSH's MaxAuthTries.
pub const SSH_TRIES_MAX: u32 = 6;
/// Keys that a client may ask about before it signs: agents hold many, and asking costs little.
pub const SSH_KEY_QUESTIONS_MAX: u32 = 64;
/// Connections without a signed-in user: OpenSSH's MaxStartups is 100 at most.
pub const SSH_UNSIGNED_MAX: usize = 256;
/// The same from one address, so that one cannot use up all.
pub const SSH_UNSIGNED_PEER_MAX: usize = 64;
/// Penalty of a client for a connection that ends without a signed-in user: OpenSSH's
/// PerSourcePenalties `noauth`.
pub const SSH_PENALTY_NOBODY: Duration = Duration::from_secs(1);
/// The same for a connection that did not complete its authentication in time: `grace-exceeded`.
pub const SSH_PENALTY_LATE: Duration = Duration::from_secs(10);
/// A client with more than this on its account is turned away; time takes it off: `min`. It is
/// what a client may do in a hurry, and fewer than 20 connections a second, which ssh-audit calls
/// safe from those that only cause key exchanges (CVE-2002-20001).
pub const SSH_PENALTY_MIN: Duration = Duration::from_secs(15);
/// Most that is on an account: `max`.
pub const SSH_PENALTY_MAX: Duration = Duration::from_secs(600);
/// Accounts that are kept: `max-sources4`, some 50 bytes each.
pub const SSH_PENALTIES_KEPT: usize = 65_536;
/// Channels of one connection at once: OpenSSH's MaxSessions is 10.
pub const SSH_CHANNELS_MAX: usize = 16;
/// Longest user name and password, in bytes.
pub const SSH_NAME_MAX: usize = 255;
/// Longest password, in bytes: longer ones only cost time.
pub const SSH_PASSWORD_MAX: usize = 1024;
/// Lines of authorized keys of one user.
pub const SSH_KEYS_MAX: usize = 1024;
/// Connection requests other than data in a row that are answered without a pause of the channel:
/// one packet of them is answered with one packet, so memory is bounded by the send buffer. A
/// connection with a backlog of this many bytes in it is not read any more.
pub const SSH_BACKLOG_MAX: usize = 1 << 20;
/// Silence after which a peer that is signed in gets a keepalive.
pub const SSH_KEEPALIVE: Duration = Duration::from_secs(60);
/// Unanswered keepalives after which it is considered gone.
pub const SSH_KEEPALIVES_MAX: u32 = 3;
