//! Attributes of files (RFC 8881 §5, RFC 7862 §12.2, RFC 8275, RFC 8276): numbers, types, and the
//! pair of bitmap and opaque in which they travel.

#![allow(missing_docs, reason = "the RFC's member names are their documentation")]

use base::limits::{NFS4_PATH_PARTS_MAX, NFS4_SMALL_LIST_MAX, RPC_RECORD_MAX};
use thiserror::Error;

use super::acl::{Acl4, Nfsacl41};
use super::bitmap::Bitmap4;
use super::status::Nfsstat4;
use super::types::{Fh4, Fsid4, Ftype4, Nfstime4, Specdata4, Stateid4, Texts, Utf8str};
use crate::xdr::{Decode, DecodeError, Encode, Item, Reader, Seq, Writer};

xdr_union! {
    /// `settime4`.
    Settime4 "time_how4" { 0 Server(()), 1 Client(Nfstime4) }
}

xdr_structs! {
    /// `fattr4`: what is in it, and the values in the order of their numbers, not looked into.
    #[derive(Copy)]
    Fattr4<'a> { attrmask: Bitmap4, attr_vals: &'a [u8] }
    /// `change_policy4`.
    ChangePolicy4 { major: u64, minor: u64 }
    /// `fs4_status`.
    Fs4Status<'a> {
        absent: bool, kind: u32, source: Utf8str<'a>, current: Utf8str<'a>, age: u32,
        version: Nfstime4,
    }
    /// `fs_location4`.
    FsLocation4<'a> { server: Texts<'a>, rootpath: Pathname4<'a> }
    /// `fs_locations4`.
    FsLocations4<'a> {
        fs_root: Pathname4<'a>,
        locations: Seq<FsLocation4<'a>, NFS4_SMALL_LIST_MAX>,
    }
    /// `layouthint4`.
    Layouthint4<'a> { kind: u32, body: &'a [u8] }
    /// `retention_get4`.
    RetentionGet4 { duration: u64, begin_time: Option<Nfstime4> }
    /// `retention_set4`.
    RetentionSet4 { enable: bool, duration: Option<u64> }
    /// `mode_masked4`.
    ModeMasked4 { value_to_set: u32, mask_bits: u32 }
    /// `sec_label4`.
    SecLabel4<'a> { lfs: u32, pi: u32, data: &'a [u8] }
    /// `mode_umask4` (RFC 8275).
    #[derive(Copy)]
    ModeUmask4 { mode: u32, umask: u32 }
    /// `SETATTR4args`.
    #[derive(Copy)]
    SetattrArgs4<'a> { stateid: Stateid4, obj_attributes: Fattr4<'a> }
    /// `SETATTR4res`: the set of attributes comes with every status.
    #[derive(Copy)]
    SetattrRes4 { status: Nfsstat4, attrsset: Bitmap4 }
    /// `GETATTR4args`.
    #[derive(Copy)]
    GetattrArgs4 { attr_request: Bitmap4 }
    /// `GETATTR4resok`.
    #[derive(Copy)]
    GetattrResOk4<'a> { obj_attributes: Fattr4<'a> }
    /// `VERIFY4args` and `NVERIFY4args`.
    #[derive(Copy)]
    VerifyArgs4<'a> { obj_attributes: Fattr4<'a> }
}

/// `pathname4`.
pub type Pathname4<'a> = Seq<Utf8str<'a>, NFS4_PATH_PARTS_MAX>;
/// `layouttype4<>`.
pub type LayoutTypes = Seq<u32, NFS4_SMALL_LIST_MAX>;

impl super::types::HasStatus for SetattrRes4 {
    fn status(&self) -> Nfsstat4 {
        self.status
    }
}

/// Why the values of an [`Fattr4`] cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FattrError {
    /// It holds an attribute that we have no type for, so what follows it cannot be found.
    #[error("attribute {0} is not known")]
    Unknown(u32),
    /// A value is not what it should be.
    #[error(transparent)]
    Value(#[from] DecodeError),
}

macro_rules! attributes {
    ($($number:literal $constant:ident $field:ident : $type:ty),* $(,)?) => {
        /// Numbers of attributes.
        pub mod attr4 {
            $(pub const $constant: u32 = $number;)*
            /// All that have a type here, with their names, in the order of their numbers.
            pub const ALL: &[(u32, &str)] = &[$(($number, stringify!($field))),*];
        }

        /// The values of some attributes.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct Attrs4<'a> { $(pub $field: Option<$type>),* }

        impl<'a> Attrs4<'a> {
            /// Which are there.
            pub fn mask(&self) -> Bitmap4 {
                let mut mask = Bitmap4::EMPTY;
                $(if self.$field.is_some() { mask.add($number); })*
                mask
            }

            fn encode_values(&self, w: &mut Writer<'_>) {
                $(if let Some(value) = &self.$field { value.encode(w); })*
            }

            fn take(&mut self, number: u32, r: &mut Reader<'a>) -> Result<(), FattrError> {
                match number {
                    $($number => {
                        self.$field = Some(<$type as Item<'a>>::item(r, stringify!($field))?);
                    })*
                    _ => return Err(FattrError::Unknown(number)),
                }
                Ok(())
            }
        }

        #[cfg(test)]
        impl<'a> crate::arb::Arb<'a> for Attrs4<'a> {
            fn arb(g: &mut crate::arb::Gen<'a>) -> Self {
                Self { $($field: if g.byte() % 4 == 1 { Some(g.arb()) } else { None }),* }
            }
        }
    };
}

attributes! {
    0 SUPPORTED_ATTRS supported_attrs: Bitmap4,
    1 TYPE kind: Ftype4,
    2 FH_EXPIRE_TYPE fh_expire_type: u32,
    3 CHANGE change: u64,
    4 SIZE size: u64,
    5 LINK_SUPPORT link_support: bool,
    6 SYMLINK_SUPPORT symlink_support: bool,
    7 NAMED_ATTR named_attr: bool,
    8 FSID fsid: Fsid4,
    9 UNIQUE_HANDLES unique_handles: bool,
    10 LEASE_TIME lease_time: u32,
    11 RDATTR_ERROR rdattr_error: Nfsstat4,
    12 ACL acl: Acl4<'a>,
    13 ACLSUPPORT aclsupport: u32,
    14 ARCHIVE archive: bool,
    15 CANSETTIME cansettime: bool,
    16 CASE_INSENSITIVE case_insensitive: bool,
    17 CASE_PRESERVING case_preserving: bool,
    18 CHOWN_RESTRICTED chown_restricted: bool,
    19 FILEHANDLE filehandle: Fh4<'a>,
    20 FILEID fileid: u64,
    21 FILES_AVAIL files_avail: u64,
    22 FILES_FREE files_free: u64,
    23 FILES_TOTAL files_total: u64,
    24 FS_LOCATIONS fs_locations: FsLocations4<'a>,
    25 HIDDEN hidden: bool,
    26 HOMOGENEOUS homogeneous: bool,
    27 MAXFILESIZE maxfilesize: u64,
    28 MAXLINK maxlink: u32,
    29 MAXNAME maxname: u32,
    30 MAXREAD maxread: u64,
    31 MAXWRITE maxwrite: u64,
    32 MIMETYPE mimetype: Utf8str<'a>,
    33 MODE mode: u32,
    34 NO_TRUNC no_trunc: bool,
    35 NUMLINKS numlinks: u32,
    36 OWNER owner: Utf8str<'a>,
    37 OWNER_GROUP owner_group: Utf8str<'a>,
    38 QUOTA_AVAIL_HARD quota_avail_hard: u64,
    39 QUOTA_AVAIL_SOFT quota_avail_soft: u64,
    40 QUOTA_USED quota_used: u64,
    41 RAWDEV rawdev: Specdata4,
    42 SPACE_AVAIL space_avail: u64,
    43 SPACE_FREE space_free: u64,
    44 SPACE_TOTAL space_total: u64,
    45 SPACE_USED space_used: u64,
    46 SYSTEM system: bool,
    47 TIME_ACCESS time_access: Nfstime4,
    48 TIME_ACCESS_SET time_access_set: Settime4,
    49 TIME_BACKUP time_backup: Nfstime4,
    50 TIME_CREATE time_create: Nfstime4,
    51 TIME_DELTA time_delta: Nfstime4,
    52 TIME_METADATA time_metadata: Nfstime4,
    53 TIME_MODIFY time_modify: Nfstime4,
    54 TIME_MODIFY_SET time_modify_set: Settime4,
    55 MOUNTED_ON_FILEID mounted_on_fileid: u64,
    56 DIR_NOTIF_DELAY dir_notif_delay: Nfstime4,
    57 DIRENT_NOTIF_DELAY dirent_notif_delay: Nfstime4,
    58 DACL dacl: Nfsacl41<'a>,
    59 SACL sacl: Nfsacl41<'a>,
    60 CHANGE_POLICY change_policy: ChangePolicy4,
    61 FS_STATUS fs_status: Fs4Status<'a>,
    62 FS_LAYOUT_TYPE fs_layout_type: LayoutTypes,
    63 LAYOUT_HINT layout_hint: Layouthint4<'a>,
    64 LAYOUT_TYPE layout_type: LayoutTypes,
    65 LAYOUT_BLKSIZE layout_blksize: u32,
    66 LAYOUT_ALIGNMENT layout_alignment: u32,
    69 RETENTION_GET retention_get: RetentionGet4,
    70 RETENTION_SET retention_set: RetentionSet4,
    71 RETENTEVT_GET retentevt_get: RetentionGet4,
    72 RETENTEVT_SET retentevt_set: RetentionSet4,
    73 RETENTION_HOLD retention_hold: u64,
    74 MODE_SET_MASKED mode_set_masked: ModeMasked4,
    75 SUPPATTR_EXCLCREAT suppattr_exclcreat: Bitmap4,
    76 FS_CHARSET_CAP fs_charset_cap: u32,
    77 CLONE_BLKSIZE clone_blksize: u32,
    78 SPACE_FREED space_freed: u64,
    79 CHANGE_ATTR_TYPE change_attr_type: u32,
    80 SEC_LABEL sec_label: SecLabel4<'a>,
    81 MODE_UMASK mode_umask: ModeUmask4,
    82 XATTR_SUPPORT xattr_support: bool,
}

impl<'a> Fattr4<'a> {
    /// No attributes.
    pub const NONE: Self = Self { attrmask: Bitmap4::EMPTY, attr_vals: &[] };

    /// The values.
    ///
    /// # Errors
    /// [`FattrError`]: the peer's fault.
    pub fn values(&self) -> Result<Attrs4<'a>, FattrError> {
        let mut r = Reader::new(self.attr_vals);
        let mut attrs = Attrs4::default();
        for number in self.attrmask.iter() {
            attrs.take(number, &mut r)?;
        }
        r.finish()?;
        Ok(attrs)
    }
}

impl Encode for Attrs4<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        self.mask().encode(w);
        let length = w.len();
        w.u32(0);
        self.encode_values(w);
        let values = w.len() - length - 4;
        w.patch_u32(length, values as u32);
    }
}

/// Decoding looks into the values at once; an attribute without a type is a bad value of
/// "attrmask". A server decodes [`Fattr4`] instead, to answer NFS4ERR_ATTRNOTSUPP.
impl<'a> Decode<'a> for Attrs4<'a> {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let attrmask = Bitmap4::decode(r)?;
        let attr_vals = r.opaque(RPC_RECORD_MAX, "attrlist4")?;
        Fattr4 { attrmask, attr_vals }.values().map_err(|error| match error {
            FattrError::Unknown(got) => DecodeError::BadValue { what: "attrmask", got },
            FattrError::Value(error) => error,
        })
    }
}
