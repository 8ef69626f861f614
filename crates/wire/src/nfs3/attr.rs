//! Attributes, and the procedures about nothing else: GETATTR, SETATTR, ACCESS
//! (RFC 1813 §2.6, §3.3.1, §3.3.2, §3.3.4).

use super::types::{Fh3, Ftype3, Nfstime3, Res, Specdata3};
use crate::xdr::{Decode, DecodeError, Encode, Reader, Writer};

/// Bytes of `fattr3` in XDR.
pub const FATTR3_LEN: usize = 84;

/// Attributes of a file (`fattr3`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fattr3 {
    /// Type of the file (`type` in the RFC).
    pub ftype: Ftype3,
    /// Permission bits.
    pub mode: u32,
    /// Hard links.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Bytes.
    pub size: u64,
    /// Bytes of disk in use.
    pub used: u64,
    /// Device numbers.
    pub rdev: Specdata3,
    /// File system.
    pub fsid: u64,
    /// Inode number.
    pub fileid: u64,
    /// Last access.
    pub atime: Nfstime3,
    /// Last change of the data.
    pub mtime: Nfstime3,
    /// Last change of the attributes.
    pub ctime: Nfstime3,
}

impl Fattr3 {
    /// The XDR form, in one piece: attributes are in nearly every reply.
    #[inline]
    pub fn to_xdr(&self) -> [u8; FATTR3_LEN] {
        let mut bytes = [0; FATTR3_LEN];
        let mut put = |at: usize, word: u32| {
            bytes[at * 4..at * 4 + 4].copy_from_slice(&word.to_be_bytes());
        };
        put(0, self.ftype.0);
        put(1, self.mode);
        put(2, self.nlink);
        put(3, self.uid);
        put(4, self.gid);
        put(5, (self.size >> 32) as u32);
        put(6, self.size as u32);
        put(7, (self.used >> 32) as u32);
        put(8, self.used as u32);
        put(9, self.rdev.specdata1);
        put(10, self.rdev.specdata2);
        put(11, (self.fsid >> 32) as u32);
        put(12, self.fsid as u32);
        put(13, (self.fileid >> 32) as u32);
        put(14, self.fileid as u32);
        for (slot, time) in [(15, self.atime), (17, self.mtime), (19, self.ctime)] {
            put(slot, time.seconds);
            put(slot + 1, time.nseconds);
        }
        bytes
    }
}

impl Encode for Fattr3 {
    #[inline]
    fn encode(&self, w: &mut Writer<'_>) {
        w.raw(&self.to_xdr());
    }
}

impl Decode<'_> for Fattr3 {
    #[inline]
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        // One length check for all members; the inner reader cannot run short then.
        let r = &mut Reader::new(r.array::<FATTR3_LEN>("fattr3")?);
        Ok(Self {
            ftype: Ftype3::decode(r)?,
            mode: r.u32("fattr3.mode")?,
            nlink: r.u32("fattr3.nlink")?,
            uid: r.u32("fattr3.uid")?,
            gid: r.u32("fattr3.gid")?,
            size: r.u64("fattr3.size")?,
            used: r.u64("fattr3.used")?,
            rdev: Specdata3::decode(r)?,
            fsid: r.u64("fattr3.fsid")?,
            fileid: r.u64("fattr3.fileid")?,
            atime: Nfstime3::decode(r)?,
            mtime: Nfstime3::decode(r)?,
            ctime: Nfstime3::decode(r)?,
        })
    }
}

/// Attributes after an operation, when the server has them.
pub type PostOpAttr = Option<Fattr3>;

xdr_struct! {
    /// Attributes before an operation (`wcc_attr`).
    #[derive(Copy)]
    pub struct WccAttr {
        /// Bytes.
        pub size: u64,
        /// Last change of the data.
        pub mtime: Nfstime3,
        /// Last change of the attributes.
        pub ctime: Nfstime3,
    }
}

xdr_struct! {
    /// Weak cache consistency data: an object before and after an operation.
    #[derive(Copy, Default)]
    pub struct WccData {
        /// As it was.
        pub before: Option<WccAttr>,
        /// As it is.
        pub after: PostOpAttr,
    }
}

/// A time to set (`set_atime`, `set_mtime`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SetTime {
    /// DONT_CHANGE.
    #[default]
    DontChange,
    /// SET_TO_SERVER_TIME.
    ServerTime,
    /// SET_TO_CLIENT_TIME.
    ClientTime(Nfstime3),
}

impl Encode for SetTime {
    fn encode(&self, w: &mut Writer<'_>) {
        match self {
            Self::DontChange => w.u32(0),
            Self::ServerTime => w.u32(1),
            Self::ClientTime(time) => {
                w.u32(2);
                time.encode(w);
            }
        }
    }
}

impl Decode<'_> for SetTime {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match r.u32("time_how")? {
            0 => Self::DontChange,
            1 => Self::ServerTime,
            2 => Self::ClientTime(Nfstime3::decode(r)?),
            got => return Err(DecodeError::BadValue { what: "time_how", got }),
        })
    }
}

xdr_struct! {
    /// Attributes to set (`sattr3`); those that are `None` stay as they are.
    #[derive(Copy, Default)]
    pub struct Sattr3 {
        /// Permission bits.
        pub mode: Option<u32>,
        /// Owner.
        pub uid: Option<u32>,
        /// Group.
        pub gid: Option<u32>,
        /// Bytes.
        pub size: Option<u64>,
        /// Last access.
        pub atime: SetTime,
        /// Last change of the data.
        pub mtime: SetTime,
    }
}

xdr_struct! {
    /// GETATTR3args.
    #[derive(Copy)]
    pub struct GetattrArgs<'a> {
        /// The file.
        pub object: Fh3<'a>,
    }
}

/// GETATTR3res: `obj_attributes`, or nothing.
pub type GetattrRes = Res<Fattr3, ()>;

xdr_struct! {
    /// SETATTR3args.
    #[derive(Copy)]
    pub struct SetattrArgs<'a> {
        /// The file.
        pub object: Fh3<'a>,
        /// What to set.
        pub new_attributes: Sattr3,
        /// Only if this is still its ctime (`sattrguard3`).
        pub guard: Option<Nfstime3>,
    }
}

/// SETATTR3res: `obj_wcc` in both cases.
pub type SetattrRes = Res<WccData, WccData>;

xdr_struct! {
    /// ACCESS3args.
    #[derive(Copy)]
    pub struct AccessArgs<'a> {
        /// The file.
        pub object: Fh3<'a>,
        /// Rights asked for: bits ACCESS3_READ 1, LOOKUP 2, MODIFY 4, EXTEND 8, DELETE 16,
        /// EXECUTE 32.
        pub access: u32,
    }
}

xdr_struct! {
    /// ACCESS3resok.
    #[derive(Copy)]
    pub struct AccessResOk {
        /// The file.
        pub obj_attributes: PostOpAttr,
        /// Rights granted.
        pub access: u32,
    }
}

/// ACCESS3res: with a failure, the file's attributes.
pub type AccessRes = Res<AccessResOk, PostOpAttr>;
