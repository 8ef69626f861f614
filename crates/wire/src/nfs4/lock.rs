//! LOCK, LOCKT, LOCKU and RELEASE_LOCKOWNER (RFC 8881 §18.10 to §18.12, RFC 7530 §16.37).

#![allow(missing_docs, reason = "the RFC's member names are their documentation")]

use super::open::StateidResOk4;
use super::status::Nfsstat4;
use super::types::{HasStatus, StateOwner4, Stateid4};
use crate::xdr::{Decode, DecodeError, Encode, Reader, Writer};

/// `nfs_lock_type4`.
pub mod locktype4 {
    pub const READ: u32 = 1;
    pub const WRITE: u32 = 2;
    pub const READW: u32 = 3;
    pub const WRITEW: u32 = 4;
}

xdr_structs! {
    /// `open_to_lock_owner4`.
    #[derive(Copy)]
    OpenToLockOwner4<'a> {
        open_seqid: u32, open_stateid: Stateid4, lock_seqid: u32, lock_owner: StateOwner4<'a>,
    }
    /// `exist_lock_owner4`.
    #[derive(Copy)]
    ExistLockOwner4 { lock_stateid: Stateid4, lock_seqid: u32 }
    /// `LOCK4args`.
    LockArgs4<'a> {
        locktype: u32, reclaim: bool, offset: u64, length: u64, locker: Locker4<'a>,
    }
    /// `LOCK4denied`.
    #[derive(Copy)]
    LockDenied4<'a> { offset: u64, length: u64, locktype: u32, owner: StateOwner4<'a> }
    /// `LOCKT4args`.
    #[derive(Copy)]
    LocktArgs4<'a> { locktype: u32, offset: u64, length: u64, owner: StateOwner4<'a> }
    /// `LOCKU4args`.
    #[derive(Copy)]
    LockuArgs4 {
        locktype: u32, seqid: u32, lock_stateid: Stateid4, offset: u64, length: u64,
    }
    /// `RELEASE_LOCKOWNER4args`.
    #[derive(Copy)]
    ReleaseLockownerArgs4<'a> { lock_owner: StateOwner4<'a> }
}

xdr_union! {
    /// `locker4`: whether the owner is new, and what goes with that.
    Locker4<'a> "new_lock_owner" { 0 Existing(ExistLockOwner4), 1 New(OpenToLockOwner4<'a>) }
}

/// `LOCK4res` and `LOCKT4res`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockRes4<'a, O> {
    /// NFS4_OK.
    Ok(O),
    /// NFS4ERR_DENIED, and by which lock.
    Denied(LockDenied4<'a>),
    /// Any other status.
    Fail(Nfsstat4),
}

/// Result of LOCK.
pub type LockedRes4<'a> = LockRes4<'a, StateidResOk4>;
/// Result of LOCKT.
pub type LocktRes4<'a> = LockRes4<'a, ()>;

impl<O> HasStatus for LockRes4<'_, O> {
    fn status(&self) -> Nfsstat4 {
        match self {
            Self::Ok(_) => Nfsstat4::OK,
            Self::Denied(_) => Nfsstat4::DENIED,
            Self::Fail(status) => *status,
        }
    }
}

impl<O: Encode> Encode for LockRes4<'_, O> {
    fn encode(&self, w: &mut Writer<'_>) {
        self.status().encode(w);
        match self {
            Self::Ok(ok) => ok.encode(w),
            Self::Denied(denied) => denied.encode(w),
            Self::Fail(_) => {}
        }
    }
}

impl<'a, O: Decode<'a>> Decode<'a> for LockRes4<'a, O> {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(match Nfsstat4::decode(r)? {
            Nfsstat4::OK => Self::Ok(O::decode(r)?),
            Nfsstat4::DENIED => Self::Denied(LockDenied4::decode(r)?),
            status => Self::Fail(status),
        })
    }
}
