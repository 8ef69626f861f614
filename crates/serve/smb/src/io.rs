//! READ, WRITE and FLUSH.

use std::rc::Rc;
use std::sync::Arc;

use base::limits::{SEND_FILE_MIN, SMB_IO_MAX};
use vfs::fs::{Context, Extent, FileSystem, Stable};
use vfs::handle::Handle;
use vfs::locks::GraceRequest;
use vfs::status::Status;
use wire::smb::class::mode;
use wire::smb::codec::patch;
use wire::smb::create::access;
use wire::smb::header::HEADER;
use wire::smb::io::{
    FlushRequest, READ_HEAD, ReadRequest, WRITE_THROUGH, WriteRequest, WriteResponse, put_read_head,
};
use wire::smb::status::NtStatus;

use super::dispatch::{DispatchResult, Handled, Moved, Reply, Request, steps};
use super::reply::START;
use super::state::opens::{Open, OpenFile, OpenOf};
use super::{facts, grace, lock, pipe, status};
use engine::transport::buffers::ReplyBuf;
use files::upload::write_all;

/// READ. Large cached data leaves from the file itself, if nothing has to be done with it; other
/// data is read to where it is sent from.
pub(super) fn read(request: &Request) -> Handled {
    let asked = ReadRequest::decode(request.message()).map_err(status::of_wire)?;
    let open = request.open(asked.file)?;
    let file = match &open.of {
        OpenOf::File(file) => file,
        OpenOf::Pipe(_) if asked.length as usize > SMB_IO_MAX => {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        OpenOf::Pipe(pipe) => {
            return request.done(pipe::read(request, pipe, asked.length as usize)?);
        }
    };
    may_read(file, &open, &asked)?;
    let (core, who) = (&request.conn.core, &request.session.who);
    core.files.still_reach(who, &file.node.reached, false).map_err(status::of)?;
    let mut out = request.reply();
    put_read_head(out.vec(), 0);
    debug_assert!(out.len() == START + HEADER + READ_HEAD);
    if request.is_bare
        && let Some(extent) = extent(file, &asked)
    {
        request.done(has_read(request, file, &asked, (out, extent.count)))?;
        return Ok(DispatchResult::Extent(extent));
    }
    match core.inline(|| read_into(file, &asked, &mut out)) {
        Err(Status::WouldBlock) => steps(move |request| read_pooled(request, open, asked, out)),
        Err(why) => {
            core.buffers.give_reply(out);
            Err(status::of(why))
        }
        Ok(count) => request.done(has_read(request, file, &asked, (out, count))),
    }
}

/// The same where it may wait.
async fn read_pooled(
    request: Rc<Request>,
    open: Rc<Open>,
    asked: ReadRequest,
    mut out: ReplyBuf,
) -> Handled {
    let file = open.file()?;
    let reached = &file.node.reached;
    let (fs, handle) = (Arc::clone(&reached.share.fs), file.node.handle);
    let range = (asked.offset, asked.length as usize);
    let job = move |cx: Context<'_>| {
        let done = read_to(&*fs, cx, &handle, range, &mut out);
        done.map(|count| (out, count))
    };
    let (core, who) = (&request.conn.core, &request.session.who);
    let read = core.pooled_look(who, &reached.cred, job).await.and_then(|done| done);
    request.done(has_read(&request, file, &asked, read.map_err(status::of)?))
}

/// That a READ is permitted.
fn may_read(file: &OpenFile, open: &Open, asked: &ReadRequest) -> Result<(), NtStatus> {
    let count = asked.length as usize;
    if count > SMB_IO_MAX {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    open.may(access::READ_DATA | access::EXECUTE)?;
    if file.node.is_dir() {
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    }
    check_range(asked.offset, count)?;
    lock::may_io(file, asked.offset, count as u64, false)
}

/// What to send from the file itself, if that is worth it and the data is in memory.
fn extent(file: &OpenFile, asked: &ReadRequest) -> Option<Extent> {
    let (reached, count) = (&file.node.reached, asked.length as usize);
    if count < SEND_FILE_MIN {
        return None;
    }
    let cx = Context { cred: &reached.cred, may_block: false };
    let extent = reached.share.fs.extent(cx, &file.node.handle, asked.offset, count);
    let enough = SEND_FILE_MIN.max(asked.minimum as usize);
    extent.filter(|extent| extent.count >= enough)
}

/// The reply to a READ of which there are `count` bytes. No data is an error that is measured as a
/// READ of nothing.
fn has_read(
    request: &Request,
    file: &OpenFile,
    asked: &ReadRequest,
    (mut out, count): (ReplyBuf, usize),
) -> Reply {
    let nothing = count == 0 && asked.length > 0 || (count as u64) < u64::from(asked.minimum);
    let (reply, bytes) = if nothing {
        out.truncate(START + HEADER);
        (Reply::error(NtStatus::END_OF_FILE, out), 0)
    } else {
        file.position.set(asked.offset + count as u64);
        patch(out.vec(), START + HEADER + 4, &(count as u32).to_le_bytes());
        (Reply::new(out), count)
    };
    let (offset, size) = (asked.offset, asked.length.into());
    let moved = Moved { offset, size, bytes, inward: false };
    Reply { file: Some(request.file_id(asked.file)), moved: Some(moved), ..reply }
}

/// Reads to where it is sent from, without waiting; how many bytes there are.
fn read_into(file: &OpenFile, asked: &ReadRequest, out: &mut ReplyBuf) -> vfs::fs::Result<usize> {
    let reached = &file.node.reached;
    let cx = Context { cred: &reached.cred, may_block: false };
    let range = (asked.offset, asked.length as usize);
    read_to(&*reached.share.fs, cx, &file.node.handle, range, out)
}

fn read_to(
    fs: &dyn FileSystem,
    cx: Context<'_>,
    handle: &Handle,
    (offset, count): (u64, usize),
    out: &mut ReplyBuf,
) -> vfs::fs::Result<usize> {
    let start = out.extend_stale(count);
    let room = out.vec().get_mut(start..).unwrap_or_default();
    let done = fs.read(cx, handle, offset, room);
    out.truncate(start + done.map_or(0, |done| done.count));
    done.map(|done| done.count)
}

/// Refuses bytes that no file can have (MS-FSA §2.1.5.2, §2.1.5.3).
fn check_range(offset: u64, count: usize) -> Result<(), NtStatus> {
    match offset.checked_add(count as u64) {
        Some(end) if end <= i64::MAX as u64 => Ok(()),
        _ => Err(NtStatus::INVALID_PARAMETER),
    }
}

/// That a WRITE is permitted.
fn check_write(file: &OpenFile, open: &Open, asked: &WriteRequest<'_>) -> Result<(), NtStatus> {
    open.may(access::WRITE_DATA | access::APPEND_DATA)?;
    if file.node.is_dir() {
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    }
    check_range(asked.offset, asked.data.len())?;
    lock::may_io(file, asked.offset, asked.data.len() as u64, true)
}

/// Whether a WRITE is on disk before it is answered.
fn through(file: &OpenFile, asked: &WriteRequest<'_>) -> bool {
    file.mode.get() & mode::WRITE_THROUGH != 0 || asked.flags & WRITE_THROUGH != 0
}

/// WRITE. A file in memory takes data at once.
pub(super) fn write(request: &Request) -> Handled {
    let asked = WriteRequest::decode(request.message()).map_err(status::of_wire)?;
    let open = request.open(asked.file)?;
    let file = match &open.of {
        OpenOf::File(file) => file,
        OpenOf::Pipe(pipe) => return request.done(pipe::write(request, pipe, asked.data)?),
    };
    let mut is_written = false;
    if file.is_new || !file.entry.locks.in_grace() {
        check_write(file, &open, &asked)?;
        is_written = asked.data.is_empty() || write_at_once(request, file, &asked)?;
    }
    if !is_written || through(file, &asked) || !file.user_times.get().is_empty() {
        return steps(move |request| write_rest(request, open, is_written));
    }
    if !asked.data.is_empty() {
        has_written(request, file, &asked);
    }
    request.done(written(request, &asked))
}

/// What of a WRITE has to wait for something.
async fn write_rest(request: Rc<Request>, open: Rc<Open>, is_written: bool) -> Handled {
    let asked = WriteRequest::decode(request.message()).map_err(status::of_wire)?;
    let file = open.file()?;
    if !is_written {
        let refused = NtStatus::FILE_LOCK_CONFLICT;
        grace::wait_with(&request, (&open, file), GraceRequest::Write, refused).await?;
        check_write(file, &open, &asked)?;
        if !asked.data.is_empty() {
            write_pooled(&request, file, &asked).await.map_err(status::of)?;
        }
    }
    if !asked.data.is_empty() {
        has_written(&request, file, &asked);
        facts::leave_times(&request.conn, &request.session.who, file).await?;
    }
    if through(file, &asked) {
        commit(&request, file).await?;
    }
    request.done(written(&request, &asked))
}

/// Notes that data was written.
fn has_written(request: &Request, file: &OpenFile, asked: &WriteRequest<'_>) {
    facts::written(&request.conn, file);
    file.position.set(asked.offset + asked.data.len() as u64);
}

/// The reply to a WRITE.
fn written(request: &Request, asked: &WriteRequest<'_>) -> Reply {
    let (mut out, count) = (request.reply(), asked.data.len());
    WriteResponse { reserved: 0, count: count as u32, remaining: 0, channel_info: 0 }
        .put_body(out.vec());
    let moved = Moved { offset: asked.offset, size: count as u64, bytes: count, inward: true };
    Reply { file: Some(request.file_id(asked.file)), moved: Some(moved), ..Reply::new(out) }
}

/// Writes what need not wait for anything; false if it has to. A file in memory takes it at once;
/// what of it was taken before a wait it takes again.
fn write_at_once(
    request: &Request,
    file: &OpenFile,
    asked: &WriteRequest<'_>,
) -> Result<bool, NtStatus> {
    let (core, who) = (&request.conn.core, &request.session.who);
    let (reached, handle) = (&file.node.reached, &file.node.handle);
    core.files.still_reach(who, reached, true).map_err(status::of)?;
    let cx = Context { cred: &reached.cred, may_block: false };
    let _writing = file.writes().begin();
    let range = (asked.offset, asked.data);
    match core.inline(|| write_out(&*reached.share.fs, cx, handle, range)) {
        Err(Status::WouldBlock) => Ok(false),
        written => written.map(|()| true).map_err(status::of),
    }
}

fn write_out(
    fs: &dyn FileSystem,
    cx: Context<'_>,
    handle: &Handle,
    range: (u64, &[u8]),
) -> Result<(), Status> {
    let written = write_all(fs, cx, handle, range, Stable::Unstable);
    written.map(drop).map_err(|failed| failed.status)
}

/// Writes data of the request from where it is.
async fn write_pooled(
    request: &Request,
    file: &OpenFile,
    asked: &WriteRequest<'_>,
) -> Result<(), Status> {
    let (core, who, node) = (&request.conn.core, &request.session.who, &file.node);
    core.files.still_reach(who, &node.reached, true)?;
    let (fs, handle, offset) = (Arc::clone(&node.reached.share.fs), node.handle, asked.offset);
    let begin = (asked.data.as_ptr() as usize).wrapping_sub(request.bytes.as_ptr() as usize);
    let (bytes, place) = (Arc::clone(&request.bytes), begin..begin.wrapping_add(asked.data.len()));
    let writes = file.writes();
    let job = move |cx: Context<'_>| {
        let _writing = writes.begin();
        let data = bytes.get(place).ok_or(Status::Fault)?;
        write_out(&*fs, cx, &handle, (offset, data))
    };
    core.pooled(who, &node.reached.cred, job).await?
}

/// What was written to a file is on disk.
///
/// # Errors
/// As of COMMIT.
pub(super) async fn commit(request: &Request, file: &OpenFile) -> Result<(), NtStatus> {
    let handle = file.node.handle;
    let commit = move |fs: &dyn FileSystem, cx: Context<'_>| fs.commit(cx, &handle);
    let (core, who) = (&request.conn.core, &request.session.who);
    core.alter(who, &file.node.reached, commit).await.map_err(status::of)
}

/// FLUSH: what was written is on disk.
pub(super) async fn flush(request: Rc<Request>) -> Handled {
    let asked = FlushRequest::decode(request.message()).map_err(status::of_wire)?;
    let open = request.open(asked.file)?;
    if let OpenOf::File(file) = &open.of {
        open.may(access::WRITE_DATA | access::APPEND_DATA)?;
        commit(&request, file).await?;
        facts::settle(&request.conn, file);
    }
    request.done(Reply { file: Some(request.file_id(asked.file)), ..request.empty() })
}
