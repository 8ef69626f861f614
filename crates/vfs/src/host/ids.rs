//! The bytes of a host handle: made, checked and taken apart. `docs/formats/handles.md` has the
//! layout and why it is so.

use std::hash::Hasher;

use crate::handle::Handle;
use crate::host::sys::KernelHandle;
use crate::spread::Spread;
use crate::status::Status;

/// First byte of a handle with a kernel handle in it.
const KERNEL: u8 = 0x11;
/// First byte of a handle that is found again through our own table.
const TABLE: u8 = 0x12;
/// Bytes of the MAC: forging one takes 2^95 tries on average, over the network.
const MAC_LEN: usize = 12;
/// Version byte and share tag.
const HEAD_LEN: usize = 5;
/// Flags: a directory; one with its parent; a file of a snapshot, with the number of that.
const DIRECTORY: u8 = 1;
const PARENT: u8 = 2;
const SNAPSHOT: u8 = 4;
/// A kernel handle of btrfs without a parent (`FILEID_BTRFS_WITHOUT_PARENT`): inode, subvolume and
/// generation.
const BTRFS_KIND: u8 = 0x4d;
const BTRFS_LEN: usize = 20;
const BTRFS_SUBVOLUME: core::ops::Range<usize> = 8..16;

/// What identifies a file on its file system, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ident {
    /// The kernel's handle.
    Kernel(KernelHandle),
    /// Inode and birth time (nanoseconds since the epoch, 0 if the file system has none).
    Inode {
        /// Inode number.
        ino: u64,
        /// Birth time.
        birth: u64,
    },
}

impl Ident {
    /// The bytes by which tables know the file.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(24);
        self.put(&mut out);
        out
    }

    /// Distinguishes the file from others that have had its inode number ([`crate::attr::Attr`]):
    /// the same over restarts. The kernel's handle has the inode's generation in it.
    pub fn generation(&self) -> u64 {
        match self {
            Self::Kernel(handle) => {
                let mut all = Spread::default();
                all.write(handle.bytes());
                all.finish()
            }
            Self::Inode { birth, .. } => *birth,
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Kernel(k) => {
                out.extend([k.kind, k.bytes().len() as u8]);
                out.extend(k.bytes());
            }
            Self::Inode { ino, birth } => {
                out.extend(ino.to_le_bytes());
                out.extend(birth.to_le_bytes());
            }
        }
    }

    /// Reads what [`Ident::to_bytes`] wrote for a back end of the same form.
    pub fn from_bytes(bytes: &[u8], kernel: bool) -> Option<Self> {
        let mut rest = bytes;
        let ident = if kernel { take_kernel(&mut rest)? } else { take_inode(&mut rest)? };
        rest.is_empty().then_some(ident)
    }
}

/// A handle taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parsed {
    /// The file.
    pub ident: Ident,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// The directory in which it was first met, if that is needed to find or check it.
    pub parent: Option<Ident>,
}

/// The subvolume of a btrfs that a kernel handle names.
pub(super) fn subvolume_of(ident: &Ident) -> Option<u64> {
    let Ident::Kernel(kernel) = ident else { return None };
    let is_btrfs = kernel.kind == BTRFS_KIND && kernel.bytes().len() == BTRFS_LEN;
    let id = kernel.bytes().get(BTRFS_SUBVOLUME).filter(|_| is_btrfs)?;
    id.try_into().ok().map(u64::from_le_bytes)
}

/// The same file in another subvolume: a snapshot has the inodes and generations of its source.
fn in_subvolume(ident: Ident, id: u64) -> Ident {
    let (Some(_), Ident::Kernel(kernel)) = (subvolume_of(&ident), ident) else { return ident };
    let mut bytes = [0; BTRFS_LEN];
    bytes.copy_from_slice(kernel.bytes());
    bytes[BTRFS_SUBVOLUME].copy_from_slice(&id.to_le_bytes());
    KernelHandle::new(kernel.kind, &bytes).map_or(ident, Ident::Kernel)
}

/// Makes and checks the handles of one share, or of one snapshot of it.
pub struct Keys {
    tag: [u8; 4],
    key: [u8; 32],
    /// Number of the snapshot; its handles have it.
    snapshot: Option<u64>,
    /// The subvolume that handles leave out, so that they stay valid when another one takes its
    /// place (rollback).
    subvolume: Option<u64>,
    /// Of file systems that were there before: what they open is stale.
    former: Vec<[u8; 32]>,
}

impl Keys {
    /// Keys of the share with this tag on this file system.
    pub fn new(secret: &[u8; 32], tag: u32, fsid: u64) -> Self {
        let (tag, key) = (tag.to_le_bytes(), key(secret, tag, fsid));
        Self { tag, key, snapshot: None, subvolume: None, former: Vec::new() }
    }

    /// The same, for a snapshot with this number.
    #[must_use]
    pub fn of_snapshot(self, snapshot: Option<u64>) -> Self {
        Self { snapshot, ..self }
    }

    /// The same, for handles that do not name the subvolume, which is this one.
    #[must_use]
    pub fn of_subvolume(self, subvolume: Option<u64>) -> Self {
        Self { subvolume, ..self }
    }

    /// The same, where other file systems were before.
    #[must_use]
    pub fn after(self, secret: &[u8; 32], former: &[u64]) -> Self {
        let tag = u32::from_le_bytes(self.tag);
        Self { former: former.iter().map(|fsid| key(secret, tag, *fsid)).collect(), ..self }
    }

    /// The handle of a file; `None` if the kernel's handles are too long for it.
    pub fn seal(&self, parsed: &Parsed) -> Option<Handle> {
        let mut out = Vec::with_capacity(base::limits::NFS3_FHSIZE);
        let kernel = matches!(parsed.ident, Ident::Kernel(_));
        out.push(if kernel { KERNEL } else { TABLE });
        out.extend(self.tag);
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        out.push(
            flag(parsed.is_dir, DIRECTORY)
                | flag(parsed.parent.is_some(), PARENT)
                | flag(self.snapshot.is_some(), SNAPSHOT),
        );
        out.extend(self.snapshot.map(u64::to_le_bytes).iter().flatten());
        let placed = |ident: Ident| self.subvolume.map_or(ident, |_| in_subvolume(ident, 0));
        placed(parsed.ident).put(&mut out);
        if let Some(parent) = parsed.parent {
            placed(parent).put(&mut out);
        }
        let mac = blake3::keyed_hash(&self.key, &out);
        out.extend(mac.as_bytes().iter().take(MAC_LEN));
        Handle::new(&out)
    }

    /// Takes a handle apart after checking that we made it.
    pub fn open(&self, handle: &Handle) -> Result<Parsed, Status> {
        let bytes = handle.as_bytes();
        let split = bytes.len().checked_sub(MAC_LEN).filter(|n| *n > HEAD_LEN);
        let (body, mac) = split.and_then(|n| bytes.split_at_checked(n)).ok_or(Status::BadHandle)?;
        if body.get(1..HEAD_LEN) != Some(&self.tag[..]) {
            return Err(Status::BadHandle);
        }
        if !is_mac(&self.key, body, mac) {
            let stale = self.former.iter().any(|former| is_mac(former, body, mac));
            return Err(if stale { Status::Stale } else { Status::BadHandle });
        }
        let (snapshot, parsed) = take_apart(body).ok_or(Status::BadHandle)?;
        if snapshot != self.snapshot {
            return Err(Status::BadHandle);
        }
        let Some(subvolume) = self.subvolume else { return Ok(parsed) };
        let placed = |ident| in_subvolume(ident, subvolume);
        let (ident, parent) = (placed(parsed.ident), parsed.parent.map(placed));
        Ok(Parsed { ident, parent, ..parsed })
    }

    /// A number of the file itself, whatever share the handle is of and whatever directory it
    /// names: a hash of what the kernel knows the file by.
    pub fn change_slot(&self, handle: &Handle) -> u64 {
        let bytes = handle.as_bytes();
        let body = bytes.len().checked_sub(MAC_LEN).and_then(|n| bytes.get(..n));
        let Some((_, parsed)) = body.and_then(take_apart) else { return 0 };
        let placed = |id| in_subvolume(parsed.ident, id);
        slot_of(&self.subvolume.map_or(parsed.ident, placed))
    }
}

/// The number of the snapshot that a handle names, which may be forged: `None` for the live
/// files of a share.
#[inline]
pub fn snapshot_of(handle: &Handle) -> Option<u64> {
    let bytes = handle.as_bytes();
    let set = matches!(bytes.first(), Some(&(KERNEL | TABLE)))
        && bytes.get(HEAD_LEN).is_some_and(|flags| flags & SNAPSHOT != 0);
    if !set {
        return None;
    }
    let number = bytes.get(HEAD_LEN + 1..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*number))
}

/// The key for handles of a file system.
fn key(secret: &[u8; 32], tag: u32, fsid: u64) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_keyed(secret);
    hasher.update(b"plimsoll file handle 1");
    hasher.update(&tag.to_le_bytes());
    hasher.update(&fsid.to_le_bytes());
    *hasher.finalize().as_bytes()
}

fn is_mac(key: &[u8; 32], body: &[u8], mac: &[u8]) -> bool {
    let good = blake3::keyed_hash(key, body);
    // All bytes are compared whatever the first ones are, so that time shows nothing.
    mac.iter().zip(good.as_bytes()).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

/// Whether it has the form of a handle that a back end makes; it may be forged.
pub fn has_form(handle: &Handle) -> bool {
    let bytes = handle.as_bytes();
    let body = bytes.len().checked_sub(MAC_LEN).and_then(|n| bytes.get(..n));
    body.and_then(take_apart).is_some()
}

fn take_apart(body: &[u8]) -> Option<(Option<u64>, Parsed)> {
    let kernel = match *body.first()? {
        KERNEL => true,
        TABLE => false,
        _ => return None,
    };
    let flags = *body.get(HEAD_LEN)?;
    let mut rest = body.get(HEAD_LEN + 1..)?;
    let snapshot = if flags & SNAPSHOT != 0 {
        let (number, tail) = rest.split_first_chunk::<8>()?;
        rest = tail;
        Some(u64::from_le_bytes(*number))
    } else {
        None
    };
    let mut take = || if kernel { take_kernel(&mut rest) } else { take_inode(&mut rest) };
    let ident = take()?;
    let parent = if flags & PARENT != 0 { Some(take()?) } else { None };
    let parsed = Parsed { ident, is_dir: flags & DIRECTORY != 0, parent };
    rest.is_empty().then_some((snapshot, parsed))
}

fn take_kernel(rest: &mut &[u8]) -> Option<Ident> {
    let (&[kind, len], tail) = rest.split_first_chunk::<2>()?;
    let (data, tail) = tail.split_at_checked(usize::from(len))?;
    *rest = tail;
    KernelHandle::new(kind, data).map(Ident::Kernel)
}

fn take_inode(rest: &mut &[u8]) -> Option<Ident> {
    let (ino, tail) = rest.split_first_chunk::<8>()?;
    let (birth, tail) = tail.split_first_chunk::<8>()?;
    *rest = tail;
    Some(Ident::Inode { ino: u64::from_le_bytes(*ino), birth: u64::from_le_bytes(*birth) })
}

/// The share tag within a handle of any back end, by which the share is found.
pub fn tag_of(handle: &Handle) -> Option<u32> {
    let tag = handle.as_bytes().get(1..HEAD_LEN)?;
    tag.try_into().ok().map(u32::from_le_bytes)
}

/// The statistics' id of the file: the first bytes of the MAC, which is a keyed hash of everything
/// that identifies the file, and stays the same as long as the handle does.
pub fn file_id(handle: &Handle) -> probe::op::FileId {
    let bytes = handle.as_bytes();
    let mac = bytes.len().checked_sub(MAC_LEN).and_then(|n| bytes.get(n..n + 8));
    mac.and_then(|mac| mac.try_into().ok()).map_or(0, u64::from_le_bytes)
}

fn slot_of(ident: &Ident) -> u64 {
    let mix =
        |sum: u64, word: u64| (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    match ident {
        Ident::Inode { ino, birth } => mix(*ino, *birth),
        Ident::Kernel(kernel) => kernel.bytes().chunks(8).fold(0, |sum, chunk| {
            let mut word = [0; 8];
            word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            mix(sum, u64::from_le_bytes(word))
        }),
    }
}

#[cfg(test)]
mod tests;
