//! From a record to its program and back to a reply: program, version, procedure, identity,
//! repeats; and the facts of each operation.

use std::sync::Arc;

use base::clock::stamp;
use base::limits::REPLAY_ENTRIES_MAX;
use probe::gauge::Gauges;
use probe::op::{OpRecord, flag};
use vfs::flush::FlushGroup;
use vfs::fs::{Extent, Flush};
use vfs::share::rules::Transport;
use vfs::status::Status;
use wire::rpc::{self, AUTH_TLS, Auth, AuthStat, CallError, CallHeader, RecordMark};
use wire::xdr::{Reader, Writer};

use super::caller::Caller;
use super::later::Waiter;
use super::program::{Call, Opened, Outcome, Program, Resume, Settle};
use super::replay::{Key, ReplayCache, Seen};
use crate::pool::Pool;
use crate::transport::Budgets;
use crate::transport::buffers::{LargeBuffers, ReplyBuf};
use crate::transport::tls::Tls;

/// What all connections of the service share.
pub(super) struct Service {
    /// Those asked for most first.
    pub(super) programs: Vec<Arc<dyn Program>>,
    pub(super) flush: Arc<FlushGroup>,
    pub(super) pool: Arc<Pool>,
    pub(super) budgets: Arc<Budgets>,
    pub(super) replays: ReplayCache<Waiter>,
    pub(super) large: LargeBuffers,
    /// TLS, if it is offered.
    pub(super) tls: Option<Arc<Tls>>,
}

/// What an inline attempt came to.
pub(super) enum Step {
    /// The reply is written; the operation counts.
    Answered,
    /// The reply says that there is no such thing here; nothing counts but a bad record.
    Refused,
    /// The reply, from `start` on, says that TLS comes next.
    Secure {
        /// Where it begins.
        start: usize,
    },
    /// A repeat of a call that is being done.
    Repeat(Key),
    /// It must go to the pool.
    Pool {
        /// Its key, if it may be repeated.
        key: Option<Key>,
        /// To go on with; from the start without it.
        resume: Option<Box<dyn Resume>>,
        /// Most bytes of its reply.
        reply_max: usize,
    },
    /// The reply is written from `start` on, up to its data.
    Extent {
        /// Where the data is.
        extent: Extent,
        /// Where the reply begins.
        start: usize,
    },
    /// The reply is written from `start` on; it may leave after the flush.
    Durable {
        /// What it waits for.
        flush: Flush,
        /// Who sees how it ended.
        settle: Option<Box<dyn Settle>>,
        /// Its key.
        key: Option<Key>,
        /// Where the reply begins.
        start: usize,
    },
}

/// What a record turned out to be.
#[expect(clippy::large_enum_variant, reason = "the large one is what every call is")]
enum Opening<'a, 'p> {
    /// A call to do.
    Call(Opened<'a, 'p>),
    /// A probe for TLS (RFC 9289 §4.1), to which the reply says yes from here on.
    Probe(usize),
    /// Something that is not served; the reply says so.
    Refused,
}

/// What a call on the pool came to; the reply is written.
pub(super) enum Performed {
    /// It may leave.
    Done,
    /// It may leave after this flush.
    Durable(Flush, Option<Box<dyn Settle>>),
}

/// Where a call writes its reply and its facts.
pub(super) struct Sheet<'a> {
    pub(super) out: &'a mut ReplyBuf,
    pub(super) facts: &'a mut OpRecord,
    pub(super) more: &'a mut Vec<OpRecord>,
}

impl Service {
    /// Tries a call on the connection's own thread, where nothing may wait.
    ///
    /// # Errors
    /// When the record is no call: the connection is of no use any more.
    #[inline]
    pub(super) fn attempt(
        &self,
        message: &[u8],
        caller: &mut Caller,
        sheet: &mut Sheet<'_>,
    ) -> Result<Step, CallError> {
        let opened = match self.open(message, caller, sheet)? {
            Opening::Call(opened) => opened,
            Opening::Probe(start) => return Ok(Step::Secure { start }),
            Opening::Refused => return Ok(Step::Refused),
        };
        let (program, procedure, xid) = (opened.program, opened.procedure, opened.header.xid);
        if let Err(status) = program.admit(procedure, &opened.args, caller) {
            failure(program, xid, status, sheet.out, sheet.facts);
            return Ok(Step::Answered);
        }
        let key = program.once(procedure, &opened.args, sheet.facts).then(|| {
            let who = (caller.address, caller.claimed());
            let proc = (program.number(), program.version(), procedure.number);
            Key::new(who, xid, proc, opened.args.rest())
        });
        if let Some(key) = key {
            match self.replays.of(&key).look(&key, stamp()) {
                Seen::New => {}
                Seen::InProgress => return Ok(Step::Repeat(key)),
                Seen::Done(reply) => {
                    sheet.facts.flags |= flag::REPLAY;
                    sheet.out.vec().extend_from_slice(&reply);
                    return Ok(Step::Answered);
                }
            }
        }
        let start = sheet.out.len();
        Ok(match self.handle(&opened, None, caller, false, sheet) {
            Some(Outcome::Done) => {
                if let Some(key) = key {
                    let reply = sheet.out.as_slice().get(start..).unwrap_or_default();
                    // Nobody waits: it was not in progress.
                    drop(self.replays.of(&key).finish(key, reply, stamp()));
                }
                Step::Answered
            }
            Some(Outcome::WouldBlock) => {
                let reply_max = program.reply_max(procedure, &opened.args);
                Step::Pool { key, resume: None, reply_max }
            }
            Some(Outcome::Suspended(resume)) => {
                let reply_max = program.reply_max(procedure, &opened.args);
                Step::Pool { key, resume: Some(resume), reply_max }
            }
            Some(Outcome::Durable(flush)) => Step::Durable { flush, settle: None, key, start },
            Some(Outcome::Settled(flush, settle)) => {
                Step::Durable { flush, settle: Some(settle), key, start }
            }
            Some(Outcome::Extent(extent)) => Step::Extent { extent, start },
            None => Step::Refused,
        })
    }

    /// Does a call on a pool thread, where it may wait, or goes on with it.
    pub(super) fn perform(
        &self,
        message: &[u8],
        resume: Option<Box<dyn Resume>>,
        caller: &mut Caller,
        sheet: &mut Sheet<'_>,
    ) -> Performed {
        // It was opened once before, with the same result.
        let Ok(Opening::Call(opened)) = self.open(message, caller, sheet) else {
            return Performed::Done;
        };
        let (program, xid) = (opened.program, opened.header.xid);
        if let Err(status) = program.admit(opened.procedure, &opened.args, caller) {
            failure(program, xid, status, sheet.out, sheet.facts);
            return Performed::Done;
        }
        match self.handle(&opened, resume, caller, true, sheet) {
            Some(Outcome::Durable(flush)) => Performed::Durable(flush, None),
            Some(Outcome::Settled(flush, settle)) => Performed::Durable(flush, Some(settle)),
            Some(Outcome::Done) | None => Performed::Done,
            // Nothing waits here, and only what must not wait is sent from the file.
            Some(Outcome::WouldBlock | Outcome::Suspended(_) | Outcome::Extent(_)) => {
                failure(program, xid, Status::Busy, sheet.out, sheet.facts);
                Performed::Done
            }
        }
    }

    /// Reads a call's header.
    fn open<'a>(
        &self,
        message: &'a [u8],
        caller: &mut Caller,
        sheet: &mut Sheet<'_>,
    ) -> Result<Opening<'a, '_>, CallError> {
        let out = &mut *sheet.out;
        let (header, args) = match rpc::open_call(message) {
            Ok(opened) => opened,
            Err(error) => {
                let start = out.len();
                let mut w = Writer::new(out.vec());
                let mark = rpc::begin_record(&mut w);
                if !error.encode_reply(&mut w) {
                    out.truncate(start);
                    return Err(error);
                }
                rpc::end_record(&mut w, mark);
                return Ok(Opening::Refused);
            }
        };
        let Some(program) = self.program(&header, out) else { return Ok(Opening::Refused) };
        let Some(procedure) = program.procedure(header.proc) else {
            refuse(out, |w| rpc::proc_unavail(w, header.xid));
            return Ok(Opening::Refused);
        };
        // NULL is for everyone: it is how a client finds out what it may use (RFC 1813 §3.3.0).
        let start = out.len();
        let mut probe = false;
        if let Err(why) = caller.identify(&header.cred) {
            let asked = self.asks_for_tls(&header, &args, caller);
            if let Some(why) = asked.err().or((header.proc != 0).then_some(why)) {
                refuse(out, |w| rpc::auth_error(w, header.xid, why));
                return Ok(Opening::Refused);
            }
            probe = asked == Ok(true);
        }
        sheet.facts.protocol = program.protocol() as u8;
        sheet.facts.op = procedure.number as u8;
        sheet.facts.user = caller.uid();
        if probe {
            refuse(sheet.out, |w| rpc::starttls(w, header.xid));
            return Ok(Opening::Probe(start));
        }
        Ok(Opening::Call(Opened { program, procedure, header, args }))
    }

    /// Whether a call asks if TLS is spoken here, and may.
    ///
    /// # Errors
    /// AUTH_BADCRED for AUTH_TLS on anything but NULL, and within a session (RFC 9289 §4.1), and
    /// for one with something in it.
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

    /// Makes a refusal of the reply to a probe that stands in `out` from `start` on.
    pub(super) fn refuse_probe(&self, message: &[u8], start: usize, out: &mut ReplyBuf) {
        out.truncate(start);
        let xid = message.first_chunk().map_or(0, |b| u32::from_be_bytes(*b));
        refuse(out, |w| rpc::auth_error(w, xid, AuthStat::BADCRED));
    }

    /// The program, or `None` and a reply that says why there is none (RFC 5531 §9).
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
            refuse(out, |w| rpc::prog_unavail(w, header.xid));
        } else {
            refuse(out, |w| rpc::prog_mismatch(w, header.xid, low, high));
        }
        None
    }

    /// Runs the handler, or goes on with it; nothing is left in `out` of a call that would block.
    /// `None` when the arguments were garbage, which is then the reply.
    fn handle(
        &self,
        opened: &Opened<'_, '_>,
        resume: Option<Box<dyn Resume>>,
        caller: &Caller,
        may_block: bool,
        sheet: &mut Sheet<'_>,
    ) -> Option<Outcome> {
        let xid = opened.header.xid;
        let mark = begin(sheet.out, xid);
        let args = opened.args.clone();
        let mut call = Call {
            caller,
            may_block,
            args,
            out: &mut *sheet.out,
            facts: &mut *sheet.facts,
            more: &mut *sheet.more,
            budgets: &self.budgets,
        };
        let handled = match resume {
            Some(resume) => Ok(resume.go_on(&mut call)),
            None => opened.program.handle(opened.procedure, &mut call),
        };
        let out = &mut *sheet.out;
        match handled {
            Ok(outcome @ (Outcome::WouldBlock | Outcome::Suspended(_))) => {
                out.truncate(mark.start());
                Some(outcome)
            }
            Ok(outcome) => {
                let tail = match &outcome {
                    Outcome::Extent(e) => e.count + wire::xdr::padding(e.count),
                    _ => 0,
                };
                rpc::end_record_with_tail(&mut Writer::new(out.vec()), mark, tail);
                Some(outcome)
            }
            Err(_) => {
                out.truncate(mark.start());
                refuse(out, |w| rpc::garbage_args(w, xid));
                None
            }
        }
    }

    /// The reply that replaces `reply`, whose changes did not reach the disk, of a call of this
    /// protocol.
    pub(super) fn failure(
        &self,
        reply: &[u8],
        status: Status,
        protocol: u8,
        facts: &mut OpRecord,
    ) -> Vec<u8> {
        let xid =
            reply.get(4..8).and_then(|b| b.first_chunk()).map_or(0, |b| u32::from_be_bytes(*b));
        let mut out = ReplyBuf::default();
        if let Some(program) = self.programs.iter().find(|p| p.protocol() as u8 == protocol) {
            failure(&**program, xid, status, &mut out, facts);
        }
        out.into_vec()
    }

    /// Answers a call whose handler panicked, and nobody else's. False, and nothing is written, if
    /// there is no program that could: its header was what panicked.
    pub(super) fn fault(&self, message: &[u8], out: &mut ReplyBuf, facts: &mut OpRecord) -> bool {
        let Ok((header, _)) = rpc::open_call(message) else { return false };
        let asked = |p: &&Arc<dyn Program>| p.number() == header.prog && p.version() == header.vers;
        let Some(program) = self.programs.iter().find(asked) else { return false };
        facts.op = header.proc as u8;
        if program.has_status(header.proc) {
            failure(&**program, header.xid, Status::Fault, out, facts);
        } else {
            refuse(out, |w| rpc::system_err(w, header.xid));
        }
        true
    }

    /// Tells what the levels of the service are held to.
    pub(super) fn show_limits(&self, gauges: &Gauges) {
        let (limits, pool) = (self.budgets.limits(), self.pool.limits());
        gauges.connections.set_limit(limits.connections as u64);
        gauges.requests_in_flight.set_limit(limits.requests as u64);
        gauges.bytes_in_flight.set_limit(limits.bytes as u64);
        gauges.pool_queue.set_limit(pool.queue as u64);
        gauges.pool_busy.set_limit(pool.threads as u64);
        gauges.drc_entries.set_limit(REPLAY_ENTRIES_MAX as u64);
    }

    /// Shows the levels of the service.
    pub(super) fn show(&self, gauges: &Gauges) {
        use std::sync::atomic::Ordering::Relaxed;
        let level = |n: i64| u64::try_from(n).unwrap_or(0);
        let (connections, refused, slow) = self.budgets.over_all();
        gauges.connections.set(connections);
        gauges.requests_in_flight.set(level(self.budgets.requests()));
        gauges.bytes_in_flight.set(level(self.budgets.bytes()));
        gauges.refused_connections.set(refused);
        gauges.bad_records.set(self.budgets.bad_records.load(Relaxed));
        gauges.tls_sessions.set(self.budgets.tls_sessions.load(Relaxed));
        gauges.tls_failures.set(self.budgets.tls_failures.load(Relaxed));
        self.budgets.show_panics(&self.flush, gauges);
        gauges.requests.set(self.budgets.taken.load(Relaxed));
        gauges.bytes.set(self.budgets.moved.load(Relaxed));
        gauges.drc_replays.set(self.budgets.replays.load(Relaxed));
        gauges.slow_peers.set(slow);
        gauges.stalls.set(self.budgets.stalls.load(Relaxed));
        gauges.pool_queue.set(self.pool.queued() as u64);
        gauges.pool_busy.set(self.pool.busy() as u64);
        gauges.drc_entries.set(self.replays.len() as u64);
    }
}

/// Where the results begin in the record of a successful reply: marker, xid, REPLY, accepted, the
/// verifier's flavour and length, SUCCESS (RFC 5531 §9, §11).
pub(super) const RESULTS: usize = 28;

/// Puts the length of a record, which was changed, into its marker.
pub(super) fn mark_again(record: &mut [u8]) {
    const LAST_FRAGMENT: u32 = 1 << 31;
    let marker = LAST_FRAGMENT | record.len().saturating_sub(4) as u32;
    if let Some(first) = record.first_chunk_mut() {
        *first = marker.to_be_bytes();
    }
}

fn begin(out: &mut ReplyBuf, xid: u32) -> RecordMark {
    let mut w = Writer::new(out.vec());
    let mark = rpc::begin_record(&mut w);
    rpc::success(&mut w, xid);
    mark
}

/// Writes a reply without results.
fn refuse(out: &mut ReplyBuf, how: impl FnOnce(&mut Writer<'_>)) {
    let mut w = Writer::new(out.vec());
    let mark = rpc::begin_record(&mut w);
    how(&mut w);
    rpc::end_record(&mut w, mark);
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
    let mark = begin(out, xid);
    facts.status = program.fail(u32::from(facts.op), status, out);
    rpc::end_record(&mut Writer::new(out.vec()), mark);
}
