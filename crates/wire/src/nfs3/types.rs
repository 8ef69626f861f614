//! Types that many procedures share (RFC 1813 §2.5, §2.6), and the shape of every result.

use base::limits::{NFS3_FHSIZE, NFS3_STRING_MAX};

use super::status::Nfsstat3;
use crate::xdr::{Decode, DecodeError, Encode, Reader, Writer};

/// Verifier of directory cookies.
pub type Cookieverf3 = [u8; 8];
/// Verifier of unstable writes: changes when the server may have lost some.
pub type Writeverf3 = [u8; 8];
/// A new object's handle, when the server has it.
pub type PostOpFh3<'a> = Option<Fh3<'a>>;

xdr_bytes! {
    /// A file handle: up to 64 bytes that mean something to the server only.
    pub struct Fh3, NFS3_FHSIZE, "nfs_fh3"
}

xdr_bytes! {
    /// A file name: bytes. It is neither empty-checked nor looked into here, and may be longer
    /// than a server takes (up to [`NFS3_STRING_MAX`]).
    pub struct Filename3, NFS3_STRING_MAX, "filename3"
}

xdr_bytes! {
    /// Contents of a symbolic link: bytes, up to [`NFS3_STRING_MAX`].
    pub struct Nfspath3, NFS3_STRING_MAX, "nfspath3"
}

xdr_enum! {
    /// Type of a file.
    pub enum Ftype3 {
        /// Regular file.
        REG = 1 "NF3REG",
        /// Directory.
        DIR = 2 "NF3DIR",
        /// Block device.
        BLK = 3 "NF3BLK",
        /// Character device.
        CHR = 4 "NF3CHR",
        /// Symbolic link.
        LNK = 5 "NF3LNK",
        /// Socket.
        SOCK = 6 "NF3SOCK",
        /// Named pipe.
        FIFO = 7 "NF3FIFO",
    }
}

impl Default for Ftype3 {
    fn default() -> Self {
        Self::REG
    }
}

xdr_struct! {
    /// Numbers of a device.
    #[derive(Copy, Default)]
    pub struct Specdata3 {
        /// Major number.
        pub specdata1: u32,
        /// Minor number.
        pub specdata2: u32,
    }
}

xdr_struct! {
    /// Time since the epoch.
    #[derive(Copy, Default, PartialOrd, Ord)]
    pub struct Nfstime3 {
        /// Seconds, unsigned: 1970 to 2106.
        pub seconds: u32,
        /// Nanoseconds; a peer may send more than 999 999 999.
        pub nseconds: u32,
    }
}

xdr_struct! {
    /// A name in a directory.
    #[derive(Copy)]
    pub struct DiropArgs<'a> {
        /// The directory.
        pub dir: Fh3<'a>,
        /// The name in it.
        pub name: Filename3<'a>,
    }
}

/// Result of any procedure: status, and what goes with success or with failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Res<O, F> {
    /// NFS3_OK.
    Ok(O),
    /// Any other status. With [`Nfsstat3::OK`] it cannot be sent.
    Fail(Nfsstat3, F),
}

impl<O, F> Res<O, F> {
    /// The status.
    #[inline]
    pub fn status(&self) -> Nfsstat3 {
        match self {
            Self::Ok(_) => Nfsstat3::OK,
            Self::Fail(status, _) => *status,
        }
    }

    /// The results, or the status.
    ///
    /// # Errors
    /// The status of a failure.
    #[inline]
    pub fn into_result(self) -> Result<O, Nfsstat3> {
        match self {
            Self::Ok(ok) => Ok(ok),
            Self::Fail(status, _) => Err(status),
        }
    }
}

impl<O: Encode, F: Encode> Encode for Res<O, F> {
    #[inline]
    fn encode(&self, w: &mut Writer<'_>) {
        match self {
            Self::Ok(ok) => {
                Nfsstat3::OK.encode(w);
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

impl<'a, O: Decode<'a>, F: Decode<'a>> Decode<'a> for Res<O, F> {
    #[inline]
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let status = Nfsstat3::decode(r)?;
        Ok(if status.is_ok() { Self::Ok(O::decode(r)?) } else { Self::Fail(status, F::decode(r)?) })
    }
}
