//! Procedures about names: LOOKUP, CREATE, MKDIR, SYMLINK, MKNOD, REMOVE, RMDIR, RENAME, LINK
//! (RFC 1813 §3.3.3, §3.3.8 to §3.3.15).

use super::attr::{PostOpAttr, Sattr3, WccData};
use super::types::{DiropArgs, Fh3, Ftype3, Nfspath3, PostOpFh3, Res, Specdata3};
use crate::xdr::{Decode, DecodeError, Encode, Item, Reader, Writer};

xdr_struct! {
    /// LOOKUP3args.
    #[derive(Copy)]
    pub struct LookupArgs<'a> {
        /// Directory and name.
        pub what: DiropArgs<'a>,
    }
}

xdr_struct! {
    /// LOOKUP3resok.
    #[derive(Copy)]
    pub struct LookupResOk<'a> {
        /// What was found.
        pub object: Fh3<'a>,
        /// Its attributes.
        pub obj_attributes: PostOpAttr,
        /// The directory's.
        pub dir_attributes: PostOpAttr,
    }
}

/// LOOKUP3res: with a failure, the directory's attributes.
pub type LookupRes<'a> = Res<LookupResOk<'a>, PostOpAttr>;

/// How a file is made (`createhow3`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateHow {
    /// UNCHECKED: an existing file will do.
    Unchecked(Sattr3),
    /// GUARDED: the name must be free.
    Guarded(Sattr3),
    /// EXCLUSIVE: once for this verifier.
    Exclusive([u8; 8]),
}

impl Encode for CreateHow {
    fn encode(&self, w: &mut Writer<'_>) {
        match self {
            Self::Unchecked(attributes) => {
                w.u32(0);
                attributes.encode(w);
            }
            Self::Guarded(attributes) => {
                w.u32(1);
                attributes.encode(w);
            }
            Self::Exclusive(verf) => {
                w.u32(2);
                verf.encode(w);
            }
        }
    }
}

impl Decode<'_> for CreateHow {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match r.u32("createmode3")? {
            0 => Self::Unchecked(Sattr3::decode(r)?),
            1 => Self::Guarded(Sattr3::decode(r)?),
            2 => Self::Exclusive(Item::item(r, "createverf3")?),
            got => return Err(DecodeError::BadValue { what: "createmode3", got }),
        })
    }
}

xdr_struct! {
    /// CREATE3args.
    #[derive(Copy)]
    pub struct CreateArgs<'a> {
        /// Directory and name (`where` in the RFC).
        pub where_: DiropArgs<'a>,
        /// How.
        pub how: CreateHow,
    }
}

xdr_struct! {
    /// CREATE3resok, MKDIR3resok, SYMLINK3resok and MKNOD3resok are the same.
    #[derive(Copy)]
    pub struct NewResOk<'a> {
        /// The new object.
        pub obj: PostOpFh3<'a>,
        /// Its attributes.
        pub obj_attributes: PostOpAttr,
        /// The directory before and after.
        pub dir_wcc: WccData,
    }
}

/// CREATE3res: with a failure, the directory's `wcc_data`.
pub type CreateRes<'a> = Res<NewResOk<'a>, WccData>;
/// MKDIR3res.
pub type MkdirRes<'a> = CreateRes<'a>;
/// SYMLINK3res.
pub type SymlinkRes<'a> = CreateRes<'a>;
/// MKNOD3res.
pub type MknodRes<'a> = CreateRes<'a>;

xdr_struct! {
    /// MKDIR3args.
    #[derive(Copy)]
    pub struct MkdirArgs<'a> {
        /// Directory and name (`where` in the RFC).
        pub where_: DiropArgs<'a>,
        /// First attributes.
        pub attributes: Sattr3,
    }
}

xdr_struct! {
    /// SYMLINK3args, with `symlinkdata3` in line.
    #[derive(Copy)]
    pub struct SymlinkArgs<'a> {
        /// Directory and name (`where` in the RFC).
        pub where_: DiropArgs<'a>,
        /// First attributes of the link itself.
        pub symlink_attributes: Sattr3,
        /// Where it leads.
        pub symlink_data: Nfspath3<'a>,
    }
}

/// What MKNOD makes (`mknoddata3`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MknodData {
    /// NF3CHR.
    Chr(Sattr3, Specdata3),
    /// NF3BLK.
    Blk(Sattr3, Specdata3),
    /// NF3SOCK.
    Sock(Sattr3),
    /// NF3FIFO.
    Fifo(Sattr3),
    /// A type that MKNOD is not for: the answer is NFS3ERR_BADTYPE.
    Other(Ftype3),
}

impl MknodData {
    /// The requested type.
    pub const fn ftype(&self) -> Ftype3 {
        match self {
            Self::Chr(..) => Ftype3::CHR,
            Self::Blk(..) => Ftype3::BLK,
            Self::Sock(_) => Ftype3::SOCK,
            Self::Fifo(_) => Ftype3::FIFO,
            Self::Other(ftype) => *ftype,
        }
    }
}

impl Encode for MknodData {
    fn encode(&self, w: &mut Writer<'_>) {
        self.ftype().encode(w);
        match self {
            Self::Chr(attributes, spec) | Self::Blk(attributes, spec) => {
                attributes.encode(w);
                spec.encode(w);
            }
            Self::Sock(attributes) | Self::Fifo(attributes) => attributes.encode(w),
            Self::Other(_) => {}
        }
    }
}

impl Decode<'_> for MknodData {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match Ftype3::decode(r)? {
            Ftype3::CHR => Self::Chr(Sattr3::decode(r)?, Specdata3::decode(r)?),
            Ftype3::BLK => Self::Blk(Sattr3::decode(r)?, Specdata3::decode(r)?),
            Ftype3::SOCK => Self::Sock(Sattr3::decode(r)?),
            Ftype3::FIFO => Self::Fifo(Sattr3::decode(r)?),
            other => Self::Other(other),
        })
    }
}

xdr_struct! {
    /// MKNOD3args.
    #[derive(Copy)]
    pub struct MknodArgs<'a> {
        /// Directory and name (`where` in the RFC).
        pub where_: DiropArgs<'a>,
        /// What to make.
        pub what: MknodData,
    }
}

xdr_struct! {
    /// REMOVE3args and RMDIR3args.
    #[derive(Copy)]
    pub struct RemoveArgs<'a> {
        /// Directory and name.
        pub object: DiropArgs<'a>,
    }
}

/// RMDIR3args look the same as REMOVE3args.
pub type RmdirArgs<'a> = RemoveArgs<'a>;
/// REMOVE3res: `dir_wcc` in both cases.
pub type RemoveRes = Res<WccData, WccData>;
/// RMDIR3res.
pub type RmdirRes = RemoveRes;

xdr_struct! {
    /// RENAME3args.
    #[derive(Copy)]
    pub struct RenameArgs<'a> {
        /// Old directory and name.
        pub from: DiropArgs<'a>,
        /// New ones.
        pub to: DiropArgs<'a>,
    }
}

xdr_struct! {
    /// RENAME3resok and RENAME3resfail.
    #[derive(Copy, Default)]
    pub struct RenameWcc {
        /// The old directory.
        pub fromdir_wcc: WccData,
        /// The new one.
        pub todir_wcc: WccData,
    }
}

/// RENAME3res.
pub type RenameRes = Res<RenameWcc, RenameWcc>;

xdr_struct! {
    /// LINK3args.
    #[derive(Copy)]
    pub struct LinkArgs<'a> {
        /// The file.
        pub file: Fh3<'a>,
        /// Directory and name of its new link.
        pub link: DiropArgs<'a>,
    }
}

xdr_struct! {
    /// LINK3resok and LINK3resfail.
    #[derive(Copy, Default)]
    pub struct LinkWcc {
        /// The file.
        pub file_attributes: PostOpAttr,
        /// The directory.
        pub linkdir_wcc: WccData,
    }
}

/// LINK3res.
pub type LinkRes = Res<LinkWcc, LinkWcc>;
