//! The ways by which a client is called: the back channel of a session, the callback path of 4.0.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use base::limits::{NFS4_BACK_LINES_MAX, NFS4_BACK_SLOTS_MAX};
use wire::nfs4::{CallbackSec4, ChannelAttrs4, Nfsstat4, seq4_status};
use wire::rpc::{Auth, AuthSys, Gids};

use super::deleg::Deleg;
use super::lock;
use crate::rpc::Back;

/// The credential that a client requests for callbacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallbackCred {
    /// AUTH_NONE.
    None,
    /// AUTH_SYS with these.
    Sys {
        /// `stamp`.
        stamp: u32,
        /// `machinename`.
        machine: Box<[u8]>,
        /// `uid` and `gid`.
        ids: (u32, u32),
        /// `gids`.
        gids: Vec<u32>,
    },
}

impl CallbackCred {
    /// The first of a client's proposals that we can do.
    ///
    /// # Errors
    /// NFS4ERR_ENCR_ALG_UNSUPP if there is none.
    pub fn choose(proposals: &[CallbackSec4<'_>]) -> Result<Self, Nfsstat4> {
        let one = |sec: &CallbackSec4<'_>| match sec {
            CallbackSec4::None(()) => Some(Self::None),
            CallbackSec4::Sys(sys) => Some(Self::Sys {
                stamp: sys.stamp,
                machine: sys.machinename.0.into(),
                ids: (sys.uid, sys.gid),
                gids: sys.gids.0.clone(),
            }),
            CallbackSec4::Gss(_) => None,
        };
        proposals.iter().find_map(one).ok_or(Nfsstat4::ENCR_ALG_UNSUPP)
    }

    /// As it goes into a call.
    pub fn auth(&self) -> Auth<'_> {
        match self {
            Self::None => Auth::None,
            Self::Sys { stamp, machine, ids: (uid, gid), gids } => Auth::Sys(AuthSys {
                stamp: *stamp,
                machine,
                uid: *uid,
                gid: *gid,
                gids: Gids::new(gids),
            }),
        }
    }
}

/// A slot of a back channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CbSlot {
    /// The last call with this number has its reply.
    Free(u32),
    /// A call is in flight since then.
    Busy(u32, u64),
    /// It is unknown whether its last call was executed, so no other can follow it.
    Lost,
}

/// A call's turn on a back channel.
#[derive(Debug)]
pub struct CbTurn {
    /// The connection to take.
    pub line: Arc<Back>,
    /// Minor version of the session.
    pub minor: u32,
    /// Program of the callbacks.
    pub program: u32,
    /// The credential of the call.
    pub cred: CallbackCred,
    /// CB_SEQUENCE's slot.
    pub slot: u32,
    /// Its number there.
    pub sequence: u32,
    /// The highest slot in use.
    pub highest: u32,
}

/// What became of a call on a back channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CbEnd {
    /// CB_SEQUENCE was done.
    Done,
    /// The call never left.
    Unsent,
    /// There was no reply.
    Lost,
    /// The client reports that the channel is out of sequence.
    Fault,
}

/// The back channel of a session.
#[derive(Default)]
pub struct Channel {
    /// The client has requested one; only then is its loss reported to it.
    pub(super) asked: bool,
    minor: u32,
    program: u32,
    cred: Option<CallbackCred>,
    lines: Vec<Arc<Back>>,
    slots: Vec<CbSlot>,
    waiting: VecDeque<Arc<Deleg>>,
    fault: bool,
    silent: bool,
}

impl Channel {
    /// As CREATE_SESSION has settled it; it has no connection yet.
    pub fn new(attrs: &ChannelAttrs4, program: u32) -> Self {
        let slots = attrs.maxrequests.clamp(1, NFS4_BACK_SLOTS_MAX) as usize;
        Self { program, slots: vec![CbSlot::Free(0); slots], ..Self::default() }
    }

    /// BACKCHANNEL_CTL: another program, or another credential.
    pub fn set(&mut self, program: u32, cred: CallbackCred) {
        self.program = program;
        self.cred = Some(cred);
    }

    /// The minor version that callbacks must have: that of the session.
    pub fn set_minor(&mut self, minor: u32) {
        self.minor = minor;
    }

    /// A connection that the client offers. Faults of earlier connections do not apply to it.
    pub fn bind(&mut self, line: &Arc<Back>) {
        self.asked = true;
        self.silent = false;
        self.unbind(line.connection());
        if self.lines.len() >= NFS4_BACK_LINES_MAX {
            self.lines.remove(0);
        }
        self.lines.push(Arc::clone(line));
    }

    /// Takes a connection away.
    pub fn unbind(&mut self, connection: u64) {
        self.lines.retain(|line| line.is_open() && line.connection() != connection);
    }

    /// Its session is destroyed: no call is made any more. Gives the delegations that waited for a
    /// slot.
    pub(super) fn close(&mut self) -> VecDeque<Arc<Deleg>> {
        self.lines.clear();
        std::mem::take(&mut self.waiting)
    }

    /// Whether calls are expected to succeed.
    pub fn is_up(&self) -> bool {
        let has_slot = self.slots.iter().any(|slot| *slot != CbSlot::Lost);
        let has_line = self.lines.iter().any(|line| line.is_open());
        self.cred.is_some() && has_slot && has_line && !self.fault && !self.silent
    }

    /// The flags of SEQUENCE about it.
    pub(super) fn flags(&self) -> u32 {
        let lost = self.slots.iter().all(|slot| *slot == CbSlot::Lost);
        match self.asked {
            true if self.fault || lost => seq4_status::BACKCHANNEL_FAULT,
            true if !self.is_up() => seq4_status::CB_PATH_DOWN_SESSION,
            _ => 0,
        }
    }

    /// A turn to recall a delegation. Without a free slot the delegation waits for one.
    ///
    /// # Errors
    /// True if it waits, false if this channel is of no use.
    pub fn turn(&mut self, deleg: &Arc<Deleg>, now_ns: u64) -> Result<CbTurn, bool> {
        let turn = self.turn_now(now_ns);
        if let Err(true) = turn {
            self.waiting.push_back(Arc::clone(deleg));
        }
        turn
    }

    /// A turn for a call, if there is a free slot.
    ///
    /// # Errors
    /// True if all are busy, false if this channel is of no use.
    pub fn turn_now(&mut self, now_ns: u64) -> Result<CbTurn, bool> {
        let line = self.lines.iter().rev().find(|line| line.is_open()).cloned();
        let (Some(line), Some(cred)) = (line, self.cred.clone()) else { return Err(false) };
        if self.fault || self.silent {
            return Err(false);
        }
        let free = |slot: &CbSlot| matches!(slot, CbSlot::Free(_));
        let Some(at) = self.slots.iter().position(free) else {
            return Err(self.slots.iter().any(|slot| matches!(slot, CbSlot::Busy(..))));
        };
        let CbSlot::Free(last) = self.slots[at] else { return Err(false) };
        let sequence = last.wrapping_add(1);
        self.slots[at] = CbSlot::Busy(sequence, now_ns);
        let used = self.slots.iter().rposition(|slot| matches!(slot, CbSlot::Busy(..)));
        let highest = used.unwrap_or(at) as u32;
        let (minor, program, slot) = (self.minor, self.program, at as u32);
        Ok(CbTurn { line, minor, program, cred, slot, sequence, highest })
    }

    /// A call has ended. Gives the next delegation that waits for a slot, or all that waited in
    /// vain.
    pub fn ended(&mut self, slot: u32, end: CbEnd) -> Vec<Arc<Deleg>> {
        if let Some(slot) = self.slots.get_mut(slot as usize)
            && let CbSlot::Busy(sequence, _) = *slot
        {
            *slot = match end {
                CbEnd::Done => CbSlot::Free(sequence),
                CbEnd::Unsent => CbSlot::Free(sequence.wrapping_sub(1)),
                CbEnd::Lost | CbEnd::Fault => CbSlot::Lost,
            };
        }
        self.fault |= end == CbEnd::Fault;
        self.silent &= end != CbEnd::Done;
        if self.is_up() {
            self.waiting.pop_front().into_iter().collect()
        } else {
            self.waiting.drain(..).collect()
        }
    }

    /// Looks for calls that have been in flight for too long, and connections that are gone.
    pub(super) fn look(&mut self, now_ns: u64, patience_ns: u64) {
        self.lines.retain(|line| line.is_open());
        let late = |slot: &CbSlot| match slot {
            CbSlot::Busy(_, since) => now_ns.saturating_sub(*since) > patience_ns,
            CbSlot::Free(_) | CbSlot::Lost => false,
        };
        self.silent |= self.slots.iter().any(late);
    }
}

/// Where a 4.0 client wants to be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Callback {
    /// The address. `None` if it named none that we would call.
    pub address: Option<SocketAddr>,
    /// Program.
    pub program: u32,
    /// `callback_ident`.
    pub ident: u32,
}

/// What is known of the way to a 4.0 client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PathStatus {
    /// Nothing.
    #[default]
    Unknown,
    /// CB_NULL is in flight.
    Probing,
    /// It has succeeded.
    Up,
    /// It has not.
    Down,
}

/// The way back to a 4.0 client.
#[derive(Default)]
pub struct Path {
    /// The callback of SETCLIENTID, until SETCLIENTID_CONFIRM.
    pub(super) proposed: Option<([u8; 8], Callback)>,
    /// What holds.
    pub callback: Option<Callback>,
    /// The connection, if there is one.
    pub line: Option<Arc<Back>>,
    /// Whether it works.
    pub status: PathStatus,
    /// When the oldest unanswered call was made.
    pub since_ns: Option<u64>,
    /// When it was last tried.
    pub tried_ns: u64,
}

/// What a client has of all this.
#[derive(Default)]
pub struct CallbackRoute {
    /// Of 4.0.
    pub(super) path: Mutex<Path>,
    /// Delegations that it holds.
    pub(super) delegations: AtomicU64,
    /// Revoked ones that it has not freed.
    pub(super) revoked: AtomicU64,
    /// Of SEQUENCE's result, for all its sessions.
    pub(super) flags: AtomicU32,
}

impl CallbackRoute {
    /// Delegations that the client holds.
    pub fn delegations(&self) -> u64 {
        self.delegations.load(Ordering::Relaxed)
    }

    /// The way to a client of 4.0.
    pub fn path(&self) -> MutexGuard<'_, Path> {
        lock(&self.path)
    }

    pub(super) fn set(&self, flag: u32, on: bool) {
        if on {
            self.flags.fetch_or(flag, Ordering::Relaxed);
        } else {
            self.flags.fetch_and(!flag, Ordering::Relaxed);
        }
    }

    /// Sets the flag of SEQUENCE for revoked state, until the client has freed all of it.
    pub(super) fn count_revoked(&self, more: bool) {
        let before = match more {
            true => self.revoked.fetch_add(1, Ordering::Relaxed),
            false => self.revoked.fetch_sub(1, Ordering::Relaxed),
        };
        self.set(seq4_status::RECALLABLE_STATE_REVOKED, more || before > 1);
    }
}
