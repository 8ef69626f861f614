//! Clients and sessions: SETCLIENTID and RENEW (RFC 7530 §16.33, §16.34, §16.31), EXCHANGE_ID to
//! RECLAIM_COMPLETE (RFC 8881 §18.33 to §18.51).

#![allow(missing_docs, reason = "the RFC's member names are their documentation")]

use base::limits::{AUTH_SYS_GIDS_MAX, AUTH_SYS_NAME_MAX, NFS4_LIST_MAX, NFS4_SMALL_LIST_MAX};

use super::status::Nfsstat4;
use super::types::{
    CbClient4, ClientOwner4, Clientaddr4, Clientid4, HasStatus, NfsClientId4, NfsImplId4, Opaque4,
    ServerOwner4, Sessionid4, StateProtectOps4, Stateid4, Utf8str, Verifier4,
};
use crate::xdr::{Decode, DecodeError, Encode, Reader, Seq, Writer};

/// Flags of EXCHANGE_ID (§18.35).
pub mod exchgid4 {
    pub const SUPP_MOVED_REFER: u32 = 0x1;
    pub const SUPP_MOVED_MIGR: u32 = 0x2;
    pub const BIND_PRINC_STATEID: u32 = 0x100;
    pub const USE_NON_PNFS: u32 = 0x1_0000;
    pub const USE_PNFS_MDS: u32 = 0x2_0000;
    pub const USE_PNFS_DS: u32 = 0x4_0000;
    pub const UPD_CONFIRMED_REC_A: u32 = 0x4000_0000;
    pub const CONFIRMED_R: u32 = 0x8000_0000;
    /// All that a client may set.
    pub const MASK_A: u32 = 0x4007_0103;
}

/// Flags of CREATE_SESSION (§18.36).
pub mod create_session4 {
    pub const PERSIST: u32 = 1;
    pub const CONN_BACK_CHAN: u32 = 2;
    pub const CONN_RDMA: u32 = 4;
}

/// Flags of SEQUENCE's result (§18.46).
pub mod seq4_status {
    pub const CB_PATH_DOWN: u32 = 0x1;
    pub const CB_GSS_CONTEXTS_EXPIRING: u32 = 0x2;
    pub const CB_GSS_CONTEXTS_EXPIRED: u32 = 0x4;
    pub const EXPIRED_ALL_STATE_REVOKED: u32 = 0x8;
    pub const EXPIRED_SOME_STATE_REVOKED: u32 = 0x10;
    pub const ADMIN_STATE_REVOKED: u32 = 0x20;
    pub const RECALLABLE_STATE_REVOKED: u32 = 0x40;
    pub const LEASE_MOVED: u32 = 0x80;
    pub const RESTART_RECLAIM_NEEDED: u32 = 0x100;
    pub const CB_PATH_DOWN_SESSION: u32 = 0x200;
    pub const BACKCHANNEL_FAULT: u32 = 0x400;
}

/// `channel_dir_from_client4` and `_server4` of BIND_CONN_TO_SESSION.
pub mod channel_dir4 {
    pub const FORE: u32 = 1;
    pub const BACK: u32 = 2;
    pub const FORE_OR_BOTH: u32 = 3;
    pub const BACK_OR_BOTH: u32 = 7;
    /// In results only: both.
    pub const BOTH: u32 = 3;
}

xdr_union! {
    /// `callback_sec_parms4`.
    CallbackSec4<'a> "callback_sec_parms4.cb_secflavor" {
        0 None(()), 1 Sys(CallbackSys4<'a>), 6 Gss(GssCbHandles4<'a>),
    }
}

xdr_bytes! {
    /// Machine name of `authsys_parms`.
    pub struct MachineName4, AUTH_SYS_NAME_MAX, "authsys_parms.machinename"
}

/// `callback_sec_parms4<>`.
pub type CallbackSecs4<'a> = Seq<CallbackSec4<'a>, NFS4_SMALL_LIST_MAX>;

xdr_structs! {
    /// `authsys_parms`.
    CallbackSys4<'a> {
        stamp: u32, machinename: MachineName4<'a>, uid: u32, gid: u32,
        gids: Seq<u32, AUTH_SYS_GIDS_MAX>,
    }
    /// `gss_cb_handles4`.
    GssCbHandles4<'a> { service: u32, handle_from_server: &'a [u8], handle_from_client: &'a [u8] }
    /// `SETCLIENTID4args`.
    SetclientidArgs4<'a> {
        client: NfsClientId4<'a>, callback: CbClient4<'a>, callback_ident: u32,
    }
    /// `SETCLIENTID4resok`.
    #[derive(Copy)]
    SetclientidResOk4 { clientid: Clientid4, confirm: Verifier4 }
    /// `SETCLIENTID_CONFIRM4args`.
    #[derive(Copy)]
    SetclientidConfirmArgs4 { clientid: Clientid4, confirm: Verifier4 }
    /// `RENEW4args`, `DESTROY_CLIENTID4args`.
    #[derive(Copy)]
    ClientidArgs4 { clientid: Clientid4 }
    /// `BACKCHANNEL_CTL4args`.
    BackchannelCtlArgs4<'a> { cb_program: u32, sec_parms: CallbackSecs4<'a> }
    /// `BIND_CONN_TO_SESSION4args`.
    #[derive(Copy)]
    BindConnArgs4 { sessid: Sessionid4, dir: u32, use_rdma: bool }
    /// `BIND_CONN_TO_SESSION4resok`.
    #[derive(Copy)]
    BindConnResOk4 { sessid: Sessionid4, dir: u32, use_rdma: bool }
    /// `ssv_sp_parms4`.
    SsvSpParms4<'a> {
        ops: StateProtectOps4, hash_algs: Seq<&'a [u8], NFS4_SMALL_LIST_MAX>,
        encr_algs: Seq<&'a [u8], NFS4_SMALL_LIST_MAX>, window: u32, num_gss_handles: u32,
    }
    /// `EXCHANGE_ID4args`.
    ExchangeIdArgs4<'a> {
        clientowner: ClientOwner4<'a>, flags: u32, state_protect: StateProtectA4<'a>,
        client_impl_id: Option<NfsImplId4<'a>>,
    }
    /// `ssv_prot_info4`.
    SsvProtInfo4<'a> {
        ops: StateProtectOps4, hash_alg: u32, encr_alg: u32, ssv_len: u32, window: u32,
        handles: Seq<&'a [u8], NFS4_SMALL_LIST_MAX>,
    }
    /// `EXCHANGE_ID4resok`.
    ExchangeIdResOk4<'a> {
        clientid: Clientid4, sequenceid: u32, flags: u32, state_protect: StateProtectR4<'a>,
        server_owner: ServerOwner4<'a>, server_scope: Opaque4<'a>,
        server_impl_id: Option<NfsImplId4<'a>>,
    }
    /// `channel_attrs4`.
    #[derive(Copy)]
    ChannelAttrs4 {
        headerpadsize: u32, maxrequestsize: u32, maxresponsesize: u32,
        maxresponsesize_cached: u32, maxoperations: u32, maxrequests: u32,
        rdma_ird: Option<u32>,
    }
    /// `CREATE_SESSION4args`.
    CreateSessionArgs4<'a> {
        clientid: Clientid4, sequence: u32, flags: u32, fore_chan_attrs: ChannelAttrs4,
        back_chan_attrs: ChannelAttrs4, cb_program: u32, sec_parms: CallbackSecs4<'a>,
    }
    /// `CREATE_SESSION4resok`.
    #[derive(Copy)]
    CreateSessionResOk4 {
        sessionid: Sessionid4, sequence: u32, flags: u32, fore_chan_attrs: ChannelAttrs4,
        back_chan_attrs: ChannelAttrs4,
    }
    /// `DESTROY_SESSION4args`.
    #[derive(Copy)]
    DestroySessionArgs4 { sessionid: Sessionid4 }
    /// `FREE_STATEID4args`.
    #[derive(Copy)]
    FreeStateidArgs4 { stateid: Stateid4 }
    /// `SEQUENCE4args`.
    #[derive(Copy)]
    SequenceArgs4 {
        sessionid: Sessionid4, sequenceid: u32, slotid: u32, highest_slotid: u32,
        cachethis: bool,
    }
    /// `SEQUENCE4resok`.
    #[derive(Copy)]
    SequenceResOk4 {
        sessionid: Sessionid4, sequenceid: u32, slotid: u32, highest_slotid: u32,
        target_highest_slotid: u32, status_flags: u32,
    }
    /// `SET_SSV4args`.
    SetSsvArgs4<'a> { ssv: &'a [u8], digest: &'a [u8] }
    /// `TEST_STATEID4args`.
    TestStateidArgs4 { stateids: Seq<Stateid4, NFS4_LIST_MAX> }
    /// `TEST_STATEID4resok`.
    TestStateidResOk4 { status_codes: Seq<Nfsstat4, NFS4_LIST_MAX> }
    /// `RECLAIM_COMPLETE4args`.
    #[derive(Copy)]
    ReclaimCompleteArgs4 { one_fs: bool }
}

xdr_union! {
    /// `state_protect4_a`.
    StateProtectA4<'a> "state_protect_how4" {
        0 None(()), 1 MachCred(StateProtectOps4), 2 Ssv(SsvSpParms4<'a>),
    }
}

xdr_union! {
    /// `state_protect4_r`.
    StateProtectR4<'a> "state_protect_how4" {
        0 None(()), 1 MachCred(StateProtectOps4), 2 Ssv(SsvProtInfo4<'a>),
    }
}

/// `SETCLIENTID4res`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetclientidRes4<'a> {
    /// NFS4_OK.
    Ok(SetclientidResOk4),
    /// NFS4ERR_CLID_INUSE, and the address of the client that uses it.
    InUse(Clientaddr4<'a>),
    /// Any other status.
    Fail(Nfsstat4),
}

impl SetclientidRes4<'_> {
    /// In use, by an unnamed client.
    pub const IN_USE: Self = Self::InUse(Clientaddr4 { netid: Utf8str(b""), addr: Utf8str(b"") });
}

impl HasStatus for SetclientidRes4<'_> {
    fn status(&self) -> Nfsstat4 {
        match self {
            Self::Ok(_) => Nfsstat4::OK,
            Self::InUse(_) => Nfsstat4::CLID_INUSE,
            Self::Fail(status) => *status,
        }
    }
}

impl Encode for SetclientidRes4<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        self.status().encode(w);
        match self {
            Self::Ok(ok) => ok.encode(w),
            Self::InUse(by) => by.encode(w),
            Self::Fail(_) => {}
        }
    }
}

impl<'a> Decode<'a> for SetclientidRes4<'a> {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(match Nfsstat4::decode(r)? {
            Nfsstat4::OK => Self::Ok(SetclientidResOk4::decode(r)?),
            Nfsstat4::CLID_INUSE => Self::InUse(Clientaddr4::decode(r)?),
            status => Self::Fail(status),
        })
    }
}
