//! Limits of HTTP.

use std::time::Duration;

/// Bytes of a request's target: a path of 4 KiB, percent-encoded, and what follows it.
pub const HTTP_TARGET_MAX: usize = 16 << 10;
/// Header fields of a request; browsers send some 20, proxies add a few.
pub const HTTP_HEADERS_MAX: usize = 100;
/// Bytes of a request's line and header fields: a long target, and as much again for cookies,
/// credentials and lock tokens.
pub const HTTP_HEAD_MAX: usize = 32 << 10;
/// Bytes of a chunk extension after the size of the chunk, which is ignored (RFC 9112 §7.1.1).
pub const HTTP_CHUNK_LINE_MAX: usize = 256;
/// Time from the first byte of a head to its last one: a head is one packet or two, and a client
/// that sends one byte a second occupies a connection that others need.
pub const HTTP_HEAD_TIME_MAX: Duration = Duration::from_secs(20);
/// Bytes of an unwanted body that are read nevertheless, so that the connection can continue; after
/// a longer one it is closed.
pub const HTTP_DRAIN_MAX: u64 = 256 << 10;
/// How long a peer that sends an unwanted body may take to read the response.
pub const HTTP_LINGER_MAX: Duration = Duration::from_secs(2);
/// Parts of a file that one request may contain; a PDF reader requests a handful. For more, the
/// entire file is sent (RFC 9110 §14.2).
pub const HTTP_RANGES_MAX: usize = 32;
/// Bytes of a body that is taken into memory: forms of the page.
pub const HTTP_FORM_MAX: usize = 16 << 10;
/// Bytes of an upload that are taken in one go: a small file is written by one trip to the pool.
pub const HTTP_SMALL_PUT_MAX: usize = 64 << 10;
/// Sign-ins that are remembered, of browsers and of clients that send their password each time.
pub const HTTP_SESSIONS_MAX: usize = 4_096;
/// How long a right password that comes with each request is believed without being checked again.
pub const HTTP_BASIC_FRESH: Duration = Duration::from_secs(300);
/// How long a browser stays signed in without a request, unless set otherwise.
pub const HTTP_SESSION_IDLE: Duration = Duration::from_secs(12 * 3600);
/// How long a browser stays signed in at most.
pub const HTTP_SESSION_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// Uploads in parts that are in progress at once, over all users.
pub const HTTP_UPLOADS_MAX: usize = 1_024;
/// Of these, those of one user.
pub const HTTP_UPLOADS_PER_USER: usize = 64;
/// The same of one address, whatever users it has: a quarter.
pub const HTTP_UPLOADS_PER_ADDRESS: usize = HTTP_UPLOADS_MAX / 4;
/// How long an upload in parts may rest before it is discarded.
pub const HTTP_UPLOAD_IDLE: Duration = Duration::from_secs(24 * 3600);
/// Entries of a directory that are sorted for a listing; a longer one comes in the order of the
/// file system, with a note. All of them are read for each page: some 80 ms.
pub const HTTP_LISTING_SORTED_MAX: usize = 10_000;
/// Rows of a page of a listing; the next ones have a page of their own. A browser shows that many
/// in half a second.
pub const HTTP_LISTING_PAGE: usize = 4 * super::TRANSFER_LIST_BATCH;
/// Rows of a listing that are sorted on a connection's own thread: some 200 µs.
pub const HTTP_LISTING_INLINE_MAX: usize = 512;
/// How long a request waits for its response before the connection is asked whether its client is
/// still there, and then between two such questions.
pub const HTTP_END_LOOK: Duration = Duration::from_millis(50);
/// Bytes of a page or an archive that are made before they are sent.
pub const HTTP_PIECE: usize = 64 << 10;
/// Directories within directories that an archive goes into.
pub const HTTP_ARCHIVE_DEPTH_MAX: usize = 128;
/// Entries of an archive: its table at the end is kept until then, at some 100 bytes each.
pub const HTTP_ARCHIVE_ENTRIES_MAX: usize = 1_000_000;
/// Bytes of that table: with long paths an entry takes up to 64 KiB, and a few archives together
/// are to fit what is held for all peers.
pub const HTTP_ARCHIVE_TABLE_MAX: usize = 64 << 20;
/// Streams of one connection of HTTP/2 at once: browsers want 100.
pub const HTTP2_STREAMS_MAX: u32 = 128;
/// Bytes that a stream takes in addition to the computation of its response and the header fields:
/// its state in the connection, the task that sends the response, and the head of the response. Of
/// 64 streams that wait for their peer, 4 KiB each were measured.
pub const HTTP2_STREAM_RECORD: usize = 4 << 10;
/// Bytes that must be free in the account, in addition to its header fields, for a stream to begin:
/// more than the computation of any response takes (55 KiB without optimisation).
pub const HTTP2_STREAM_ROOM: usize = 64 << 10;
/// Streams that a peer may open and reset before they are processed; then the connection is closed
/// (CVE-2023-44487).
pub const HTTP2_RESETS_MAX: usize = 64;
/// Bytes of request bodies in flight on one connection, all streams together.
pub const HTTP2_WINDOW: u32 = 1 << 20;
/// Bytes of answers that wait for the socket of one connection of HTTP/2, all streams together.
pub const HTTP2_SEND_BUFFER: usize = 512 << 10;
