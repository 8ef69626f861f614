//! NFS version 3 (RFC 1813): arguments and results of all 22 procedures, in both directions.
//!
//! Structures are named after the RFC's (`READ3args` is [`ReadArgs`]), members as there. Handles,
//! names and data borrow from the message. Statuses and file types are numbers that may be
//! unknown to us; a discriminant that decides what follows is an error when unknown.
//!
//! - [`Proc`], [`Nfsstat3`]: the numbers.
//! - [`Fh3`], [`Fattr3`], [`Sattr3`], [`WccData`]: what most messages are made of.
//! - Arguments are `…Args`; results are [`Res`]; its failure arm carries the status.
//! - Server-side writers for replies of which the size is known late: [`ReadResOkHead`],
//!   [`ReaddirEncoder`], [`ReaddirplusEncoder`].

mod attr;
mod dir;
mod fs;
mod io;
mod names;
mod proc;
mod read_reply;
mod readdir_reply;
mod status;
mod types;

pub use attr::{
    AccessArgs, AccessRes, AccessResOk, FATTR3_LEN, Fattr3, GetattrArgs, GetattrRes, PostOpAttr,
    Sattr3, SetTime, SetattrArgs, SetattrRes, WccAttr, WccData,
};
pub use dir::{
    DirEntries, Entry3, Entryplus3, ReaddirArgs, ReaddirRes, ReaddirResOk, ReaddirplusArgs,
    ReaddirplusRes, ReaddirplusResOk,
};
pub use fs::{
    CommitArgs, CommitRes, CommitResOk, FSF3_CANSETTIME, FSF3_HOMOGENEOUS, FSF3_LINK, FSF3_SYMLINK,
    FsinfoArgs, FsinfoRes, FsinfoResOk, FsstatArgs, FsstatRes, FsstatResOk, PathconfArgs,
    PathconfRes, PathconfResOk,
};
pub use io::{
    ReadArgs, ReadRes, ReadResOk, ReadlinkArgs, ReadlinkRes, ReadlinkResOk, StableHow, WriteArgs,
    WriteRes, WriteResOk,
};
pub use names::{
    CreateArgs, CreateHow, CreateRes, LinkArgs, LinkRes, LinkWcc, LookupArgs, LookupRes,
    LookupResOk, MkdirArgs, MkdirRes, MknodArgs, MknodData, MknodRes, NewResOk, RemoveArgs,
    RemoveRes, RenameArgs, RenameRes, RenameWcc, RmdirArgs, RmdirRes, SymlinkArgs, SymlinkRes,
};
pub use proc::{NFS_PROGRAM, NFS_V3, Proc};
pub use read_reply::{ReadResOkHead, ReadResOkOpen};
pub use readdir_reply::{ReaddirEncoder, ReaddirplusEncoder};
pub use status::Nfsstat3;
pub use types::{
    Cookieverf3, DiropArgs, Fh3, Filename3, Ftype3, Nfspath3, Nfstime3, PostOpFh3, Res, Specdata3,
    Writeverf3,
};

#[cfg(test)]
mod tests;
