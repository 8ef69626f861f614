//! COMPOUND (RFC 8881 §16.2): one operation after the other until one fails, one would block, or
//! the end; what each minor version allows; the size of results; the facts of each operation.

use std::task::Poll;

use base::limits::NFS4_OPS_MAX;
use probe::op::flag;
use vfs::locks::ByClient;
use vfs::status::Status;
use wire::nfs4::{
    ArgOp, CompoundArgs, NFS_V4, NFS4_PROGRAM, NFSPROC4_COMPOUND, Nfsstat4, Openflag4, Opnum4,
    share4,
};
use wire::rpc::REPLY_SUCCESS_LEN;
use wire::rpcrdma::ddp::Called;
use wire::xdr::{Decode, DecodeError, Encode, Reader, Writer};

use super::compound::CompoundState;
use super::peer::Peer;
use super::program::first_change;
use super::run::{CompoundContext, Fail, Handled};
use super::status::{exhausted, nfsstat4};
use super::{Nfs4, is_stateful};
use super::{attr, change, dir, fh, io, names, v42, xattr};
use crate::rpc::note_kept;
use engine::transport::buffers::ReplyBuf;

/// The greatest minor version.
const MINOR_MAX: u32 = 2;

impl Nfs4 {
    /// Reads the head of a COMPOUND (what follows the RPC header) and begins its results. `None` if
    /// the reply is written with that: there is no operation, or none can be done.
    ///
    /// # Errors
    /// [`DecodeError`]: the reply is GARBAGE_ARGS.
    pub fn begin(
        &self,
        message: &[u8],
        out: &mut ReplyBuf,
    ) -> Result<Option<Box<CompoundState>>, DecodeError> {
        let mut r = Reader::new(message);
        let args = CompoundArgs::decode(&mut r)?;
        let refused = if args.minorversion > MINOR_MAX {
            Nfsstat4::MINOR_VERS_MISMATCH
        } else if std::str::from_utf8(args.tag.0).is_err() {
            Nfsstat4::INVAL
        } else if args.count > NFS4_OPS_MAX && args.minorversion == 0 {
            Nfsstat4::RESOURCE
        } else if args.count > NFS4_OPS_MAX {
            Nfsstat4::TOO_MANY_OPS
        } else {
            Nfsstat4::OK
        };
        let mut w = Writer::new(out.vec());
        refused.encode(&mut w);
        args.tag.encode(&mut w);
        w.u32(0);
        if !refused.is_ok() || args.count == 0 {
            return Ok(None);
        }
        let at = message.len() - r.rest().len();
        Ok(Some(Box::new(CompoundState::new(&args, at, message.len()))))
    }

    /// Runs a compound until its results are written, which may leave after
    /// [`CompoundState::flush`], or (pending) its next operation would block: it is to be run again
    /// where it may, with the results so far. `message` is what [`Nfs4::begin`] was given; the
    /// results begin at `start` of `out`.
    pub fn run(
        &self,
        progress: &mut CompoundState,
        peer: Peer<'_>,
        may_block: bool,
        message: &[u8],
        out: &mut ReplyBuf,
        start: usize,
    ) -> Poll<()> {
        let facts = peer.facts;
        let mut run = CompoundContext { service: self, peer, may_block, progress, out, facts };
        while run.progress.done < run.progress.count && !run.progress.ended {
            if run.is_abandoned(message) {
                // No client gets this reply: the request is a new one when it comes again.
                run.progress.ended = true;
                run.progress.status = Nfsstat4::DELAY;
                self.withdraw(run.progress);
                break;
            }
            let result_at = run.out.len();
            if run.step(message, start) {
                run.out.truncate(result_at);
                run.progress.pooled = true;
                return Poll::Pending;
            }
        }
        let CompoundState { status, done, tag, slot, .. } = *run.progress;
        let mut w = Writer::new(run.out.vec());
        if !run.progress.ended || !status.is_ok() || done > 0 {
            w.patch_u32(start, status.0);
            w.patch_u32(start + 8 + tag.next_multiple_of(4), done);
        }
        if slot.is_some() && run.progress.flush.is_empty() {
            // Without its data a reply is nothing to keep.
            let whole = run.progress.extent.is_none();
            let results = run.out.as_slice().get(start..).filter(|_| whole);
            self.give_slot_back(run.progress, results.unwrap_or_default());
        }
        Poll::Ready(())
    }

    /// The results have reached the disk, or not: then those from the first change on are replaced
    /// by its failure. `results` is COMPOUND4res.
    pub fn flushed(
        &self,
        progress: &mut CompoundState,
        outcome: Result<(), Status>,
        results: &mut Vec<u8>,
        start: usize,
    ) {
        if let (Err(status), Some((at, index, op))) = (outcome, progress.first_change) {
            let status = nfsstat4(status);
            results.truncate(start + at);
            let mut w = Writer::new(results);
            w.u32(u32::from(op));
            write_failure(&mut w, Opnum4(u32::from(op)), status);
            w.patch_u32(start, status.0);
            w.patch_u32(start + 8 + progress.tag.next_multiple_of(4), index + 1);
            progress.facts.truncate(index as usize + 1);
            if let Some(facts) = progress.facts.last_mut() {
                facts.status = status.0 as u16;
                facts.bytes = 0;
            }
            progress.status = status;
        }
        self.give_slot_back(progress, results.get(start..).unwrap_or_default());
    }

    /// The compound was abandoned before it has changed anything: its slot, if it holds one, takes
    /// the same request again.
    pub(super) fn withdraw(&self, progress: &mut CompoundState) {
        let given_back = std::mem::replace(&mut progress.slot_given_back, true);
        if progress.slot.is_some() && !given_back {
            self.state.withdraw(progress);
        }
    }

    /// The compound has ended with these results, or with none: its slot, if it holds one, is the
    /// next request's. Once it is, it is not ours to give back.
    pub(super) fn give_slot_back(&self, progress: &mut CompoundState, results: &[u8]) {
        let given_back = std::mem::replace(&mut progress.slot_given_back, true);
        if progress.slot.is_some() && !given_back {
            self.state.finish(progress, results);
        }
    }
}

/// Whether an operation is about the current file: its share must then admit the caller.
fn uses_current(op: &ArgOp<'_>) -> bool {
    !matches!(
        op,
        ArgOp::Putfh(_)
            | ArgOp::Putrootfh(())
            | ArgOp::Putpubfh(())
            | ArgOp::Restorefh(())
            | ArgOp::Renew(_)
            | ArgOp::Setclientid(_)
            | ArgOp::SetclientidConfirm(_)
            | ArgOp::ReleaseLockowner(_)
            | ArgOp::Sequence(_)
            | ArgOp::TestStateid(_)
            | ArgOp::FreeStateid(_)
            | ArgOp::DestroyClientid(_)
            | ArgOp::DestroySession(_)
            | ArgOp::ReclaimComplete(_)
            // A client with an open may close it and release what it holds.
            | ArgOp::Close(_)
            | ArgOp::Locku(_)
            | ArgOp::Delegreturn(_)
    )
}

/// Whether an operation changes something in the share.
fn is_change(op: &ArgOp<'_>) -> bool {
    match op {
        ArgOp::Open(args) => {
            args.share_access & share4::ACCESS_WRITE != 0
                || matches!(args.openhow, Openflag4::Create(_))
        }
        ArgOp::Create(_)
        | ArgOp::Link(_)
        | ArgOp::Remove(_)
        | ArgOp::Rename(_)
        | ArgOp::Setattr(_)
        | ArgOp::Write(_)
        | ArgOp::Allocate(_)
        | ArgOp::Deallocate(_)
        | ArgOp::Copy(_)
        | ArgOp::Clone(_)
        | ArgOp::WriteSame(_)
        | ArgOp::Setxattr(_)
        | ArgOp::Removexattr(_) => true,
        _ => false,
    }
}

/// Whether an operation that was tried may have had an effect, be it on a file or on the state of
/// the client, so that the compound must not be made again as if it had never come.
fn has_effect(op: &ArgOp<'_>) -> bool {
    let only_looks = matches!(
        op,
        ArgOp::Sequence(_) | ArgOp::Renew(_) | ArgOp::Lockt(_) | ArgOp::TestStateid(_)
    );
    is_change(op) || (is_stateful(op) && !only_looks)
}

/// A failure's result: its status, and the empty bitmap of SETATTR.
fn write_failure(w: &mut Writer<'_>, op: Opnum4, status: Nfsstat4) {
    status.encode(w);
    if op == Opnum4::SETATTR {
        w.u32(0);
    }
}

impl CompoundContext<'_> {
    /// Does one operation. True if it would block; what it wrote must then be taken back.
    fn step(&mut self, message: &[u8], start: usize) -> bool {
        let mut r = Reader::new(message.get(self.progress.at..).unwrap_or_default());
        let number = Opnum4::decode(&mut r).unwrap_or(Opnum4::ILLEGAL);
        let known = number.is_in(self.progress.minor);
        let shown = if known { number } else { Opnum4::ILLEGAL };
        self.facts = self.peer.facts;
        self.facts.op = if known { number.0 as u8 } else { 0 };
        if self.progress.pooled {
            self.facts.flags |= flag::POOLED;
        }
        let result = self.out.len();
        self.progress.result_at = result - start;
        shown.encode(&mut self.writer());
        let handled = if !known {
            Err(Fail::Status(Nfsstat4::OP_ILLEGAL))
        } else {
            self.allowed(number).and_then(|()| match ArgOp::decode_args(number, &mut r) {
                Ok(op) => {
                    let done = self.contained(|run| run.operate(&op));
                    let is_tried = done != Err(Fail::WouldBlock);
                    self.progress.has_effect |= is_tried && has_effect(&op);
                    done
                }
                Err(_) => Err(Fail::Status(Nfsstat4::BADXDR)),
            })
        };
        let handled = handled.and_then(|()| self.fits(start));
        let status = match handled {
            Ok(()) => Nfsstat4::OK,
            Err(Fail::WouldBlock) if !self.may_block => return true,
            Err(Fail::WouldBlock) => self.fail(result, shown, Nfsstat4::DELAY),
            Err(Fail::Status(Nfsstat4::RESOURCE)) if self.progress.minor > 0 => {
                self.fail(result, shown, exhausted(shown))
            }
            Err(Fail::Status(status)) => self.fail(result, shown, status),
            Err(Fail::Written(status)) => status,
            Err(Fail::Replay(results)) => {
                self.replay(start, &results);
                return false;
            }
        };
        self.progress.at = message.len() - r.rest().len();
        self.end(status);
        false
    }

    /// Whether nothing needs the rest: the connection has ended, nothing was changed so far, and no
    /// repeat can wait for the reply, as it can for a compound of 4.0 that changes names.
    fn is_abandoned(&self, message: &[u8]) -> bool {
        let has_left = || self.peer.back.is_some_and(|back| back.has_ended());
        self.may_block
            && has_left()
            && !self.progress.has_effect
            && (self.progress.minor > 0 || first_change(Reader::new(message)).is_none())
    }

    fn end(&mut self, status: Nfsstat4) {
        #[cfg(test)]
        super::status::tests::check(self.progress.minor, self.facts.op, status);
        self.facts.status = status.0 as u16;
        self.progress.facts.push(self.facts);
        self.progress.status = status;
        self.progress.done += 1;
        self.progress.pooled = false;
        self.progress.ended |= !status.is_ok();
    }

    /// Writes a failure in the place of whatever the operation wrote.
    fn fail(&mut self, result: usize, op: Opnum4, status: Nfsstat4) -> Nfsstat4 {
        self.out.truncate(result + 4);
        write_failure(&mut self.writer(), op, status);
        status
    }

    /// Replies to the whole compound with the results of its first execution.
    fn replay(&mut self, start: usize, results: &[u8]) {
        self.out.truncate(start);
        self.out.vec().extend_from_slice(results);
        if let Some(start) = start.checked_sub(REPLY_SUCCESS_LEN) {
            let called = Called { prog: NFS4_PROGRAM, vers: NFS_V4, proc: NFSPROC4_COMPOUND };
            note_kept((&mut *self.out, &self.peer.facts), start, called);
        }
        self.facts.flags |= flag::REPLAY;
        self.progress.facts.push(self.facts);
        // Nothing of this compound may be kept for its slot, and nothing patched.
        self.progress.slot = None;
        self.progress.status = Nfsstat4::OK;
        self.progress.done = 0;
        self.progress.ended = true;
    }

    /// Whether the results so far are within what the session, or we, allow.
    fn fits(&self, start: usize) -> Handled {
        let size = self.out.len() - start;
        if size > self.progress.reply_max {
            let minor = self.progress.minor;
            return Err(if minor == 0 { Nfsstat4::RESOURCE } else { Nfsstat4::REP_TOO_BIG }.into());
        }
        match self.progress.cached_max {
            Some(max) if size > max => Err(Nfsstat4::REP_TOO_BIG_TO_CACHE.into()),
            _ => Ok(()),
        }
    }

    /// Bytes of results that there is room for in addition to those so far, if the operation at
    /// hand is the last of a compound that changes nothing and has results that are not retained.
    pub(super) fn room_for_last(&self) -> Option<usize> {
        let CompoundState { reply_max, cached_max, result_at, changing, done, count, .. } =
            *self.progress;
        // The operation's number stands before its result.
        let used = result_at + 4;
        let plain = done + 1 == count && !changing && cached_max.is_none();
        if plain { reply_max.checked_sub(used) } else { None }
    }

    /// Checks the position of an operation in a compound of this minor version (RFC 8881
    /// §2.10.6.3).
    fn allowed(&self, number: Opnum4) -> Handled {
        let progress = &self.progress;
        if progress.minor == 0 {
            return Ok(());
        }
        if number.is_only_in_0() {
            return Err(Nfsstat4::NOTSUPP.into());
        }
        let first = progress.done == 0;
        let alone = matches!(
            number,
            Opnum4::EXCHANGE_ID
                | Opnum4::CREATE_SESSION
                | Opnum4::DESTROY_SESSION
                | Opnum4::BIND_CONN_TO_SESSION
                | Opnum4::DESTROY_CLIENTID
        );
        let status = match (first, number) {
            (true, Opnum4::SEQUENCE) => return Ok(()),
            (false, Opnum4::SEQUENCE) => Nfsstat4::SEQUENCE_POS,
            (true, _) if alone && progress.count > 1 => Nfsstat4::NOT_ONLY_OP,
            (true, _) if !alone => Nfsstat4::OP_NOT_IN_SESSION,
            _ => return Ok(()),
        };
        Err(status.into())
    }

    fn operate(&mut self, op: &ArgOp<'_>) -> Handled {
        if self.minor() == 0
            && let Some(client) = self.service.state.acts_for(op)
        {
            self.progress.acting.set(Some(client));
        }
        let _acting = self.progress.acting.get().map(ByClient::acting);
        let change = is_change(op);
        self.progress.changing |= change;
        let admitted = self.enter(change);
        if uses_current(op) {
            admitted?;
        }
        if is_stateful(op) {
            self.service.state.operate(self, op)?;
            self.service.state.met(self, op);
            return Ok(());
        }
        match op {
            ArgOp::Access(args) => attr::access(self, args),
            ArgOp::Getattr(args) => attr::getattr(self, args),
            ArgOp::Setattr(args) => attr::setattr(self, args),
            ArgOp::Verify(args) => attr::verify(self, args, true),
            ArgOp::Nverify(args) => attr::verify(self, args, false),
            ArgOp::Putfh(args) => fh::putfh(self, args),
            ArgOp::Putrootfh(()) | ArgOp::Putpubfh(()) => fh::putrootfh(self),
            ArgOp::Getfh(()) => fh::getfh(self),
            ArgOp::Savefh(()) => fh::savefh(self),
            ArgOp::Restorefh(()) => fh::restorefh(self),
            ArgOp::Lookup(args) => names::lookup(self, args),
            ArgOp::Lookupp(()) => names::lookupp(self),
            ArgOp::Secinfo(args) => names::secinfo(self, args),
            ArgOp::SecinfoNoName(args) => names::secinfo_no_name(self, args),
            ArgOp::Create(args) => change::create(self, args),
            ArgOp::Remove(args) => change::remove(self, args),
            ArgOp::Rename(args) => change::rename(self, args),
            ArgOp::Link(args) => change::link(self, args),
            ArgOp::Read(args) => io::read(self, args),
            ArgOp::Write(args) => io::write(self, args),
            ArgOp::Commit(args) => io::commit(self, args),
            ArgOp::Readlink(()) => io::readlink(self),
            ArgOp::ReadPlus(args) => io::read_plus(self, args),
            ArgOp::IoAdvise(args) => io::io_advise(self, args),
            ArgOp::Readdir(args) => dir::readdir(self, args),
            ArgOp::Getxattr(args) => xattr::get(self, args),
            ArgOp::Setxattr(args) => xattr::set(self, args),
            ArgOp::Listxattrs(args) => xattr::list(self, args),
            ArgOp::Removexattr(args) => xattr::remove(self, args),
            ArgOp::Allocate(args) => v42::allocate(self, args),
            ArgOp::Deallocate(args) => v42::deallocate(self, args),
            ArgOp::Seek(args) => v42::seek(self, args),
            ArgOp::Copy(args) => v42::copy(self, args),
            ArgOp::Clone(args) => v42::clone(self, args),
            _ => Err(Nfsstat4::NOTSUPP.into()),
        }
    }
}
