//! Which function does which operation on state, and what a stateid allows: [`StateOps`] of the
//! keeper of state.

use vfs::locks::{ClientKey, FileKey};
use wire::nfs4::{ArgOp, Locker4, Nfsstat4, Stateid4};

use super::run::{CompoundContext, Fail, Handled};
use super::stateful::Stateful;
use super::target::FileHandleTarget;
use super::{CompoundState, StateOps, client, deleg, lock, open, session};

/// The current file's key. A file in the pseudo file system has none: there is nothing to lock.
fn key_of(run: &CompoundContext<'_>) -> Result<Option<FileKey>, Fail> {
    let Ok(FileHandleTarget::File(target)) = run.current() else { return Ok(None) };
    Ok(Some(target.share.fs.file_key(run.cx(), &target.handle)?))
}

impl StateOps for Stateful {
    fn operate(&self, run: &mut CompoundContext<'_>, op: &ArgOp<'_>) -> Handled {
        match op {
            ArgOp::Setclientid(args) => client::setclientid(self, run, args),
            ArgOp::SetclientidConfirm(args) => client::confirm(self, run, args),
            ArgOp::Renew(args) => client::renew(self, run, args),
            ArgOp::ExchangeId(args) => client::exchange_id(self, run, args),
            ArgOp::DestroyClientid(args) => client::destroy(self, run, args),
            ArgOp::ReclaimComplete(args) => client::reclaim_complete(self, run, args),
            ArgOp::CreateSession(args) => session::create(self, run, args),
            ArgOp::DestroySession(args) => session::destroy(self, run, args),
            ArgOp::Sequence(args) => session::sequence(self, run, args),
            ArgOp::BindConnToSession(args) => session::bind(self, run, args),
            ArgOp::TestStateid(args) => session::test_stateid(self, run, args),
            ArgOp::FreeStateid(args) => session::free_stateid(self, run, args),
            ArgOp::Open(args) => open::open(self, run, args),
            ArgOp::OpenConfirm(args) => open::confirm(self, run, args),
            ArgOp::OpenDowngrade(args) => open::downgrade(self, run, args),
            ArgOp::Close(args) => open::close(self, run, args),
            ArgOp::Lock(args) => lock::lock(self, run, args),
            ArgOp::Lockt(args) => lock::lockt(self, run, args),
            ArgOp::Locku(args) => lock::locku(self, run, args),
            ArgOp::ReleaseLockowner(args) => lock::release(self, run, args),
            ArgOp::BackchannelCtl(args) => session::backchannel_ctl(self, run, args),
            ArgOp::Delegreturn(args) => deleg::give_back(self, run, args),
            // Delegations do not outlive their client, so none is left to be purged: DELEGPURGE.
            _ => Err(Nfsstat4::NOTSUPP.into()),
        }
    }

    fn acts_for(&self, op: &ArgOp<'_>) -> Option<ClientKey> {
        if let ArgOp::Open(args) = op {
            // It may be granted the first of all, and look at the file in the same COMPOUND.
            return self.state.key_of_client(args.owner.clientid);
        }
        if !self.state.recalls.has_delegations() {
            return None;
        }
        let id = match op {
            ArgOp::Lockt(args) => return self.state.key_of_client(args.owner.clientid),
            ArgOp::Read(args) => args.stateid,
            ArgOp::Write(args) => args.stateid,
            ArgOp::Setattr(args) => args.stateid,
            ArgOp::Close(args) => args.open_stateid,
            ArgOp::OpenConfirm(args) => args.open_stateid,
            ArgOp::OpenDowngrade(args) => args.open_stateid,
            ArgOp::Lock(args) => match &args.locker {
                Locker4::New(new) => new.open_stateid,
                Locker4::Existing(known) => known.lock_stateid,
            },
            ArgOp::Locku(args) => args.lock_stateid,
            ArgOp::Delegreturn(args) => args.deleg_stateid,
            _ => return None,
        };
        self.state.key_of_stateid(&id)
    }

    fn met(&self, run: &CompoundContext<'_>, op: &ArgOp<'_>) {
        self.note_peer(run, op);
    }

    fn check_io(
        &self,
        run: &CompoundContext<'_>,
        stateid: &Stateid4,
        access: u32,
    ) -> Result<(), Fail> {
        let client = self.of_stateid(run, stateid)?;
        let key = key_of(run)?.ok_or(Nfsstat4::BAD_STATEID)?;
        Ok(self.state.check_io(&client, stateid, key, access as u8)?)
    }

    fn check_special(&self, run: &CompoundContext<'_>, access: u32) -> Result<(), Fail> {
        if self.state.in_grace() {
            return Err(Nfsstat4::GRACE.into());
        }
        let Some(key) = key_of(run)? else { return Ok(()) };
        // The client that denies it may have an expired lease, and is removed then: not on a
        // connection's thread.
        if !run.may_block {
            let denied = self.state.locks.io_denied(key, None, access as u8).is_some();
            return if denied { Err(Fail::WouldBlock) } else { Ok(()) };
        }
        Ok(self.state.check_special(key, access as u8, self.now())?)
    }

    fn check_names(&self) -> Result<(), Nfsstat4> {
        if self.state.in_grace() { Err(Nfsstat4::GRACE) } else { Ok(()) }
    }

    fn withdraw(&self, progress: &CompoundState) {
        if let (Some(slot), Some(session)) = (progress.slot, &progress.session) {
            session.withdraw(slot.slot);
        }
    }

    fn finish(&self, progress: &CompoundState, results: &[u8]) {
        if let (Some(slot), Some(session)) = (progress.slot, &progress.session) {
            session.finish(slot.slot, results);
        }
    }
}
