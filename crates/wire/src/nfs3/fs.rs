//! FSSTAT, FSINFO, PATHCONF and COMMIT (RFC 1813 §3.3.18 to §3.3.21).

use super::attr::PostOpAttr;
use super::attr::WccData;
use super::types::{Fh3, Nfstime3, Res, Writeverf3};

/// FSINFO property: hard links.
pub const FSF3_LINK: u32 = 0x01;
/// FSINFO property: symbolic links.
pub const FSF3_SYMLINK: u32 = 0x02;
/// FSINFO property: PATHCONF is the same for every file.
pub const FSF3_HOMOGENEOUS: u32 = 0x08;
/// FSINFO property: SETATTR can set times.
pub const FSF3_CANSETTIME: u32 = 0x10;

xdr_struct! {
    /// FSSTAT3args.
    #[derive(Copy)]
    pub struct FsstatArgs<'a> {
        /// Any file of the file system.
        pub fsroot: Fh3<'a>,
    }
}

xdr_struct! {
    /// FSSTAT3resok.
    #[derive(Copy)]
    pub struct FsstatResOk {
        /// The file.
        pub obj_attributes: PostOpAttr,
        /// Bytes in all.
        pub tbytes: u64,
        /// Bytes free.
        pub fbytes: u64,
        /// Bytes free to the caller.
        pub abytes: u64,
        /// File slots in all.
        pub tfiles: u64,
        /// File slots free.
        pub ffiles: u64,
        /// File slots free to the caller.
        pub afiles: u64,
        /// Seconds for which this is not expected to change.
        pub invarsec: u32,
    }
}

/// FSSTAT3res: with a failure, the file's attributes.
pub type FsstatRes = Res<FsstatResOk, PostOpAttr>;

xdr_struct! {
    /// FSINFO3args.
    #[derive(Copy)]
    pub struct FsinfoArgs<'a> {
        /// Any file of the file system.
        pub fsroot: Fh3<'a>,
    }
}

xdr_struct! {
    /// FSINFO3resok. Sizes in bytes.
    #[derive(Copy)]
    pub struct FsinfoResOk {
        /// The file.
        pub obj_attributes: PostOpAttr,
        /// Largest READ.
        pub rtmax: u32,
        /// Preferred READ.
        pub rtpref: u32,
        /// READs should be a multiple of this.
        pub rtmult: u32,
        /// Largest WRITE.
        pub wtmax: u32,
        /// Preferred WRITE.
        pub wtpref: u32,
        /// WRITEs should be a multiple of this.
        pub wtmult: u32,
        /// Preferred READDIR.
        pub dtpref: u32,
        /// Largest file.
        pub maxfilesize: u64,
        /// Granularity of times.
        pub time_delta: Nfstime3,
        /// `FSF3_…` bits.
        pub properties: u32,
    }
}

/// FSINFO3res: with a failure, the file's attributes.
pub type FsinfoRes = Res<FsinfoResOk, PostOpAttr>;

xdr_struct! {
    /// PATHCONF3args.
    #[derive(Copy)]
    pub struct PathconfArgs<'a> {
        /// The file.
        pub object: Fh3<'a>,
    }
}

xdr_struct! {
    /// PATHCONF3resok.
    #[derive(Copy)]
    pub struct PathconfResOk {
        /// The file.
        pub obj_attributes: PostOpAttr,
        /// Most hard links.
        pub linkmax: u32,
        /// Longest name in bytes.
        pub name_max: u32,
        /// Whether longer names are refused, not cut.
        pub no_trunc: bool,
        /// Whether only root gives files away.
        pub chown_restricted: bool,
        /// Whether upper and lower case are the same.
        pub case_insensitive: bool,
        /// Whether names keep their case.
        pub case_preserving: bool,
    }
}

/// PATHCONF3res: with a failure, the file's attributes.
pub type PathconfRes = Res<PathconfResOk, PostOpAttr>;

xdr_struct! {
    /// COMMIT3args.
    #[derive(Copy)]
    pub struct CommitArgs<'a> {
        /// The file.
        pub file: Fh3<'a>,
        /// First byte.
        pub offset: u64,
        /// Bytes; 0 means to the end.
        pub count: u32,
    }
}

xdr_struct! {
    /// COMMIT3resok.
    #[derive(Copy)]
    pub struct CommitResOk {
        /// The file before and after.
        pub file_wcc: WccData,
        /// Changes when unstable data may have been lost.
        pub verf: Writeverf3,
    }
}

/// COMMIT3res: with a failure, the file's `wcc_data`.
pub type CommitRes = Res<CommitResOk, WccData>;
