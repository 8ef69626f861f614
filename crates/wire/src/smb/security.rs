//! Security descriptors (MS-DTYP §2.4.6), self-relative.

use base::limits::SMB_ACES_MAX;

use super::codec::{Field, Reader, Result, SmbError, patch};
use super::create::access;
use super::sid::Sid;

/// Parts of a descriptor that are queried or set.
pub mod parts {
    /// Its owner.
    pub const OWNER: u32 = 1;
    /// Its group.
    pub const GROUP: u32 = 2;
    /// The discretionary ACL.
    pub const DACL: u32 = 4;
    /// The system ACL (audit).
    pub const SACL: u32 = 8;
}

/// One entry of an access control list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ace {
    /// 0 permits, 1 denies.
    pub kind: u8,
    /// How it is inherited.
    pub flags: u8,
    /// What it is about.
    pub mask: u32,
    /// The user or group that it applies to.
    pub sid: Sid,
}

/// A security descriptor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Descriptor {
    /// The owner.
    pub owner: Option<Sid>,
    /// The group.
    pub group: Option<Sid>,
    /// The list; `None` permits everything to every user.
    pub dacl: Option<Vec<Ace>>,
}

/// There is a list.
const DACL_PRESENT: u16 = 4;
/// The descriptor is in one piece.
const SELF_RELATIVE: u16 = 0x8000;
/// Entry types that are read.
const ALLOWED: u8 = 0;
const DENIED: u8 = 1;

impl Descriptor {
    /// Reads one.
    ///
    /// # Errors
    /// [`SmbError`].
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new(bytes, "security descriptor");
        let (revision, _zero): (u8, u8) = (r.get()?, r.get()?);
        if revision != 1 {
            return Err(SmbError::Value("security descriptor"));
        }
        let control: u16 = r.get()?;
        let (owner, group): (u32, u32) = (r.get()?, r.get()?);
        let (_sacl, dacl): (u32, u32) = (r.get()?, r.get()?);
        let sid = |at: u32| match at {
            0 => Ok(None),
            at => Sid::get(&mut Reader::at(bytes, at as usize, "SID")?).map(Some),
        };
        let dacl = match dacl {
            at if at > 0 && control & DACL_PRESENT != 0 => Some(acl(bytes, at as usize)?),
            _ => None,
        };
        Ok(Self { owner: sid(owner)?, group: sid(group)?, dacl })
    }

    /// Appends it.
    pub fn put(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let present = if self.dacl.is_some() { DACL_PRESENT } else { 0 };
        1u16.put(out);
        (SELF_RELATIVE | present).put(out);
        [0u8; 16].put(out);
        for (place, sid) in [(4, &self.owner), (8, &self.group)] {
            if let Some(sid) = sid {
                let at = (out.len() - start) as u32;
                patch(out, start + place, &at.to_le_bytes());
                sid.put(out);
            }
        }
        if let Some(dacl) = &self.dacl {
            let at = (out.len() - start) as u32;
            patch(out, start + 16, &at.to_le_bytes());
            put_acl(dacl, out);
        }
    }

    /// The descriptor of owner, group and permissions of Unix.
    pub fn of_mode(uid: u32, gid: u32, mode: u32, is_dir: bool) -> Self {
        let right = |sid, bits: u32, extra: u32| Ace {
            kind: ALLOWED,
            flags: 0,
            mask: mask_of(bits & 7, is_dir) | extra,
            sid,
        };
        let own = access::WRITE_DAC | access::WRITE_ATTRIBUTES | access::WRITE_EA;
        let dacl = vec![
            right(Sid::user(uid), mode >> 6, own),
            right(Sid::group(gid), mode >> 3, 0),
            right(Sid::world(), mode, 0),
        ];
        Self { owner: Some(Sid::user(uid)), group: Some(Sid::group(gid)), dacl: Some(dacl) }
    }
}

/// What three bits of a mode permit.
pub fn mask_of(bits: u32, is_dir: bool) -> u32 {
    let mut mask = access::READ_CONTROL | access::READ_ATTRIBUTES | access::SYNCHRONIZE;
    mask |= access::READ_EA;
    if bits & 4 != 0 {
        mask |= access::READ_DATA;
    }
    if bits & 2 != 0 {
        mask |= access::WRITE_DATA | access::APPEND_DATA | access::WRITE_EA;
        mask |= access::WRITE_ATTRIBUTES;
        if is_dir {
            mask |= access::DELETE_CHILD;
        }
    }
    if bits & 1 != 0 {
        mask |= access::EXECUTE;
    }
    mask
}

/// It is about what is made in the directory only.
const INHERIT_ONLY: u8 = 8;
/// NT AUTHORITY, and what is of it: authenticated users, the system, administrators.
const NT: u64 = 5;
const AUTHENTICATED: &[u32] = &[11];
const SYSTEM: &[u32] = &[18];
const ADMINISTRATORS: &[u32] = &[32, 544];
/// Creator owner, creator group, owner rights.
const CREATOR: u64 = 3;

/// Classes of a mode (owner, group, others) that a SID belongs to; `None` for other SIDs.
fn classes(sid: &Sid, uid: u32, gid: u32) -> Option<u32> {
    match (sid.authority, sid.parts.as_slice()) {
        (1, [0]) | (NT, AUTHENTICATED) => Some(0o111),
        (CREATOR, [0 | 4]) => Some(0o100),
        (CREATOR, [1]) => Some(0o010),
        // They may do everything already.
        (NT, SYSTEM | ADMINISTRATORS) => Some(0),
        _ if sid.as_user() == Some(uid) => Some(0o100),
        _ if sid.as_group() == Some(gid) => Some(0o010),
        _ => None,
    }
}

/// The permissions of Unix that come closest to a list, for a file of this owner and group. `None`
/// if it speaks of others.
pub fn mode_of(dacl: &[Ace], uid: u32, gid: u32) -> Option<u32> {
    let (mut allowed, mut denied) = (0, 0);
    for ace in dacl.iter().filter(|ace| ace.flags & INHERIT_ONLY == 0) {
        let classes = classes(&ace.sid, uid, gid)?;
        let mask = access::specific(ace.mask);
        let mut bits = 0;
        for (right, bit) in [(access::READ_DATA, 4), (access::WRITE_DATA, 2), (access::EXECUTE, 1)]
        {
            if mask & right != 0 {
                bits |= bit * classes;
            }
        }
        match ace.kind {
            ALLOWED => allowed |= bits & !denied,
            _ => denied |= bits & !allowed,
        }
    }
    Some(allowed)
}

fn acl(bytes: &[u8], at: usize) -> Result<Vec<Ace>> {
    let mut r = Reader::at(bytes, at, "access control list")?;
    let (_revision, _zero, _size): (u8, u8, u16) = (r.get()?, r.get()?, r.get()?);
    let (count, _zero): (u16, u16) = (r.get()?, r.get()?);
    if usize::from(count) > SMB_ACES_MAX {
        return Err(SmbError::Limit("access control list"));
    }
    let mut aces = Vec::new();
    for _ in 0..count {
        let (kind, flags, size): (u8, u8, u16) = (r.get()?, r.get()?, r.get()?);
        let rest = usize::from(size).checked_sub(4).ok_or(SmbError::Value("ACE"))?;
        let mut one = Reader::new(r.take(rest)?, "ACE");
        // Entries with objects and conditions are not looked at.
        if matches!(kind, ALLOWED | DENIED) {
            let mask = one.get()?;
            aces.push(Ace { kind, flags, mask, sid: Sid::get(&mut one)? });
        }
    }
    Ok(aces)
}

fn put_acl(aces: &[Ace], out: &mut Vec<u8>) {
    let start = out.len();
    2u16.put(out);
    0u16.put(out);
    (aces.len() as u32).put(out);
    for ace in aces {
        let at = out.len();
        ace.kind.put(out);
        ace.flags.put(out);
        0u16.put(out);
        ace.mask.put(out);
        ace.sid.put(out);
        let size = (out.len() - at) as u16;
        patch(out, at + 2, &size.to_le_bytes());
    }
    let size = (out.len() - start) as u16;
    patch(out, start + 2, &size.to_le_bytes());
}
