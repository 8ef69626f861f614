//! The protocols' own names for their operations and status numbers, and the way back.

use std::borrow::Cow;

use crate::op::Protocol;

mod transfer;

use transfer::{
    DSYNC_OPS, DSYNC_STATUS, FTP_OPS, FTP_STATUS, HTTP_OPS, HTTP_STATUS, SFTP_OPS, SFTP_STATUS,
};

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

/// Operations of NFS version 4 by number (RFC 8881 §16.2.3, RFC 7862 §15, RFC 8276 §8.4); 0 stands
/// for numbers that are none, 1 for the NULL procedure.
const NFS4_OPS: [&str; 76] = [
    "illegal",
    "null",
    "reserved",
    "access",
    "close",
    "commit",
    "create",
    "delegpurge",
    "delegreturn",
    "getattr",
    "getfh",
    "link",
    "lock",
    "lockt",
    "locku",
    "lookup",
    "lookupp",
    "nverify",
    "open",
    "openattr",
    "open_confirm",
    "open_downgrade",
    "putfh",
    "putpubfh",
    "putrootfh",
    "read",
    "readdir",
    "readlink",
    "remove",
    "rename",
    "renew",
    "restorefh",
    "savefh",
    "secinfo",
    "setattr",
    "setclientid",
    "setclientid_confirm",
    "verify",
    "write",
    "release_lockowner",
    "backchannel_ctl",
    "bind_conn_to_session",
    "exchange_id",
    "create_session",
    "destroy_session",
    "free_stateid",
    "get_dir_delegation",
    "getdeviceinfo",
    "getdevicelist",
    "layoutcommit",
    "layoutget",
    "layoutreturn",
    "secinfo_no_name",
    "sequence",
    "set_ssv",
    "test_stateid",
    "want_delegation",
    "destroy_clientid",
    "reclaim_complete",
    "allocate",
    "copy",
    "copy_notify",
    "deallocate",
    "io_advise",
    "layouterror",
    "layoutstats",
    "offload_cancel",
    "offload_status",
    "read_plus",
    "seek",
    "write_same",
    "clone",
    "getxattr",
    "setxattr",
    "listxattrs",
    "removexattr",
];

/// `nfsstat4` (RFC 8881 §15.1, RFC 7862 §11.1, RFC 8276 §8.5).
const NFS4_STATUS: [(u16, &str); 113] = [
    (0, "NFS4_OK"),
    (1, "NFS4ERR_PERM"),
    (2, "NFS4ERR_NOENT"),
    (5, "NFS4ERR_IO"),
    (6, "NFS4ERR_NXIO"),
    (13, "NFS4ERR_ACCESS"),
    (17, "NFS4ERR_EXIST"),
    (18, "NFS4ERR_XDEV"),
    (20, "NFS4ERR_NOTDIR"),
    (21, "NFS4ERR_ISDIR"),
    (22, "NFS4ERR_INVAL"),
    (27, "NFS4ERR_FBIG"),
    (28, "NFS4ERR_NOSPC"),
    (30, "NFS4ERR_ROFS"),
    (31, "NFS4ERR_MLINK"),
    (63, "NFS4ERR_NAMETOOLONG"),
    (66, "NFS4ERR_NOTEMPTY"),
    (69, "NFS4ERR_DQUOT"),
    (70, "NFS4ERR_STALE"),
    (10001, "NFS4ERR_BADHANDLE"),
    (10003, "NFS4ERR_BAD_COOKIE"),
    (10004, "NFS4ERR_NOTSUPP"),
    (10005, "NFS4ERR_TOOSMALL"),
    (10006, "NFS4ERR_SERVERFAULT"),
    (10007, "NFS4ERR_BADTYPE"),
    (10008, "NFS4ERR_DELAY"),
    (10009, "NFS4ERR_SAME"),
    (10010, "NFS4ERR_DENIED"),
    (10011, "NFS4ERR_EXPIRED"),
    (10012, "NFS4ERR_LOCKED"),
    (10013, "NFS4ERR_GRACE"),
    (10014, "NFS4ERR_FHEXPIRED"),
    (10015, "NFS4ERR_SHARE_DENIED"),
    (10016, "NFS4ERR_WRONGSEC"),
    (10017, "NFS4ERR_CLID_INUSE"),
    (10018, "NFS4ERR_RESOURCE"),
    (10019, "NFS4ERR_MOVED"),
    (10020, "NFS4ERR_NOFILEHANDLE"),
    (10021, "NFS4ERR_MINOR_VERS_MISMATCH"),
    (10022, "NFS4ERR_STALE_CLIENTID"),
    (10023, "NFS4ERR_STALE_STATEID"),
    (10024, "NFS4ERR_OLD_STATEID"),
    (10025, "NFS4ERR_BAD_STATEID"),
    (10026, "NFS4ERR_BAD_SEQID"),
    (10027, "NFS4ERR_NOT_SAME"),
    (10028, "NFS4ERR_LOCK_RANGE"),
    (10029, "NFS4ERR_SYMLINK"),
    (10030, "NFS4ERR_RESTOREFH"),
    (10031, "NFS4ERR_LEASE_MOVED"),
    (10032, "NFS4ERR_ATTRNOTSUPP"),
    (10033, "NFS4ERR_NO_GRACE"),
    (10034, "NFS4ERR_RECLAIM_BAD"),
    (10035, "NFS4ERR_RECLAIM_CONFLICT"),
    (10036, "NFS4ERR_BADXDR"),
    (10037, "NFS4ERR_LOCKS_HELD"),
    (10038, "NFS4ERR_OPENMODE"),
    (10039, "NFS4ERR_BADOWNER"),
    (10040, "NFS4ERR_BADCHAR"),
    (10041, "NFS4ERR_BADNAME"),
    (10042, "NFS4ERR_BAD_RANGE"),
    (10043, "NFS4ERR_LOCK_NOTSUPP"),
    (10044, "NFS4ERR_OP_ILLEGAL"),
    (10045, "NFS4ERR_DEADLOCK"),
    (10046, "NFS4ERR_FILE_OPEN"),
    (10047, "NFS4ERR_ADMIN_REVOKED"),
    (10048, "NFS4ERR_CB_PATH_DOWN"),
    (10049, "NFS4ERR_BADIOMODE"),
    (10050, "NFS4ERR_BADLAYOUT"),
    (10051, "NFS4ERR_BAD_SESSION_DIGEST"),
    (10052, "NFS4ERR_BADSESSION"),
    (10053, "NFS4ERR_BADSLOT"),
    (10054, "NFS4ERR_COMPLETE_ALREADY"),
    (10055, "NFS4ERR_CONN_NOT_BOUND_TO_SESSION"),
    (10056, "NFS4ERR_DELEG_ALREADY_WANTED"),
    (10057, "NFS4ERR_BACK_CHAN_BUSY"),
    (10058, "NFS4ERR_LAYOUTTRYLATER"),
    (10059, "NFS4ERR_LAYOUTUNAVAILABLE"),
    (10060, "NFS4ERR_NOMATCHING_LAYOUT"),
    (10061, "NFS4ERR_RECALLCONFLICT"),
    (10062, "NFS4ERR_UNKNOWN_LAYOUTTYPE"),
    (10063, "NFS4ERR_SEQ_MISORDERED"),
    (10064, "NFS4ERR_SEQUENCE_POS"),
    (10065, "NFS4ERR_REQ_TOO_BIG"),
    (10066, "NFS4ERR_REP_TOO_BIG"),
    (10067, "NFS4ERR_REP_TOO_BIG_TO_CACHE"),
    (10068, "NFS4ERR_RETRY_UNCACHED_REP"),
    (10069, "NFS4ERR_UNSAFE_COMPOUND"),
    (10070, "NFS4ERR_TOO_MANY_OPS"),
    (10071, "NFS4ERR_OP_NOT_IN_SESSION"),
    (10072, "NFS4ERR_HASH_ALG_UNSUPP"),
    (10074, "NFS4ERR_CLIENTID_BUSY"),
    (10075, "NFS4ERR_PNFS_IO_HOLE"),
    (10076, "NFS4ERR_SEQ_FALSE_RETRY"),
    (10077, "NFS4ERR_BAD_HIGH_SLOT"),
    (10078, "NFS4ERR_DEADSESSION"),
    (10079, "NFS4ERR_ENCR_ALG_UNSUPP"),
    (10080, "NFS4ERR_PNFS_NO_LAYOUT"),
    (10081, "NFS4ERR_NOT_ONLY_OP"),
    (10082, "NFS4ERR_WRONG_CRED"),
    (10083, "NFS4ERR_WRONG_TYPE"),
    (10084, "NFS4ERR_DIRDELEG_UNAVAIL"),
    (10085, "NFS4ERR_REJECT_DELEG"),
    (10086, "NFS4ERR_RETURNCONFLICT"),
    (10087, "NFS4ERR_DELEG_REVOKED"),
    (10088, "NFS4ERR_PARTNER_NOTSUPP"),
    (10089, "NFS4ERR_PARTNER_NO_AUTH"),
    (10090, "NFS4ERR_UNION_NOTSUPP"),
    (10091, "NFS4ERR_OFFLOAD_DENIED"),
    (10092, "NFS4ERR_WRONG_LFS"),
    (10093, "NFS4ERR_BADLABEL"),
    (10094, "NFS4ERR_OFFLOAD_NO_REQS"),
    (10095, "NFS4ERR_NOXATTR"),
    (10096, "NFS4ERR_XATTR2BIG"),
];

/// Procedures of NLM version 4 by number (X/Open XNFS, chapter 14), and behind them those of NSM,
/// from [`NSM_OPS_AT`] on.
const NLM_OPS: [&str; 31] = [
    "null",
    "test",
    "lock",
    "cancel",
    "unlock",
    "granted",
    "test_msg",
    "lock_msg",
    "cancel_msg",
    "unlock_msg",
    "granted_msg",
    "test_res",
    "lock_res",
    "cancel_res",
    "unlock_res",
    "granted_res",
    "16",
    "17",
    "18",
    "19",
    "share",
    "unshare",
    "nm_lock",
    "free_all",
    "sm_null",
    "sm_stat",
    "sm_mon",
    "sm_unmon",
    "sm_unmon_all",
    "sm_simu_crash",
    "sm_notify",
];

/// The operation that NSM's procedure 0 is counted as.
pub const NSM_OPS_AT: u8 = 24;

/// `nlm4_stats` (X/Open XNFS, chapter 14).
const NLM_STATUS: [(u16, &str); 10] = [
    (0, "NLM4_GRANTED"),
    (1, "NLM4_DENIED"),
    (2, "NLM4_DENIED_NOLOCKS"),
    (3, "NLM4_BLOCKED"),
    (4, "NLM4_DENIED_GRACE_PERIOD"),
    (5, "NLM4_DEADLCK"),
    (6, "NLM4_ROFS"),
    (7, "NLM4_STALE_FH"),
    (8, "NLM4_FBIG"),
    (9, "NLM4_FAILED"),
];

/// The names of all operations, by number.
pub fn ops(protocol: Protocol) -> &'static [&'static str] {
    match protocol {
        Protocol::Nfs3 => &NFS3_OPS,
        Protocol::Mount3 => &MOUNT3_OPS,
        Protocol::Nfs4 => &NFS4_OPS,
        Protocol::Nlm => &NLM_OPS,
        Protocol::Ftp => &FTP_OPS,
        Protocol::Sftp => &SFTP_OPS,
        Protocol::Http => &HTTP_OPS,
        Protocol::Dsync => &DSYNC_OPS,
    }
}

/// All status numbers with their names.
pub fn statuses(protocol: Protocol) -> &'static [(u16, &'static str)] {
    match protocol {
        Protocol::Nfs3 => &NFS3_STATUS,
        Protocol::Mount3 => &MOUNT3_STATUS,
        Protocol::Nfs4 => &NFS4_STATUS,
        Protocol::Nlm => &NLM_STATUS,
        Protocol::Ftp => &FTP_STATUS,
        Protocol::Sftp => &SFTP_STATUS,
        Protocol::Http => &HTTP_STATUS,
        Protocol::Dsync => &DSYNC_STATUS,
    }
}

/// The operation's name as its RFC has it, in lower case; its number when it has none.
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

/// The status as its RFC writes it; its number when it has no name.
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
