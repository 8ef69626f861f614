//! The keeper of state behind [`super::StateOps`], and the order of 4.0 owners' requests.

use std::sync::Arc;

use base::clock::Clock;
use vfs::attr::FileType;
use vfs::handle::Handle;
use vfs::locks::{FileKey, Owner, Protocol};
use wire::nfs4::{Nfsstat4, Stateid4};

use super::run::{CompoundContext, Fail, Handled};
use super::state::{Client, SequenceDecision, State};
use super::target::{FileHandleTarget, Target};

/// Keeps the state of all clients.
pub struct Stateful {
    /// The state.
    pub state: State,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// `so_major_id` and the server's scope: the same over restarts, another on another machine.
    pub server_owner: Vec<u8>,
}

impl Stateful {
    /// Now.
    pub(super) fn now(&self) -> u64 {
        self.clock.monotonic_ns()
    }

    /// Ends clients that have been away for too long. To be called every few seconds.
    pub fn sweep(&self) {
        self.state.sweep(self.now());
        self.sweep_recalls();
    }

    /// Ends the service: nothing is held for clients any more. Those on record stay there, and may
    /// reclaim after the next start. To be called when no call can come in.
    pub fn end(&self) {
        let locks = &self.state.locks;
        locks.clients(Protocol::Nfs4).into_iter().for_each(|client| locks.release_client(client));
        locks.end_grace(Protocol::Nfs4);
    }

    /// Expires the client of a lock that conflicts with another protocol, if its lease has expired;
    /// false if not.
    pub fn evict_expired(&self, owner: &Owner) -> bool {
        self.state.evict_expired(owner, self.now())
    }

    /// The client of a 4.1 compound.
    pub(super) fn of_session(&self, run: &CompoundContext<'_>) -> Result<Arc<Client>, Nfsstat4> {
        let session = run.progress.session.as_ref().ok_or(Nfsstat4::OP_NOT_IN_SESSION)?;
        Ok(Arc::clone(&session.client))
    }

    /// The client that a stateid in this compound is of.
    pub(super) fn of_stateid(
        &self,
        run: &CompoundContext<'_>,
        id: &Stateid4,
    ) -> Result<Arc<Client>, Nfsstat4> {
        match run.minor() {
            0 if id.is_special() => Err(Nfsstat4::BAD_STATEID),
            0 => self.state.client_of(id, self.now()),
            _ => self.of_session(run),
        }
    }

    /// The client that names itself in this compound, by session from 4.1 on.
    pub(super) fn of_clientid(
        &self,
        run: &CompoundContext<'_>,
        id: u64,
    ) -> Result<Arc<Client>, Nfsstat4> {
        match run.minor() {
            0 => self.state.renew(id, self.now()),
            _ => self.of_session(run),
        }
    }

    /// What the current file is locked by, for giving back what `id` stands for: that works also
    /// when the file is gone.
    pub(super) fn given_back(
        &self,
        run: &mut CompoundContext<'_>,
        client: &Client,
        id: &Stateid4,
    ) -> Result<FileKey, Fail> {
        match regular(run) {
            Ok((_, key)) => Ok(key),
            Err(Fail::Status(Nfsstat4::STALE)) => Ok(self.state.file_of(client, id)?),
            Err(other) => Err(other),
        }
    }

    /// Does a request of an owner in its turn, or repeats the result of the last one. From 4.1 on
    /// the slot has seen to that.
    pub(super) fn in_turn(
        &self,
        run: &mut CompoundContext<'_>,
        client: &Client,
        turn: &InTurn<'_>,
        act: impl FnOnce(&mut CompoundContext<'_>, bool) -> Handled,
    ) -> Handled {
        if run.minor() > 0 {
            return act(run, true);
        }
        // Two requests of one owner wait for each other, which a connection's thread must not.
        if !run.may_block {
            return Err(Fail::WouldBlock);
        }
        let sequence =
            client.sequence_of(turn.locks, turn.owner, (self.now(), self.state.lease_ns))?;
        let mut sequence = sequence.lock();
        match sequence.turn(turn.seqid, turn.may_start)? {
            SequenceDecision::Next => {}
            SequenceDecision::Again(result) => {
                run.out.vec().extend_from_slice(&result);
                if let (Some(handle), Ok(FileHandleTarget::File(target))) =
                    (sequence.file, run.current())
                {
                    let place = target.in_same_share(handle);
                    run.set_current(place);
                }
                return match result.get(..4).and_then(|word| word.try_into().ok()) {
                    Some(word) if u32::from_be_bytes(word) == 0 => Ok(()),
                    Some(word) => Err(Fail::Written(Nfsstat4(u32::from_be_bytes(word)))),
                    None => Err(Nfsstat4::SERVERFAULT.into()),
                };
            }
        }
        let start = run.out.len();
        // A client counts SERVERFAULT as a request of its sequence (RFC 7530 §9.1.7), so must we.
        let confirmed = sequence.confirmed;
        let handled = run.contained(|run| act(run, confirmed));
        let written = run.out.as_slice().get(start..).unwrap_or_default();
        match &handled {
            Ok(()) => sequence.done(turn.seqid, Nfsstat4::OK, written),
            Err(Fail::Written(status)) => sequence.done(turn.seqid, *status, written),
            Err(Fail::Status(status)) => {
                sequence.done(turn.seqid, *status, &status.0.to_be_bytes());
            }
            Err(Fail::WouldBlock | Fail::Replay(_)) => {}
        }
        if handled.is_ok() {
            sequence.confirmed |= turn.confirms;
            sequence.file = if turn.opens { current_handle(run) } else { None };
        }
        handled
    }
}

/// A request in an owner's sequence.
pub(super) struct InTurn<'a> {
    /// Whether it is an owner of locks.
    pub locks: bool,
    /// The owner.
    pub owner: &'a [u8],
    /// The request's number.
    pub seqid: u32,
    /// An unconfirmed owner may start a new sequence: OPEN.
    pub may_start: bool,
    /// It confirms the owner: OPEN_CONFIRM, and all of lock owners.
    pub confirms: bool,
    /// It leads to another file: OPEN.
    pub opens: bool,
}

fn current_handle(run: &CompoundContext<'_>) -> Option<Handle> {
    run.current().ok().map(FileHandleTarget::handle)
}

/// The current file, which must be a regular one, and what it is locked by.
pub(super) fn regular(run: &mut CompoundContext<'_>) -> Result<(Target, FileKey), Fail> {
    let target = run.target(Nfsstat4::ISDIR)?;
    let attr = target.share.fs.getattr(run.cx(), &target.handle)?;
    check_regular(run, attr.kind)?;
    Ok((target, FileKey::from(&attr)))
}

/// The status for files that are not regular (RFC 7530 §16.16.5, RFC 8881 §18.16.3).
pub(super) fn check_regular(run: &CompoundContext<'_>, kind: FileType) -> Result<(), Fail> {
    Err(match kind {
        FileType::Regular => return Ok(()),
        FileType::Directory => Nfsstat4::ISDIR,
        FileType::Symlink => Nfsstat4::SYMLINK,
        _ if run.minor() > 0 => Nfsstat4::WRONG_TYPE,
        _ => Nfsstat4::INVAL,
    }
    .into())
}

#[cfg(test)]
mod tests;
