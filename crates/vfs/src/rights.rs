//! What the mode bits say: the rules of POSIX (IEEE 1003.1 §4.7), decided in this process.
//!
//! Access control lists are not looked at here. A back end must ask the kernel instead when a
//! file has one and the caller is neither its owner nor root: only for others does it matter.

use crate::access;
use crate::attr::{Attr, FileType};
use crate::cred::Cred;

/// Permission to read.
pub const R: u32 = 4;
/// Permission to write.
pub const W: u32 = 2;
/// Permission to execute or search.
pub const X: u32 = 1;

/// Which of read, write and execute the caller has.
pub fn granted(attr: &Attr, cred: &Cred) -> u32 {
    if cred.uid == 0 {
        // The superuser may execute what anyone may execute (capabilities(7), CAP_DAC_OVERRIDE).
        let runnable = attr.kind == FileType::Directory || attr.mode & 0o111 != 0;
        return R | W | if runnable { X } else { 0 };
    }
    let class = if cred.uid == attr.uid {
        attr.mode >> 6
    } else if cred.in_group(attr.gid) {
        attr.mode >> 3
    } else {
        attr.mode
    };
    class & 7
}

/// Whether the caller may remove a file from a directory, or give its name to another one, as far
/// as the sticky bit of the directory is concerned (unlink(2)): for others' files it may not, also
/// where it may write them.
pub fn sticky_permits(dir: &Attr, file: &Attr, cred: &Cred) -> bool {
    dir.mode & 0o1000 == 0 || [0, dir.uid, file.uid].contains(&cred.uid)
}

/// Whether an access control list could change the answer for this caller.
pub fn list_matters(attr: &Attr, cred: &Cred) -> bool {
    cred.uid != 0 && cred.uid != attr.uid && attr.kind != FileType::Symlink
}

/// The rights of ACCESS (RFC 1813 §3.3.4) that follow from read, write and execute.
pub fn to_access(kind: FileType, rwx: u32) -> u32 {
    let mut out = 0;
    if rwx & R != 0 {
        out |= access::READ;
    }
    if kind == FileType::Directory {
        if rwx & X != 0 {
            out |= access::LOOKUP;
        }
        if rwx & (W | X) == W | X {
            out |= access::MODIFY | access::EXTEND | access::DELETE;
        }
        return out;
    }
    if rwx & W != 0 {
        out |= access::MODIFY | access::EXTEND;
    }
    if rwx & X != 0 {
        out |= access::EXECUTE;
    }
    out
}

#[cfg(test)]
mod tests;
