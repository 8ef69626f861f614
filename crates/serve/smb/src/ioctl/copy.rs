//! Copies on the server: COPYCHUNK (MS-SMB2 §3.3.5.15.6) and DUPLICATE_EXTENTS, which shares blocks
//! (MS-FSCC §2.3.7).

use std::sync::Arc;

use base::limits::{SMB_COPY_CHUNK_MAX, SMB_COPY_CHUNKS_MAX, SMB_COPY_TOTAL_MAX, SMB_WORK_COPIED};
use vfs::fs::{Context, FileSystem};
use vfs::status::Status;
use wire::smb::codec::{Field, Reader, SmbError};
use wire::smb::create::{FileId, access};
use wire::smb::ioctl::{Chunk, Copied, CopyChunks, Extents, Request as Asks, code};
use wire::smb::status::NtStatus;

use crate::dispatch::Request;
use crate::state::opens::{Open, OpenFile};
use crate::{facts, lock, set_info, status};

/// What the limits are, as the answer to a request that is beyond them.
const LIMITS: Copied = Copied {
    chunks: SMB_COPY_CHUNKS_MAX as u32,
    partial: SMB_COPY_CHUNK_MAX,
    total: SMB_COPY_TOTAL_MAX,
};

fn put_copied(copied: &Copied) -> Vec<u8> {
    let mut out = Vec::new();
    copied.put(&mut out);
    out
}

/// COPYCHUNK: what was copied, and how it ended.
///
/// # Errors
/// The status of the response, where nothing was copied.
pub(super) async fn chunks(
    request: &Request,
    open: &Open,
    to: &OpenFile,
    asked: &Asks<'_>,
) -> Result<(Vec<u8>, NtStatus), NtStatus> {
    if (asked.output_max as usize) < Copied::SIZE {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    open.may(access::WRITE_DATA | access::APPEND_DATA)?;
    if asked.code == code::COPYCHUNK {
        open.may(access::READ_DATA)?;
    }
    let list = match CopyChunks::decode(asked.input) {
        Err(SmbError::Limit(_)) => return Ok((put_copied(&LIMITS), NtStatus::INVALID_PARAMETER)),
        list => list.map_err(status::of_wire)?,
    };
    let total: u64 = list.chunks.iter().map(|chunk| u64::from(chunk.length)).sum();
    let fits = |chunk: &Chunk| (1..=SMB_COPY_CHUNK_MAX).contains(&chunk.length);
    if total > SMB_COPY_TOTAL_MAX.into() || !list.chunks.iter().all(fits) {
        return Ok((put_copied(&LIMITS), NtStatus::INVALID_PARAMETER));
    }
    let id: FileId = Reader::new(&list.key, "resume key").get().map_err(status::of_wire)?;
    // It may be of another share of the session.
    let source = request.source(id)?.ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)?;
    source.may(access::READ_DATA | access::EXECUTE)?;
    let from = source.file()?;
    if from.node.is_dir() || to.node.is_dir() {
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    }
    // What a compound copies is bounded as what one request does.
    request.work().take((total / SMB_WORK_COPIED) as usize).map_err(status::of)?;
    let mut copied = Copied { chunks: 0, partial: 0, total: 0 };
    for chunk in &list.chunks {
        match one(request, from, to, chunk).await {
            Ok(()) => {
                copied.chunks += 1;
                copied.total += chunk.length;
            }
            Err(status) => return Ok((put_copied(&copied), status)),
        }
    }
    facts::written(&request.conn, to);
    facts::leave_times(&request.conn, &request.session.who, to).await?;
    Ok((put_copied(&copied), NtStatus::SUCCESS))
}

async fn one(
    request: &Request,
    from: &OpenFile,
    to: &OpenFile,
    chunk: &Chunk,
) -> Result<(), NtStatus> {
    let (core, who) = (&request.conn.core, &request.session.who);
    let size = core.attr(who, &from.node).await.map_err(status::of)?.size;
    if chunk.source.saturating_add(chunk.length.into()) > size {
        return Err(NtStatus::INVALID_VIEW_SIZE);
    }
    lock::may_io(from, chunk.source, chunk.length.into(), false)?;
    lock::may_io(to, chunk.target, chunk.length.into(), true)?;
    copy_one(request, from, to, chunk).await
}

/// DUPLICATE_EXTENTS.
///
/// # Errors
/// STATUS_NOT_SUPPORTED where the file system shares no blocks; the status of the response.
pub(super) async fn extents(
    request: &Request,
    open: &Open,
    to: &OpenFile,
    input: &[u8],
) -> Result<(), NtStatus> {
    if !to.node.reached.share.fs.features().clone {
        return Err(NtStatus::NOT_SUPPORTED);
    }
    let asked: Extents = Reader::new(input, "DUPLICATE_EXTENTS").get().map_err(status::of_wire)?;
    open.may(access::WRITE_DATA)?;
    let source = request.source(asked.source)?.ok_or(NtStatus::FILE_CLOSED)?;
    source.may(access::READ_DATA)?;
    let from = source.file()?;
    if asked.length == 0 {
        return Ok(());
    }
    if from.node.reached.share.id != to.node.reached.share.id {
        return Err(NtStatus::NOT_SUPPORTED);
    }
    let (core, who) = (&request.conn.core, &request.session.who);
    let size = |file: &OpenFile| {
        let node = file.node.clone();
        async move { core.attr(who, &node).await.map_err(status::of) }
    };
    let (from_size, to_size) = (size(from).await?.size, size(to).await?.size);
    let end = |from: u64| from.checked_add(asked.length);
    // Neither is made longer (MS-FSA §2.1.5.10.3).
    if end(asked.from).is_none_or(|end| end > from_size)
        || end(asked.to).is_none_or(|end| end > to_size)
    {
        return Err(NtStatus::NOT_SUPPORTED);
    }
    lock::may_io(from, asked.from, asked.length, false)?;
    lock::may_io(to, asked.to, asked.length, true)?;
    let (source, target) = (from.node.handle, to.node.handle);
    let share = move |fs: &dyn FileSystem, cx: Context<'_>| {
        fs.clone_range(cx, (&source, asked.from), (&target, asked.to), asked.length)
    };
    let acting = set_info::acting(request, to);
    core.alter(&acting, &to.node.reached, share).await.map_err(status::of)?;
    facts::leave_times(&request.conn, who, to).await
}

/// One chunk, by the file system if it can, otherwise through our memory.
async fn copy_one(
    request: &Request,
    from: &OpenFile,
    to: &OpenFile,
    chunk: &Chunk,
) -> Result<(), NtStatus> {
    let (core, who) = (&request.conn.core, &set_info::acting(request, to));
    let (source, target) = (from.node.handle, to.node.handle);
    let mut done = 0;
    // Handles of one share are invalid in the file system of another.
    let is_one_share = from.node.reached.share.id == to.node.reached.share.id;
    while done < u64::from(chunk.length) {
        let (at, to_at) = (chunk.source + done, chunk.target.saturating_add(done));
        let left = u64::from(chunk.length) - done;
        let inside = move |fs: &dyn FileSystem, cx: Context<'_>| {
            fs.copy_range(cx, (&source, at), (&target, to_at), left)
        };
        let inside = match is_one_share {
            true => core.alter(who, &to.node.reached, inside).await,
            false => Err(Status::CrossDevice),
        };
        let copied = match inside {
            Err(Status::NotSupported | Status::CrossDevice | Status::Invalid) => {
                through(request, from, to, (at, to_at, left)).await?
            }
            copied => copied.map_err(status::of)?,
        };
        if copied == 0 {
            return Err(NtStatus::END_OF_FILE);
        }
        done += copied;
    }
    Ok(())
}

async fn through(
    request: &Request,
    from: &OpenFile,
    to: &OpenFile,
    (at, to_at, left): (u64, u64, u64),
) -> Result<u64, NtStatus> {
    let (core, who) = (&request.conn.core, &request.session.who);
    let (fs, source) = (Arc::clone(&from.node.reached.share.fs), from.node.handle);
    let mut data = vec![0; left.min(SMB_COPY_CHUNK_MAX.into()) as usize];
    let read = move |cx: Context<'_>| {
        fs.read(cx, &source, at, &mut data).map(|done| {
            data.truncate(done.count);
            data
        })
    };
    let read = core.pooled_look(who, &from.node.reached.cred, read).await.map_err(status::of)?;
    let data = read.map_err(status::of)?;
    let count = data.len() as u64;
    let spare = core
        .write_at(&set_info::acting(request, to), &to.node, to_at, data)
        .await
        .map_err(status::of)?;
    core.engine.large.give(spare);
    Ok(count)
}
