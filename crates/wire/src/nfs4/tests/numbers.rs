//! Numbers against the tables of RFC 7531, RFC 5662, RFC 7863 and RFC 8276.

use super::*;

const STATUSES: &[(u32, &str)] = &[
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

#[test]
fn statuses_have_the_numbers_of_the_rfcs() {
    let ours: Vec<_> = Nfsstat4::ALL.iter().map(|s| (s.0, s.name())).collect();
    assert_eq!(ours, STATUSES);
    assert_eq!(Nfsstat4(4711).name(), "NFS4ERR_unknown");
}

#[test]
fn operations_have_the_numbers_of_the_rfcs() {
    let table = "access close commit create delegpurge delegreturn getattr getfh link lock lockt \
        locku lookup lookupp nverify open openattr open_confirm open_downgrade putfh \
        putpubfh putrootfh read readdir readlink remove rename renew restorefh savefh \
        secinfo setattr setclientid setclientid_confirm verify write release_lockowner \
        backchannel_ctl bind_conn_to_session exchange_id create_session destroy_session \
        free_stateid get_dir_delegation getdeviceinfo getdevicelist layoutcommit \
        layoutget layoutreturn secinfo_no_name sequence set_ssv test_stateid \
        want_delegation destroy_clientid reclaim_complete allocate copy copy_notify \
        deallocate io_advise layouterror layoutstats offload_cancel offload_status \
        read_plus seek write_same clone getxattr setxattr listxattrs removexattr";
    for (number, name) in (3..).zip(table.split_whitespace()) {
        assert_eq!(Opnum4(number).name(), name);
    }
    assert_eq!(Opnum4::ALL.len(), 74);
    assert_eq!((Opnum4::ILLEGAL.0, Opnum4(4711).name()), (10044, "illegal"));
    let callbacks = [
        (CbOpnum4::CB_GETATTR, 3),
        (CbOpnum4::CB_RECALL, 4),
        (CbOpnum4::CB_RECALL_ANY, 8),
        (CbOpnum4::CB_RECALL_SLOT, 10),
        (CbOpnum4::CB_SEQUENCE, 11),
        (CbOpnum4::CB_NOTIFY_LOCK, 13),
        (CbOpnum4::CB_OFFLOAD, 15),
    ];
    assert!(callbacks.iter().all(|(op, number)| op.0 == *number));
}

#[test]
fn attributes_have_the_numbers_of_the_rfcs() {
    let some = [
        (0, "supported_attrs"),
        (3, "change"),
        (12, "acl"),
        (19, "filehandle"),
        (20, "fileid"),
        (33, "mode"),
        (36, "owner"),
        (47, "time_access"),
        (55, "mounted_on_fileid"),
        (58, "dacl"),
        (75, "suppattr_exclcreat"),
        (77, "clone_blksize"),
        (78, "space_freed"),
        (79, "change_attr_type"),
        (80, "sec_label"),
        (81, "mode_umask"),
        (82, "xattr_support"),
    ];
    assert!(some.iter().all(|entry| attr4::ALL.contains(entry)));
    // 0 to 82 in order, without 67 and 68, which have no type here.
    let numbers: Vec<u32> = attr4::ALL.iter().map(|(number, _)| *number).collect();
    let expected: Vec<u32> = (0..=82).filter(|n| *n != 67 && *n != 68).collect();
    assert_eq!(numbers, expected);
}
