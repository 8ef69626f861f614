//! Limits of SFTP: packets, what is in flight, handles. Part of [`super`], where all others are.

use super::PATH_MAX;

// --- wire: what a peer may send ---------------------------------------------------------------

/// Largest SFTP packet we take or send, its length word apart: OpenSSH's own figure, which its
/// client and WinSCP hold for the most that any server can have.
pub const SFTP_PACKET_MAX: usize = 256 << 10;
/// Most bytes of one READ or WRITE: a packet less what goes before the data, as OpenSSH cuts it.
pub const SFTP_IO_MAX: usize = SFTP_PACKET_MAX - 1024;
/// Longest path that is decoded. Longer than any path may be, so that one beyond PATH_MAX is
/// answered with a status of its own, not as a malformed message.
pub const SFTP_STRING_MAX: usize = 2 * PATH_MAX;
/// Longest handle (draft-ietf-secsh-filexfer-02 §6.3). Ours are 4 bytes.
pub const SFTP_HANDLE_MAX: usize = 256;
/// Most extensions that INIT or VERSION may list; OpenSSH lists a dozen.
pub const SFTP_EXTENSIONS_MAX: usize = 256;
/// Most extended attributes of one file that are decoded, to be ignored.
pub const SFTP_EXTENDED_ATTRS_MAX: usize = 64;
/// Most entries that a NAME reply may contain. A packet from Plimsoll is full before.
pub const SFTP_NAMES_MAX: usize = 8_192;
/// Most ids in one users-groups-by-id request: a packet's worth of a listing has fewer.
pub const SFTP_IDS_MAX: usize = 4_096;
/// Different user ids, and group ids, that one such request looks up; the others have no name in
/// the reply, and clients show their numbers. Each look goes through the files of accounts,
/// on the core of the connection.
pub const SFTP_IDS_LOOKED_MAX: usize = 256;

// --- serve: what a channel holds --------------------------------------------------------------

/// Requests of one channel in progress at once, those included that wait for others; the channel is
/// not read beyond. OpenSSH and rclone keep 64 in flight, sshfs about as many.
pub const SFTP_REQUESTS_MAX: usize = 128;
/// Bytes of data that the requests of one channel may hold; the channel is not read beyond. Eight
/// of the largest requests, or 64 of the 32 KiB that old clients send, fill a path of 20 ms at
/// 100 MB/s.
pub const SFTP_FLIGHT_BYTES: usize = 2 << 20;
/// Most open handles of one channel.
pub const SFTP_HANDLES_MAX: usize = 1_024;
/// Bytes of names in one answer to READDIR: libssh2 before version 1.2.8 took no packet beyond
/// 40 000 bytes, and more names at once make a listing no faster.
pub const SFTP_READDIR_BYTES: usize = 32 << 10;
/// Bytes of consecutive WRITEs that are written in one go: one trip to the pool for eight of the
/// 32 KiB that most clients send.
pub const SFTP_GATHER_BYTES: usize = super::TRANSFER_PIECE;
