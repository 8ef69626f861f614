//! READ, WRITE and FLUSH.

use std::sync::Arc;

use base::limits::SMB_IO_MAX;
use vfs::fs::{Context, FileSystem};
use vfs::status::Status;
use wire::smb::create::access;
use wire::smb::io::{
    FlushRequest, ReadRequest, WRITE_THROUGH, WriteRequest, WriteResponse, put_read_head,
};
use wire::smb::status::NtStatus;

use super::compound::START;
use super::dispatch::{About, Outcome, Reply, Request};
use super::state::opens::{OpenFile, OpenOf};
use super::{facts, lock, pipe, status};
use crate::transport::buffers::ReplyBuf;
use wire::smb::header::HEADER;

/// Refuses bytes that no file can have (MS-FSA §2.1.5.2, §2.1.5.3).
fn check_range(offset: u64, count: usize) -> Result<(), NtStatus> {
    match offset.checked_add(count as u64) {
        Some(end) if end <= i64::MAX as u64 => Ok(()),
        _ => Err(NtStatus::INVALID_PARAMETER),
    }
}

/// READ: data is read to where it is sent from.
pub(super) async fn read(request: &Request<'_>) -> Outcome {
    let asked = ReadRequest::decode(request.message).map_err(status::of_wire)?;
    let open = request.open(asked.file)?;
    let count = asked.length as usize;
    if count > SMB_IO_MAX {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let file = match &open.of {
        OpenOf::File(file) => file,
        OpenOf::Pipe(pipe) => return pipe::read(request, pipe, count),
    };
    open.may(access::READ_DATA | access::EXECUTE)?;
    if file.node.is_dir() {
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    }
    check_range(asked.offset, count)?;
    lock::may_io(file, asked.offset, count as u64, false)?;
    let mut out = request.reply();
    put_read_head(out.vec(), 0);
    let start = out.len();
    let (out, got) = read_into(request, file, (asked.offset, count), out).await?;
    if got == 0 && count > 0 || (got as u64) < u64::from(asked.minimum) {
        request.conn.core.buffers.give_reply(out);
        return Err(NtStatus::END_OF_FILE);
    }
    file.position.set(asked.offset + got as u64);
    let mut out = out;
    debug_assert!(start == START + HEADER + wire::smb::io::READ_HEAD);
    wire::smb::codec::patch(out.vec(), START + HEADER + 4, &(got as u32).to_le_bytes());
    let about = About::data(&file.node, (asked.offset, count as u64, false), got);
    Ok(Reply { file: Some(request.file_id(asked.file)), ..Reply::new(out).about(about) })
}

async fn read_into(
    request: &Request<'_>,
    file: &OpenFile,
    (offset, count): (u64, usize),
    mut out: ReplyBuf,
) -> Result<(ReplyBuf, usize), NtStatus> {
    let (core, who) = (&request.conn.core, &request.session.who);
    let reached = &file.node.reached;
    core.files.still_reach(who, reached, false).map_err(status::of)?;
    let (fs, handle) = (Arc::clone(&reached.share.fs), file.node.handle);
    let read = move |cx: Context<'_>, out: &mut ReplyBuf| {
        let start = out.extend_stale(count);
        let room = out.vec().get_mut(start..).unwrap_or_default();
        let done = fs.read(cx, &handle, offset, room);
        out.truncate(start + done.map_or(0, |done| done.count));
        done.map(|done| done.count)
    };
    let cred = &reached.cred;
    let inline = core.engine.attempt(|| read(Context { cred, may_block: false }, &mut out));
    match inline {
        Ok(Err(Status::WouldBlock)) => {}
        done => {
            let done = done.and_then(|done| done).map_err(status::of)?;
            return Ok((out, done));
        }
    }
    let job = move |cx: Context<'_>| {
        let done = read(cx, &mut out);
        (out, done)
    };
    let (out, done) = core.pooled(who, cred, job).await.map_err(status::of)?;
    Ok((out, done.map_err(status::of)?))
}

/// WRITE.
pub(super) async fn write(request: &Request<'_>) -> Outcome {
    let asked = WriteRequest::decode(request.message).map_err(status::of_wire)?;
    let open = request.open(asked.file)?;
    let file = match &open.of {
        OpenOf::File(file) => file,
        OpenOf::Pipe(pipe) => return pipe::write(request, pipe, asked.data),
    };
    open.may(access::WRITE_DATA | access::APPEND_DATA)?;
    if file.node.is_dir() {
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    }
    let count = asked.data.len();
    check_range(asked.offset, count)?;
    lock::may_io(file, asked.offset, count as u64, true)?;
    let (core, who) = (&request.conn.core, &request.session.who);
    if count > 0 {
        let mut data = core.engine.large.take(count);
        data.clear();
        data.extend_from_slice(asked.data);
        let spare = core.write_at(who, &file.node, asked.offset, data).await;
        core.engine.large.give(spare.map_err(status::of)?);
        facts::written(request.conn, file);
        file.position.set(asked.offset + count as u64);
    }
    if file.write_through || asked.flags & WRITE_THROUGH != 0 {
        commit(request, file).await?;
    }
    let mut out = request.reply();
    WriteResponse { reserved: 0, count: count as u32, remaining: 0, channel_info: 0 }
        .put_body(out.vec());
    let about = About::data(&file.node, (asked.offset, count as u64, true), count);
    Ok(Reply { file: Some(request.file_id(asked.file)), ..Reply::new(out).about(about) })
}

async fn commit(request: &Request<'_>, file: &OpenFile) -> Result<(), NtStatus> {
    let handle = file.node.handle;
    let commit = move |fs: &dyn FileSystem, cx: Context<'_>| fs.commit(cx, &handle);
    let (core, who) = (&request.conn.core, &request.session.who);
    core.alter(who, &file.node.reached, commit).await.map_err(status::of)
}

/// FLUSH: what was written is on disk.
pub(super) async fn flush(request: &Request<'_>) -> Outcome {
    let asked = FlushRequest::decode(request.message).map_err(status::of_wire)?;
    let open = request.open(asked.file)?;
    let mut about = About::default();
    if let OpenOf::File(file) = &open.of {
        open.may(access::WRITE_DATA | access::APPEND_DATA)?;
        commit(request, file).await?;
        facts::settle(request.conn, file);
        about = About::file(&file.node);
    }
    Ok(Reply { file: Some(request.file_id(asked.file)), ..request.empty().about(about) })
}
