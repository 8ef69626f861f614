//! From a record to its handler and back to a reply: program, version, procedure, identity,
//! repeats; and the facts of each operation.

use std::sync::{Arc, Mutex};

use base::clock::stamp;
use base::limits::REPLAY_ENTRIES_MAX;
use probe::gauge::Gauges;
use probe::op::{OpRecord, Protocol, flag};
use vfs::flush::FlushGroup;
use vfs::fs::{Extent, Flush};
use vfs::handle::Handle;
use vfs::share::ShareTable;
use vfs::share::rules::Access;
use vfs::status::Status;
use wire::mount3::{MOUNT_PROGRAM, MOUNT_V3};
use wire::nfs3::{Fh3, NFS_PROGRAM, NFS_V3, Nfsstat3, Proc};
use wire::rpc::{self, CallError, CallHeader, RecordMark};
use wire::xdr::{Decode, Encode, Reader, Writer};

use super::call::{Call, Handled, Outcome};
use super::caller::Caller;
use super::later::Waiter;
use super::mount::{self, Mounts};
use super::state::{Key, ReplayCache, Seen};
use super::status::nfsstat3;
use super::{attr, dir, info, io, names};
use crate::pool::Pool;
use crate::transport::Budgets;
use crate::transport::buffers::{LargeBuffers, ReplyBuf};

/// What all connections of the service share.
pub(super) struct Service {
    pub(super) shares: Arc<ShareTable>,
    pub(super) flush: Arc<FlushGroup>,
    pub(super) pool: Arc<Pool>,
    pub(super) budgets: Arc<Budgets>,
    pub(super) replays: ReplayCache<Waiter>,
    pub(super) mounts: Mutex<Mounts>,
    /// Verifier of unstable writes: another one after each start.
    pub(super) verifier: [u8; 8],
    pub(super) large: LargeBuffers,
}

/// What an inline attempt came to.
pub(super) enum Step {
    /// The reply is written; the operation counts.
    Answered,
    /// The reply says that there is no such thing here; nothing counts but a bad record.
    Refused,
    /// A repeat of a call that is being done.
    Repeat(Key),
    /// It must go to the pool, under this key if it may be repeated.
    Pool(Option<Key>),
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
        /// Its key.
        key: Option<Key>,
        /// Where the reply begins.
        start: usize,
    },
}

/// What a call on the pool came to; the reply is written.
pub(super) enum Performed {
    /// It may leave.
    Done,
    /// It may leave after this flush.
    Durable(Flush),
}

/// The operation that a call asks for.
#[derive(Clone, Copy)]
struct Operation {
    protocol: Protocol,
    proc: u32,
    handler: fn(&mut Call<'_>) -> Handled,
    /// Whether doing it twice is not the same as doing it once.
    once: bool,
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
        out: &mut ReplyBuf,
        facts: &mut OpRecord,
    ) -> Result<Step, CallError> {
        let Some((operation, header, args)) = open(message, caller, out, facts)? else {
            return Ok(Step::Refused);
        };
        if let Err(status) = self.admit(&operation, &args, caller) {
            failure(header.xid, status, out, facts);
            return Ok(Step::Answered);
        }
        let key = operation
            .once
            .then(|| Key::new(caller.address, header.xid, operation.proc, args.rest()));
        if let Some(key) = key {
            match self.replays.of(&key).look(&key, stamp()) {
                Seen::New => {}
                Seen::InProgress => return Ok(Step::Repeat(key)),
                Seen::Done(reply) => {
                    facts.flags |= flag::REPLAY;
                    out.vec().extend_from_slice(&reply);
                    return Ok(Step::Answered);
                }
            }
        }
        let start = out.len();
        Ok(match self.handle(operation, &header, args, caller, false, out, facts) {
            Some(Outcome::Done) => {
                if let Some(key) = key {
                    let reply = out.as_slice().get(start..).unwrap_or_default();
                    // Nobody waits: it was not in progress.
                    drop(self.replays.of(&key).finish(key, reply, stamp()));
                }
                Step::Answered
            }
            Some(Outcome::WouldBlock) => Step::Pool(key),
            Some(Outcome::Durable(flush)) => Step::Durable { flush, key, start },
            Some(Outcome::Extent(extent)) => Step::Extent { extent, start },
            None => Step::Refused,
        })
    }

    /// Does a call on a pool thread, where it may wait.
    pub(super) fn perform(
        &self,
        message: &[u8],
        caller: &mut Caller,
        out: &mut ReplyBuf,
        facts: &mut OpRecord,
    ) -> Performed {
        // It was opened once before, with the same result.
        let Ok(Some((operation, header, args))) = open(message, caller, out, facts) else {
            return Performed::Done;
        };
        if let Err(status) = self.admit(&operation, &args, caller) {
            failure(header.xid, status, out, facts);
            return Performed::Done;
        }
        match self.handle(operation, &header, args, caller, true, out, facts) {
            Some(Outcome::Durable(flush)) => Performed::Durable(flush),
            Some(Outcome::Done) | None => Performed::Done,
            // Nothing waits here, and only what must not wait is sent from the file.
            Some(Outcome::WouldBlock | Outcome::Extent(_)) => {
                failure(header.xid, Status::Busy, out, facts);
                Performed::Done
            }
        }
    }

    /// Whether the share in question grants the operation to the caller, who then acts as the
    /// share says. Every NFS procedure but NULL begins with a handle, which carries its share's
    /// tag; one that does not is left to its handler.
    #[inline]
    fn admit(
        &self,
        operation: &Operation,
        args: &Reader<'_>,
        caller: &mut Caller,
    ) -> Result<(), Status> {
        let first = (operation.protocol == Protocol::Nfs3 && operation.proc != Proc::NULL.0)
            .then(|| Fh3::decode(&mut args.clone()).ok())
            .flatten();
        let share = first.and_then(|fh| self.shares.by_handle(&Handle::new(fh.0)?));
        let Some(share) = share else {
            caller.leave();
            return Ok(());
        };
        match caller.enter(share).access {
            Access::None => Err(Status::Access),
            // Twice is not once: it changes something.
            Access::ReadOnly if operation.once => Err(Status::ReadOnly),
            _ => Ok(()),
        }
    }

    /// Runs the handler; nothing is left in `out` of one that would block. `None` when the
    /// arguments were garbage, which is then the reply.
    fn handle(
        &self,
        operation: Operation,
        header: &CallHeader<'_>,
        args: Reader<'_>,
        caller: &Caller,
        may_block: bool,
        out: &mut ReplyBuf,
        facts: &mut OpRecord,
    ) -> Option<Outcome> {
        let mark = begin(out, header.xid);
        let cred = caller.cred();
        let mut call = Call { service: self, cred, caller, may_block, args, out, facts };
        match (operation.handler)(&mut call) {
            Ok(Outcome::WouldBlock) => {
                out.truncate(mark.start());
                Some(Outcome::WouldBlock)
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
                refuse(out, |w| rpc::garbage_args(w, header.xid));
                None
            }
        }
    }

    /// The reply that replaces `reply`, whose changes did not reach the disk.
    pub(super) fn failure(&self, reply: &[u8], status: Status, facts: &mut OpRecord) -> Vec<u8> {
        let xid =
            reply.get(4..8).and_then(|b| b.first_chunk()).map_or(0, |b| u32::from_be_bytes(*b));
        let mut out = ReplyBuf::default();
        failure(xid, status, &mut out, facts);
        out.into_vec()
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
        gauges.connections.set(level(self.budgets.connections()));
        gauges.requests_in_flight.set(level(self.budgets.requests()));
        gauges.bytes_in_flight.set(level(self.budgets.bytes()));
        gauges.refused_connections.set(self.budgets.refused.load(Relaxed));
        gauges.bad_records.set(self.budgets.bad_records.load(Relaxed));
        gauges.panics.set(self.budgets.panics.load(Relaxed));
        gauges.requests.set(self.budgets.taken.load(Relaxed));
        gauges.bytes.set(self.budgets.moved.load(Relaxed));
        gauges.drc_replays.set(self.budgets.replays.load(Relaxed));
        gauges.slow_peers.set(self.budgets.timeouts.load(Relaxed));
        gauges.stalls.set(self.budgets.stalls.load(Relaxed));
        gauges.pool_queue.set(self.pool.queued() as u64);
        gauges.pool_busy.set(self.pool.busy() as u64);
        gauges.drc_entries.set(self.replays.len() as u64);
    }
}

/// Reads a call's header. `None` when it asks for something that is not served; the reply says so.
fn open<'a>(
    message: &'a [u8],
    caller: &mut Caller,
    out: &mut ReplyBuf,
    facts: &mut OpRecord,
) -> Result<Option<(Operation, CallHeader<'a>, Reader<'a>)>, CallError> {
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
            return Ok(None);
        }
    };
    let Some(operation) = operation(&header, out) else { return Ok(None) };
    // NULL is for everyone: it is how a client finds out what it may use (RFC 1813 §3.3.0).
    if let Err(why) = caller.identify(&header.cred)
        && header.proc != 0
    {
        refuse(out, |w| rpc::auth_error(w, header.xid, why));
        return Ok(None);
    }
    facts.protocol = operation.protocol as u8;
    facts.op = operation.proc as u8;
    facts.user = caller.uid();
    Ok(Some((operation, header, args)))
}

/// The operation, or `None` and a reply that says why there is none (RFC 5531 §9).
fn operation(header: &CallHeader<'_>, out: &mut ReplyBuf) -> Option<Operation> {
    let xid = header.xid;
    let (version, found) = match header.prog {
        NFS_PROGRAM => (NFS_V3, nfs_operation(header.proc)),
        MOUNT_PROGRAM => (MOUNT_V3, mount_operation(header.proc)),
        _ => {
            refuse(out, |w| rpc::prog_unavail(w, xid));
            return None;
        }
    };
    if header.vers != version {
        refuse(out, |w| rpc::prog_mismatch(w, xid, version, version));
        return None;
    }
    if found.is_none() {
        refuse(out, |w| rpc::proc_unavail(w, xid));
    }
    found
}

fn nfs_operation(proc: u32) -> Option<Operation> {
    let (handler, once): (fn(&mut Call<'_>) -> Handled, bool) = match Proc(proc) {
        Proc::NULL => (null, false),
        Proc::GETATTR => (attr::getattr, false),
        Proc::SETATTR => (attr::setattr, true),
        Proc::LOOKUP => (names::lookup, false),
        Proc::ACCESS => (attr::access, false),
        Proc::READLINK => (io::readlink, false),
        Proc::READ => (io::read, false),
        // Twice the same write is one write, unless another came between.
        Proc::WRITE => (io::write, true),
        Proc::CREATE => (names::create, true),
        Proc::MKDIR => (names::mkdir, true),
        Proc::SYMLINK => (names::symlink, true),
        Proc::MKNOD => (names::mknod, true),
        Proc::REMOVE => (names::remove, true),
        Proc::RMDIR => (names::rmdir, true),
        Proc::RENAME => (names::rename, true),
        Proc::LINK => (names::link, true),
        Proc::READDIR => (dir::readdir, false),
        Proc::READDIRPLUS => (dir::readdirplus, false),
        Proc::FSSTAT => (info::fsstat, false),
        Proc::FSINFO => (info::fsinfo, false),
        Proc::PATHCONF => (info::pathconf, false),
        Proc::COMMIT => (io::commit, false),
        _ => return None,
    };
    Some(Operation { protocol: Protocol::Nfs3, proc, handler, once })
}

fn mount_operation(proc: u32) -> Option<Operation> {
    let handler: fn(&mut Call<'_>) -> Handled = match wire::mount3::Proc(proc) {
        wire::mount3::Proc::NULL => null,
        wire::mount3::Proc::MNT => mount::mnt,
        wire::mount3::Proc::DUMP => mount::dump,
        wire::mount3::Proc::UMNT => mount::umnt,
        wire::mount3::Proc::UMNTALL => mount::umntall,
        wire::mount3::Proc::EXPORT => mount::export,
        _ => return None,
    };
    Some(Operation { protocol: Protocol::Mount3, proc, handler, once: false })
}

fn null(call: &mut Call<'_>) -> Handled {
    call.decode::<()>()?;
    Ok(Outcome::Done)
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
fn failure(xid: u32, status: Status, out: &mut ReplyBuf, facts: &mut OpRecord) {
    let status: Nfsstat3 = nfsstat3(status);
    facts.status = status.0 as u16;
    facts.bytes = 0;
    let mark = begin(out, xid);
    let mut w = Writer::new(out.vec());
    status.encode(&mut w);
    if facts.protocol == Protocol::Nfs3 as u8 {
        (0..absent_attributes(Proc(u32::from(facts.op)))).for_each(|_| w.bool(false));
    }
    rpc::end_record(&mut w, mark);
}

/// How many "no attributes follow" a failure of the procedure carries.
fn absent_attributes(proc: Proc) -> usize {
    match proc {
        Proc::NULL | Proc::GETATTR => 0,
        Proc::LOOKUP | Proc::ACCESS | Proc::READLINK | Proc::READ => 1,
        Proc::READDIR | Proc::READDIRPLUS | Proc::FSSTAT | Proc::FSINFO | Proc::PATHCONF => 1,
        Proc::RENAME => 4,
        Proc::LINK => 3,
        _ => 2,
    }
}

#[cfg(test)]
mod tests;
