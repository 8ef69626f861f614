//! Files with holes (MS-FSCC §2.3).

use std::sync::Arc;

use base::limits::{SMB_TRANSACT_MAX, SMB_WORK_STEP, SMB_ZERO_PIECE};
use files::upload::write_all;
use vfs::fs::{Changed, Context, FileSystem, Seek, Stable};
use vfs::status::Status;
use wire::smb::class::attributes;
use wire::smb::codec::{Field, Reader};
use wire::smb::create::{FileId, access};
use wire::smb::ioctl::Request as Asks;
use wire::smb::status::NtStatus;

use crate::dispatch::Request;
use crate::state::opens::{Open, OpenFile};
use crate::{facts, io, lock, set_info, status};

/// Bytes of a range: its offset and its length.
pub(super) const RANGE: usize = 16;

/// SET_SPARSE: marks a file as one that may have holes. Without input it is marked.
///
/// # Errors
/// The status of the response.
pub(super) async fn set(
    request: &Request,
    open: &Open,
    file: &OpenFile,
    input: &[u8],
) -> Result<(), NtStatus> {
    open.may(access::WRITE_DATA | access::APPEND_DATA | access::WRITE_ATTRIBUTES)?;
    if file.node.is_dir() {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let (conn, who) = (&request.conn, &request.session.who);
    let (attr, dos) = facts::look(conn, who, &file.node).await?;
    let bits = facts::kept(&attr, dos.as_ref());
    let marked = match input.first() {
        Some(0) => bits & !attributes::SPARSE,
        _ => bits | attributes::SPARSE,
    };
    if marked == bits {
        return Ok(());
    }
    let mut new = dos.unwrap_or_default();
    new.attributes = Some(marked);
    facts::keep(conn, who, &file.node, new).await
}

/// SET_ZERO_DATA: a hole, or zeros where the file system makes none; on disk.
///
/// # Errors
/// The status of the response.
pub(super) async fn zero(
    request: &Request,
    file: &OpenFile,
    asked: &Asks<'_>,
) -> Result<(), NtStatus> {
    let mut r = Reader::new(asked.input, "SET_ZERO_DATA");
    let begin: u64 = r.get().map_err(status::of_wire)?;
    let end: u64 = r.get().map_err(status::of_wire)?;
    if end > i64::MAX as u64 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let len = end.checked_sub(begin).ok_or(NtStatus::INVALID_PARAMETER)?;
    if len == 0 {
        return Ok(());
    }
    lock::may_io(file, begin, len, true)?;
    let handle = file.node.handle;
    let zero = move |fs: &dyn FileSystem, cx: Context<'_>| fs.deallocate(cx, &handle, begin, len);
    let (core, who) = (&request.conn.core, &request.session.who);
    match core.alter(&set_info::acting(request, file), &file.node.reached, zero).await {
        Err(Status::NotSupported) => write_zeros(request, file, (begin, end), asked.file).await?,
        done => done.map_err(status::of)?,
    }
    facts::leave_times(&request.conn, who, file).await
}

/// Writes zeros up to the end of the file at most, each piece in a turn of its own on the pool; a
/// CANCEL, or the end of the open, ends it between two of them.
async fn write_zeros(
    request: &Request,
    file: &OpenFile,
    (begin, end): (u64, u64),
    id: FileId,
) -> Result<(), NtStatus> {
    let (core, who) = (&request.conn.core, &set_info::acting(request, file));
    let mut at = begin;
    while at < end {
        if request.cancel().is_set() {
            return Err(NtStatus::CANCELLED);
        }
        request.open(id)?;
        let (handle, len) = (file.node.handle, (end - at).min(SMB_ZERO_PIECE as u64));
        lock::may_io(file, at, len, true)?;
        let write = move |fs: &dyn FileSystem, cx: Context<'_>| {
            let left = fs.getattr(cx, &handle)?.size.saturating_sub(at).min(len) as usize;
            // As large as a chunk of a copy, for which every IOCTL is in the account.
            let zeros = vec![0; left];
            let written = write_all(fs, cx, &handle, (at, &zeros), Stable::Unstable)?;
            Ok(Changed { value: left as u64, wcc: written.wcc, flush: written.flush })
        };
        let written = core.alter(who, &file.node.reached, write).await.map_err(status::of)?;
        if written == 0 {
            break;
        }
        at += written;
    }
    io::commit(request, file).await
}

/// QUERY_ALLOCATED_RANGES: where there is data, one range more than the client has room for; all of
/// a file that is not marked as one with holes, or if the file system cannot report them.
///
/// # Errors
/// The status of the response.
pub(super) async fn ranges(
    request: &Request,
    file: &OpenFile,
    asked: &Asks<'_>,
) -> Result<Vec<u8>, NtStatus> {
    let mut r = Reader::new(asked.input, "QUERY_ALLOCATED_RANGES");
    let begin: u64 = r.get().map_err(status::of_wire)?;
    let len: u64 = r.get().map_err(status::of_wire)?;
    let wanted = begin.checked_add(len).filter(|end| *end <= i64::MAX as u64);
    let wanted = wanted.ok_or(NtStatus::INVALID_PARAMETER)?;
    let (core, who) = (&request.conn.core, &request.session.who);
    let (attr, facts) = facts::now(&request.conn, who, file).await?;
    let end = wanted.min(attr.size);
    if facts.attributes & attributes::SPARSE == 0 {
        let mut out = Vec::new();
        if begin < end {
            begin.put(&mut out);
            (end - begin).put(&mut out);
        }
        return Ok(out);
    }
    let (fs, handle) = (Arc::clone(&file.node.reached.share.fs), file.node.handle);
    let (room, work) = (asked.output_max as usize, Arc::clone(request.work()));
    let most = room.saturating_add(RANGE).min(SMB_TRANSACT_MAX);
    let look = move |cx: Context<'_>| {
        let (mut at, mut out) = (begin, Vec::new());
        while at < end && out.len() + RANGE <= most {
            work.take(SMB_WORK_STEP)?;
            let from = match fs.seek(cx, &handle, at, Seek::Data) {
                Err(Status::NotSupported) => Some(at),
                Err(Status::TooLarge) => None,
                found => found?,
            };
            let Some(from) = from.filter(|from| *from < end) else { break };
            let to = match fs.seek(cx, &handle, from, Seek::Hole) {
                Err(Status::NotSupported) => Some(end),
                found => found?,
            };
            let to = to.unwrap_or(end).min(end);
            from.put(&mut out);
            (to - from).put(&mut out);
            at = to.max(from + 1);
        }
        Ok(out)
    };
    // There may be very many: not on the connection's thread.
    let looked = core.pooled_look(who, &file.node.reached.cred, look).await;
    looked.and_then(|ranges| ranges).map_err(status::of)
}
