//! Limits of the services that transfer files: FTP, SFTP, HTTP.

use std::time::Duration;

/// Longest path that a client of these services may name, in bytes: PATH_MAX of Linux.
pub const TRANSFER_PATH_MAX: usize = 4096;
/// Most parts of such a path.
pub const TRANSFER_PARTS_MAX: usize = 256;
/// Most symbolic links that are followed on the way to one file: MAXSYMLINKS of Linux.
pub const TRANSFER_LINKS_MAX: usize = 40;
/// Parts that are gone in all on the way to one file, those of links included: with links of links
/// of the longest paths it would be thousands, for each entry of a listing that follows them. This
/// is the longest path, and three links as long; some 300 µs.
pub const TRANSFER_STEPS_MAX: usize = 4 * TRANSFER_PARTS_MAX;
/// How often a file that is replaced between two steps of opening it is looked up: each time finds
/// the newest, and only constant replacement makes it fail.
pub const TRANSFER_OPEN_TRIES: usize = 8;
/// Bytes of a file that are read or written at once: one trip to a pool thread (some 10 µs) for
/// each is little compared with copying them (some 50 µs).
pub const TRANSFER_PIECE: usize = 256 << 10;
/// Bytes of a file that the kernel is asked to send at once unencrypted: the cost of the checks
/// before each call is negligible for this many, and other connections of the core wait no longer
/// than for them, some 100 µs.
pub const TRANSFER_SEND_PIECE: usize = 1 << 20;
/// Bytes of a file that is not in memory that are requested from its disk at once: the kernel takes
/// no more than its own read-ahead from one call, which is this by default.
pub const READ_AHEAD: usize = 128 << 10;
/// Entries of a directory that are looked at in one go: about a millisecond.
pub const TRANSFER_LIST_BATCH: usize = 512;
/// Entries that are read for such a batch, those that are hidden or that a filter leaves out among
/// them: a directory of nothing but those must not make the batch as long as the directory.
pub const TRANSFER_LIST_LOOKED_MAX: usize = 4 * TRANSFER_LIST_BATCH;
/// Names that are read for a batch where only names are needed or compared with a pattern: some
/// 5 ms at 300 ns each.
pub const TRANSFER_LIST_SCANNED_MAX: usize = 32 * TRANSFER_LIST_BATCH;
/// Parts that are gone beyond the directory for a symbolic link of a listing that shows where its
/// links lead. Links that are longer are shown as links: with [`TRANSFER_STEPS_MAX`] a directory
/// of 50,000 links would take a quarter of a minute.
pub const TRANSFER_LISTED_STEPS_MAX: usize = 64;
/// Links that are resolved in one go: at most 2,048 parts, some 10 ms.
pub const TRANSFER_LISTED_LINKS: usize = 32;
/// Bytes that must be free for such a batch before it is read: some 200 for each entry with a short
/// name. What it really takes is counted as soon as it is known.
pub const TRANSFER_LIST_BATCH_BYTES: usize = 128 << 10;
/// What a core may hold of its bytes for entries of listings and answers of pipes, which are held
/// between requests, is this part: READ and WRITE of others always have the rest.
pub const HELD_PART: usize = 2;
/// One client may hold this part of a core's bytes so; beyond it the entries of the client's own
/// listings that are idle are dropped, and read again when the client continues them.
pub const HELD_CLIENT_PART: usize = 16;
/// What one client may hold so at least, however small the machine is: eight batches.
pub const HELD_CLIENT_MIN: usize = 8 * TRANSFER_LIST_BATCH_BYTES;
/// How long an operation waits for a place in the pool before the client is asked to retry.
pub const POOL_PATIENCE: Duration = Duration::from_secs(30);
/// How long an operation waits for a client to return a delegation beyond the time in which that
/// must be done, before its own client is asked to retry: clients of these services do not retry
/// automatically. The delegation is revoked within a second after that time.
pub const RECALL_PATIENCE: Duration = Duration::from_secs(15);
/// How soon an operation is tried again that was refused as busy while no lease is in its way: the
/// files of its share are being exchanged (a pool goes back to a snapshot), or as many removed
/// files are held open as may be. Nothing signals the end of either, and both are rare; the change
/// of a lease, and the end of a grace period, wake what waits for them.
pub const BUSY_LOOK: Duration = Duration::from_millis(20);
/// Threads that hash passwords for these services: each hash takes 19 MiB and 20 ms of a core, and
/// strangers cause it.
pub const SIGN_IN_THREADS: usize = 2;
/// Sign-ins that may wait for one of them; more are refused.
pub const SIGN_IN_QUEUE_MAX: usize = 256;
/// The same of one address, or of a /64 of IPv6; its sign-ins are checked one after the other.
pub const SIGN_IN_QUEUE_CLIENT_MAX: usize = SIGN_IN_QUEUE_MAX / 4;

/// How long ago the temporary file of another server's upload must have been changed to be taken
/// for left behind. Twice as long as an upload in parts may rest ([`HTTP_UPLOAD_IDLE`]), which is
/// the longest that any may go without a byte.
///
/// [`HTTP_UPLOAD_IDLE`]: super::HTTP_UPLOAD_IDLE
pub const UPLOAD_FOREIGN_AGE: Duration = Duration::from_secs(2 * 24 * 3600);
