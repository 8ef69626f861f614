//! POSIX access control lists (IEEE 1003.1e draft 17), and how NFSv4 sees them.
//!
//! A list on disk is POSIX's; a client of NFSv4 is shown entries that mean the same, in the order
//! in which they must be read, and what it sets is turned into the nearest POSIX list that allows
//! no more than was asked for (`draft-ietf-nfsv4-acl-mapping-05`, as Linux servers do it). Pure.

use base::limits::ACL_ENTRIES_MAX;

use crate::status::{Result, Status};

pub mod nfs4;

/// Which list of a directory; a file has only the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AclKind {
    /// Rights to the file itself.
    Access,
    /// What new files in the directory start with.
    Default,
}

/// The subject of an entry, in the order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tag {
    /// The owner.
    UserObj,
    /// A user by number.
    User(u32),
    /// The group.
    GroupObj,
    /// A group by number.
    Group(u32),
    /// The most that entries between owner and others give.
    Mask,
    /// All others.
    Other,
}

/// An entry: its subject, and read (4), write (2), execute (1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AclEntry {
    /// The subject.
    pub tag: Tag,
    /// The permissions: three bits.
    pub perm: u8,
}

/// A valid list: sorted, with each required entry exactly once, and a mask if there are named users
/// or groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acl {
    entries: Vec<AclEntry>,
}

/// `POSIX_ACL_XATTR_VERSION` of Linux.
const VERSION: u32 = 2;
/// Bytes of an entry in the attribute.
const ENTRY: usize = 8;
/// The id of entries that have none.
const NO_ID: u32 = u32::MAX;

impl Acl {
    /// A list of these entries, in any order.
    ///
    /// # Errors
    /// [`Status::Invalid`] if something is missing or there twice, [`Status::NoSpace`] if it is
    /// longer than [`ACL_ENTRIES_MAX`].
    pub fn new(mut entries: Vec<AclEntry>) -> Result<Self> {
        if entries.len() > ACL_ENTRIES_MAX {
            return Err(Status::NoSpace);
        }
        entries.sort_by_key(|entry| entry.tag);
        let twice = entries.iter().zip(entries.iter().skip(1)).any(|(a, b)| a.tag == b.tag);
        let has = |tag| entries.iter().any(|entry| entry.tag == tag);
        let named = entries.iter().any(|e| matches!(e.tag, Tag::User(_) | Tag::Group(_)));
        let whole = has(Tag::UserObj) && has(Tag::GroupObj) && has(Tag::Other);
        if twice || !whole || (named && !has(Tag::Mask)) || entries.iter().any(|e| e.perm > 7) {
            return Err(Status::Invalid);
        }
        Ok(Self { entries })
    }

    /// What permission bits say.
    pub fn from_mode(mode: u32) -> Self {
        let entry = |tag, shift: u32| AclEntry { tag, perm: (mode >> shift & 7) as u8 };
        let (user, group) = (entry(Tag::UserObj, 6), entry(Tag::GroupObj, 3));
        Self { entries: vec![user, group, entry(Tag::Other, 0)] }
    }

    /// The entries, sorted.
    pub fn entries(&self) -> &[AclEntry] {
        &self.entries
    }

    /// What an entry gives, if it is there.
    pub fn perm(&self, tag: Tag) -> Option<u8> {
        self.entries.iter().find(|entry| entry.tag == tag).map(|entry| entry.perm)
    }

    /// The nine permission bits that go with the list: the group's are the mask's, if there is one.
    pub fn mode(&self) -> u32 {
        let perm = |tag| u32::from(self.perm(tag).unwrap_or(0));
        let group = self.perm(Tag::Mask).map_or_else(|| perm(Tag::GroupObj), u32::from);
        perm(Tag::UserObj) << 6 | group << 3 | perm(Tag::Other)
    }

    /// The list as Linux keeps it (`system.posix_acl_access`, `linux/posix_acl_xattr.h`).
    pub fn to_xattr(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(4 + self.entries.len() * ENTRY);
        out.extend(VERSION.to_le_bytes());
        for entry in &self.entries {
            let (tag, id): (u16, u32) = match entry.tag {
                Tag::UserObj => (0x01, NO_ID),
                Tag::User(uid) => (0x02, uid),
                Tag::GroupObj => (0x04, NO_ID),
                Tag::Group(gid) => (0x08, gid),
                Tag::Mask => (0x10, NO_ID),
                Tag::Other => (0x20, NO_ID),
            };
            out.extend(tag.to_le_bytes());
            out.extend(u16::from(entry.perm).to_le_bytes());
            out.extend(id.to_le_bytes());
        }
        out
    }

    /// The list in such an attribute.
    ///
    /// # Errors
    /// [`Status::Io`] if it is none: the file system's fault.
    pub fn from_xattr(bytes: &[u8]) -> Result<Self> {
        let (version, rest) = bytes.split_first_chunk().ok_or(Status::Io)?;
        if u32::from_le_bytes(*version) != VERSION || rest.len() % ENTRY != 0 {
            return Err(Status::Io);
        }
        let entries = rest.chunks_exact(ENTRY).map(take_entry);
        Self::new(entries.collect::<Result<_>>()?).map_err(|_| Status::Io)
    }
}

fn take_entry(bytes: &[u8]) -> Result<AclEntry> {
    let [a, b, c, d, id @ ..] = bytes else { return Err(Status::Io) };
    let id = u32::from_le_bytes(id.try_into().map_err(|_| Status::Io)?);
    let tag = match u16::from_le_bytes([*a, *b]) {
        0x01 => Tag::UserObj,
        0x02 => Tag::User(id),
        0x04 => Tag::GroupObj,
        0x08 => Tag::Group(id),
        0x10 => Tag::Mask,
        0x20 => Tag::Other,
        _ => return Err(Status::Io),
    };
    let perm = u8::try_from(u16::from_le_bytes([*c, *d])).map_err(|_| Status::Io)?;
    Ok(AclEntry { tag, perm })
}

#[cfg(test)]
mod tests;
