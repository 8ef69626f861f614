//! From a message to its program and back to a reply: program, version, procedure, identity,
//! repeats; and the facts of each operation. What frames messages is the connection's.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::clock::stamp;
use base::limits::REPLAY_ENTRIES_MAX;
use probe::gauge::Gauges;
use probe::op::{OpRecord, flag};
use vfs::fs::Flush;
use vfs::locks::Using;
use vfs::share::rules::Transport;
use vfs::status::Status;
use wire::rpc::{self, AUTH_TLS, Auth, AuthStat, CallError, CallHeader, REPLY_SUCCESS_LEN};
use wire::rpcrdma::ddp::Called;
use wire::xdr::{Reader, Writer};

use super::caller::Caller;
use super::completion::Waiter;
use super::extent::note_kept;
use super::program::{Call, DecodedCall, DispatchResult, OnFlushed, Program, Resume};
use super::replay::{Key, ReplayCache, ReplayState};
use engine::exec::Engine;
use engine::transport::buffers::ReplyBuf;
use engine::transport::tls::Tls;

/// What all connections of the service share.
pub(super) struct Service {
    /// The most used ones first.
    pub(super) programs: Vec<Arc<dyn Program>>,
    pub(super) engine: Arc<Engine>,
    pub(super) replays: ReplayCache<Waiter>,
    /// TLS, if it is offered.
    pub(super) tls: Option<Arc<Tls>>,
}

/// Where a call writes its reply and its facts, and what is found out of it on the way.
pub(super) struct ReplyContext<'a> {
    /// The reply's message is written behind what is there already.
    pub(super) out: &'a mut ReplyBuf,
    pub(super) facts: &'a mut OpRecord,
    /// Facts of further operations.
    pub(super) more: &'a mut Vec<OpRecord>,
    pub(super) call: &'a mut CallState,
}

/// What its connection must know of a call.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CallState {
    /// Its number, chosen by the client.
    pub(super) xid: u32,
    /// What its repeat is known by, if that must not be done again.
    pub(super) key: Option<Key>,
    /// Most bytes of its reply, once it must go to the pool.
    pub(super) reply_max: usize,
    /// The reply announces TLS (STARTTLS).
    pub(super) starts_tls: bool,
}

impl Service {
    /// Tries a call on the connection's own thread, where nothing may wait. [`Suspended`] is a
    /// repeat of a call that is being done.
    ///
    /// # Errors
    /// When the message is no call: the connection is of no use any more.
    ///
    /// [`Suspended`]: DispatchResult::Suspended
    #[inline]
    pub(super) fn attempt(
        &self,
        message: &[u8],
        caller: &mut Caller,
        cx: &mut ReplyContext<'_>,
    ) -> Result<DispatchResult, CallError> {
        let Some(call) = self.open(message, caller, cx)? else { return Ok(DispatchResult::Done) };
        let (program, procedure, xid) = (call.program, call.procedure, call.header.xid);
        if let Err(status) = program.admit(procedure, &call.args, caller) {
            failure(program, xid, status, cx.out, cx.facts);
            return Ok(DispatchResult::Done);
        }
        if program.is_non_idempotent(procedure, &call.args, cx.facts) {
            let who = (caller.address, caller.claimed());
            let proc = (program.number(), program.version(), procedure.number);
            let key = Key::new(who, xid, proc, call.args.rest());
            match self.replays.of(&key).look(&key, stamp()) {
                ReplayState::New => {}
                ReplayState::InProgress => {
                    cx.call.key = Some(key);
                    return Ok(DispatchResult::Suspended);
                }
                ReplayState::Done(results) => {
                    cx.facts.flags |= flag::REPLAY;
                    let start = cx.out.len();
                    rpc::success(&mut Writer::new(cx.out.vec()), xid);
                    cx.out.vec().extend_from_slice(&results);
                    let (prog, vers, proc) = proc;
                    note_kept((&mut *cx.out, &*cx.facts), start, Called { prog, vers, proc });
                    return Ok(DispatchResult::Done);
                }
            }
            cx.call.key = Some(key);
        }
        let start = cx.out.len();
        let result = self.handle(&call, None, caller, false, cx);
        match (&result, cx.call.key) {
            (DispatchResult::Done, Some(key)) => {
                let reply = cx.out.as_slice().get(start..).unwrap_or_default();
                if let Some(results) = results(reply) {
                    // No repeat waits: the call was not in progress.
                    drop(self.replays.of(&key).finish(key, results, stamp()));
                }
            }
            (DispatchResult::WouldBlock(_), _) => {
                cx.call.reply_max = program.reply_max(procedure, &call.args);
            }
            _ => {}
        }
        Ok(result)
    }

    /// Does a call on a pool thread, where it may wait, or resumes it. Its reply is written, and
    /// may leave after the flush, if there is one.
    pub(super) fn perform(
        &self,
        message: &[u8],
        resume: Option<Box<dyn Resume>>,
        caller: &mut Caller,
        cx: &mut ReplyContext<'_>,
    ) -> Option<(Flush, Option<Box<dyn OnFlushed>>)> {
        // It was opened once before, with the same result.
        let call = self.open(message, caller, cx).ok().flatten()?;
        let (program, xid) = (call.program, call.header.xid);
        if let Err(status) = program.admit(call.procedure, &call.args, caller) {
            failure(program, xid, status, cx.out, cx.facts);
            return None;
        }
        match self.handle(&call, resume, caller, true, cx) {
            DispatchResult::Durable(flush, then) => Some((flush, then)),
            DispatchResult::Done => None,
            // Nothing waits here, and only what must not wait is sent from the file.
            DispatchResult::WouldBlock(_)
            | DispatchResult::Suspended
            | DispatchResult::Extent(_) => {
                failure(program, xid, Status::Busy, cx.out, cx.facts);
                None
            }
        }
    }

    /// Reads a call's header. `None` if the reply is written already: there is no such thing here,
    /// or TLS comes next.
    fn open<'a>(
        &self,
        message: &'a [u8],
        caller: &mut Caller,
        cx: &mut ReplyContext<'_>,
    ) -> Result<Option<DecodedCall<'a, '_>>, CallError> {
        let out = &mut *cx.out;
        let (header, args) = match rpc::open_call(message) {
            Ok(opened) => opened,
            Err(error) => {
                let start = out.len();
                if !error.encode_reply(&mut Writer::new(out.vec())) {
                    out.truncate(start);
                    return Err(error);
                }
                self.count_bad();
                return Ok(None);
            }
        };
        cx.call.xid = header.xid;
        let Some(program) = self.program(&header, out) else { return Ok(None) };
        let Some(procedure) = program.procedure(header.proc) else {
            self.refuse(out, |w| rpc::proc_unavail(w, header.xid));
            return Ok(None);
        };
        // NULL is for everyone: it is how a client finds out what it may use (RFC 1813 §3.3.0).
        if let Err(why) = caller.identify(&header.cred) {
            let asked = self.asks_for_tls(&header, &args, caller);
            if let Some(why) = asked.err().or((header.proc != 0).then_some(why)) {
                self.refuse(out, |w| rpc::auth_error(w, header.xid, why));
                return Ok(None);
            }
            cx.call.starts_tls = asked == Ok(true);
        }
        cx.facts.protocol = program.protocol() as u8;
        cx.facts.op = procedure.number as u8;
        cx.facts.user = caller.uid();
        if cx.call.starts_tls {
            rpc::starttls(&mut Writer::new(cx.out.vec()), header.xid);
            return Ok(None);
        }
        Ok(Some(DecodedCall { program, procedure, header, args }))
    }

    /// Counts a record that made no sense.
    fn count_bad(&self) {
        self.engine.budgets.bad_records.fetch_add(1, Relaxed);
    }

    /// Writes a reply without results to an invalid call.
    fn refuse(&self, out: &mut ReplyBuf, reply: impl FnOnce(&mut Writer<'_>)) {
        reply(&mut Writer::new(out.vec()));
        self.count_bad();
    }

    /// Whether a call is a valid probe for TLS and this service has it.
    ///
    /// # Errors
    /// AUTH_BADCRED for AUTH_TLS on anything but NULL, and within a session (RFC 9289 §4.1), and
    /// for a probe that is not empty.
    #[cold]
    fn asks_for_tls(
        &self,
        header: &CallHeader<'_>,
        args: &Reader<'_>,
        caller: &Caller,
    ) -> Result<bool, AuthStat> {
        if header.cred.flavor() != AUTH_TLS {
            return Ok(false);
        }
        let plain = caller.transport() == Transport::Plain;
        let empty = header.cred.is_tls() && header.verf == Auth::None && args.rest().is_empty();
        match header.proc {
            0 if plain && empty => Ok(self.tls.is_some()),
            _ => Err(AuthStat::BADCRED),
        }
    }

    /// Writes a refusal of a probe for TLS in the place of its reply.
    pub(super) fn refuse_probe(xid: u32, out: &mut ReplyBuf) {
        rpc::auth_error(&mut Writer::new(out.vec()), xid, AuthStat::BADCRED);
    }

    /// The program, or `None` and a reply with the reason (RFC 5531 §9).
    fn program(&self, header: &CallHeader<'_>, out: &mut ReplyBuf) -> Option<&dyn Program> {
        let asked = |p: &&Arc<dyn Program>| p.number() == header.prog && p.version() == header.vers;
        if let Some(program) = self.programs.iter().find(asked) {
            return Some(&**program);
        }
        let versions = self.programs.iter().filter(|p| p.number() == header.prog);
        let (low, high) = versions
            .map(|p| p.version())
            .fold((u32::MAX, 0), |(low, high), v| (low.min(v), high.max(v)));
        if high == 0 {
            self.refuse(out, |w| rpc::prog_unavail(w, header.xid));
        } else {
            self.refuse(out, |w| rpc::prog_mismatch(w, header.xid, low, high));
        }
        None
    }

    /// Runs the handler, or resumes it; nothing is left in `out` of a call that would block.
    /// Malformed arguments get GARBAGE_ARGS, and do not count as an operation.
    fn handle(
        &self,
        decoded: &DecodedCall<'_, '_>,
        resume: Option<Box<dyn Resume>>,
        caller: &Caller,
        may_block: bool,
        cx: &mut ReplyContext<'_>,
    ) -> DispatchResult {
        // Clients of NFS read without opens that others' leases would have met.
        let _using = Using::fresh();
        let (xid, start) = (decoded.header.xid, cx.out.len());
        rpc::success(&mut Writer::new(cx.out.vec()), xid);
        let mut call = Call {
            caller,
            may_block,
            args: decoded.args.clone(),
            out: &mut *cx.out,
            facts: &mut *cx.facts,
            more: &mut *cx.more,
            budgets: &self.engine.budgets,
        };
        let handled = match resume {
            Some(resume) => Ok(resume.resume(&mut call)),
            None => decoded.program.handle(decoded.procedure, &mut call),
        };
        match handled {
            Ok(result @ (DispatchResult::WouldBlock(_) | DispatchResult::Suspended)) => {
                cx.out.truncate(start);
                result
            }
            Ok(result) => result,
            Err(_) => {
                cx.out.truncate(start);
                self.refuse(cx.out, |w| rpc::garbage_args(w, xid));
                cx.facts.protocol = 0;
                DispatchResult::Done
            }
        }
    }

    /// Writes the reply to call `xid` of this protocol: its changes did not reach the disk.
    pub(super) fn failure(
        &self,
        xid: u32,
        status: Status,
        protocol: u8,
        (out, facts): (&mut ReplyBuf, &mut OpRecord),
    ) {
        if let Some(program) = self.programs.iter().find(|p| p.protocol() as u8 == protocol) {
            failure(&**program, xid, status, out, facts);
        }
    }

    /// Writes the failure of a call with a handler that panicked; other calls are not affected.
    /// False, and nothing is written, if no program serves it: its header caused the panic.
    pub(super) fn fault(&self, message: &[u8], out: &mut ReplyBuf, facts: &mut OpRecord) -> bool {
        let Ok((header, _)) = rpc::open_call(message) else { return false };
        let asked = |p: &&Arc<dyn Program>| p.number() == header.prog && p.version() == header.vers;
        let Some(program) = self.programs.iter().find(asked) else { return false };
        facts.op = header.proc as u8;
        if program.has_status(header.proc) {
            failure(&**program, header.xid, Status::Fault, out, facts);
        } else {
            rpc::system_err(&mut Writer::new(out.vec()), header.xid);
        }
        true
    }

    /// Sets the limits of the gauges of the service.
    pub(super) fn show_limits(&self, gauges: &Gauges) {
        let (limits, pool) = (self.engine.budgets.limits(), self.engine.pool.limits());
        gauges.connections.set_limit(limits.connections as u64);
        gauges.requests_in_flight.set_limit(limits.requests as u64);
        gauges.pool_queue.set_limit(pool.queue as u64);
        gauges.pool_busy.set_limit(pool.threads as u64);
        gauges.drc_entries.set_limit(REPLAY_ENTRIES_MAX as u64);
    }

    /// Shows the levels of the service.
    pub(super) fn show(&self, gauges: &Gauges) {
        let level = |n: i64| u64::try_from(n).unwrap_or(0);
        let (connections, refused, slow) = self.engine.budgets.over_all();
        gauges.connections.set(connections);
        gauges.requests_in_flight.set(level(self.engine.budgets.requests()));
        gauges.refused_connections.set(refused);
        gauges.bad_records.set(self.engine.budgets.bad_records.load(Relaxed));
        gauges.tls_sessions.set(self.engine.budgets.tls_sessions.load(Relaxed));
        gauges.tls_failures.set(self.engine.budgets.tls_failures.load(Relaxed));
        self.engine.budgets.show_shared(&self.engine.flush, gauges);
        gauges.requests.set(self.engine.budgets.taken.load(Relaxed));
        gauges.bytes.set(self.engine.budgets.moved.load(Relaxed));
        gauges.drc_replays.set(self.engine.budgets.replays.load(Relaxed));
        gauges.slow_peers.set(slow);
        gauges.stalls.set(self.engine.budgets.stalls.load(Relaxed));
        gauges.pool_queue.set(self.engine.pool.queued() as u64);
        gauges.pool_busy.set(self.engine.pool.busy() as u64);
        gauges.drc_entries.set(self.replays.len() as u64);
    }
}

/// The results in the message of a reply, if it is a successful one.
pub(super) fn results(reply: &[u8]) -> Option<&[u8]> {
    // REPLY, accepted, a verifier of AUTH_NONE, SUCCESS (RFC 5531 §9).
    const SUCCESS: [u8; REPLY_SUCCESS_LEN - XID] = {
        let mut bytes = [0; REPLY_SUCCESS_LEN - XID];
        bytes[3] = 1;
        bytes
    };
    const XID: usize = 4;
    reply.get(XID..)?.strip_prefix(&SUCCESS)
}

/// Writes a failure of the operation in `facts`, without attributes: whatever they were is in
/// doubt.
fn failure(
    program: &dyn Program,
    xid: u32,
    status: Status,
    out: &mut ReplyBuf,
    facts: &mut OpRecord,
) {
    facts.bytes = 0;
    rpc::success(&mut Writer::new(out.vec()), xid);
    facts.status = program.fail(u32::from(facts.op), status, out);
}

#[cfg(test)]
mod tests;
