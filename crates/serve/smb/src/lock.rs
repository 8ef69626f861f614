//! LOCK (MS-SMB2 §3.3.5.14): byte ranges, in the one table of all protocols. Those of SMB are
//! mandatory for what is read and written over SMB ([`may_io`]).

use std::rc::Rc;

use base::clock::Deadline;
use base::limits::SMB_RANGES_MAX;
use base::refusals::Limit;
use tokio::sync::oneshot;
use vfs::locks::{
    GraceRequest, Kind, Protocol, Range, Refused, WaitId, Waited, waits::LockOutcome,
};
use wire::smb::create::access;
use wire::smb::lock::{Element, Request as Asks, lock_flags};
use wire::smb::negotiate::capabilities;
use wire::smb::status::NtStatus;

use super::dispatch::{Handled, Reply, Request};
use super::state::opens::{Entry, Open, OpenFile};
use super::{durable, grace, leases, status};

/// LOCK. What the first element is decides what all are.
pub(super) async fn run(request: Rc<Request>) -> Handled {
    let asked = Asks::decode(request.message()).map_err(status::of_wire)?;
    let open = request.open(asked.file)?;
    let file = open.file()?;
    open.may(access::READ_DATA | access::WRITE_DATA | access::APPEND_DATA | access::EXECUTE)?;
    let sequence = sequence(&request, &open, &asked)?;
    if sequence.is_some_and(|sequence| file.lock_sequences.is_done(sequence)) {
        return done(&request, &asked);
    }
    if asked.locks.first().is_some_and(|one| one.flags == lock_flags::UNLOCK) {
        unlock(file, &asked.locks)?;
    } else {
        let kinds = kinds(&asked.locks)?;
        // Also if it fails at once: whether it does is not known before.
        let refused = NtStatus::LOCK_NOT_GRANTED;
        grace::wait_with(&request, (&open, file), GraceRequest::Range, refused).await?;
        lock(&request, &open, file, &kinds).await?;
    }
    if let Some(sequence) = sequence {
        file.lock_sequences.set_done(sequence);
    }
    if let Err(status) = durable::record(&open).await {
        take_back(file, &asked, sequence);
        return Err(status);
    }
    done(&request, &asked)
}

/// Unlocks what was locked and cannot be recorded.
fn take_back(file: &OpenFile, asked: &Asks, sequence: Option<(u32, u8)>) {
    for one in &asked.locks {
        // What has unlocked is of no kind.
        if let Ok(kind) = kind_of(one) {
            undo(file, (one, kind));
        }
    }
    if let Some(sequence) = sequence {
        file.lock_sequences.forget(sequence);
    }
}

fn done(request: &Request, asked: &Asks) -> Handled {
    request.done(Reply { file: Some(request.file_id(asked.file)), ..request.empty() })
}

/// LockSequenceIndex and LockSequenceNumber of a request that its client may send again, because
/// the open or its session outlives a connection.
fn sequence(request: &Request, open: &Open, asked: &Asks) -> Result<Option<(u32, u8)>, NtStatus> {
    let has_channels = request.conn.agreed()?.capabilities & capabilities::MULTI_CHANNEL != 0;
    Ok((open.durable.is_some() || has_channels).then(|| asked.sequence()))
}

/// Refuses to read or write where a range is locked by another owner.
///
/// # Errors
/// STATUS_FILE_LOCK_CONFLICT.
pub(super) fn may_io(
    file: &OpenFile,
    offset: u64,
    count: u64,
    writes: bool,
) -> Result<(), NtStatus> {
    let Some(range) = Range::new(offset, count) else { return Ok(()) };
    let entry = &file.entry;
    // WRITE has waited; what copies or punches holes by an open from before the grace period does
    // not.
    if writes && !file.is_new && entry.locks.waits_for_grace(Protocol::Smb, GraceRequest::Write) {
        return Err(NtStatus::FILE_LOCK_CONFLICT);
    }
    match entry.locks.io_locked(entry.key, &entry.owner, range, writes) {
        true => Err(NtStatus::FILE_LOCK_CONFLICT),
        false => Ok(()),
    }
}

/// A range to lock and how; whether the request waits for it.
type LockRequest = (Element, Kind, bool);

fn kinds(elements: &[Element]) -> Result<Vec<LockRequest>, NtStatus> {
    let kind = |one: &Element| {
        let kind = kind_of(one)?;
        // A request that waited for one of several would block the others meanwhile.
        let waits = one.flags & lock_flags::FAIL_IMMEDIATELY == 0;
        if waits && elements.len() > 1 {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        range(one)?;
        Ok((*one, kind, waits))
    };
    elements.iter().map(kind).collect()
}

fn kind_of(one: &Element) -> Result<Kind, NtStatus> {
    match one.flags & !lock_flags::FAIL_IMMEDIATELY {
        lock_flags::SHARED => Ok(Kind::Read),
        lock_flags::EXCLUSIVE => Ok(Kind::Write),
        _ => Err(NtStatus::INVALID_PARAMETER),
    }
}

/// The bytes of an element; `None` for an empty range at 0, with which nothing conflicts.
fn range(one: &Element) -> Result<Option<Range>, NtStatus> {
    if one.length == 0 {
        return Ok(Range::empty(one.offset));
    }
    Range::new(one.offset, one.length).map(Some).ok_or(NtStatus::INVALID_LOCK_RANGE)
}

/// Why an attempt to lock a range has not succeeded.
enum Tried {
    /// Another client has a lease under which it may have locked the range.
    Leased,
    Refused(NtStatus),
}

impl From<NtStatus> for Tried {
    fn from(status: NtStatus) -> Self {
        Self::Refused(status)
    }
}

impl From<Refused> for Tried {
    fn from(refused: Refused) -> Self {
        Self::Refused(match refused {
            Refused::Recalling => return Self::Leased,
            Refused::Locked(_) | Refused::Grace | Refused::Deadlock => NtStatus::LOCK_NOT_GRANTED,
            _ => NtStatus::INSUFFICIENT_RESOURCES,
        })
    }
}

/// Locks all ranges, or none.
async fn lock(
    request: &Request,
    open: &Rc<Open>,
    file: &OpenFile,
    wanted: &[LockRequest],
) -> Result<(), NtStatus> {
    if file.ranges.get().saturating_add(wanted.len()) > SMB_RANGES_MAX {
        Limit::SmbRanges.count();
        return Err(NtStatus::INSUFFICIENT_RESOURCES);
    }
    let mut taken = NewLocks { file, locks: Vec::new() };
    for one in wanted {
        lock_one(request, open, file, one).await?;
        file.ranges.set(file.ranges.get().saturating_add(1));
        taken.locks.push((one.0, one.1));
    }
    // They stay.
    taken.locks.clear();
    Ok(())
}

/// What a request has locked, until it has locked all that it wants. Dropped before, it unlocks
/// that: a range fails, or its connection is lost while a lease is waited for.
struct NewLocks<'a> {
    file: &'a OpenFile,
    locks: Vec<(Element, Kind)>,
}

impl Drop for NewLocks<'_> {
    fn drop(&mut self) {
        self.locks.iter().for_each(|(one, kind)| undo(self.file, (one, *kind)));
    }
}

/// Unlocks what a request has locked that fails: not a lock of another kind that the open has had
/// of the same bytes before.
fn undo(file: &OpenFile, (one, kind): (&Element, Kind)) {
    let entry = &file.entry;
    let was_held = match range(one) {
        Ok(Some(range)) => entry.locks.unlock_exact_kind(entry.key, &entry.owner, range, kind),
        Ok(None) => unlock_nothing(file),
        Err(_) => false,
    };
    if was_held {
        file.ranges.set(file.ranges.get().saturating_sub(1));
    }
}

/// Unlocks no bytes; false if none are locked.
fn unlock_nothing(file: &OpenFile) -> bool {
    let held = file.locks_of_nothing.get();
    file.locks_of_nothing.set(held.saturating_sub(1));
    held > 0
}

/// Locks a range; a lease that is in the way is recalled before, also if the request does not wait
/// for locks.
async fn lock_one(
    request: &Request,
    open: &Open,
    file: &OpenFile,
    wanted: &LockRequest,
) -> Result<(), NtStatus> {
    let entry = &file.entry;
    let until = Deadline::after(entry.locks.recall_patience());
    loop {
        match attempt(request, open, file, wanted).await {
            Ok(()) => return Ok(()),
            Err(Tried::Refused(status)) => return Err(status),
            Err(Tried::Leased) if until.passed() => return Err(NtStatus::LOCK_NOT_GRANTED),
            Err(Tried::Leased) => {
                let closed = open.closed.notified();
                tokio::select! {
                    // First: what is tried again is notified of no end before.
                    biased;
                    () = closed => return Err(NtStatus::RANGE_NOT_LOCKED),
                    released = leases::released(request, entry.key, until) => released?,
                }
            }
        }
    }
}

async fn attempt(
    request: &Request,
    open: &Open,
    file: &OpenFile,
    (one, kind, waits): &LockRequest,
) -> Result<(), Tried> {
    let Some(range) = range(one)? else {
        file.locks_of_nothing.set(file.locks_of_nothing.get().saturating_add(1));
        return Ok(());
    };
    if *waits && !file.is_new {
        return wait(request, open, file, (range, *kind)).await;
    }
    let entry = &file.entry;
    let locked = match file.is_new {
        true => entry.locks.relock(entry.key, &entry.owner, range, *kind),
        false => entry.locks.lock(entry.key, &entry.owner, range, *kind),
    };
    match locked {
        Err(Refused::Locked(_)) if *waits => wait(request, open, file, (range, *kind)).await,
        done => Ok(done?),
    }
}

/// Waits for a range until it is free, the request is cancelled, the file is closed, or the
/// connection is lost. It fails if too many requests of the connection wait.
async fn wait(
    request: &Request,
    open: &Open,
    file: &OpenFile,
    (range, kind): (Range, Kind),
) -> Result<(), Tried> {
    let Some(_waits) = request.wait_permit() else {
        return Err(NtStatus::INSUFFICIENT_RESOURCES.into());
    };
    let entry = &file.entry;
    let (done, granted) = oneshot::channel();
    let woken = Box::new(move |how: Waited| {
        // The request may be gone.
        let _ = done.send(how);
    });
    let closed = open.closed.notified();
    let id = match entry.locks.lock_or_wait(entry.key, &entry.owner, range, kind, woken)? {
        LockOutcome::Granted => return Ok(()),
        LockOutcome::Waiting(id, _) => id,
    };
    let mut queued = Queued { entry, id: Some(id), range, kind, decided: granted };
    let done = tokio::select! {
        done = queued.decided() => done,
        () = request.cancel().cancelled() => Err(NtStatus::CANCELLED),
        () = closed => Err(NtStatus::RANGE_NOT_LOCKED),
    };
    Ok(done?)
}

/// A request that waits in the table of locks. Dropped before it is decided, it leaves nothing
/// there: it ends with its connection (MS-SMB2 §3.3.7.1), which its open may outlive.
struct Queued<'a> {
    entry: &'a Entry,
    /// Its number, until it is decided.
    id: Option<WaitId>,
    range: Range,
    kind: Kind,
    decided: oneshot::Receiver<Waited>,
}

impl Queued<'_> {
    /// Waits until the range is locked.
    async fn decided(&mut self) -> Result<(), NtStatus> {
        let how = (&mut self.decided).await;
        self.id = None;
        match how {
            Ok(Waited::Granted) => Ok(()),
            _ => Err(NtStatus::LOCK_NOT_GRANTED),
        }
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        let Entry { locks, key, owner, .. } = self.entry;
        let Some(id) = self.id else { return };
        if locks.cancel_id(*key, id) || matches!(self.decided.try_recv(), Ok(Waited::Cancelled)) {
            return;
        }
        // It was granted just now.
        locks.unlock_exact_kind(*key, owner, self.range, self.kind);
    }
}

/// Unlocks ranges one after the other, each exactly as it was locked, up to one that is not.
fn unlock(file: &OpenFile, elements: &[Element]) -> Result<(), NtStatus> {
    for one in elements {
        if one.flags != lock_flags::UNLOCK {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        let entry = &file.entry;
        let was_held = match range(one)? {
            Some(range) => entry.locks.unlock_exact(entry.key, &entry.owner, range),
            None => unlock_nothing(file),
        };
        if !was_held {
            return Err(NtStatus::RANGE_NOT_LOCKED);
        }
        file.ranges.set(file.ranges.get().saturating_sub(1));
    }
    Ok(())
}
