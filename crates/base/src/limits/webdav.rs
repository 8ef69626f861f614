//! Limits of WebDAV: bodies, properties, locks.

use std::time::Duration;

/// Largest XML body of a request, in bytes: a PROPPATCH that fills [`DAV_PROPS_BYTES_MAX`], with
/// escapes; all other bodies are a few hundred bytes.
pub const DAV_BODY_MAX: usize = 256 << 10;
/// Nesting depth of elements in a body; those of RFC 4918 are six deep, the rest is for values.
pub const DAV_XML_DEPTH_MAX: usize = 32;
/// Elements and attributes of a body: what a long list of properties has, ten times over.
pub const DAV_XML_NODES_MAX: usize = 4_096;
/// Attributes of one element; declarations of namespaces count.
pub const DAV_XML_ATTRIBUTES_MAX: usize = 64;
/// Longest name of a namespace, an element or an attribute, in bytes. With [`DAV_XML_NODES_MAX`] it
/// bounds what rewriting a body can take.
pub const DAV_XML_NAME_MAX: usize = 1_024;
/// Properties named in one request.
pub const DAV_PROPS_ASKED_MAX: usize = 256;
/// Bytes of all dead properties of one file: the largest extended attribute of Linux.
pub const DAV_PROPS_BYTES_MAX: usize = 64 << 10;
/// Longest `If` header, in bytes: as much as a head may have of one line.
pub const DAV_IF_MAX: usize = 16 << 10;
/// Conditions of one `If` header; each costs a look at a file or at the locks.
pub const DAV_IF_CONDITIONS_MAX: usize = 256;
/// Bytes of `owner` that a lock keeps for other clients to read: a name and an address.
pub const DAV_LOCK_OWNER_MAX: usize = 4 << 10;
/// Directories above a locked file of which a lock keeps the inode numbers, 8 bytes each, so that
/// it is found below them by any path. Further up, only paths are compared.
pub const DAV_LOCK_ABOVE_MAX: usize = 128;
/// WebDAV locks at once, some 400 bytes each, and 1 KiB where it is as deep as can be.
pub const DAV_LOCKS_MAX: usize = 10_000;
/// Of these, the locks of one user, so that none can use up all.
pub const DAV_LOCKS_PER_USER_MAX: usize = 2_000;
/// Those of the users of one address, so that none takes all under several names.
pub const DAV_LOCKS_PER_ADDRESS_MAX: usize = DAV_LOCKS_MAX / 2;
/// Shared locks on one resource.
pub const DAV_LOCKS_SHARED_MAX: usize = 64;
/// Lifetime of a lock when its request has no timeout: macOS and davfs2 refresh within it.
pub const DAV_LOCK_TIME: Duration = Duration::from_secs(600);
/// How long a lock lives at most without a refresh, `Infinite` included: a day, so that what a
/// client forgot is free on the next morning.
pub const DAV_LOCK_TIME_MAX: Duration = Duration::from_secs(86_400);
/// Largest record of the locks' file, in bytes: path, owner and user at their longest.
pub const DAV_LOCK_RECORD_MAX: usize = 16 << 10;
/// Largest file of locks that is read, in bytes: all locks at their longest, twice.
pub const DAV_LOCKS_FILE_MAX: u64 = 2 * (DAV_LOCKS_MAX * DAV_LOCK_RECORD_MAX) as u64;
/// The file of locks is rewritten when it is longer than this and more than half of it is old.
pub const DAV_LOCKS_FILE_COMPACT: u64 = 1 << 20;
/// Failures that one multistatus response lists; of a tree of thousands that cannot be removed, the
/// first ones are reported.
pub const DAV_FAILURES_MAX: usize = 1_000;
/// Bytes of the URLs in such an answer: some 80 each, with room for long ones.
pub const DAV_FAILURES_BYTES_MAX: usize = 256 << 10;
/// Nesting depth of directories that COPY, MOVE and DELETE go down. Each takes some 700 bytes while
/// it is open.
pub const DAV_TREE_DEPTH_MAX: usize = 2_048;
/// Entries that a walk over a tree keeps, listed and not yet visited, over all directories that it
/// has open; some 300 bytes each. Beyond it what a directory holds is listed again later.
pub const DAV_TREE_ENTRIES_MAX: usize = 4 * super::TRANSFER_LIST_BATCH;
/// Bytes of dead properties that PROPFIND reads of the members of a collection in one go, and keeps
/// until they are sent; one member more may be beyond.
pub const DAV_FIND_DEAD_BYTES: usize = 4 * DAV_PROPS_BYTES_MAX;
/// How often locks that have ended are looked for: files that they kept are free for other
/// protocols so much later at most.
pub const DAV_SWEEP_EVERY: Duration = Duration::from_secs(5);
