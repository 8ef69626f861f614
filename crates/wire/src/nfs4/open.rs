//! OPEN, OPEN_CONFIRM, OPEN_DOWNGRADE, CLOSE and delegations (RFC 8881 §18.16 to §18.18, §18.2,
//! §18.5, §18.6; RFC 7530 §16.18).

#![allow(missing_docs, reason = "the RFC's member names are their documentation")]

use super::acl::Nfsace4;
use super::attr::Fattr4;
use super::bitmap::Bitmap4;
use super::types::{ChangeInfo4, Clientid4, Component4, StateOwner4, Stateid4, Verifier4};
use crate::xdr::{Decode, DecodeError, Encode, Reader, Writer};

/// Bits of `share_access`, `share_deny` and their 4.1 wants.
pub mod share4 {
    pub const ACCESS_READ: u32 = 1;
    pub const ACCESS_WRITE: u32 = 2;
    pub const ACCESS_BOTH: u32 = 3;
    pub const DENY_NONE: u32 = 0;
    pub const DENY_READ: u32 = 1;
    pub const DENY_WRITE: u32 = 2;
    pub const DENY_BOTH: u32 = 3;
    pub const WANT_DELEG_MASK: u32 = 0xff00;
    pub const WANT_READ_DELEG: u32 = 0x0100;
    pub const WANT_WRITE_DELEG: u32 = 0x0200;
    pub const WANT_ANY_DELEG: u32 = 0x0300;
    pub const WANT_NO_DELEG: u32 = 0x0400;
    pub const WANT_CANCEL: u32 = 0x0500;
    pub const WANT_SIGNAL_DELEG_WHEN_RESRC_AVAIL: u32 = 0x1_0000;
    pub const WANT_PUSH_DELEG_WHEN_UNCONTENDED: u32 = 0x2_0000;
}

/// Flags of an OPEN's result.
pub mod open4 {
    pub const RESULT_CONFIRM: u32 = 2;
    pub const RESULT_LOCKTYPE_POSIX: u32 = 4;
    pub const RESULT_PRESERVE_UNLINKED: u32 = 8;
    pub const RESULT_MAY_NOTIFY_LOCK: u32 = 0x20;
}

/// `open_delegation_type4`.
pub mod delegation4 {
    pub const NONE: u32 = 0;
    pub const READ: u32 = 1;
    pub const WRITE: u32 = 2;
    pub const NONE_EXT: u32 = 3;
}

/// `why_no_delegation4`.
pub mod why_no_delegation4 {
    pub const NOT_WANTED: u32 = 0;
    pub const CONTENTION: u32 = 1;
    pub const RESOURCE: u32 = 2;
    pub const NOT_SUPP_FTYPE: u32 = 3;
    pub const WRITE_DELEG_NOT_SUPP_FTYPE: u32 = 4;
    pub const NOT_SUPP_UPGRADE: u32 = 5;
    pub const NOT_SUPP_DOWNGRADE: u32 = 6;
    pub const CANCELLED: u32 = 7;
    pub const IS_DIR: u32 = 8;
}

xdr_union! {
    /// `createhow4`.
    Createhow4<'a> "createmode4" {
        0 Unchecked(Fattr4<'a>), 1 Guarded(Fattr4<'a>), 2 Exclusive(Verifier4),
        3 Exclusive41(Creatverfattr<'a>),
    }
}

xdr_union! {
    /// `openflag4`.
    Openflag4<'a> "opentype4" { 0 Nocreate(()), 1 Create(Createhow4<'a>) }
}

xdr_union! {
    /// `open_claim4`.
    OpenClaim4<'a> "open_claim_type4" {
        0 Null(Component4<'a>), 1 Previous(u32), 2 DelegateCur(OpenClaimDelegateCur4<'a>),
        3 DelegatePrev(Component4<'a>), 4 Fh(()), 5 DelegCurFh(Stateid4), 6 DelegPrevFh(()),
    }
}

xdr_structs! {
    /// `creatverfattr`.
    #[derive(Copy)]
    Creatverfattr<'a> { verf: Verifier4, attrs: Fattr4<'a> }
    /// `open_claim_delegate_cur4`.
    #[derive(Copy)]
    OpenClaimDelegateCur4<'a> { delegate_stateid: Stateid4, file: Component4<'a> }
    /// `OPEN4args`.
    OpenArgs4<'a> {
        seqid: u32, share_access: u32, share_deny: u32, owner: StateOwner4<'a>,
        openhow: Openflag4<'a>, claim: OpenClaim4<'a>,
    }
    /// `OPEN4resok`.
    OpenResOk4<'a> {
        stateid: Stateid4, cinfo: ChangeInfo4, rflags: u32, attrset: Bitmap4,
        delegation: OpenDelegation4<'a>,
    }
    /// `open_read_delegation4`.
    OpenReadDelegation4<'a> { stateid: Stateid4, recall: bool, permissions: Nfsace4<'a> }
    /// `open_write_delegation4`.
    OpenWriteDelegation4<'a> {
        stateid: Stateid4, recall: bool, space_limit: SpaceLimit4, permissions: Nfsace4<'a>,
    }
    /// `nfs_modified_limit4`.
    ModifiedLimit4 { num_blocks: u32, bytes_per_block: u32 }
    /// `OPEN_CONFIRM4args`.
    #[derive(Copy)]
    OpenConfirmArgs4 { open_stateid: Stateid4, seqid: u32 }
    /// `OPEN_CONFIRM4resok`, `OPEN_DOWNGRADE4resok`, the result of CLOSE, and LOCK's and LOCKU's.
    #[derive(Copy)]
    StateidResOk4 { stateid: Stateid4 }
    /// `OPEN_DOWNGRADE4args`.
    #[derive(Copy)]
    OpenDowngradeArgs4 {
        open_stateid: Stateid4, seqid: u32, share_access: u32, share_deny: u32,
    }
    /// `CLOSE4args`.
    #[derive(Copy)]
    CloseArgs4 { seqid: u32, open_stateid: Stateid4 }
    /// `DELEGPURGE4args`.
    #[derive(Copy)]
    DelegpurgeArgs4 { clientid: Clientid4 }
    /// `DELEGRETURN4args`.
    #[derive(Copy)]
    DelegreturnArgs4 { deleg_stateid: Stateid4 }
    /// `GET_DIR_DELEGATION4args`.
    GetDirDelegationArgs4 {
        signal_deleg_avail: bool, notification_types: Bitmap4,
        child_attr_delay: super::Nfstime4, dir_attr_delay: super::Nfstime4,
        child_attributes: Bitmap4, dir_attributes: Bitmap4,
    }
    /// `WANT_DELEGATION4args`.
    WantDelegationArgs4 { want: u32, claim: DelegClaim4 }
}

xdr_union! {
    /// `nfs_space_limit4`.
    SpaceLimit4 "limit_by4" { 1 Size(u64), 2 Blocks(ModifiedLimit4) }
}

xdr_union! {
    /// `deleg_claim4`.
    DelegClaim4 "deleg_claim_type4" { 1 Previous(u32), 4 Fh(()), 6 PrevFh(()) }
}

xdr_union! {
    /// `open_delegation4`.
    OpenDelegation4<'a> "open_delegation_type4" {
        0 None(()), 1 Read(OpenReadDelegation4<'a>), 2 Write(OpenWriteDelegation4<'a>),
        3 NoneExt(OpenNoneDelegation4),
    }
}

/// `open_none_delegation4`: why there is none, and with two of the reasons whether the server will
/// notify the client when there could be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenNoneDelegation4 {
    /// One of [`why_no_delegation4`].
    pub why: u32,
    /// For CONTENTION "will push", for RESOURCE "will signal"; nothing otherwise.
    pub will_tell: bool,
}

impl OpenNoneDelegation4 {
    fn has_flag(why: u32) -> bool {
        why == why_no_delegation4::CONTENTION || why == why_no_delegation4::RESOURCE
    }
}

impl Encode for OpenNoneDelegation4 {
    fn encode(&self, w: &mut Writer<'_>) {
        w.u32(self.why);
        if Self::has_flag(self.why) {
            w.bool(self.will_tell);
        }
    }
}

impl Decode<'_> for OpenNoneDelegation4 {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let why = r.u32("why_no_delegation4")?;
        let will_tell = Self::has_flag(why) && r.bool("ond_server_will")?;
        Ok(Self { why, will_tell })
    }
}
