//! Callbacks: CB_NULL, CB_RECALL and CB_GETATTR to clients of 4.0 (RFC 7530 §16), CB_SEQUENCE with
//! one of the latter over the back channels of sessions (RFC 8881 §20). No thread waits for a
//! client: a call is sent, its reply changes the state when it arrives, and the sweep once a second
//! does the rest.

use std::sync::{Arc, Weak};

use vfs::locks::Looked;
use wire::nfs4::{
    Bitmap4, CB_COMPOUND, CB_NULL, CbArgOp, CbCompoundArgs, CbCompoundRes, CbGetattrArgs4,
    CbRecallArgs4, CbResOp, CbSequenceArgs4, Fh4, NFS_CB, Nfsstat4, Res4, Tag4, attr4,
};
use wire::rpc::{Auth, AuthSys, Gids};
use wire::xdr::{Decode, Encode, Reader, Seq, Writer};

use super::state::channel::{Callback, CbEnd, CbTurn, PathStatus};
use super::state::deleg::{Caller, Deleg, Phase};
use super::state::{Client, Session};
use super::stateful::Stateful;
use crate::rpc::back::{BackCall, Unanswered};
use crate::rpc::{Back, dial};
use engine::transport::Runtimes;

/// The credential of callbacks to 4.0 clients: it proves nothing, but Linux rejects AUTH_NONE here.
const SERVER: Auth<'static> =
    Auth::Sys(AuthSys { stamp: 0, machine: b"plimsoll", uid: 0, gid: 0, gids: Gids::EMPTY });

/// Calls the clients of a keeper of state.
struct Callbacks {
    keeper: Weak<Stateful>,
    runtimes: Weak<Runtimes>,
}

impl Stateful {
    /// From now on clients may be given delegations; those of 4.0 are called from `runtimes`.
    pub fn call_back(self: &Arc<Self>, runtimes: &Arc<Runtimes>) {
        let callbacks =
            Callbacks { keeper: Arc::downgrade(self), runtimes: Arc::downgrade(runtimes) };
        self.state.recalls.set_caller(Box::new(callbacks));
    }

    /// Grants delegations for writing, too, to clients of this minor version and later ones.
    pub fn delegate_for_writing(&self, minor: u32) {
        self.state.recalls.set_for_writing(minor);
    }

    /// Repeats recalls that failed, and revokes delegations that were not returned.
    pub(super) fn sweep_recalls(&self) {
        for deleg in self.state.look_at_recalls(self.now()) {
            self.state.recalls.call(&deleg);
        }
    }
}

impl Caller for Callbacks {
    fn recall(&self, deleg: &Arc<Deleg>) {
        let Some(keeper) = self.keeper.upgrade() else { return };
        keeper.state.recalled(deleg, keeper.now());
        let Some(client) = deleg.client.upgrade() else { return };
        if client.name.0 {
            over_sessions(&keeper, &client, deleg);
        } else {
            self.to_address(&keeper, &client, deleg);
        }
    }

    fn look(&self, deleg: &Arc<Deleg>, uses: bool) -> Looked {
        let Some(keeper) = self.keeper.upgrade() else { return Looked::Unknown };
        let now = keeper.now();
        let (looked, must_ask) = deleg.look(now, uses);
        if !must_ask {
            return looked;
        }
        let client = deleg.client.upgrade();
        let is_asked = client.is_some_and(|client| match client.name.0 {
            true => ask_over_sessions(&keeper, &client, deleg),
            false => self.ask_address(&keeper, &client, deleg),
        });
        if is_asked {
            return looked;
        }
        deleg.answered(None, now);
        Looked::Unknown
    }

    fn probe(&self, client: &Arc<Client>) {
        let Some(keeper) = self.keeper.upgrade() else { return };
        let call = |program| BackCall {
            program,
            version: NFS_CB,
            procedure: CB_NULL,
            cred: Auth::None,
            args: &[],
        };
        let Some((line, callback)) = self.line(&keeper, client) else { return };
        let answered = note_reply(&keeper, client);
        line.call(&call(callback.program), Box::new(move |answer| answered(answer.is_ok())));
    }
}

impl Callbacks {
    /// The connection to a client of 4.0, made if there is none.
    fn line(&self, keeper: &Stateful, client: &Arc<Client>) -> Option<(Arc<Back>, Callback)> {
        let now = keeper.now();
        let mut path = client.way_back.path();
        path.tried_ns = now;
        let callback = path.callback?;
        if let Some(line) = path.line.clone().filter(|line| line.is_open()) {
            path.since_ns.get_or_insert(now);
            return Some((line, callback));
        }
        let (Some(address), Some(runtimes)) = (callback.address, self.runtimes.upgrade()) else {
            path.status = PathStatus::Down;
            return None;
        };
        // A path that is down stays so until there is a reply.
        if path.status == PathStatus::Unknown {
            path.status = PathStatus::Probing;
        }
        path.since_ns = Some(now);
        let line = dial(&runtimes, address);
        path.line = Some(Arc::clone(&line));
        Some((line, callback))
    }

    /// Recalls a delegation from a client of 4.0.
    fn to_address(&self, keeper: &Arc<Stateful>, client: &Arc<Client>, deleg: &Arc<Deleg>) {
        let Some((line, callback)) = self.line(keeper, client) else {
            return deleg.set_phase(Phase::Unsent);
        };
        let op = recall_of(deleg);
        deleg.set_phase(Phase::Sent);
        let (answered, of_answer) = (note_reply(keeper, client), Arc::clone(deleg));
        let then = move |answer: Result<&[u8], Unanswered>| {
            let results = answer.ok().and_then(results);
            answered(results.is_some());
            of_answer.set_phase(phase_after(results.as_deref().unwrap_or_default(), 0));
        };
        call_address(&line, &callback, op, then);
    }

    /// Requests from a client of 4.0 the attributes of a file that is delegated to it. False if it
    /// cannot be called.
    fn ask_address(
        &self,
        keeper: &Arc<Stateful>,
        client: &Arc<Client>,
        deleg: &Arc<Deleg>,
    ) -> bool {
        let Some((line, callback)) = self.line(keeper, client) else { return false };
        let op = getattr_of(deleg);
        let answered = note_reply(keeper, client);
        let (clock, of_answer) = (Arc::clone(&keeper.clock), Arc::clone(deleg));
        let then = move |answer: Result<&[u8], Unanswered>| {
            answered(answer.is_ok());
            let known = answer.ok().and_then(|bytes| attributes(bytes, 0));
            of_answer.answered(known, clock.monotonic_ns());
        };
        call_address(&line, &callback, op, then);
        true
    }
}

/// Calls a client of 4.0 at its address.
fn call_address(
    line: &Back,
    callback: &Callback,
    op: CbArgOp<'_>,
    then: impl FnOnce(Result<&[u8], Unanswered>) + Send + 'static,
) {
    let args = compound(0, callback.ident, &[op]);
    let call = BackCall {
        program: callback.program,
        version: NFS_CB,
        procedure: CB_COMPOUND,
        cred: SERVER,
        args: &args,
    };
    line.call(&call, Box::new(then));
}

/// The same over a session of its client that has a free slot.
fn ask_over_sessions(keeper: &Arc<Stateful>, client: &Arc<Client>, deleg: &Arc<Deleg>) -> bool {
    for session in keeper.state.sessions_of(client) {
        let now = keeper.now();
        let turn = keeper.state.with_channel(&session, |channel| channel.turn_now(now));
        let Ok(turn) = turn else { continue };
        let (clock, of_answer) = (Arc::clone(&keeper.clock), Arc::clone(deleg));
        call_session(keeper, &session, turn, getattr_of(deleg), move |answer| {
            let (end, _) = after_session(answer);
            let known = answer.ok().and_then(|bytes| attributes(bytes, 1));
            of_answer.answered(known, clock.monotonic_ns());
            end
        });
        return true;
    }
    false
}

/// Notes whether a client of 4.0 has replied.
fn note_reply(keeper: &Stateful, client: &Arc<Client>) -> impl FnOnce(bool) + Send + 'static {
    let (client, clock) = (Arc::downgrade(client), Arc::clone(&keeper.clock));
    move |answered| {
        let Some(client) = client.upgrade() else { return };
        let mut path = client.way_back.path();
        path.since_ns = None;
        path.tried_ns = clock.monotonic_ns();
        path.status = if answered { PathStatus::Up } else { PathStatus::Down };
        if !answered {
            path.line = None;
        }
    }
}

/// Recalls a delegation over a session of its client that can be called on.
fn over_sessions(keeper: &Arc<Stateful>, client: &Arc<Client>, deleg: &Arc<Deleg>) {
    for session in keeper.state.sessions_of(client) {
        let now = keeper.now();
        // Before the turn: a reply may arrive before it is noted here.
        deleg.set_phase(Phase::Sent);
        let turn = keeper.state.with_channel(&session, |channel| channel.turn(deleg, now));
        match turn {
            Ok(turn) => return over_session(keeper, &session, turn, deleg),
            // It is called as soon as a slot is free.
            Err(true) => return,
            Err(false) => {}
        }
    }
    deleg.set_phase(Phase::Unsent);
}

fn over_session(keeper: &Arc<Stateful>, session: &Arc<Session>, turn: CbTurn, deleg: &Arc<Deleg>) {
    let of_answer = Arc::clone(deleg);
    call_session(keeper, session, turn, recall_of(deleg), move |answer| {
        let (end, phase) = after_session(answer);
        of_answer.set_phase(phase);
        end
    });
}

/// Calls a client in a slot of a session; `answered` gives the outcome of the reply for the slot.
fn call_session(
    keeper: &Arc<Stateful>,
    session: &Arc<Session>,
    turn: CbTurn,
    op: CbArgOp<'_>,
    answered: impl FnOnce(Result<&[u8], Unanswered>) -> CbEnd + Send + 'static,
) {
    let CbTurn { line, minor, program, cred, slot, sequence, highest } = turn;
    let sequence = CbArgOp::Sequence(CbSequenceArgs4 {
        sessionid: session.id,
        sequenceid: sequence,
        slotid: slot,
        highest_slotid: highest,
        cachethis: false,
        referring_call_lists: Seq(Vec::new()),
    });
    let args = compound(minor, 0, &[sequence, op]);
    let (cred, version) = (cred.auth(), NFS_CB);
    let call = BackCall { program, version, procedure: CB_COMPOUND, cred, args: &args };
    let (keeper, session) = (Arc::downgrade(keeper), Arc::downgrade(session));
    let then = move |answer: Result<&[u8], Unanswered>| {
        let end = answered(answer);
        let (Some(keeper), Some(session)) = (keeper.upgrade(), session.upgrade()) else { return };
        let next = keeper.state.with_channel(&session, |channel| channel.ended(slot, end));
        next.iter().for_each(|deleg| keeper.state.recalls.call(deleg));
    };
    line.call(&call, Box::new(then));
}

/// The outcome of a reply over a session for the slot, and for the delegation.
fn after_session(answer: Result<&[u8], Unanswered>) -> (CbEnd, Phase) {
    let bytes = match answer {
        Ok(bytes) => bytes,
        Err(Unanswered::Unreachable) => return (CbEnd::Lost, Phase::Unsent),
        Err(Unanswered::Busy) => return (CbEnd::Unsent, Phase::Unsent),
        Err(Unanswered::Refused) => return (CbEnd::Fault, Phase::Unsent),
    };
    let results = results(bytes).unwrap_or_default();
    match results.first() {
        Some(&Nfsstat4::OK) => (CbEnd::Done, phase_after(&results, 1)),
        // The slot has not moved.
        Some(&Nfsstat4::DELAY) => (CbEnd::Unsent, Phase::Unsent),
        _ => (CbEnd::Fault, Phase::Unsent),
    }
}

/// The phase of the delegation after the result of CB_RECALL. A client that does not know it may
/// not have got the reply of its OPEN yet.
fn phase_after(results: &[Nfsstat4], at: usize) -> Phase {
    match results.get(at) {
        Some(&Nfsstat4::OK) => Phase::Notified,
        _ => Phase::Unsent,
    }
}

fn recall_of(deleg: &Deleg) -> CbArgOp<'_> {
    let (stateid, fh) = (deleg.stateid, Fh4(deleg.handle.as_bytes()));
    CbArgOp::Recall(CbRecallArgs4 { stateid, truncate: false, fh })
}

fn getattr_of(deleg: &Deleg) -> CbArgOp<'_> {
    CbArgOp::Getattr(CbGetattrArgs4 {
        fh: Fh4(deleg.handle.as_bytes()),
        attr_request: Bitmap4::of(&[attr4::CHANGE, attr4::SIZE]),
    })
}

/// Size and change attribute in the result of CB_GETATTR, which comes behind `before` others.
fn attributes(bytes: &[u8], before: u32) -> Option<(u64, u64)> {
    let mut r = Reader::new(bytes);
    CbCompoundRes::decode(&mut r).ok()?;
    for _ in 0..before {
        CbResOp::decode(&mut r).ok()?;
    }
    let CbResOp::Getattr(Res4::Ok(known)) = CbResOp::decode(&mut r).ok()? else { return None };
    let values = known.obj_attributes.values().ok()?;
    // A size beyond what files have is none.
    let size = values.size.filter(|size| i64::try_from(*size).is_ok())?;
    Some((size, values.change?))
}

/// CB_COMPOUND4args.
fn compound(minorversion: u32, callback_ident: u32, ops: &[CbArgOp<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut w = Writer::new(&mut bytes);
    let count = ops.len() as u32;
    CbCompoundArgs { tag: Tag4(b""), minorversion, callback_ident, count }.encode(&mut w);
    ops.iter().for_each(|op| op.encode(&mut w));
    bytes
}

/// The statuses in CB_COMPOUND4res. `None` if it is none.
fn results(bytes: &[u8]) -> Option<Vec<Nfsstat4>> {
    let mut r = Reader::new(bytes);
    let head = CbCompoundRes::decode(&mut r).ok()?;
    let mut statuses = Vec::new();
    // No more than requested.
    for _ in 0..head.count.min(2) {
        statuses.push(CbResOp::decode(&mut r).ok()?.status());
    }
    Some(statuses)
}
