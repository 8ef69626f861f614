//! MOUNT version 3 (RFC 1813, appendix I).

use base::limits::{AUTH_SYS_NAME_MAX, MOUNT_FLAVORS_MAX, MOUNT_LIST_MAX, NFS3_FHSIZE, PATH_MAX};

use crate::xdr::{Decode, DecodeError, Encode, Reader, Writer};

#[cfg(test)]
mod tests;

/// RPC program number of MOUNT.
pub const MOUNT_PROGRAM: u32 = 100_005;
/// This version of it.
pub const MOUNT_V3: u32 = 3;

xdr_enum! {
    /// A procedure number.
    pub enum Proc {
        /// Do nothing.
        NULL = 0 "null",
        /// Give the handle of an export.
        MNT = 1 "mnt",
        /// List the mounts and their clients.
        DUMP = 2 "dump",
        /// Forget one mount.
        UMNT = 3 "umnt",
        /// Forget all mounts of the caller.
        UMNTALL = 4 "umntall",
        /// List the exports.
        EXPORT = 5 "export",
    }
}

impl Proc {
    /// Name of procedure `n`; `unknown` if there is none.
    pub const fn name(n: u32) -> &'static str {
        match Self(n).known_name() {
            Some(name) => name,
            None => "unknown",
        }
    }
}

xdr_enum! {
    /// `mountstat3`.
    pub enum Mountstat3 {
        /// It succeeded.
        OK = 0 "MNT3_OK",
        /// Not the owner.
        PERM = 1 "MNT3ERR_PERM",
        /// No such export.
        NOENT = 2 "MNT3ERR_NOENT",
        /// Input/output error.
        IO = 5 "MNT3ERR_IO",
        /// Permission denied.
        ACCES = 13 "MNT3ERR_ACCES",
        /// Not a directory.
        NOTDIR = 20 "MNT3ERR_NOTDIR",
        /// Invalid argument.
        INVAL = 22 "MNT3ERR_INVAL",
        /// Path too long.
        NAMETOOLONG = 63 "MNT3ERR_NAMETOOLONG",
        /// Not supported.
        NOTSUPP = 10004 "MNT3ERR_NOTSUPP",
        /// A failure of the server.
        SERVERFAULT = 10006 "MNT3ERR_SERVERFAULT",
    }
}

xdr_bytes! {
    /// A path on the server (argument of MNT and UMNT).
    pub struct Dirpath, PATH_MAX, "dirpath"
}

xdr_bytes! {
    /// Name of a client or of a group of clients.
    pub struct Name, AUTH_SYS_NAME_MAX, "name"
}

xdr_bytes! {
    /// Handle of an export's root.
    pub struct Fhandle3, NFS3_FHSIZE, "fhandle3"
}

/// Argument of MNT.
pub type MntArgs<'a> = Dirpath<'a>;
/// Argument of UMNT.
pub type UmntArgs<'a> = Dirpath<'a>;

/// Result of MNT (`mountres3`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MntRes<'a> {
    /// MNT3_OK.
    Ok(MntResOk<'a>),
    /// Any other status. With [`Mountstat3::OK`] it cannot be sent.
    Fail(Mountstat3),
}

xdr_struct! {
    /// `mountres3_ok`.
    pub struct MntResOk<'a> {
        /// The export's root.
        pub fhandle: Fhandle3<'a>,
        /// Flavours of authentication that it takes, the preferred first.
        pub auth_flavors: Flavors,
    }
}

/// A list of authentication flavours, at most [`MOUNT_FLAVORS_MAX`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flavors(pub Vec<u32>);

impl Encode for Flavors {
    fn encode(&self, w: &mut Writer<'_>) {
        w.u32(self.0.len() as u32);
        for flavor in &self.0 {
            w.u32(*flavor);
        }
    }
}

impl Decode<'_> for Flavors {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        const WHAT: &str = "auth_flavors";
        let count = r.length(MOUNT_FLAVORS_MAX, WHAT)?;
        (0..count).map(|_| r.u32(WHAT)).collect::<Result<_, _>>().map(Self)
    }
}

impl Encode for MntRes<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        match self {
            Self::Ok(ok) => {
                Mountstat3::OK.encode(w);
                ok.encode(w);
            }
            Self::Fail(status) => {
                debug_assert!(*status != Mountstat3::OK, "a failure needs a status of its own");
                status.encode(w);
            }
        }
    }
}

impl<'a> Decode<'a> for MntRes<'a> {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(match Mountstat3::decode(r)? {
            Mountstat3::OK => Self::Ok(MntResOk::decode(r)?),
            status => Self::Fail(status),
        })
    }
}

xdr_struct! {
    /// One mount, as DUMP lists it (`mountbody`).
    #[derive(Copy)]
    pub struct MountEntry<'a> {
        /// The client.
        pub hostname: Name<'a>,
        /// What it mounted.
        pub directory: Dirpath<'a>,
    }
}

xdr_struct! {
    /// One export (`exportnode`).
    pub struct ExportEntry<'a> {
        /// The exported path.
        pub dir: Dirpath<'a>,
        /// Clients that may mount it; an empty list means all.
        pub groups: List<Name<'a>>,
    }
}

/// A linked list of at most [`MOUNT_LIST_MAX`] items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List<T>(pub Vec<T>);

/// Result of DUMP.
pub type DumpRes<'a> = List<MountEntry<'a>>;
/// Result of EXPORT.
pub type ExportRes<'a> = List<ExportEntry<'a>>;

impl<T: Encode> Encode for List<T> {
    fn encode(&self, w: &mut Writer<'_>) {
        for item in &self.0 {
            w.bool(true);
            item.encode(w);
        }
        w.bool(false);
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for List<T> {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        r.list(MOUNT_LIST_MAX, "list").map(Self)
    }
}
