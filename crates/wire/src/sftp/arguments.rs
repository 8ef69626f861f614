//! Arguments that requests of the draft share with extensions.

use super::attrs::Attrs;
use super::data::{HandleBytes, PathBytes};

xdr_structs! {
    /// CLOSE, FSTAT, READDIR (§6.3, §6.8, §6.7), fstatvfs and fsync.
    #[derive(Copy)]
    OfHandle<'a> { handle: HandleBytes<'a> }

    /// LSTAT, STAT, OPENDIR, REMOVE, RMDIR, REALPATH, READLINK (§6), statvfs and expand-path.
    #[derive(Copy)]
    OfPath<'a> { path: PathBytes<'a> }

    /// SETSTAT and MKDIR (§6.9, §6.6), lsetstat.
    #[derive(Copy)]
    SetByPath<'a> { path: PathBytes<'a>, attrs: Attrs }

    /// RENAME (§6.5), posix-rename and hardlink: from an existing path to a new one.
    #[derive(Copy)]
    TwoPaths<'a> { oldpath: PathBytes<'a>, newpath: PathBytes<'a> }
}
