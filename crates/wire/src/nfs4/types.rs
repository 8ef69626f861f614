//! Types that many operations share (RFC 7531 and RFC 5662, first part), and the shape of results.

#![allow(missing_docs, reason = "the RFC's member names are their documentation")]

use base::limits::{NFS4_FHSIZE, NFS4_OPAQUE_LIMIT, NFS4_SMALL_LIST_MAX, NFS4_STRING_MAX};

use super::status::Nfsstat4;
use crate::xdr::{Decode, DecodeError, Encode, Reader, Seq, Writer};

/// `verifier4`.
pub type Verifier4 = [u8; 8];
/// `sessionid4`.
pub type Sessionid4 = [u8; 16];
/// `clientid4`.
pub type Clientid4 = u64;

xdr_bytes! {
    /// `nfs_fh4`: up to 128 bytes that mean something to the server only.
    pub struct Fh4, NFS4_FHSIZE, "nfs_fh4"
}

xdr_bytes! {
    /// `component4`: a name. Bytes; neither empty-checked nor looked into here.
    pub struct Component4, NFS4_STRING_MAX, "component4"
}

xdr_bytes! {
    /// `linktext4`: where a symbolic link leads.
    pub struct Linktext4, NFS4_STRING_MAX, "linktext4"
}

xdr_bytes! {
    /// `utf8str_mixed` and its kin: text that should be UTF-8, and is not checked here.
    pub struct Utf8str, NFS4_STRING_MAX, "utf8string"
}

xdr_bytes! {
    /// An opaque of at most NFS4_OPAQUE_LIMIT bytes: owners, client owners, server scopes.
    pub struct Opaque4, NFS4_OPAQUE_LIMIT, "opaque<NFS4_OPAQUE_LIMIT>"
}

xdr_enum! {
    /// `nfs_ftype4`.
    pub enum Ftype4 {
        /// Regular file.
        REG = 1 "NF4REG",
        /// Directory.
        DIR = 2 "NF4DIR",
        /// Block device.
        BLK = 3 "NF4BLK",
        /// Character device.
        CHR = 4 "NF4CHR",
        /// Symbolic link.
        LNK = 5 "NF4LNK",
        /// Socket.
        SOCK = 6 "NF4SOCK",
        /// Named pipe.
        FIFO = 7 "NF4FIFO",
        /// Directory of named attributes.
        ATTRDIR = 8 "NF4ATTRDIR",
        /// Named attribute.
        NAMEDATTR = 9 "NF4NAMEDATTR",
    }
}

xdr_structs! {
    /// `stateid4`.
    #[derive(Copy, Hash)]
    Stateid4 { seqid: u32, other: [u8; 12] }
    /// `change_info4`.
    #[derive(Copy, Default)]
    ChangeInfo4 { atomic: bool, before: u64, after: u64 }
    /// `nfstime4`.
    #[derive(Copy, Default)]
    Nfstime4 { seconds: i64, nseconds: u32 }
    /// `fsid4`.
    #[derive(Copy, Default, Hash)]
    Fsid4 { major: u64, minor: u64 }
    /// `specdata4`.
    #[derive(Copy, Default)]
    Specdata4 { specdata1: u32, specdata2: u32 }
    /// `clientaddr4` and `netaddr4`.
    Clientaddr4<'a> { netid: Utf8str<'a>, addr: Utf8str<'a> }
    /// `cb_client4`.
    CbClient4<'a> { program: u32, location: Clientaddr4<'a> }
    /// `nfs_client_id4`.
    NfsClientId4<'a> { verifier: Verifier4, id: Opaque4<'a> }
    /// `client_owner4`.
    ClientOwner4<'a> { verifier: Verifier4, ownerid: Opaque4<'a> }
    /// `open_owner4` and `lock_owner4`.
    #[derive(Copy)]
    StateOwner4<'a> { clientid: Clientid4, owner: Opaque4<'a> }
    /// `nfs_impl_id4`.
    NfsImplId4<'a> { domain: Utf8str<'a>, name: Utf8str<'a>, date: Nfstime4 }
    /// `server_owner4`.
    ServerOwner4<'a> { minor_id: u64, major_id: Opaque4<'a> }
    /// `state_protect_ops4`.
    StateProtectOps4 { must_enforce: super::Bitmap4, must_allow: super::Bitmap4 }
}

/// `fs_location4`'s list of servers and the parts of a path.
pub type Texts<'a> = Seq<Utf8str<'a>, NFS4_SMALL_LIST_MAX>;

impl Stateid4 {
    /// "Anonymous": all zeros (RFC 8881 §8.2.3).
    pub const ANONYMOUS: Self = Self { seqid: 0, other: [0; 12] };
    /// "READ bypass": all ones.
    pub const BYPASS: Self = Self { seqid: u32::MAX, other: [0xff; 12] };
    /// "Current stateid" of 4.1: `other` zero, `seqid` one.
    pub const CURRENT: Self = Self { seqid: 1, other: [0; 12] };
    /// "Invalid" of 4.1: `other` zero, `seqid` all ones.
    pub const INVALID: Self = Self { seqid: u32::MAX, other: [0; 12] };

    /// Whether it is a special stateid, including undefined ones.
    #[inline]
    pub fn is_special(&self) -> bool {
        self.other == [0; 12] || self.other == [0xff; 12]
    }
}

/// Result of an operation: status, and what goes with success or (rarely) with failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Res4<O, F = ()> {
    /// NFS4_OK.
    Ok(O),
    /// Any other status.
    Fail(Nfsstat4, F),
}

/// A result that begins with its status, as all do.
pub trait HasStatus {
    /// The status.
    fn status(&self) -> Nfsstat4;
}

impl<O, F> Res4<O, F> {
    /// The results, or the status.
    ///
    /// # Errors
    /// The status of a failure.
    #[inline]
    pub fn into_result(self) -> Result<O, Nfsstat4> {
        match self {
            Self::Ok(ok) => Ok(ok),
            Self::Fail(status, _) => Err(status),
        }
    }
}

impl<O> From<Result<O, Nfsstat4>> for Res4<O> {
    fn from(result: Result<O, Nfsstat4>) -> Self {
        match result {
            Ok(ok) => Self::Ok(ok),
            Err(status) => Self::Fail(status, ()),
        }
    }
}

impl<O, F> HasStatus for Res4<O, F> {
    #[inline]
    fn status(&self) -> Nfsstat4 {
        match self {
            Self::Ok(_) => Nfsstat4::OK,
            Self::Fail(status, _) => *status,
        }
    }
}

impl<O: Encode, F: Encode> Encode for Res4<O, F> {
    #[inline]
    fn encode(&self, w: &mut Writer<'_>) {
        match self {
            Self::Ok(ok) => {
                Nfsstat4::OK.encode(w);
                ok.encode(w);
            }
            Self::Fail(status, fail) => {
                debug_assert!(!status.is_ok(), "a failure needs a status of its own");
                status.encode(w);
                fail.encode(w);
            }
        }
    }
}

impl<'a, O: Decode<'a>, F: Decode<'a>> Decode<'a> for Res4<O, F> {
    #[inline]
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let status = Nfsstat4::decode(r)?;
        Ok(if status.is_ok() { Self::Ok(O::decode(r)?) } else { Self::Fail(status, F::decode(r)?) })
    }
}
