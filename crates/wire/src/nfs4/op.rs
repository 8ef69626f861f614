//! Operation numbers (RFC 7531, RFC 5662, RFC 7863, RFC 8276) and what belongs to which minor
//! version.

xdr_enum! {
    /// An operation of a COMPOUND (`nfs_opnum4`). Names are those of statistics.
    pub enum Opnum4 {
        /// OP_ACCESS.
        ACCESS = 3 "access",
        /// OP_CLOSE.
        CLOSE = 4 "close",
        /// OP_COMMIT.
        COMMIT = 5 "commit",
        /// OP_CREATE.
        CREATE = 6 "create",
        /// OP_DELEGPURGE.
        DELEGPURGE = 7 "delegpurge",
        /// OP_DELEGRETURN.
        DELEGRETURN = 8 "delegreturn",
        /// OP_GETATTR.
        GETATTR = 9 "getattr",
        /// OP_GETFH.
        GETFH = 10 "getfh",
        /// OP_LINK.
        LINK = 11 "link",
        /// OP_LOCK.
        LOCK = 12 "lock",
        /// OP_LOCKT.
        LOCKT = 13 "lockt",
        /// OP_LOCKU.
        LOCKU = 14 "locku",
        /// OP_LOOKUP.
        LOOKUP = 15 "lookup",
        /// OP_LOOKUPP.
        LOOKUPP = 16 "lookupp",
        /// OP_NVERIFY.
        NVERIFY = 17 "nverify",
        /// OP_OPEN.
        OPEN = 18 "open",
        /// OP_OPENATTR.
        OPENATTR = 19 "openattr",
        /// OP_OPEN_CONFIRM.
        OPEN_CONFIRM = 20 "open_confirm",
        /// OP_OPEN_DOWNGRADE.
        OPEN_DOWNGRADE = 21 "open_downgrade",
        /// OP_PUTFH.
        PUTFH = 22 "putfh",
        /// OP_PUTPUBFH.
        PUTPUBFH = 23 "putpubfh",
        /// OP_PUTROOTFH.
        PUTROOTFH = 24 "putrootfh",
        /// OP_READ.
        READ = 25 "read",
        /// OP_READDIR.
        READDIR = 26 "readdir",
        /// OP_READLINK.
        READLINK = 27 "readlink",
        /// OP_REMOVE.
        REMOVE = 28 "remove",
        /// OP_RENAME.
        RENAME = 29 "rename",
        /// OP_RENEW.
        RENEW = 30 "renew",
        /// OP_RESTOREFH.
        RESTOREFH = 31 "restorefh",
        /// OP_SAVEFH.
        SAVEFH = 32 "savefh",
        /// OP_SECINFO.
        SECINFO = 33 "secinfo",
        /// OP_SETATTR.
        SETATTR = 34 "setattr",
        /// OP_SETCLIENTID.
        SETCLIENTID = 35 "setclientid",
        /// OP_SETCLIENTID_CONFIRM.
        SETCLIENTID_CONFIRM = 36 "setclientid_confirm",
        /// OP_VERIFY.
        VERIFY = 37 "verify",
        /// OP_WRITE.
        WRITE = 38 "write",
        /// OP_RELEASE_LOCKOWNER.
        RELEASE_LOCKOWNER = 39 "release_lockowner",
        /// OP_BACKCHANNEL_CTL.
        BACKCHANNEL_CTL = 40 "backchannel_ctl",
        /// OP_BIND_CONN_TO_SESSION.
        BIND_CONN_TO_SESSION = 41 "bind_conn_to_session",
        /// OP_EXCHANGE_ID.
        EXCHANGE_ID = 42 "exchange_id",
        /// OP_CREATE_SESSION.
        CREATE_SESSION = 43 "create_session",
        /// OP_DESTROY_SESSION.
        DESTROY_SESSION = 44 "destroy_session",
        /// OP_FREE_STATEID.
        FREE_STATEID = 45 "free_stateid",
        /// OP_GET_DIR_DELEGATION.
        GET_DIR_DELEGATION = 46 "get_dir_delegation",
        /// OP_GETDEVICEINFO.
        GETDEVICEINFO = 47 "getdeviceinfo",
        /// OP_GETDEVICELIST.
        GETDEVICELIST = 48 "getdevicelist",
        /// OP_LAYOUTCOMMIT.
        LAYOUTCOMMIT = 49 "layoutcommit",
        /// OP_LAYOUTGET.
        LAYOUTGET = 50 "layoutget",
        /// OP_LAYOUTRETURN.
        LAYOUTRETURN = 51 "layoutreturn",
        /// OP_SECINFO_NO_NAME.
        SECINFO_NO_NAME = 52 "secinfo_no_name",
        /// OP_SEQUENCE.
        SEQUENCE = 53 "sequence",
        /// OP_SET_SSV.
        SET_SSV = 54 "set_ssv",
        /// OP_TEST_STATEID.
        TEST_STATEID = 55 "test_stateid",
        /// OP_WANT_DELEGATION.
        WANT_DELEGATION = 56 "want_delegation",
        /// OP_DESTROY_CLIENTID.
        DESTROY_CLIENTID = 57 "destroy_clientid",
        /// OP_RECLAIM_COMPLETE.
        RECLAIM_COMPLETE = 58 "reclaim_complete",
        /// OP_ALLOCATE.
        ALLOCATE = 59 "allocate",
        /// OP_COPY.
        COPY = 60 "copy",
        /// OP_COPY_NOTIFY.
        COPY_NOTIFY = 61 "copy_notify",
        /// OP_DEALLOCATE.
        DEALLOCATE = 62 "deallocate",
        /// OP_IO_ADVISE.
        IO_ADVISE = 63 "io_advise",
        /// OP_LAYOUTERROR.
        LAYOUTERROR = 64 "layouterror",
        /// OP_LAYOUTSTATS.
        LAYOUTSTATS = 65 "layoutstats",
        /// OP_OFFLOAD_CANCEL.
        OFFLOAD_CANCEL = 66 "offload_cancel",
        /// OP_OFFLOAD_STATUS.
        OFFLOAD_STATUS = 67 "offload_status",
        /// OP_READ_PLUS.
        READ_PLUS = 68 "read_plus",
        /// OP_SEEK.
        SEEK = 69 "seek",
        /// OP_WRITE_SAME.
        WRITE_SAME = 70 "write_same",
        /// OP_CLONE.
        CLONE = 71 "clone",
        /// OP_GETXATTR.
        GETXATTR = 72 "getxattr",
        /// OP_SETXATTR.
        SETXATTR = 73 "setxattr",
        /// OP_LISTXATTRS.
        LISTXATTRS = 74 "listxattrs",
        /// OP_REMOVEXATTR.
        REMOVEXATTR = 75 "removexattr",
        /// What is none: only in results.
        ILLEGAL = 10044 "illegal",
    }
}

xdr_enum! {
    /// An operation of a CB_COMPOUND (`nfs_cb_opnum4`).
    pub enum CbOpnum4 {
        /// OP_CB_GETATTR.
        CB_GETATTR = 3 "cb_getattr",
        /// OP_CB_RECALL.
        CB_RECALL = 4 "cb_recall",
        /// OP_CB_LAYOUTRECALL.
        CB_LAYOUTRECALL = 5 "cb_layoutrecall",
        /// OP_CB_NOTIFY.
        CB_NOTIFY = 6 "cb_notify",
        /// OP_CB_PUSH_DELEG.
        CB_PUSH_DELEG = 7 "cb_push_deleg",
        /// OP_CB_RECALL_ANY.
        CB_RECALL_ANY = 8 "cb_recall_any",
        /// OP_CB_RECALLABLE_OBJ_AVAIL.
        CB_RECALLABLE_OBJ_AVAIL = 9 "cb_recallable_obj_avail",
        /// OP_CB_RECALL_SLOT.
        CB_RECALL_SLOT = 10 "cb_recall_slot",
        /// OP_CB_SEQUENCE.
        CB_SEQUENCE = 11 "cb_sequence",
        /// OP_CB_WANTS_CANCELLED.
        CB_WANTS_CANCELLED = 12 "cb_wants_cancelled",
        /// OP_CB_NOTIFY_LOCK.
        CB_NOTIFY_LOCK = 13 "cb_notify_lock",
        /// OP_CB_NOTIFY_DEVICEID.
        CB_NOTIFY_DEVICEID = 14 "cb_notify_deviceid",
        /// OP_CB_OFFLOAD.
        CB_OFFLOAD = 15 "cb_offload",
        /// What is none: only in results.
        CB_ILLEGAL = 10044 "cb_illegal",
    }
}

impl Opnum4 {
    /// Its name; `illegal` for what is no operation.
    pub const fn name(self) -> &'static str {
        match self.known_name() {
            Some(name) => name,
            None => "illegal",
        }
    }

    /// Whether a minor version has the operation at all: what RFC 8881 §2.7 made "MUST NOT
    /// implement" still is an operation, which a 4.1 server answers with NFS4ERR_NOTSUPP.
    pub const fn is_in(self, minor: u32) -> bool {
        let last = match minor {
            0 => Self::RELEASE_LOCKOWNER.0,
            1 => Self::RECLAIM_COMPLETE.0,
            _ => Self::REMOVEXATTR.0,
        };
        self.0 >= Self::ACCESS.0 && self.0 <= last
    }

    /// Whether sessions took its place, so that minor versions from 1 on refuse it.
    pub const fn is_only_in_0(self) -> bool {
        matches!(
            self,
            Self::OPEN_CONFIRM
                | Self::RENEW
                | Self::SETCLIENTID
                | Self::SETCLIENTID_CONFIRM
                | Self::RELEASE_LOCKOWNER
        )
    }
}
