//! Attributes of a file (draft-ietf-secsh-filexfer-02 §5): each part is there or not.

use base::limits::SFTP_EXTENDED_ATTRS_MAX;

use super::data::Str;
use crate::xdr::{Decode, DecodeError, Encode, Reader, Writer};

/// `SSH_FILEXFER_ATTR_SIZE`.
pub const ATTR_SIZE: u32 = 0x1;
/// `SSH_FILEXFER_ATTR_UIDGID`.
pub const ATTR_UIDGID: u32 = 0x2;
/// `SSH_FILEXFER_ATTR_PERMISSIONS`.
pub const ATTR_PERMISSIONS: u32 = 0x4;
/// `SSH_FILEXFER_ATTR_ACMODTIME`.
pub const ATTR_ACMODTIME: u32 = 0x8;
/// `SSH_FILEXFER_ATTR_EXTENDED`.
pub const ATTR_EXTENDED: u32 = 0x8000_0000;

/// `ATTRS`. `None` is not sent, or not to be changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attrs {
    /// Bytes.
    pub size: Option<u64>,
    /// Owner and group.
    pub owner: Option<Owner>,
    /// Kind and permission bits, as `st_mode` of POSIX has them.
    pub permissions: Option<u32>,
    /// Times.
    pub times: Option<Times>,
}

/// Owner and group: one part of [`Attrs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// Times in seconds since the epoch, to the year 2106: one part of [`Attrs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Last access.
    pub atime: u32,
    /// Last change of the data.
    pub mtime: u32,
}

impl Encode for Attrs {
    fn encode(&self, w: &mut Writer<'_>) {
        let part = |there: bool, flag: u32| if there { flag } else { 0 };
        w.u32(
            part(self.size.is_some(), ATTR_SIZE)
                | part(self.owner.is_some(), ATTR_UIDGID)
                | part(self.permissions.is_some(), ATTR_PERMISSIONS)
                | part(self.times.is_some(), ATTR_ACMODTIME),
        );
        if let Some(size) = self.size {
            w.u64(size);
        }
        if let Some(Owner { uid, gid }) = self.owner {
            w.u32(uid);
            w.u32(gid);
        }
        if let Some(permissions) = self.permissions {
            w.u32(permissions);
        }
        if let Some(Times { atime, mtime }) = self.times {
            w.u32(atime);
            w.u32(mtime);
        }
    }
}

/// Extended attributes are read over: no client that is known sends any. Flags without a meaning
/// are taken as OpenSSH takes them, for nothing.
impl Decode<'_> for Attrs {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let flags = r.u32("attribute flags")?;
        let has = |flag: u32| flags & flag != 0;
        let mut attrs = Self::default();
        if has(ATTR_SIZE) {
            attrs.size = Some(r.u64("size")?);
        }
        if has(ATTR_UIDGID) {
            attrs.owner = Some(Owner { uid: r.u32("uid")?, gid: r.u32("gid")? });
        }
        if has(ATTR_PERMISSIONS) {
            attrs.permissions = Some(r.u32("permissions")?);
        }
        if has(ATTR_ACMODTIME) {
            attrs.times = Some(Times { atime: r.u32("atime")?, mtime: r.u32("mtime")? });
        }
        if has(ATTR_EXTENDED) {
            for _ in 0..r.length(SFTP_EXTENDED_ATTRS_MAX, "extended attributes")? {
                Str::decode(r)?;
                Str::decode(r)?;
            }
        }
        Ok(attrs)
    }
}

#[cfg(test)]
impl crate::arb::Arb<'_> for Attrs {
    fn arb(g: &mut crate::arb::Gen<'_>) -> Self {
        Self {
            size: g.arb(),
            owner: g.arb::<Option<u64>>().map(|n| Owner { uid: n as u32, gid: (n >> 32) as u32 }),
            permissions: g.arb(),
            times: g.arb::<Option<u64>>().map(|n| Times { atime: n as u32, mtime: n as u32 ^ 1 }),
        }
    }
}
