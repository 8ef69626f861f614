//! TEST, LOCK, NM_LOCK, CANCEL, UNLOCK, and how waiting for a lock ends.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::limits::NLM_WAY_MAX;
use vfs::fs::Context;
use vfs::handle::Handle;
use vfs::locks::waits::LockOutcome;
use vfs::locks::{FileKey, HeldRange, Kind, Owner, Protocol, Range, Refused, Waited};
use wire::nlm4::{
    CancelArgs, LockArgs, Netobj, Nlm4Holder, Nlm4Lock, Nlm4Res, Nlm4Stat, TestArgs, UnlockArgs,
};

use super::Nlm;
use super::blocks::BlockedRequest;
use super::conn::Message;
use super::hosts::{self, Gate, Host, STRANGER, owner_parts};
use super::request::{File, Request};
use super::status::Refusal;

/// The bytes of a lock.
fn range(alock: &Nlm4Lock<'_>) -> Result<Range, Nlm4Stat> {
    Range::nlm(alock.l_offset, alock.l_len).ok_or(Nlm4Stat::FBIG)
}

fn kind(exclusive: bool) -> Kind {
    if exclusive { Kind::Write } else { Kind::Read }
}

/// A lock that is in the way, for the wire.
pub(super) fn holder(held: &HeldRange) -> Nlm4Holder<'_> {
    let (svid, oh) = owner_parts(&held.owner);
    Nlm4Holder {
        exclusive: held.kind == Kind::Write,
        svid,
        // What another protocol calls an owner may be longer than NLM allows.
        oh: Netobj(oh.get(..base::limits::NLM_STRING_MAX).unwrap_or(oh)),
        l_offset: held.range.start,
        l_len: held.range.nlm_len(),
    }
}

impl Request<'_> {
    pub(super) fn test(&mut self, args: &TestArgs<'_>) -> Result<Option<HeldRange>, Refusal> {
        let alock = &args.alock;
        let (range, kind) = (range(alock)?, kind(args.exclusive));
        let File { key, .. } = self.lockable(alock.fh, false)?;
        if self.nlm.in_grace() {
            return Err(Nlm4Stat::DENIED_GRACE_PERIOD.into());
        }
        let owner = self.owner(alock.caller_name.0, alock.svid, alock.oh.0)?;
        let test = || self.nlm.locks.test(key, &owner, range, kind);
        self.evict_conflicting(|| test().map(|held| held.owner))?;
        if let Some(held) = test() {
            return Ok(Some(held));
        }
        // Clients retry; the table then has what the holder has locked under its delegation or
        // lease.
        match self.nlm.locks.may_test(key, owner.client, kind) {
            true => Ok(test()),
            false => Err(Nlm4Stat::DENIED_GRACE_PERIOD.into()),
        }
    }

    pub(super) fn lock(&mut self, args: &LockArgs<'_>, record: bool) -> Result<Nlm4Stat, Refusal> {
        let alock = &args.alock;
        let (range, kind) = (range(alock)?, kind(args.exclusive));
        let file = self.lockable(alock.fh, args.exclusive)?;
        self.admit_now(alock.caller_name.0, args.reclaim)?;
        let nlm = self.nlm;
        let owner = self.owner(alock.caller_name.0, alock.svid, alock.oh.0)?;
        self.evict_conflicting(|| {
            nlm.locks.test(file.key, &owner, range, kind).map(|held| held.owner)
        })?;
        let who = (self.caller.address, alock.caller_name.0);
        let local = self.caller.local();
        nlm.with_host(who, record, self.may_block, |host, gate| {
            if local.is_some() {
                host.line.lock().local = local;
            }
            let owner = host.owner(alock.svid, alock.oh.0).ok_or(Nlm4Stat::FAILED)?;
            gate.remember(file.handle, file.key, args.state);
            let want = BlockedRequest { key: file.key, owner, range, kind };
            // A reclaim does not wait: the lock is free, or was granted to another owner.
            let done = match args.block && !args.reclaim {
                true => nlm.lock_or_wait(host, want, file.handle),
                false => nlm.lock_now(&want),
            };
            if !matches!(done, Nlm4Stat::GRANTED | Nlm4Stat::BLOCKED) {
                nlm.tidy(host, gate, file.handle, file.key);
            }
            Ok(done)
        })?
    }

    /// The owner of a request, whether or not the host is known.
    pub(super) fn owner(&self, name: &[u8], svid: u32, oh: &[u8]) -> Result<Owner, Nlm4Stat> {
        let host = self.nlm.hosts.lock().find(self.caller.address, name);
        let host = host.map_or(STRANGER, |host| host.key);
        hosts::owner(host, svid, oh).ok_or(Nlm4Stat::FAILED)
    }

    /// Whether something new may be given out now, or a reclaim is right.
    pub(super) fn admit_now(&self, name: &[u8], reclaim: bool) -> Result<(), Refusal> {
        let nlm = self.nlm;
        if !reclaim {
            return match nlm.in_grace() {
                true => Err(Nlm4Stat::DENIED_GRACE_PERIOD.into()),
                false => Ok(()),
            };
        }
        if !nlm.grace_may_be_on.load(Ordering::Relaxed) {
            return Err(Nlm4Stat::DENIED.into());
        }
        // The lock of the records is held while a record is written.
        if !self.may_block {
            return Err(Refusal::WouldBlock);
        }
        let host = hosts::record(self.caller.address, name);
        match nlm.records.may_reclaim(&host) {
            true => Ok(()),
            false => Err(Nlm4Stat::DENIED.into()),
        }
    }

    /// Ends clients of other protocols that are in the way and have gone away.
    pub(super) fn evict_conflicting(
        &self,
        conflicting: impl Fn() -> Option<Owner>,
    ) -> Result<(), Refusal> {
        for _ in 0..NLM_WAY_MAX {
            match conflicting() {
                Some(owner) if owner.client.protocol != Protocol::Nlm => {
                    // It may have to be taken off the records.
                    if !self.may_block {
                        return Err(Refusal::WouldBlock);
                    }
                    if !(self.nlm.evict_expired)(&owner) {
                        return Ok(());
                    }
                }
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    pub(super) fn cancel(&mut self, args: &CancelArgs<'_>) -> Result<Nlm4Stat, Refusal> {
        let alock = &args.alock;
        let (range, kind) = (range(alock)?, kind(args.exclusive));
        let Some((host, handle, key)) = self.held(alock.caller_name.0, alock.fh)? else {
            return Ok(Nlm4Stat::DENIED);
        };
        let nlm = self.nlm;
        let mut gate = host.gate.lock();
        let owner = host.owner(alock.svid, alock.oh.0).ok_or(Nlm4Stat::FAILED)?;
        let want = BlockedRequest { key, owner, range, kind };
        let done = if nlm.locks.cancel(key, &want.owner, range, kind) {
            Nlm4Stat::GRANTED
        } else if nlm.blocks.lock().remove(&want) {
            // It was granted, and the client does not know: it must not be left with it.
            nlm.unlock_granted(&want)
        } else {
            Nlm4Stat::DENIED
        };
        nlm.tidy(&host, &mut gate, handle, key);
        Ok(done)
    }

    pub(super) fn unlock(&mut self, args: &UnlockArgs<'_>) -> Result<Nlm4Stat, Refusal> {
        let alock = &args.alock;
        let range = range(alock)?;
        let Some((host, handle, key)) = self.held(alock.caller_name.0, alock.fh)? else {
            // What is not locked is no mistake.
            return Ok(Nlm4Stat::GRANTED);
        };
        let nlm = self.nlm;
        let mut gate = host.gate.lock();
        let owner = host.owner(alock.svid, alock.oh.0).ok_or(Nlm4Stat::FAILED)?;
        nlm.blocks.lock().unlocked(key, &owner, range);
        let done = match nlm.locks.unlock(key, &owner, range) {
            Ok(()) => Nlm4Stat::GRANTED,
            Err(_) => Nlm4Stat::DENIED_NOLOCKS,
        };
        nlm.tidy(&host, &mut gate, handle, key);
        Ok(done)
    }

    /// The caller's host, and which file its handle is, though the file may be gone. `None` for a
    /// host that holds nothing.
    pub(super) fn held(
        &mut self,
        name: &[u8],
        fh: Netobj<'_>,
    ) -> Result<Option<(Arc<Host>, Handle, FileKey)>, Refusal> {
        let host = self.nlm.hosts.lock().find(self.caller.address, name);
        let Some(host) = host else { return Ok(None) };
        let handle = Handle::new(fh.0).ok_or(Nlm4Stat::STALE_FH)?;
        let known = host.gate.lock().files.get(&handle).map(|file| file.key);
        // For the statistics; what the share grants now does not matter any more.
        let found = self.find(fh);
        let key = match (known, found) {
            (Some(key), _) => key,
            (None, Err(refusal)) => return Err(refusal),
            (None, Ok((share, handle))) => {
                let cx = Context { cred: self.caller.cred(), may_block: self.may_block };
                FileKey::from(&share.fs.getattr(cx, &handle)?)
            }
        };
        Ok(Some((host, handle, key)))
    }

    /// The reply to GRANTED, when it comes by a separate call.
    pub(super) fn granted_res(&self, res: &Nlm4Res<'_>) {
        let Some(id) = res.cookie.0.try_into().ok().map(u64::from_be_bytes) else { return };
        let of_caller = self
            .nlm
            .blocks
            .lock()
            .granted(id)
            .is_some_and(|(_, block)| block.host.address == self.caller.address);
        if of_caller {
            self.nlm.answered(id, res.stat);
        }
    }
}

impl Nlm {
    fn lock_now(&self, want: &BlockedRequest) -> Nlm4Stat {
        // The grace period was checked before.
        match self.locks.relock(want.key, &want.owner, want.range, want.kind) {
            Ok(()) => {
                // A client that repeats its request learns of the grant by this reply.
                let mut blocks = self.blocks.lock();
                if blocks.is_granted(want) {
                    blocks.remove(want);
                }
                Nlm4Stat::GRANTED
            }
            Err(refused) => stat(&refused),
        }
    }

    /// Takes the lock, or leaves word that it is waited for.
    fn lock_or_wait(&self, host: &Arc<Host>, want: BlockedRequest, handle: Handle) -> Nlm4Stat {
        let Some(id) = self.blocks.lock().enter(&want, host, handle) else {
            // It cannot wait; perhaps it need not.
            return match self.lock_now(&want) {
                Nlm4Stat::DENIED => Nlm4Stat::DENIED_NOLOCKS,
                other => other,
            };
        };
        let nlm = self.me.clone();
        let woken = move |how| {
            if let Some(nlm) = nlm.upgrade() {
                nlm.woken(id, how);
            }
        };
        let BlockedRequest { key, ref owner, range, kind } = want;
        match self.locks.lock_or_wait(key, owner, range, kind, Box::new(woken)) {
            Ok(LockOutcome::Waiting(..)) => Nlm4Stat::BLOCKED,
            Ok(LockOutcome::Granted) => {
                self.blocks.lock().remove(&want);
                Nlm4Stat::GRANTED
            }
            Err(refused) => {
                self.blocks.lock().remove(&want);
                stat(&refused)
            }
        }
    }

    /// Waiting has ended. Runs on whatever thread let go of the lock.
    fn woken(&self, id: u64, how: Waited) {
        let mut blocks = self.blocks.lock();
        match how {
            Waited::Granted => {
                if blocks.grant(id) {
                    self.send(Message::Granted { id });
                }
            }
            Waited::Cancelled => drop(blocks.remove_id(id)),
        }
    }

    /// The client has replied to GRANTED; or, with a status other than [`Nlm4Stat::GRANTED`], has
    /// not replied in time.
    pub(super) fn answered(&self, id: u64, stat: Nlm4Stat) {
        let Some((_, block)) = self.blocks.lock().granted(id) else { return };
        let mut gate = block.host.gate.lock();
        // The client may have retried or unlocked before the gate was locked here.
        let Some(want) = self.blocks.lock().remove_id(id) else { return };
        if stat != Nlm4Stat::GRANTED {
            self.unlock_granted(&want);
            self.tidy(&block.host, &mut gate, block.handle, want.key);
        }
    }

    fn unlock_granted(&self, want: &BlockedRequest) -> Nlm4Stat {
        match self.locks.unlock(want.key, &want.owner, want.range) {
            Ok(()) => Nlm4Stat::GRANTED,
            Err(_) => Nlm4Stat::DENIED_NOLOCKS,
        }
    }

    /// Forgets which file a handle is once the host has nothing on it.
    pub(super) fn tidy(&self, host: &Host, gate: &mut Gate, handle: Handle, key: FileKey) {
        if !self.locks.concerns_client(key, host.key) {
            gate.files.remove(&handle);
        }
    }
}

/// What the table's refusal is to a client.
pub(super) fn stat(refused: &Refused) -> Nlm4Stat {
    match refused {
        Refused::Locked(_) | Refused::Shared(_) => Nlm4Stat::DENIED,
        Refused::Deadlock => Nlm4Stat::DEADLCK,
        // The only status after which clients retry automatically.
        Refused::Recalling | Refused::Grace => Nlm4Stat::DENIED_GRACE_PERIOD,
        Refused::Full | Refused::NotHeld | Refused::NoLease => Nlm4Stat::DENIED_NOLOCKS,
    }
}
