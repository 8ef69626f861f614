//! Limits of FTP: what its two connections may bring, and how long they may take.

use std::time::Duration;

/// Longest command line in bytes, without its end: a path of `PATH_MAX`, every byte of it doubled
/// as Telnet wants it for 0xFF (RFC 854), and the verb.
pub const FTP_LINE_MAX: usize = 2 * super::PATH_MAX + 64;
/// Longest line of a reply that Plimsoll's client accepts: a path in it may be quoted and escaped.
pub const FTP_REPLY_LINE_MAX: usize = 4 * super::PATH_MAX;
/// Most lines of one reply that Plimsoll's client accepts: STAT of a directory is one reply.
pub const FTP_REPLY_LINES_MAX: usize = 65_536;
/// Bytes of commands that are taken from the control connection in one go.
pub const FTP_RECEIVE: usize = 4 << 10;
/// Commands that may come with the same segment before others get their turn.
pub const FTP_COMMANDS_PER_TURN: usize = 64;

/// Commands that may arrive during a transfer and are answered after it: clients send NOOP to keep
/// the connection alive, once or twice a minute.
pub const FTP_COMMANDS_HELD: usize = 64;

/// How often an upload from a client that seems to be gone lets the control connection be read
/// before the upload is aborted: what arrived before the end may be QUIT. One read receives all
/// that is available; a client that has filled the limit of pending commands is not read, and is
/// gone.
pub const FTP_END_LOOKS_MAX: usize = 64;

/// Connections at once, and from one address: what vsftpd and ProFTPD are set to where they are
/// limited at all, times ten; each costs a few KiB when idle.
pub const FTP_CONNECTIONS_MAX: usize = 5_000;
/// Connections from one address: clients open up to ten, and many may share an address.
pub const FTP_PER_ADDRESS_MAX: usize = 500;
/// Wrong passwords on one connection before it is closed (421).
pub const FTP_ATTEMPTS_MAX: u32 = 3;
/// Time without a command or data after which a connection is closed: RFC 1123 §4.1.3.2 wants five
/// minutes at least.
pub const FTP_IDLE: Duration = Duration::from_secs(900);
/// How often it is checked whether the user of a transfer still is one: one number is compared.
pub const FTP_USER_LOOK: Duration = Duration::from_secs(1);
/// Time until a user must have signed in: clients that only occupy a connection are disconnected.
pub const FTP_SIGN_IN_TIME_MAX: Duration = Duration::from_secs(120);
/// Time for the data connection to come about, its handshake included.
pub const FTP_DATA_WAIT: Duration = Duration::from_secs(30);
/// Time for the handshake of TLS on the control connection.
pub const FTP_HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(30);
/// A wrong password is answered after a multiple of this, so that the time does not reveal whether
/// the name exists.
pub const FTP_WRONG_STEP: Duration = Duration::from_millis(500);
/// Connections from other hosts to a port opened for PASV before it is closed: each is closed, and
/// the client can still connect.
pub const FTP_STRANGERS_MAX: usize = 16;
/// Ports tried in the range for PASV before it counts as full.
pub const FTP_PORTS_TRIED: usize = 64;

/// Data that is read, encrypted, or handed to the pool in one go.
pub const FTP_PIECE: usize = 256 << 10;
/// Data of an upload that is received before anything is made: a file that ends within it is made,
/// written and named in two steps.
pub const FTP_UPLOAD_FIRST: usize = 64 << 10;
/// Largest file for which SIZE is answered in ASCII type: it has to be read for that (RFC 3659 §4).
pub const FTP_ASCII_SIZE_MAX: u64 = 16 << 20;
/// Text of a listing that is gathered before it is sent.
pub const FTP_LISTING_PIECE: usize = 64 << 10;
/// Names that STAT lists on the control connection at most: some 60 ms of a processor. LIST, of
/// which the client takes the data as it comes, has no such limit.
pub const FTP_STAT_NAMES_MAX: usize = 4_000;
/// TLS sessions that the data connections of one control connection may resume: those of the
/// control connection itself, and the latest.
pub const FTP_SESSIONS_KEPT: usize = 16;
