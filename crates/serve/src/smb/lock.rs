//! LOCK: byte ranges, in the one table of all protocols.

use std::rc::Rc;

use tokio::sync::oneshot;
use vfs::locks::{Kind, Range, Refused, Waited, waits::Asked};
use wire::smb::lock::{Element, Request as Asks, lock_flags};
use wire::smb::status::NtStatus;

use super::dispatch::{About, Outcome, Reply, Request};
use super::state::opens::{Open, OpenFile};
use super::status;

/// LOCK.
pub(super) async fn run(request: &Request<'_>) -> Outcome {
    let asked = Asks::decode(request.message).map_err(status::of_wire)?;
    let open = request.open(asked.file)?;
    let file = open.file()?;
    let unlocks = asked.locks.iter().filter(|one| one.flags & lock_flags::UNLOCK != 0).count();
    match unlocks {
        0 => lock(request, &open, file, &asked.locks).await?,
        all if all == asked.locks.len() => unlock(file, &asked.locks)?,
        _ => return Err(NtStatus::INVALID_PARAMETER),
    }
    let about = About::file(&file.node);
    Ok(Reply { file: Some(request.file_id(asked.file)), ..request.empty().about(about) })
}

/// The bytes of an element; `None` for none, which nobody is in the way of.
fn range(one: &Element) -> Result<Option<Range>, NtStatus> {
    if one.length == 0 {
        return Ok(None);
    }
    Range::new(one.offset, one.length).map(Some).ok_or(NtStatus::INVALID_LOCK_RANGE)
}

fn refused(refused: &Refused) -> NtStatus {
    match refused {
        Refused::Locked(_) | Refused::Recalling => NtStatus::LOCK_NOT_GRANTED,
        Refused::Deadlock => NtStatus::LOCK_NOT_GRANTED,
        _ => NtStatus::INSUFFICIENT_RESOURCES,
    }
}

/// Locks all ranges, or none.
async fn lock(
    request: &Request<'_>,
    open: &Rc<Open>,
    file: &OpenFile,
    elements: &[Element],
) -> Result<(), NtStatus> {
    let mut done = Vec::new();
    for one in elements {
        match lock_one(request, open, file, (one, elements.len())).await {
            Ok(()) => done.push(*one),
            Err(status) => {
                let _ = unlock(file, &done);
                return Err(status);
            }
        }
    }
    Ok(())
}

async fn lock_one(
    request: &Request<'_>,
    open: &Open,
    file: &OpenFile,
    (one, count): (&Element, usize),
) -> Result<(), NtStatus> {
    let kind = match one.flags & !lock_flags::FAIL_IMMEDIATELY {
        lock_flags::SHARED => Kind::Read,
        lock_flags::EXCLUSIVE => Kind::Write,
        _ => return Err(NtStatus::INVALID_PARAMETER),
    };
    // Who would wait for one of several keeps the others from everybody meanwhile.
    let waits = one.flags & lock_flags::FAIL_IMMEDIATELY == 0;
    if waits && count > 1 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let Some(range) = range(one)? else {
        file.ranges.borrow_mut().push((one.offset, one.length));
        return Ok(());
    };
    let entry = &file.entry;
    if waits {
        wait(request, open, file, (range, kind)).await?;
    } else {
        let locked = entry.locks.lock(entry.key, &entry.owner, range, kind);
        locked.map_err(|why| refused(&why))?;
    }
    file.ranges.borrow_mut().push((one.offset, one.length));
    Ok(())
}

/// Waits for a range until it is free, the request is cancelled, or the file is closed.
async fn wait(
    request: &Request<'_>,
    open: &Open,
    file: &OpenFile,
    (range, kind): (Range, Kind),
) -> Result<(), NtStatus> {
    let entry = &file.entry;
    let (done, granted) = oneshot::channel();
    let woken = Box::new(move |how: Waited| {
        // Whoever waits may have gone.
        let _ = done.send(how);
    });
    let closed = open.closed.notified();
    match entry.locks.lock_or_wait(entry.key, &entry.owner, range, kind, woken) {
        Ok(Asked::Granted) => return Ok(()),
        Ok(Asked::Waiting(..)) => {}
        Err(why) => return Err(refused(&why)),
    }
    let gone = tokio::select! {
        how = granted => match how {
            Ok(Waited::Granted) => return Ok(()),
            _ => NtStatus::LOCK_NOT_GRANTED,
        },
        () = request.cancel.cancelled() => NtStatus::CANCELLED,
        () = closed => NtStatus::RANGE_NOT_LOCKED,
    };
    if !entry.locks.cancel(entry.key, &entry.owner, range, kind) {
        // It was granted just now.
        let _ = entry.locks.unlock(entry.key, &entry.owner, range);
    }
    Err(gone)
}

/// Unlocks ranges, each exactly as it was locked.
fn unlock(file: &OpenFile, elements: &[Element]) -> Result<(), NtStatus> {
    for one in elements {
        let mut ranges = file.ranges.borrow_mut();
        let at = ranges.iter().position(|range| *range == (one.offset, one.length));
        let at = at.ok_or(NtStatus::RANGE_NOT_LOCKED)?;
        ranges.swap_remove(at);
        let Some(range) = range(one)? else { continue };
        let entry = &file.entry;
        let unlocked = entry.locks.unlock(entry.key, &entry.owner, range);
        unlocked.map_err(|why| refused(&why))?;
    }
    Ok(())
}
