//! NFS version 4.0 (RFC 7530), 4.1 (RFC 8881) and 4.2 (RFC 7862, RFC 8276): compounds, the
//! operations on files, and the pseudo file system that joins all shares under one root.
//!
//! [`Nfs4::run`] does as much of a COMPOUND as can be done without waiting and returns where it
//! stopped; on a pool thread it continues from there, never from the start. What concerns state
//! (clients, sessions, OPEN, LOCK, delegations) is behind [`StateOps`].
//!
//! *Names* are bytes, as in vfs: what is not UTF-8 is served as it is (and `fs_charset_cap` reports
//! that), because it may have been made by another protocol or by the host. A name is refused with
//! NFS4ERR_INVAL when empty, NFS4ERR_BADNAME when it is `.` or `..`, NFS4ERR_BADCHAR when it holds
//! a slash or NUL, NFS4ERR_NAMETOOLONG beyond the limit of the file system.

mod acl;
mod admin;
mod attr;
mod callback;
mod change;
mod client;
mod compound;
mod deleg;
mod dir;
mod dispatch;
mod fattr;
mod fh;
pub mod idmap;
mod io;
mod lock;
mod names;
mod open;
mod peer;
mod program;
mod pseudo;
mod run;
mod session;
pub mod state;
mod state_ops;
mod stateful;
mod status;
mod target;
mod v42;
mod xattr;

use std::sync::Arc;
use std::time::Duration;

use vfs::locks::ClientKey;
use vfs::share::Shares;
use wire::nfs4::{ArgOp, Nfsstat4, Stateid4};

pub use compound::CompoundState;
pub use idmap::IdMap;
pub use names::{check_name, check_name_in, directory};
pub use peer::{Peer, ShareGrant};
pub use run::{CompoundContext, Fail, Handled};
pub use stateful::Stateful;
pub use status::nfsstat4;
pub use target::{FileHandleTarget, Target};

/// What the operations on files need; one for all connections.
pub struct Nfs4 {
    /// The shares.
    pub shares: Arc<Shares>,
    /// Verifier of unstable writes: another one after each start.
    pub verifier: [u8; 8],
    /// The lease, the value of `lease_time`.
    pub lease: Duration,
    /// Names of owners.
    pub idmap: Arc<IdMap>,
    /// What keeps state.
    pub state: Arc<dyn StateOps>,
}

/// The program, for connections.
pub fn program(nfs: Arc<Nfs4>) -> Arc<dyn crate::rpc::Program> {
    Arc::new(program::Compounds(nfs))
}

/// A slot that a 4.1 compound holds, with the identifier of its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slot {
    /// The session.
    pub session: [u8; 16],
    /// The slot in it.
    pub slot: u32,
}

/// What keeps the state of clients. Everything here is called from any thread, must not wait for
/// another client, and has no side effect before it succeeds.
pub trait StateOps: Send + Sync {
    /// Does an operation on state: those of [`is_stateful`]. `NFS4_OK` and its results are
    /// written by it; the operation's number is there already.
    ///
    /// # Errors
    /// [`Fail`], with nothing written unless documented there.
    fn operate(&self, run: &mut CompoundContext<'_>, op: &ArgOp<'_>) -> Handled;

    /// The client of an operation of 4.0, as far as a valid stateid or an open owner gives it: from
    /// 4.1 on the session does.
    fn acts_for(&self, _op: &ArgOp<'_>) -> Option<ClientKey> {
        None
    }

    /// An operation has succeeded: where the client is may be remembered, for people.
    fn met(&self, _run: &CompoundContext<'_>, _op: &ArgOp<'_>) {}

    /// Whether a stateid that is none of the special ones may be used for this access
    /// (`share4::ACCESS_READ`, `ACCESS_WRITE`) to the current file.
    ///
    /// # Errors
    /// The status of the reply; or that the check must be repeated where it may block.
    fn check_io(
        &self,
        run: &CompoundContext<'_>,
        stateid: &Stateid4,
        access: u32,
    ) -> Result<(), Fail>;

    /// Whether the special stateids may be used for this access to the current file: NFS4ERR_GRACE
    /// in the grace period, NFS4ERR_LOCKED or NFS4ERR_DELAY where deny modes, mandatory locks or
    /// delegations stand against it.
    ///
    /// # Errors
    /// The status of the reply.
    fn check_special(&self, _run: &CompoundContext<'_>, _access: u32) -> Result<(), Fail> {
        Ok(())
    }

    /// Whether files may lose, change or get names now: what has been open before a restart must be
    /// there, and be that file, when it is reclaimed.
    ///
    /// # Errors
    /// NFS4ERR_GRACE in the grace period.
    fn check_names(&self) -> Result<(), Nfsstat4> {
        Ok(())
    }

    /// The compound, which holds a slot, has ended with these results (COMPOUND4res); with none,
    /// there are none to retain.
    fn finish(&self, _progress: &CompoundState, _results: &[u8]) {}

    /// The compound, which holds a slot, was abandoned and has changed nothing: the client makes
    /// the same request again.
    fn withdraw(&self, _progress: &CompoundState) {}
}

/// Whether an operation belongs to [`StateOps`].
pub fn is_stateful(op: &ArgOp<'_>) -> bool {
    matches!(
        op,
        ArgOp::Close(_)
            | ArgOp::Delegpurge(_)
            | ArgOp::Delegreturn(_)
            | ArgOp::Lock(_)
            | ArgOp::Lockt(_)
            | ArgOp::Locku(_)
            | ArgOp::Open(_)
            | ArgOp::OpenConfirm(_)
            | ArgOp::OpenDowngrade(_)
            | ArgOp::Renew(_)
            | ArgOp::Setclientid(_)
            | ArgOp::SetclientidConfirm(_)
            | ArgOp::ReleaseLockowner(_)
            | ArgOp::BackchannelCtl(_)
            | ArgOp::BindConnToSession(_)
            | ArgOp::ExchangeId(_)
            | ArgOp::CreateSession(_)
            | ArgOp::DestroySession(_)
            | ArgOp::FreeStateid(_)
            | ArgOp::Sequence(_)
            | ArgOp::SetSsv(_)
            | ArgOp::TestStateid(_)
            | ArgOp::DestroyClientid(_)
            | ArgOp::ReclaimComplete(_)
    )
}

/// Keeps no state: only 4.0 with the special stateids works. For tests and for a start.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoState;

impl StateOps for NoState {
    fn operate(&self, _: &mut CompoundContext<'_>, _: &ArgOp<'_>) -> Handled {
        Err(Fail::Status(Nfsstat4::NOTSUPP))
    }

    fn check_io(&self, _: &CompoundContext<'_>, _: &Stateid4, _: u32) -> Result<(), Fail> {
        Err(Nfsstat4::BAD_STATEID.into())
    }
}

#[cfg(test)]
mod tests;
