//! A compound in the hands of its operations: the caller, the current and the saved file, where
//! results are written, and the facts that are noted of each operation.

use probe::op::{OpRecord, flag};
use vfs::fs::{Context, Failed, Flush};
use vfs::share::rules::{Access, Flavors, Grant};
use vfs::share::{self, Share};
use vfs::status::Status;
use wire::nfs4::{Nfsstat4, Stateid4, share4};
use wire::xdr::{Encode, Writer};

use super::compound::CompoundState;
use super::peer::{Peer, ShareGrant};
use super::status::nfsstat4;
use super::target::{FileHandleTarget, Target};
use super::{Nfs4, Slot};
use engine::transport::buffers::ReplyBuf;

/// Why an operation did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fail {
    /// It must be tried again where it may block; nothing was changed.
    WouldBlock,
    /// Its status; nothing is written yet.
    Status(Nfsstat4),
    /// Its status; the result is written, with what goes with the failure.
    Written(Nfsstat4),
    /// The whole compound is a repeat: these were its results (COMPOUND4res).
    Replay(Vec<u8>),
}

/// What an operation returns: with `Ok`, its result is written.
pub type Handled = Result<(), Fail>;

impl From<Nfsstat4> for Fail {
    fn from(status: Nfsstat4) -> Self {
        Self::Status(status)
    }
}

impl From<Status> for Fail {
    fn from(status: Status) -> Self {
        match status {
            Status::WouldBlock => Self::WouldBlock,
            status => Self::Status(nfsstat4(status)),
        }
    }
}

impl From<Failed> for Fail {
    fn from(failed: Failed) -> Self {
        failed.status.into()
    }
}

/// The caller's identity for the file contract, as the share that was entered gives it.
pub(super) fn context<'b>(
    progress: &'b CompoundState,
    peer: &Peer<'b>,
    may_block: bool,
) -> Context<'b> {
    let replaced = progress.entered.as_ref().and_then(|entered| entered.cred.as_ref());
    Context { cred: replaced.unwrap_or(peer.cred), may_block }
}

/// A compound being run.
pub struct CompoundContext<'a> {
    /// The service.
    pub service: &'a Nfs4,
    /// The caller.
    pub peer: Peer<'a>,
    /// False on a connection's thread: answer from memory or [`Fail::WouldBlock`].
    pub may_block: bool,
    /// How far it has got.
    pub progress: &'a mut CompoundState,
    /// Where results go.
    pub out: &'a mut ReplyBuf,
    /// The facts of the operation at hand.
    pub facts: OpRecord,
}

impl CompoundContext<'_> {
    /// Does an operation, or a part of one. If it panics, that operation fails, the compound ends
    /// with it as with any failure, and its slot and its owner's sequence remain valid.
    ///
    /// # Errors
    /// What it fails with; NFS4ERR_SERVERFAULT if it panics.
    pub(super) fn contained(&mut self, act: impl FnOnce(&mut Self) -> Handled) -> Handled {
        let budgets = self.peer.budgets;
        budgets.contain(|| act(self)).unwrap_or(Err(Fail::Status(Nfsstat4::SERVERFAULT)))
    }

    /// The caller's identity for the file contract.
    pub fn cx(&self) -> Context<'_> {
        context(self.progress, &self.peer, self.may_block)
    }

    /// Applies what the share of the current file grants, before every operation, so that a handle
    /// of another share gives no access.
    ///
    /// # Errors
    /// NFS4ERR_ACCESS where it grants nothing, NFS4ERR_WRONGSEC where it would over TLS or with
    /// another flavor, NFS4ERR_ROFS for a change where only reading is.
    pub(super) fn enter(&mut self, changes: bool) -> Result<(), Nfsstat4> {
        let Some(FileHandleTarget::File(target)) = &self.progress.current else {
            self.progress.entered = None;
            return Ok(());
        };
        let entered = match self.progress.entered.take() {
            Some(entered) if entered.still_holds(&target.share) => entered,
            _ => ShareGrant::new(&target.share, &self.peer),
        };
        let Grant { access, too_weak, .. } = entered.grant;
        self.progress.entered = Some(entered);
        match access {
            // Stronger security would do (RFC 8881 §15.1.6.8).
            Access::None if too_weak => Err(Nfsstat4::WRONGSEC),
            Access::None => Err(Nfsstat4::ACCESS),
            Access::ReadOnly if changes => Err(Nfsstat4::ROFS),
            _ => Ok(()),
        }
    }

    /// Whether the share of the current file lets the caller change something.
    pub fn may_change(&self) -> bool {
        let entered = self.progress.entered.as_ref();
        entered.is_none_or(|entered| entered.grant.access == Access::ReadWrite)
    }

    /// What a share grants to the caller.
    pub(super) fn grant(&self, share: &Share) -> Grant {
        ShareGrant::new(share, &self.peer).grant
    }

    /// The flavours with which the share of `place` takes calls of this caller.
    ///
    /// # Errors
    /// It takes none, whatever the flavour: as [`CompoundContext::enter`].
    pub(super) fn flavors(&self, place: &FileHandleTarget) -> Result<Flavors, Nfsstat4> {
        let FileHandleTarget::File(target) = place else { return Ok(Flavors::ALL) };
        match share::OriginGrant::new(&target.share, &self.peer.origin()).at_best() {
            Grant { access: Access::None, too_weak: true, .. } => Err(Nfsstat4::WRONGSEC),
            Grant { access: Access::None, .. } => Err(Nfsstat4::NOENT),
            Grant { flavors, .. } => Ok(flavors),
        }
    }

    /// Whether the caller may know of a share.
    pub(super) fn may_see(&self, share: &Share) -> bool {
        self.grant(share).access != Access::None
    }

    /// The minor version.
    pub fn minor(&self) -> u32 {
        self.progress.minor
    }

    /// Where results are written.
    pub fn writer(&mut self) -> Writer<'_> {
        Writer::new(self.out.vec())
    }

    /// Writes NFS4_OK and what goes with it.
    #[allow(clippy::unnecessary_wraps, reason = "it is how an operation ends")]
    pub fn ok(&mut self, results: &impl Encode) -> Handled {
        let mut w = self.writer();
        Nfsstat4::OK.encode(&mut w);
        results.encode(&mut w);
        Ok(())
    }

    /// The current file handle.
    ///
    /// # Errors
    /// NFS4ERR_NOFILEHANDLE.
    pub fn current(&self) -> Result<&FileHandleTarget, Fail> {
        self.progress.current.as_ref().ok_or(Fail::Status(Nfsstat4::NOFILEHANDLE))
    }

    /// The saved file handle.
    ///
    /// # Errors
    /// NFS4ERR_NOFILEHANDLE.
    pub fn saved(&self) -> Result<&FileHandleTarget, Fail> {
        self.progress.saved.as_ref().ok_or(Fail::Status(Nfsstat4::NOFILEHANDLE))
    }

    /// Makes `place` the current file; the current stateid ends with the file that it belonged to
    /// (RFC 8881 §16.2.3.1.2).
    pub fn set_current(&mut self, place: FileHandleTarget) {
        self.progress.current = Some(place);
        self.progress.current_stateid = None;
    }

    /// The current file, which must be in a share; the operation is then counted for it.
    ///
    /// # Errors
    /// NFS4ERR_NOFILEHANDLE; `otherwise` in the pseudo file system.
    pub fn target(&mut self, otherwise: Nfsstat4) -> Result<Target, Fail> {
        let target = self.current()?.target().ok_or(otherwise)?;
        self.count_for(&target);
        Ok(target)
    }

    fn count_for(&mut self, target: &Target) {
        let file = target.share.fs.file_id(&target.handle);
        self.facts.share = target.share.id;
        self.facts.file = file;
        if file != 0 {
            self.facts.flags |= flag::HAS_FILE;
        }
    }

    /// Notes a range of a file.
    pub fn range(&mut self, offset: u64, size: u32, inward: bool) {
        self.facts.offset = offset;
        self.facts.size = size;
        self.facts.flags |= flag::HAS_RANGE | if inward { flag::INWARD } else { 0 };
    }

    /// Notes what must be on disk before the reply leaves.
    pub fn durable(&mut self, flush: Flush) {
        if flush.is_empty() {
            return;
        }
        self.progress.note_change(self.facts.op);
        self.progress.flush.targets.extend(flush.targets);
    }

    /// The stateid that stands for "current" (4.1), or the one given.
    ///
    /// # Errors
    /// NFS4ERR_BAD_STATEID where there is no current one, or for invalid ones.
    pub fn stateid(&self, given: &Stateid4) -> Result<Stateid4, Fail> {
        if self.minor() > 0 && *given == Stateid4::CURRENT {
            return self.progress.current_stateid.ok_or(Fail::Status(Nfsstat4::BAD_STATEID));
        }
        Ok(*given)
    }

    /// Whether `stateid` lets the caller read (`share4::ACCESS_READ`) or write the current file.
    ///
    /// # Errors
    /// The status of the reply.
    pub fn check_io(&self, stateid: &Stateid4, access: u32) -> Result<(), Fail> {
        let stateid = self.stateid(stateid)?;
        let state = &self.service.state;
        if stateid == Stateid4::ANONYMOUS || stateid == Stateid4::BYPASS {
            // "READ bypass" is "anonymous" for everything but reading.
            return state.check_special(self, access);
        }
        if stateid.is_special() {
            return Err(Nfsstat4::BAD_STATEID.into());
        }
        state.check_io(self, &stateid, access)
    }

    /// As [`CompoundContext::check_io`], for a write.
    ///
    /// # Errors
    /// The status of the reply.
    pub fn check_write(&self, stateid: &Stateid4) -> Result<(), Fail> {
        self.check_io(stateid, share4::ACCESS_WRITE)
    }

    /// The slot of a 4.1 compound is this one; its reply may have `reply_max` bytes.
    pub fn hold_slot(&mut self, slot: Slot, reply_max: usize, cached_max: Option<usize>) {
        self.progress.hold_slot(slot, reply_max, cached_max);
    }
}
