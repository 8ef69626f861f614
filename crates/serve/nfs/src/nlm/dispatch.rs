//! NLM version 4 as a program on RPC connections, and its procedures.

use std::sync::Arc;

use probe::op::{OpRecord, Protocol, flag};
use vfs::attr::FileType;
use vfs::fs::{Context, access};
use vfs::handle::Handle;
use vfs::locks::FileKey;
use vfs::share::Share;
use vfs::share::rules::Access;
use vfs::status::Status;
use wire::nlm4::{
    CancelArgs, LockArgs, NLM_PROGRAM, NLM_V4, Netobj, Nlm4Res, Nlm4Stat, NotifyArgs, Proc,
    ShareArgs, ShareRes, TestArgs, TestReply, TestRes, UnlockArgs, handle_in,
};
use wire::xdr::{Decode, DecodeError, Encode, Reader, Writer};

use super::Nlm;
use super::conn::Message;
use super::hosts::STATE_UNKNOWN;
use super::request::{File, Request};
use super::status::{Refusal, nlm4_stat};
use crate::rpc::{Call, Caller, DispatchResult, Handled, Procedure, Program};
use engine::transport::buffers::ReplyBuf;

/// The program.
pub(super) struct Nlm4(pub(super) Arc<Nlm>);

impl Program for Nlm4 {
    fn number(&self) -> u32 {
        NLM_PROGRAM
    }

    fn version(&self) -> u32 {
        NLM_V4
    }

    fn protocol(&self) -> Protocol {
        Protocol::Nlm
    }

    fn procedure(&self, number: u32) -> Option<Procedure> {
        let known = Proc(number).known_name().is_some();
        // Done twice, the second time after something else was done, these do harm.
        let non_idempotent = matches!(
            Proc(number),
            Proc::LOCK
                | Proc::CANCEL
                | Proc::UNLOCK
                | Proc::SHARE
                | Proc::UNSHARE
                | Proc::NM_LOCK
                | Proc::FREE_ALL
        );
        known.then_some(Procedure { number, non_idempotent })
    }

    /// Every caller is admitted; what the share grants is checked where the reply can carry the
    /// cookie.
    fn admit(
        &self,
        procedure: Procedure,
        args: &Reader<'_>,
        caller: &mut Caller,
    ) -> Result<(), Status> {
        let handle = handle_in(Proc(procedure.number), args.rest()).and_then(Handle::new);
        caller.leave();
        let shares = self.0.shares.load();
        if let Some(share) = handle.and_then(|handle| shares.by_handle(&handle)) {
            caller.enter(share);
        }
        Ok(())
    }

    fn reply_max(&self, _: Procedure, _: &Reader<'_>) -> usize {
        base::limits::REPLY_SMALL
    }

    fn handle(&self, procedure: Procedure, call: &mut Call<'_>) -> Handled {
        let proc = Proc(procedure.number);
        let mut request = Request {
            nlm: &self.0,
            caller: call.caller,
            may_block: call.may_block,
            facts: &mut *call.facts,
            budgets: call.budgets,
        };
        let mut args = call.args.clone();
        let Some((base, answer)) = message(proc) else {
            let start = call.out.len();
            let done = request.operate(proc, &mut args, &mut Writer::new(call.out.vec()))?;
            return Ok(end(done, request.facts).unwrap_or_else(|| {
                call.out.truncate(start);
                DispatchResult::WouldBlock(None)
            }));
        };
        let mut results = Vec::new();
        let done = request.operate(base, &mut args, &mut Writer::new(&mut results))?;
        let Some(outcome) = end(done, request.facts) else {
            return Ok(DispatchResult::WouldBlock(None));
        };
        let (address, local) = (call.caller.address, call.caller.local());
        if let Some(place) = self.0.message_place(address) {
            self.0.send(Message::Answer { address, local, proc: answer, results, place });
        }
        Ok(outcome)
    }

    fn has_status(&self, procedure: u32) -> bool {
        matches!(
            Proc(procedure),
            Proc::TEST | Proc::LOCK | Proc::CANCEL | Proc::UNLOCK | Proc::GRANTED | Proc::NM_LOCK
        )
    }

    fn fail(&self, _: u32, status: Status, out: &mut ReplyBuf) -> u16 {
        let stat = nlm4_stat(status);
        // Without the arguments there is no cookie to give back.
        Nlm4Res { cookie: Netobj(&[]), stat }.encode(&mut Writer::new(out.vec()));
        stat.0 as u16
    }
}

/// How a call ended; `None` if it must be done where it may block.
fn end(done: Result<Nlm4Stat, Refusal>, facts: &mut OpRecord) -> Option<DispatchResult> {
    match done {
        Ok(stat) | Err(Refusal::Stat(stat)) => {
            facts.status = stat.0 as u16;
            Some(DispatchResult::Done)
        }
        Err(Refusal::WouldBlock) => None,
    }
}

/// The procedure of a `*_MSG`, and the one that carries its result back.
fn message(proc: Proc) -> Option<(Proc, Proc)> {
    Some(match proc {
        Proc::TEST_MSG => (Proc::TEST, Proc::TEST_RES),
        Proc::LOCK_MSG => (Proc::LOCK, Proc::LOCK_RES),
        Proc::CANCEL_MSG => (Proc::CANCEL, Proc::CANCEL_RES),
        Proc::UNLOCK_MSG => (Proc::UNLOCK, Proc::UNLOCK_RES),
        Proc::GRANTED_MSG => (Proc::GRANTED, Proc::GRANTED_RES),
        _ => return None,
    })
}

fn arguments<'a, T: Decode<'a>>(r: &mut Reader<'a>) -> Result<T, DecodeError> {
    let args = T::decode(r)?;
    r.clone().finish()?;
    Ok(args)
}

/// Writes the result that most procedures have, unless the call is to be done again.
fn result(
    w: &mut Writer<'_>,
    cookie: Netobj<'_>,
    done: Result<Nlm4Stat, Refusal>,
) -> Result<Nlm4Stat, Refusal> {
    let stat = match done {
        Ok(stat) | Err(Refusal::Stat(stat)) => stat,
        Err(Refusal::WouldBlock) => return Err(Refusal::WouldBlock),
    };
    Nlm4Res { cookie, stat }.encode(w);
    Ok(stat)
}

impl Request<'_> {
    /// Does a procedure, and writes its results.
    fn operate(
        &mut self,
        proc: Proc,
        r: &mut Reader<'_>,
        w: &mut Writer<'_>,
    ) -> Result<Result<Nlm4Stat, Refusal>, DecodeError> {
        Ok(match proc {
            Proc::TEST => self.test_into(&arguments(r)?, w),
            Proc::LOCK | Proc::NM_LOCK => {
                let args: LockArgs<'_> = arguments(r)?;
                let may_wait = proc == Proc::LOCK;
                result(w, args.cookie, self.contained(|call| call.lock(&args, may_wait)))
            }
            Proc::CANCEL => {
                let args: CancelArgs<'_> = arguments(r)?;
                result(w, args.cookie, self.contained(|call| call.cancel(&args)))
            }
            Proc::UNLOCK => {
                let args: UnlockArgs<'_> = arguments(r)?;
                result(w, args.cookie, self.contained(|call| call.unlock(&args)))
            }
            // We wait for no one's locks.
            Proc::GRANTED => {
                let args: TestArgs<'_> = arguments(r)?;
                result(w, args.cookie, Ok(Nlm4Stat::DENIED))
            }
            Proc::GRANTED_RES => {
                let res: Nlm4Res<'_> = arguments(r)?;
                self.granted_res(&res);
                Ok(res.stat)
            }
            Proc::SHARE | Proc::UNSHARE => {
                let args: ShareArgs<'_> = arguments(r)?;
                let done = self.contained(|call| match proc {
                    Proc::SHARE => call.share(&args),
                    _ => call.unshare(&args),
                });
                let stat = match done {
                    Ok(stat) | Err(Refusal::Stat(stat)) => stat,
                    Err(Refusal::WouldBlock) => return Ok(Err(Refusal::WouldBlock)),
                };
                ShareRes { cookie: args.cookie, stat, sequence: 0 }.encode(w);
                Ok(stat)
            }
            Proc::FREE_ALL => {
                let args: NotifyArgs<'_> = arguments(r)?;
                let from = (self.caller.address, self.caller.port());
                // Whatever the state, the host has nothing any more.
                self.nlm.restarted(from, (args.name.0, STATE_UNKNOWN), self.may_block)
            }
            // NULL, and replies to calls that this server does not make.
            _ => Ok(Nlm4Stat::GRANTED),
        })
    }

    /// Does an operation. If it panics it has failed: its result has the cookie of its call, by
    /// which clients know it.
    fn contained<T>(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let budgets = self.budgets;
        budgets.contain(|| act(self)).unwrap_or_else(|status| Err(Refusal::from(status)))
    }

    fn test_into(&mut self, args: &TestArgs<'_>, w: &mut Writer<'_>) -> Result<Nlm4Stat, Refusal> {
        let mut say = |stat: TestReply<'_>| {
            TestRes { cookie: args.cookie, stat }.encode(w);
            Ok(stat.stat())
        };
        match self.contained(|call| call.test(args)) {
            Ok(None) => say(TestReply::Other(Nlm4Stat::GRANTED)),
            Ok(Some(held)) => say(TestReply::Denied(super::lock::holder(&held))),
            Err(Refusal::Stat(stat)) => say(TestReply::Other(stat)),
            Err(Refusal::WouldBlock) => Err(Refusal::WouldBlock),
        }
    }

    /// The file that a call is about, which is then counted for it.
    pub(super) fn find(&mut self, fh: Netobj<'_>) -> Result<(Arc<Share>, Handle), Refusal> {
        let handle = Handle::new(fh.0).ok_or(Nlm4Stat::STALE_FH)?;
        let shares = self.nlm.shares.load();
        let share = shares.by_handle(&handle).ok_or(Nlm4Stat::STALE_FH)?;
        self.facts.share = share.id;
        self.facts.file = share.fs.file_id(&handle);
        if self.facts.file != 0 {
            self.facts.flags |= flag::HAS_FILE;
        }
        match self.caller.grant().access {
            Access::None => Err(Nlm4Stat::FAILED.into()),
            _ => Ok((Arc::clone(share), handle)),
        }
    }

    /// A file that the caller may lock: a regular file that the caller may read or owns.
    pub(super) fn lockable(&mut self, fh: Netobj<'_>, exclusive: bool) -> Result<File, Refusal> {
        let (share, handle) = self.find(fh)?;
        let read_only = share.read_only || self.caller.grant().access == Access::ReadOnly;
        if exclusive && read_only {
            return Err(Nlm4Stat::ROFS.into());
        }
        let cred = self.caller.cred();
        let cx = Context { cred, may_block: self.may_block };
        let (rights, attr) = share.fs.access(cx, &handle, access::READ)?;
        let may = rights & access::READ != 0 || attr.uid == cred.uid;
        if !may || attr.kind != FileType::Regular {
            return Err(Nlm4Stat::FAILED.into());
        }
        Ok(File { key: FileKey::from(&attr), handle })
    }
}
