//! POSIX lists as NFSv4 entries and back (RFC 8881 §6; the mapping of
//! `draft-ietf-nfsv4-acl-mapping-05` in the form that Linux servers have given it).

use std::collections::BTreeMap;

use super::{Acl, AclEntry, Tag};
use crate::fs::Result;
use crate::status::Status;

/// `ACE4_READ_DATA`, also listing a directory.
pub const READ_DATA: u32 = 0x01;
/// `ACE4_WRITE_DATA`, also adding a file.
pub const WRITE_DATA: u32 = 0x02;
/// `ACE4_APPEND_DATA`, also adding a directory.
pub const APPEND_DATA: u32 = 0x04;
/// `ACE4_EXECUTE`, also searching.
pub const EXECUTE: u32 = 0x20;
/// `ACE4_DELETE_CHILD`.
pub const DELETE_CHILD: u32 = 0x40;
/// `ACE4_READ_ATTRIBUTES`.
pub const READ_ATTRIBUTES: u32 = 0x80;
/// `ACE4_WRITE_ATTRIBUTES`.
pub const WRITE_ATTRIBUTES: u32 = 0x100;
/// `ACE4_READ_ACL`.
pub const READ_ACL: u32 = 0x2_0000;
/// `ACE4_WRITE_ACL`.
pub const WRITE_ACL: u32 = 0x4_0000;
/// `ACE4_SYNCHRONIZE`.
pub const SYNCHRONIZE: u32 = 0x10_0000;

/// `ACE4_FILE_INHERIT_ACE`.
pub const FILE_INHERIT: u32 = 0x01;
/// `ACE4_DIRECTORY_INHERIT_ACE`.
pub const DIRECTORY_INHERIT: u32 = 0x02;
/// `ACE4_INHERIT_ONLY_ACE`.
pub const INHERIT_ONLY: u32 = 0x08;
/// `ACE4_IDENTIFIER_GROUP`; set exactly for [`Who::GroupId`] by what reads and writes names.
pub const IDENTIFIER_GROUP: u32 = 0x40;

const INHERIT: u32 = FILE_INHERIT | DIRECTORY_INHERIT;
const ANYONE: u32 = READ_ATTRIBUTES | READ_ACL | SYNCHRONIZE;
const OWNER: u32 = WRITE_ATTRIBUTES | WRITE_ACL;

/// The subject of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// `OWNER@`.
    Owner,
    /// `GROUP@`.
    Group,
    /// `EVERYONE@`: owner and group too.
    Everyone,
    /// A user.
    User(u32),
    /// A group.
    GroupId(u32),
}

/// An NFSv4 entry (`nfsace4`) with its name resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ace {
    /// `ACE4_ACCESS_ALLOWED_ACE_TYPE`, or (false) `ACE4_ACCESS_DENIED_ACE_TYPE`.
    pub allow: bool,
    /// `ACE4_*_INHERIT*`.
    pub flags: u32,
    /// `ACE4_READ_DATA` and so on.
    pub mask: u32,
    /// The subject.
    pub who: Who,
}

/// Most entries that a list is shown as: two for each of its own, twice for a directory.
pub fn aces_max(entries: usize) -> usize {
    entries.saturating_mul(2)
}

/// A file's list, and for a directory its default one, as NFSv4 entries.
pub fn to_aces(access: &Acl, default: Option<&Acl>, is_dir: bool) -> Vec<Ace> {
    let mut out = Vec::new();
    push_list(&mut out, access, is_dir, 0);
    if let Some(default) = default {
        push_list(&mut out, default, is_dir, INHERIT | INHERIT_ONLY);
    }
    out
}

/// What entries say in effect, that is, below the mask.
struct Sums {
    mask: u8,
    users: u8,
    group: u8,
    groups: u8,
    other: u8,
}

fn sums(acl: &Acl) -> Sums {
    let mask = acl.perm(Tag::Mask).unwrap_or(7);
    let named = |pick: fn(Tag) -> bool| {
        let entries = acl.entries().iter().filter(|entry| pick(entry.tag));
        entries.fold(0, |sum, entry| sum | entry.perm) & mask
    };
    Sums {
        mask,
        users: named(|tag| matches!(tag, Tag::User(_))),
        group: acl.perm(Tag::GroupObj).unwrap_or(0) & mask,
        groups: named(|tag| matches!(tag, Tag::Group(_))),
        other: acl.perm(Tag::Other).unwrap_or(0),
    }
}

/// In POSIX the first matching entry decides, in NFSv4 the first one for each bit: so an entry is
/// preceded by a denial of what later ones would grant. Groups are the exception: any of a caller's
/// groups may allow, so all of them allow before any denies.
fn push_list(out: &mut Vec<Ace>, acl: &Acl, is_dir: bool, flags: u32) {
    let s = sums(acl);
    let mut push = |allow, who, mask| out.push(Ace { allow, flags, mask, who });
    let denial = |perm: u8, later: u8| data_mask(!perm & later, is_dir);
    let owner = acl.perm(Tag::UserObj).unwrap_or(0);
    let deny = denial(owner, s.users | s.group | s.groups | s.other);
    if deny != 0 {
        push(false, Who::Owner, deny);
    }
    push(true, Who::Owner, data_mask(owner, is_dir) | ANYONE | OWNER);
    for entry in acl.entries() {
        let Tag::User(uid) = entry.tag else { continue };
        let deny = denial(entry.perm & s.mask, s.groups | s.group | s.other);
        if deny != 0 {
            push(false, Who::User(uid), deny);
        }
        push(true, Who::User(uid), data_mask(entry.perm & s.mask, is_dir) | ANYONE);
    }
    let groups = acl.entries().iter().filter_map(|entry| match entry.tag {
        Tag::GroupObj => Some((Who::Group, s.group)),
        Tag::Group(gid) => Some((Who::GroupId(gid), entry.perm & s.mask)),
        _ => None,
    });
    let groups: Vec<_> = groups.collect();
    for (who, perm) in &groups {
        push(true, *who, data_mask(*perm, is_dir) | ANYONE);
    }
    for (who, perm) in &groups {
        let deny = denial(*perm, s.other);
        if deny != 0 {
            push(false, *who, deny);
        }
    }
    push(true, Who::Everyone, data_mask(s.other, is_dir) | ANYONE);
}

/// Read, write and execute as NFSv4 bits.
fn data_mask(perm: u8, is_dir: bool) -> u32 {
    let write = WRITE_DATA | APPEND_DATA | if is_dir { DELETE_CHILD } else { 0 };
    let bit = |has: u8, mask| if perm & has != 0 { mask } else { 0 };
    bit(4, READ_DATA) | bit(2, write) | bit(1, EXECUTE)
}

/// NFSv4 bits as read, write and execute: only what is allowed as a whole.
fn perm(mask: u32, is_dir: bool) -> u8 {
    let all =
        |bit: u8| if mask & data_mask(bit, is_dir) == data_mask(bit, is_dir) { bit } else { 0 };
    all(4) | all(2) | all(1)
}

/// What the entries read so far allow and deny to a subject.
#[derive(Debug, Clone, Copy, Default)]
struct DecidedBits {
    allow: u32,
    deny: u32,
}

impl DecidedBits {
    /// The first word on each bit counts.
    fn apply(&mut self, allow: bool, mask: u32) {
        if allow {
            self.allow |= mask & !self.deny;
        } else {
            self.deny |= mask & !self.allow;
        }
    }
}

/// The decisions of one list for all subjects.
#[derive(Default)]
struct Reading {
    any: bool,
    owner: DecidedBits,
    group: DecidedBits,
    other: DecidedBits,
    /// Decisions of EVERYONE@ and of denials to groups: the initial value for a named entry.
    everyone: DecidedBits,
    users: BTreeMap<u32, DecidedBits>,
    groups: BTreeMap<u32, DecidedBits>,
}

impl Reading {
    fn take(&mut self, ace: &Ace) {
        self.any = true;
        let (allow, mask, everyone) = (ace.allow, ace.mask, self.everyone);
        match ace.who {
            Who::Owner => self.owner.apply(allow, mask),
            Who::User(uid) => {
                let bits = self.users.entry(uid).or_insert(everyone);
                bits.apply(allow, mask);
                if !allow {
                    // The owner may be that user.
                    let denied = bits.deny;
                    self.owner.apply(false, denied);
                }
            }
            Who::Group => {
                self.group.apply(allow, mask);
                if !allow {
                    let denied = self.group.deny;
                    self.deny_members(denied);
                }
            }
            Who::GroupId(gid) => {
                let bits = self.groups.entry(gid).or_insert(everyone);
                bits.apply(allow, mask);
                if !allow {
                    let denied = bits.deny;
                    self.group.apply(false, denied);
                    self.deny_members(denied);
                }
            }
            Who::Everyone => {
                let named = self.users.values_mut().chain(self.groups.values_mut());
                named.for_each(|bits| bits.apply(allow, mask));
                let fixed = [&mut self.owner, &mut self.group, &mut self.other];
                fixed.into_iter().for_each(|bits| bits.apply(allow, mask));
                self.everyone.apply(allow, mask);
            }
        }
    }

    /// Any user may be a member of a group to which something is denied.
    fn deny_members(&mut self, mask: u32) {
        let named = self.users.values_mut().chain(self.groups.values_mut());
        named.for_each(|bits| bits.apply(false, mask));
        self.owner.apply(false, mask);
        self.everyone.apply(false, mask);
    }

    fn finish(&self, is_dir: bool) -> Result<Acl> {
        let entry = |tag, bits: &DecidedBits| AclEntry { tag, perm: perm(bits.allow, is_dir) };
        let mut entries = vec![
            entry(Tag::UserObj, &self.owner),
            entry(Tag::GroupObj, &self.group),
            entry(Tag::Other, &self.other),
        ];
        entries.extend(self.users.iter().map(|(uid, bits)| entry(Tag::User(*uid), bits)));
        entries.extend(self.groups.iter().map(|(gid, bits)| entry(Tag::Group(*gid), bits)));
        if entries.len() > 3 {
            let between = |e: &&AclEntry| !matches!(e.tag, Tag::UserObj | Tag::Other);
            let perm = entries.iter().filter(between).fold(0, |sum, entry| sum | entry.perm);
            entries.push(AclEntry { tag: Tag::Mask, perm });
        }
        Acl::new(entries)
    }
}

/// The POSIX lists nearest to NFSv4 entries: the file's own, and a directory's default one (`None`:
/// it has none).
///
/// # Errors
/// [`Status::Invalid`] for inheritance on what is no directory, [`Status::NotSupported`] for other
/// flags (NFS4ERR_ATTRNOTSUPP), [`Status::NoSpace`] if it is too long.
pub fn from_aces(aces: &[Ace], is_dir: bool) -> Result<(Acl, Option<Acl>)> {
    let (mut own, mut inherited) = (Reading::default(), Reading::default());
    for ace in aces {
        if ace.flags & !(INHERIT | INHERIT_ONLY | IDENTIFIER_GROUP) != 0 {
            return Err(Status::NotSupported);
        }
        let inherits = ace.flags & INHERIT != 0;
        if inherits && !is_dir {
            return Err(Status::Invalid);
        }
        if inherits {
            inherited.take(ace);
        }
        if !inherits || ace.flags & INHERIT_ONLY == 0 {
            own.take(ace);
        }
    }
    let default = if inherited.any { Some(inherited.finish(is_dir)?) } else { None };
    Ok((own.finish(is_dir)?, default))
}
