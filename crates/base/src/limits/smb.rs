//! Limits of SMB: messages, sessions, opens. Part of [`super`], where all others are.

use std::time::Duration;

// --- wire: what a peer may send ---------------------------------------------------------------

/// Most bytes of one READ or WRITE, reported as MaxReadSize and MaxWriteSize: what Linux sends by
/// default in SMB 3, and a quarter of it in 2.1. More does not make anything faster here.
pub const SMB_IO_MAX: usize = 4 << 20;
/// Most bytes of input or output of QUERY, SET and IOCTL: a thousand entries of a listing.
pub const SMB_TRANSACT_MAX: usize = 1 << 20;
/// Largest message: a WRITE of [`SMB_IO_MAX`], its header, and what encrypts it; a compound of
/// small requests is far below.
pub const SMB_MESSAGE_MAX: usize = SMB_IO_MAX + (64 << 10);
/// Largest message before a user has signed in: a negotiation, or a SPNEGO token with every field
/// as long as it may be.
pub const SMB_UNSIGNED_MESSAGE_MAX: usize = 128 << 10;
/// Most bytes of a SPNEGO token. NTLM needs a thousand; Kerberos tickets of users in hundreds of
/// groups would take 48 KiB.
pub const SMB_BLOB_MAX: usize = 64 << 10;
/// Longest path or pattern in a request, in bytes of UTF-16: 32,767 units, as in Windows.
pub const SMB_PATH_MAX: usize = 64 << 10;
/// Longest pattern of QUERY_DIRECTORY, in bytes of UTF-16: twice the longest name. To match a name
/// takes as many steps as the product of both lengths.
pub const SMB_PATTERN_MAX: usize = 1 << 10;
/// Most dialects in NEGOTIATE; there are six.
pub const SMB_DIALECTS_MAX: usize = 64;
/// Most contexts of one NEGOTIATE or CREATE, and most algorithms of one context: there are ten.
pub const SMB_CONTEXTS_MAX: usize = 32;
/// Most bytes of the contexts of a CREATE: a security descriptor and extended attributes.
pub const SMB_CREATE_CONTEXTS_BYTES: usize = 128 << 10;
/// Most ranges of one LOCK, as in Windows and Samba.
pub const SMB_LOCKS_MAX: usize = 64;
/// Most entries of an access control list that is set: what fits 64 KiB (MS-DTYP §2.4.5).
pub const SMB_ACES_MAX: usize = 1_820;
/// Most chunks of one COPYCHUNK, as in Windows (MS-SMB2 §3.3.3).
pub const SMB_COPY_CHUNKS_MAX: usize = 256;
/// Most bytes of one chunk, as in Windows.
pub const SMB_COPY_CHUNK_MAX: u32 = 1 << 20;
/// Most bytes of all chunks of one COPYCHUNK, as in Windows.
pub const SMB_COPY_TOTAL_MAX: u32 = 16 << 20;
/// Bytes that SET_ZERO_DATA writes in one turn on the pool, where the file system makes no holes:
/// as many as a chunk of a copy.
pub const SMB_ZERO_PIECE: usize = SMB_COPY_CHUNK_MAX as usize;
/// Most presentation contexts of one bind; clients send one to three.
pub const SMB_RPC_CONTEXTS_MAX: usize = 16;
/// Most bytes of one PDU of RPC, as in Windows and Samba.
pub const SMB_RPC_FRAGMENT: usize = 4_280;

// --- serve: sessions and requests ---------------------------------------------------------------

/// Requests of one compound: clients send two to five.
pub const SMB_COMPOUND_MAX: usize = 64;
/// Most bytes that the requests of one compound are answered with, headers apart: two of the
/// largest. They are in one frame, with a length of 24 bits.
pub const SMB_COMPOUND_REPLY_MAX: u64 = 2 * SMB_IO_MAX as u64;
/// Time for a frame from its first byte to its last: 4 MiB at the rate that NFS has for a record.
pub const SMB_FRAME_TIME_MAX: Duration = Duration::from_secs(120);
/// Credits that a connection can have, as in Windows and Samba: 8,192 of 64 KiB, or 128 requests of
/// 4 MiB. How many are carried out at once, [`SMB_REQUESTS_MAX`] and [`SMB_FLIGHT_BYTES`] say.
pub const SMB_CREDITS_MAX: u16 = 8_192;
/// Credits before a user has signed in: a negotiation and a few sign-ins at once.
pub const SMB_UNSIGNED_CREDITS_MAX: u16 = 64;
/// Requests of a connection that are carried out at once; others wait in the socket.
pub const SMB_REQUESTS_MAX: usize = 128;
/// Requests of a connection that wait for another client, such as a LOCK for a range that is
/// locked: as many as Windows permits (`AsynchronousCredits`). More fail with
/// STATUS_INSUFFICIENT_RESOURCES (MS-SMB2 §3.3.4.2). They are not in [`SMB_REQUESTS_MAX`], so that
/// ECHO, CANCEL and what ends a wait are always taken.
pub const SMB_WAITING_MAX: usize = 512;
/// Bytes that these hold: half of what a connection may hold, 16 KiB each.
pub const SMB_WAITING_BYTES: usize = SMB_FLIGHT_BYTES / 2;
/// Most bytes that requests of a connection hold before no more are taken: four of the largest.
pub const SMB_FLIGHT_BYTES: usize = 4 * SMB_MESSAGE_MAX;
/// Sessions of one connection: terminal servers have one for each user.
pub const SMB_SESSIONS_PER_CONNECTION: usize = 256;
/// Trees of one session.
pub const SMB_TREES_MAX: usize = 256;
/// Opens of one session; Samba has 16,384 in all.
pub const SMB_OPENS_MAX: usize = 16_384;
/// What opens take in all, in units of [`SMB_OPEN_UNIT`]: one or two each, some 256 MiB.
pub const SMB_OPEN_UNITS_MAX: usize = 262_144;
/// The same of one client (an address): a quarter, so that no two use up all.
pub const SMB_OPEN_UNITS_PER_CLIENT: usize = SMB_OPEN_UNITS_MAX / 4;
/// Bytes of an open's path, with what its parts take, that count as one more open.
pub const SMB_OPEN_UNIT: usize = 1 << 10;
/// Ranges that one open has locked at once.
pub const SMB_RANGES_MAX: usize = 4_096;
/// Listings of one connection that have entries in memory: a walk needs one for each level that it
/// is in.
pub const SMB_LISTINGS_MAX: usize = 256;
/// Sign-ins of one connection that have begun and not ended; the oldest makes room for another.
pub const SMB_SETUPS_MAX: usize = 8;
/// Bytes that are kept of each word of a sign-in: those of Windows have a hundred.
pub const SMB_SETUP_KEPT_MAX: usize = 2 << 10;
/// Words of one sign-in: NTLM has two, an optimistic guess of another mechanism one more.
pub const SMB_SETUP_ROUNDS_MAX: u32 = 8;
/// How often it is looked at whether users and shares are what they were when they were signed in
/// and connected to.
pub const SMB_LOOK: Duration = Duration::from_secs(2);
/// How often a lease is asked for while the file, or another one with the same number, is being
/// changed: such a change takes microseconds, and without a lease nothing is lost but its use.
pub const SMB_LEASE_TRIES: usize = 4;
/// Time until a user must have signed in.
pub const SMB_SIGN_IN_TIME_MAX: Duration = Duration::from_secs(45);
/// How long a connection without open files may be silent, as in Windows (`autodisconnect`):
/// clients reconnect when they need it.
pub const SMB_IDLE: Duration = Duration::from_secs(900);
/// Least time between two replies to CHANGE_NOTIFY of one open: its client lists the directory
/// after each, and what changes meanwhile is in the next.
pub const SMB_NOTIFY_PAUSE: Duration = Duration::from_secs(1);
/// How long a request takes before an interim response reports that it will take longer: below the
/// time in which clients retry, above nearly everything that a disk does.
pub const SMB_PENDING_AFTER: Duration = Duration::from_millis(500);
/// Steps of one search for a name in another case: entries of a directory that are looked at.
pub const SMB_FOLD_ENTRIES_MAX: usize = 100_000;
/// Bytes of the names of directories that are kept, so that a name in another case needs no such
/// search: some 600,000 names of usual length.
pub const SMB_FOLD_INDEX_BYTES: usize = 64 << 20;
/// Bytes that one such name takes in addition to itself: its hash, and what its allocation does.
pub const SMB_FOLD_NAME_BYTES: usize = 72;
/// The same of one such directory; one without names counts too.
pub const SMB_FOLD_DIR_BYTES: usize = 256;
/// Work of one frame, whatever requests are in it, in entries of directories that are looked at
/// (0.5 µs each): searches for names in another case, steps along paths and links, chunks that are
/// copied. Twice the largest search, some 100 ms of a processor.
pub const SMB_WORK_MAX: usize = 2 * SMB_FOLD_ENTRIES_MAX;
/// What one step along a path counts: a look-up takes as long as this number of entries.
pub const SMB_WORK_STEP: usize = 4;
/// What one directory above another counts, where it is looked whether something open lies below.
pub const SMB_WORK_ANCESTOR: usize = 6;
/// Bytes of a copy on the server that count as one entry: 16 MiB, the most of one request, are a
/// twelfth of [`SMB_WORK_MAX`].
pub const SMB_WORK_COPIED: u64 = 1 << 10;
/// Names that one QUERY_DIRECTORY compares with its pattern before it returns what it has found.
pub const SMB_SCAN_ENOUGH: usize = 16_384;
/// What one entry that QUERY_DIRECTORY returns counts: its attributes, and what is stored
/// separately, are looked at.
pub const SMB_WORK_ENTRY: usize = 10;
/// Bytes of names that are compared with a pattern, and a third of the units of the pattern, for
/// which a name counts once more, in addition to once for itself: without a match some 100,000
/// names of ordinary length are compared.
pub const SMB_WORK_UNITS: usize = 32;
/// Files for which the change time that a client has set is remembered after they are closed: those
/// of a copy in progress; 64 KiB.
pub const SMB_CHANGE_TIMES_MAX: usize = 1_024;
/// Opens that wait for their client after its connection was lost (durable handles): as many as
/// Samba's have in all (`max open files`). One address takes three quarters of what others leave at
/// most, one client three quarters of that; those beyond it are closed with their connection.
pub const SMB_PARKED_MAX: u64 = 16_384;
/// Persistent handles in all: those of clients with a connection, and those that wait for their
/// client after a restart. Parts of addresses and clients as of [`SMB_PARKED_MAX`].
pub const SMB_HANDLES_MAX: u64 = 16_384;
/// Bytes of the record of a persistent handle: a path of the greatest length, and
/// [`SMB_RANGES_MAX`] locks of 17 bytes each.
pub const SMB_HANDLE_RECORD_MAX: usize = 128 << 10;
/// Bytes of all records: some 4 KiB for each of [`SMB_HANDLES_MAX`], which is in memory as well.
pub const SMB_HANDLE_RECORDS_MAX: u64 = 64 << 20;
/// Bytes of the file of records. It is rewritten before it is longer, and must hold all.
pub const SMB_HANDLES_FILE_MAX: u64 = 4 * SMB_HANDLE_RECORDS_MAX;
/// Changes of records that one flush serves: as many as requests of a connection wait.
pub const SMB_HANDLES_GROUP: usize = SMB_WAITING_MAX;
/// How long a durable handle of version 1 waits for its client: as Samba and Windows, which report
/// no time.
pub const SMB_DURABLE_V1: Duration = Duration::from_secs(960);
/// How long one of version 2 waits if its client has no wish (MS-SMB2 §3.3.5.9.10).
pub const SMB_DURABLE_V2: Duration = Duration::from_secs(60);
/// The longest time that a client can ask for, as in Windows and Samba.
pub const SMB_DURABLE_V2_MAX: Duration = Duration::from_secs(300);
/// How often it is looked which opens have waited too long, and which leases were not acknowledged
/// in time: both times are of whole seconds.
pub const SMB_SWEEP: Duration = Duration::from_secs(1);
/// Opens that wait for their client of which user and share are looked at in one piece: some 50 µs,
/// after which other requests of the core are carried out.
pub const SMB_SWEEP_PIECE: usize = 256;
/// CREATEs of a session with several connections that waited for another client when theirs was
/// lost, and of which the number is remembered: as many as one connection has in flight.
pub const SMB_LOST_CREATES_MAX: usize = SMB_REQUESTS_MAX;
/// How long a client that continues an open waits until the end of its old connection is noticed:
/// the end of a stream can be read a little later than the first requests of the next one.
pub const SMB_RECONNECT_WAIT: Duration = Duration::from_millis(500);
/// The same if the client has named its old session as one that has ended (PreviousSessionId): what
/// is carried out for that meanwhile ends first.
pub const SMB_PREVIOUS_WAIT: Duration = Duration::from_secs(5);
/// How long a session that ends waits for requests that are carried out with its durable handles;
/// a handle that is in use longer is closed.
pub const SMB_PARK_WAIT: Duration = Duration::from_secs(2);
/// Bytes that a pipe holds for its reader: a list of ten thousand shares.
pub const SMB_PIPE_BYTES_MAX: usize = 1 << 20;
/// Bytes of an extended attribute that are cached of a file: `user.DOSATTRIB` has 24 as Plimsoll
/// writes it, and some more as Samba does.
pub const XATTR_CACHED_MAX: usize = 128;
