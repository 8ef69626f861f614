//! The words of the lock table: files, clients, owners, shares, ranges, kinds, leases, refusals,
//! and how waiting requests and holders are notified.

use core::net::IpAddr;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use base::limits::LOCK_OWNER_MAX;
use base::peer::network;
pub use base::protocol::Protocol;

use crate::attr::Attr;

/// A file, whatever its names and handles: locks are on it, not on a way to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileKey {
    /// File system.
    pub fsid: u64,
    /// Inode number.
    pub fileid: u64,
    /// Distinguishes the file from a removed one that had the same inode number; see
    /// [`Attr::generation`].
    pub generation: u64,
}

impl FileKey {
    /// Whether both are one inode. For two files that exist now this is whether they are the same,
    /// also where only one of the keys has a generation.
    pub fn is_same_inode(&self, other: &Self) -> bool {
        (self.fsid, self.fileid) == (other.fsid, other.fileid)
    }

    /// Whether both are one file, as far as generations are known: 0 is unknown.
    pub fn is_same_file(&self, other: &Self) -> bool {
        let (a, b) = (self.generation, other.generation);
        self.is_same_inode(other) && (a == b || a == 0 || b == 0)
    }
}

impl From<&Attr> for FileKey {
    fn from(attr: &Attr) -> Self {
        Self { fsid: attr.fsid, fileid: attr.fileid, generation: attr.generation }
    }
}

/// A client: what ends as one, with everything it holds. The number is the protocol's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientKey {
    /// The protocol; locks of all protocols exclude each other.
    pub protocol: Protocol,
    /// Its number for the client: a clientid4, an interned NLM `caller_name`.
    pub id: u64,
}

/// The holder of an open, a lock or a lease: a process at a client, as its protocol identifies it.
#[derive(Debug, Clone)]
pub struct Owner {
    /// The client.
    pub client: ClientKey,
    id: Arc<[u8]>,
    /// Where the client is, for its part of the limits.
    address: Option<IpAddr>,
}

impl PartialEq for Owner {
    fn eq(&self, other: &Self) -> bool {
        self.client == other.client && self.id == other.id
    }
}

impl Eq for Owner {}

impl Hash for Owner {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.client, &self.id).hash(state);
    }
}

impl Owner {
    /// An owner of these bytes; `None` if they are longer than [`LOCK_OWNER_MAX`].
    pub fn new(client: ClientKey, id: &[u8]) -> Option<Self> {
        (id.len() <= LOCK_OWNER_MAX).then(|| Self { client, id: id.into(), address: None })
    }

    /// Of a client at this address, which has a part of all limits ([`super::parts`]): the same for
    /// all owners of a client. Without an address it is the server itself.
    #[must_use]
    pub fn at(self, address: IpAddr) -> Self {
        Self { address: Some(network(address)), ..self }
    }

    /// Where its client is.
    pub const fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// Its bytes: `state_owner4.owner`, or what NLM makes of `oh` and `svid`.
    pub fn id(&self) -> &[u8] {
        &self.id
    }
}

/// Access bits of an open, as in `OPEN4_SHARE_ACCESS_*` (RFC 8881 §18.16) and `fsh4_access`.
pub const SHARE_READ: u8 = 1;
/// See [`SHARE_READ`].
pub const SHARE_WRITE: u8 = 2;

/// In a deny mode only: others may neither remove the file's names nor give them to other files. A
/// missing `FILE_SHARE_DELETE` (MS-SMB2 §2.2.13) and a WebDAV lock (RFC 4918 §7) deny this.
pub const SHARE_DELETE: u8 = 4;

/// What an open is for, and what it denies to others: sets of [`SHARE_READ`] and [`SHARE_WRITE`],
/// and in `deny` [`SHARE_DELETE`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Share {
    /// What the owner does.
    pub access: u8,
    /// What others may not.
    pub deny: u8,
}

impl Share {
    /// Both together.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self { access: self.access | other.access, deny: self.deny | other.deny }
    }

    /// Whether everything in `other` is in this one.
    pub const fn covers(self, other: Self) -> bool {
        other.access & !self.access == 0 && other.deny & !self.deny == 0
    }

    /// Whether others may not remove the file or rename it, nor put another one in its place, while
    /// a client of this protocol has it open so (`docs/protocols/locks.md`).
    pub const fn keeps_names(self, protocol: Protocol) -> bool {
        match protocol {
            // Has no bit for it. A holder that denies writing relies on what the name leads to.
            Protocol::Nfs4 => self.deny & SHARE_WRITE != 0,
            // What the holder does itself comes over NFSv3, where it cannot be identified.
            Protocol::Nlm => false,
            _ => self.deny & SHARE_DELETE != 0,
        }
    }

    /// Whether two owners cannot have these at once (RFC 8881 §9.7).
    pub const fn conflicts(self, other: Self) -> bool {
        self.access & other.deny != 0 || self.deny & other.access != 0
    }
}

/// Bytes of a file, both ends included; `u64::MAX` is the end of the file, wherever it is. One of
/// no bytes ([`Range::empty`]) overlaps with what it is inside of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Range {
    /// First byte.
    pub start: u64,
    /// Last byte.
    pub end: u64,
}

impl Range {
    /// `len` bytes from `start` on. `None` for no bytes, or beyond what can be counted: the
    /// caller's mistake (NFS4ERR_INVAL, RFC 8881 §18.10.3).
    pub const fn new(start: u64, len: u64) -> Option<Self> {
        match len.checked_sub(1) {
            Some(more) => match start.checked_add(more) {
                Some(end) => Some(Self { start, end }),
                None => None,
            },
            None => None,
        }
    }

    /// No bytes before that at `start`, which overlap with a range that begins before and continues
    /// behind it (MS-FSA §2.1.4.10). `None` before the first byte: nothing overlaps with that.
    pub const fn empty(start: u64) -> Option<Self> {
        match start.checked_sub(1) {
            Some(end) => Some(Self { start, end }),
            None => None,
        }
    }

    /// From `start` to the end of the file, however it grows.
    pub const fn to_end(start: u64) -> Self {
        Self { start, end: u64::MAX }
    }

    /// The NFSv4 encoding: a length of all ones extends to the end.
    pub const fn nfs4(start: u64, len: u64) -> Option<Self> {
        if len == u64::MAX { Some(Self::to_end(start)) } else { Self::new(start, len) }
    }

    /// The NLM encoding: a length of 0 extends to the end.
    pub const fn nlm(start: u64, len: u64) -> Option<Self> {
        if len == 0 { Some(Self::to_end(start)) } else { Self::new(start, len) }
    }

    /// Its length in NFSv4: all ones if it goes to the end.
    pub const fn nfs4_len(&self) -> u64 {
        if self.end == u64::MAX { u64::MAX } else { self.end - self.start + 1 }
    }

    /// Its length in NLM: 0 if it goes to the end.
    pub const fn nlm_len(&self) -> u64 {
        if self.end == u64::MAX { 0 } else { self.end - self.start + 1 }
    }

    /// Whether they have a byte in common.
    pub const fn overlaps(&self, other: &Self) -> bool {
        self.start <= other.end && other.start <= self.end
    }
}

/// Shared or exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Shared with other readers.
    Read,
    /// Exclusive.
    Write,
}

impl Kind {
    /// Whether two owners cannot have these on the same byte.
    pub const fn conflicts(self, other: Self) -> bool {
        matches!(self, Self::Write) || matches!(other, Self::Write)
    }
}

/// A lock that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldRange {
    /// Its owner.
    pub owner: Owner,
    /// On what.
    pub range: Range,
    /// How.
    pub kind: Kind,
}

/// Why the table refuses a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// Another owner's lock is in the way (NFS4ERR_DENIED, NLM4_DENIED).
    Locked(HeldRange),
    /// Another owner's open is in the way (NFS4ERR_SHARE_DENIED).
    Shared(Owner),
    /// A delegation is being recalled; the caller should come again (NFS4ERR_DELAY).
    Recalling,
    /// Clients may reclaim what is in the way (NFS4ERR_GRACE); see [`super::grace`].
    Grace,
    /// The owner would wait for itself (NLM4_DEADLCK, NFS4ERR_DEADLOCK).
    Deadlock,
    /// A limit is reached (NLM4_DENIED_NOLOCKS, NFS4ERR_RESOURCE or NFS4ERR_DELAY).
    Full,
    /// The owner does not have what it speaks of, or less (NFS4ERR_INVAL).
    NotHeld,
    /// A lease is not available now; a retry is of no use.
    NoLease,
}

/// What a lease lets its holder do without asking: a set, with the bits of SMB (MS-SMB2
/// §2.2.13.2.8).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Caching(u8);

impl Caching {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Trust what it has read (OPEN_DELEGATE_READ, an oplock of level II).
    pub const READ: Self = Self(1);
    /// Keep a file open that its programs have closed.
    pub const HANDLE: Self = Self(2);
    /// Keep back what it writes.
    pub const WRITE: Self = Self(4);
    /// Trust what it has read, and keep back what it writes (OPEN_DELEGATE_WRITE, an exclusive
    /// oplock).
    pub const READ_WRITE: Self = Self(5);
    /// All of that (a batch oplock).
    pub const ALL: Self = Self(7);

    /// The set of these bits; others are ignored.
    pub const fn of_bits(bits: u32) -> Self {
        Self((bits & 7) as u8)
    }

    /// Its bits.
    pub const fn bits(self) -> u32 {
        self.0 as u32
    }

    /// Whether it has everything of another.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether it has anything of another.
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// What both have.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What either has.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Without what another has.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The part of it that there is: nothing without reading.
    #[must_use]
    pub const fn valid(self) -> Self {
        if self.has(Self::READ) { self } else { Self::NONE }
    }

    /// Whether nothing is in it.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

/// What the holder of a lease is notified of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Break {
    /// What it has.
    pub from: Caching,
    /// What it keeps.
    pub to: Caching,
    /// The lease's epoch with this change.
    pub epoch: u16,
    /// Whether it must acknowledge; otherwise it has lost that already.
    pub must_acknowledge: bool,
}

/// What the holder of a lease for writing reports of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looked {
    /// Nothing, or not in time: it must return the lease first.
    Unknown,
    /// It was asked, and has not answered yet.
    Pending,
    /// This.
    Reported(Unflushed),
}

/// A file as the holder of a lease for writing has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unflushed {
    /// Its size.
    pub size: u64,
    /// The change attribute that the holder sees.
    pub change: u64,
    /// The one that it was granted the lease with.
    pub granted_change: u64,
    /// What it reports is new: if the file has changed, its times are to be set (RFC 8881 §10.4.3).
    pub is_new: bool,
}

impl Unflushed {
    /// Whether the holder has changed what the server has with these size and change attribute.
    pub const fn is_changed(&self, size: u64, change: u64) -> bool {
        let is_known = self.change == self.granted_change || self.change == change;
        !is_known || self.size != size
    }
}

/// Notifies the holder of a lease that it must return it, or a part of it. Must not wait: it runs
/// on the thread of the operation that needs the file, once for each break.
pub trait Recall: Send + Sync {
    /// Give it back.
    fn recall(&self, key: FileKey, owner: &Owner, what: Break);

    /// What the holder, which keeps back what it writes, reports of the file. Must not wait: it is
    /// asked again. Called under no lock of the table. With `uses` an answer is not new any more.
    fn look(&self, _uses: bool) -> Looked {
        Looked::Unknown
    }

    /// Whether the holder can be notified now: of several opens of a lease, one that can is.
    fn is_reachable(&self) -> bool {
        true
    }
}

/// The number of a waiting request.
pub type WaitId = u64;

/// How waiting ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// The lock is held now, by the owner of the request.
    Granted,
    /// Waiting was ended: cancelled, or the client is gone.
    Cancelled,
}

/// What to do when waiting ends. Short; runs on the thread that let go of the lock.
pub type Woken = Box<dyn FnOnce(Waited) + Send>;

/// What to do when a lease of a file has changed.
pub type Released = Box<dyn FnOnce() + Send>;
