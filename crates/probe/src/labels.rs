//! The protocols' own names for their operations and status numbers, and the way back.

use std::borrow::Cow;

use crate::op::Protocol;

/// Procedures of NFS version 3 by number (RFC 1813 §3.3).
const NFS3_OPS: [&str; 22] = [
    "null",
    "getattr",
    "setattr",
    "lookup",
    "access",
    "readlink",
    "read",
    "write",
    "create",
    "mkdir",
    "symlink",
    "mknod",
    "remove",
    "rmdir",
    "rename",
    "link",
    "readdir",
    "readdirplus",
    "fsstat",
    "fsinfo",
    "pathconf",
    "commit",
];

/// Procedures of MOUNT version 3 by number (RFC 1813 §5.2).
const MOUNT3_OPS: [&str; 6] = ["null", "mnt", "dump", "umnt", "umntall", "export"];

/// `nfsstat3` (RFC 1813 §2.6).
const NFS3_STATUS: [(u16, &str); 29] = [
    (0, "NFS3_OK"),
    (1, "NFS3ERR_PERM"),
    (2, "NFS3ERR_NOENT"),
    (5, "NFS3ERR_IO"),
    (6, "NFS3ERR_NXIO"),
    (13, "NFS3ERR_ACCES"),
    (17, "NFS3ERR_EXIST"),
    (18, "NFS3ERR_XDEV"),
    (19, "NFS3ERR_NODEV"),
    (20, "NFS3ERR_NOTDIR"),
    (21, "NFS3ERR_ISDIR"),
    (22, "NFS3ERR_INVAL"),
    (27, "NFS3ERR_FBIG"),
    (28, "NFS3ERR_NOSPC"),
    (30, "NFS3ERR_ROFS"),
    (31, "NFS3ERR_MLINK"),
    (63, "NFS3ERR_NAMETOOLONG"),
    (66, "NFS3ERR_NOTEMPTY"),
    (69, "NFS3ERR_DQUOT"),
    (70, "NFS3ERR_STALE"),
    (71, "NFS3ERR_REMOTE"),
    (10001, "NFS3ERR_BADHANDLE"),
    (10002, "NFS3ERR_NOT_SYNC"),
    (10003, "NFS3ERR_BAD_COOKIE"),
    (10004, "NFS3ERR_NOTSUPP"),
    (10005, "NFS3ERR_TOOSMALL"),
    (10006, "NFS3ERR_SERVERFAULT"),
    (10007, "NFS3ERR_BADTYPE"),
    (10008, "NFS3ERR_JUKEBOX"),
];

/// `mountstat3` (RFC 1813 §5.1.5).
const MOUNT3_STATUS: [(u16, &str); 10] = [
    (0, "MNT3_OK"),
    (1, "MNT3ERR_PERM"),
    (2, "MNT3ERR_NOENT"),
    (5, "MNT3ERR_IO"),
    (13, "MNT3ERR_ACCES"),
    (20, "MNT3ERR_NOTDIR"),
    (22, "MNT3ERR_INVAL"),
    (63, "MNT3ERR_NAMETOOLONG"),
    (10004, "MNT3ERR_NOTSUPP"),
    (10006, "MNT3ERR_SERVERFAULT"),
];

/// The names of all operations, by number.
pub fn ops(protocol: Protocol) -> &'static [&'static str] {
    match protocol {
        Protocol::Nfs3 => &NFS3_OPS,
        Protocol::Mount3 => &MOUNT3_OPS,
    }
}

/// All status numbers with their names.
pub fn statuses(protocol: Protocol) -> &'static [(u16, &'static str)] {
    match protocol {
        Protocol::Nfs3 => &NFS3_STATUS,
        Protocol::Mount3 => &MOUNT3_STATUS,
    }
}

/// The operation's name as RFC 1813 has it, in lower case; its number when it has none.
pub fn op_name(protocol: Protocol, op: u8) -> Cow<'static, str> {
    match ops(protocol).get(usize::from(op)) {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(op.to_string()),
    }
}

/// The number of the operation `name`.
pub fn op_number(protocol: Protocol, name: &str) -> Option<u8> {
    let known = ops(protocol).iter().position(|n| *n == name).map(|n| n as u8);
    known.or_else(|| name.parse().ok())
}

/// The status as RFC 1813 writes it; its number when it has no name.
pub fn status_name(protocol: Protocol, status: u16) -> Cow<'static, str> {
    match statuses(protocol).iter().find(|(n, _)| *n == status) {
        Some((_, name)) => Cow::Borrowed(name),
        None => Cow::Owned(status.to_string()),
    }
}

/// The number of the status `name`.
pub fn status_number(protocol: Protocol, name: &str) -> Option<u16> {
    let known = statuses(protocol).iter().find(|(_, n)| *n == name).map(|(n, _)| *n);
    known.or_else(|| name.parse().ok())
}

#[cfg(test)]
mod tests;
