//! Byte-range locks through [`Client`], and taking opens and locks back after a restart.

use wire::nfs4::{
    ArgOp, ExistLockOwner4, LockArgs4, LockRes4, Locker4, LocktArgs4, LockuArgs4, Opaque4,
    OpenArgs4, OpenClaim4, OpenToLockOwner4, Openflag4, Res4, ResOp, StateOwner4, Stateid4,
    locktype4, share4,
};

use super::files::Opened;
use super::{Client, Failure, Outcome, broken};

/// From where, and how many bytes.
pub type Range = (u64, u64);

impl Client {
    fn owner<'a>(&self, owner: &'a str) -> StateOwner4<'a> {
        StateOwner4 { clientid: self.id, owner: Opaque4(owner.as_bytes()) }
    }

    /// LOCK for writing by a new owner of locks; the stateid of its locks.
    ///
    /// # Errors
    /// As every call; NFS4ERR_DENIED among them.
    pub fn lock(
        &mut self,
        file: &Opened,
        owner: &str,
        (offset, length): Range,
        reclaim: bool,
    ) -> Outcome<Stateid4> {
        let locker = Locker4::New(OpenToLockOwner4 {
            open_seqid: 0,
            open_stateid: file.stateid,
            lock_seqid: 0,
            lock_owner: self.owner(owner),
        });
        self.do_lock(&file.handle, (offset, length), reclaim, locker)
    }

    /// LOCK for writing by an owner that has locks of this file already.
    ///
    /// # Errors
    /// As every call.
    pub fn lock_more(
        &mut self,
        file: &Opened,
        lock_stateid: Stateid4,
        range: Range,
    ) -> Outcome<Stateid4> {
        let locker = Locker4::Existing(ExistLockOwner4 { lock_stateid, lock_seqid: 0 });
        self.do_lock(&file.handle, range, false, locker)
    }

    fn do_lock(
        &mut self,
        file: &[u8],
        (offset, length): Range,
        reclaim: bool,
        locker: Locker4<'_>,
    ) -> Outcome<Stateid4> {
        let lock = LockArgs4 { locktype: locktype4::WRITE, reclaim, offset, length, locker };
        match self.at(file, &[ArgOp::Lock(lock)])?.last()? {
            ResOp::Lock(LockRes4::Ok(ok)) => Ok(ok.stateid),
            other => Err(broken(format!("{other:?}"))),
        }
    }

    /// LOCKT: whether `owner` could lock this for writing.
    ///
    /// # Errors
    /// As every call but for NFS4ERR_DENIED, which is the answer no.
    pub fn lock_test(
        &mut self,
        file: &[u8],
        owner: &str,
        (offset, length): Range,
    ) -> Outcome<bool> {
        let owner = self.owner(owner);
        let args = LocktArgs4 { locktype: locktype4::WRITE, offset, length, owner };
        match self.at(file, &[ArgOp::Lockt(args)]) {
            Ok(_) => Ok(true),
            Err(Failure::Status(wire::nfs4::Nfsstat4::DENIED)) => Ok(false),
            Err(other) => Err(other),
        }
    }

    /// LOCKU.
    ///
    /// # Errors
    /// As every call.
    pub fn unlock(
        &mut self,
        file: &[u8],
        lock_stateid: Stateid4,
        (offset, length): Range,
    ) -> Outcome<()> {
        let args =
            LockuArgs4 { locktype: locktype4::WRITE, seqid: 0, lock_stateid, offset, length };
        self.at(file, &[ArgOp::Locku(args)]).map(|_| ())
    }

    /// OPEN with CLAIM_PREVIOUS: takes back what `owner` had open before the server's restart.
    ///
    /// # Errors
    /// As every call.
    pub fn reclaim_open(&mut self, file: &[u8], owner: &str) -> Outcome<Opened> {
        let open = ArgOp::Open(OpenArgs4 {
            seqid: 0,
            share_access: share4::ACCESS_BOTH,
            share_deny: share4::DENY_NONE,
            owner: self.owner(owner),
            openhow: Openflag4::Nocreate(()),
            claim: OpenClaim4::Previous(0),
        });
        let reply = self.at(file, &[open])?;
        match reply.last()? {
            ResOp::Open(Res4::Ok(ok)) => Ok(Opened { handle: file.to_vec(), stateid: ok.stateid }),
            other => Err(broken(format!("{other:?}"))),
        }
    }
}
