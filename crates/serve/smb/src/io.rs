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
use wire::smb::header::{Command, HEADER, Header, flags, put_error};
use wire::smb::io::{
    FlushRequest, READ_HEAD, ReadRequest, WRITE_THROUGH, WriteRequest, WriteResponse, put_read_head,
};
use wire::smb::status::NtStatus;

use super::connection::Connection;
use super::dispatch::{About, Outcome, Reply, Request};
use super::reply::{START, buffer};
use super::state::opens::{Open, OpenFile, OpenOf};
use super::state::session::Session;
use super::{facts, grace, lock, pipe, status};
use engine::transport::buffers::ReplyBuf;
use files::upload::write_all;
use files::{Caller, Core};

/// READ or WRITE at once. `None` if it would have to wait, or has anything to say but that it went
/// well or that there is no data: then nothing is done yet that is not done again the ordinary way.
/// The caller has looked whether the session has the tree.
pub(super) fn at_once(
    conn: &Connection,
    session: &Session,
    (header, message): (&Header, &[u8]),
    is_bare: bool,
) -> Option<Reply> {
    let (core, who, tree) = (&conn.core, &session.who, header.tree_id());
    // What was sent before, or comes after that, is counted the ordinary way.
    let is_again = header.has(flags::REPLAY);
    let is_current = |open: &Rc<Open>| !is_again && open.sequence.is(header.channel());
    match header.command {
        Command::READ => {
            let asked = ReadRequest::decode(message).ok()?;
            let open = session.open(asked.file, tree).ok().filter(is_current)?;
            open.set_used();
            let reading = Reading::new(open.file().ok()?, &open, &asked).ok()?;
            if is_bare && let Some(extent) = reading.extent(core, who).ok()? {
                return Some(reading.answer_from_file(buffer(core), extent));
            }
            let mut out = reading.begin(buffer(core));
            match reading.attempt(core, who, &mut out) {
                Ok(got) => Some(reading.answer(core, out, got)),
                Err(why) => {
                    core.buffers.give_reply(out);
                    fault(core, why)
                }
            }
        }
        Command::WRITE => {
            let asked = WriteRequest::decode(message).ok()?;
            let open = session.open(asked.file, tree).ok().filter(is_current)?;
            open.set_used();
            let file = open.file().ok()?;
            check_write(file, &open, &asked).ok()?;
            if through(file, &asked) || asked.data.is_empty() || !file.user_times.get().is_empty() {
                return None;
            }
            if let Err(why) = write_attempt(core, who, file, (asked.offset, asked.data)) {
                return fault(core, why);
            }
            has_written(conn, file, &asked);
            Some(written(buffer(core), file, &asked))
        }
        _ => None,
    }
}

/// The answer to what has panicked, which is not tried again. `None` for other failures.
fn fault(core: &Core, why: Status) -> Option<Reply> {
    if why != Status::Fault {
        return None;
    }
    let mut out = buffer(core);
    put_error(out.vec());
    Some(Reply { status: status::of(why), ..Reply::new(out) })
}

/// A READ that is permitted.
struct Reading<'a> {
    file: &'a OpenFile,
    offset: u64,
    count: usize,
    minimum: u32,
}

impl<'a> Reading<'a> {
    fn new(file: &'a OpenFile, open: &Open, asked: &ReadRequest) -> Result<Self, NtStatus> {
        let count = asked.length as usize;
        if count > SMB_IO_MAX {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        open.may(access::READ_DATA | access::EXECUTE)?;
        if file.node.is_dir() {
            return Err(NtStatus::INVALID_DEVICE_REQUEST);
        }
        check_range(asked.offset, count)?;
        lock::may_io(file, asked.offset, count as u64, false)?;
        Ok(Self { file, offset: asked.offset, count, minimum: asked.minimum })
    }

    /// What to send from the file itself: large cached reads, neither signed nor encrypted.
    fn extent(&self, core: &Core, who: &Caller) -> vfs::fs::Result<Option<Extent>> {
        if self.count < SEND_FILE_MIN {
            return Ok(None);
        }
        let reached = &self.file.node.reached;
        core.files.still_reach(who, reached, false)?;
        let cx = Context { cred: &reached.cred, may_block: false };
        let extent = reached.share.fs.extent(cx, &self.file.node.handle, self.offset, self.count);
        Ok(extent.filter(|extent| extent.count >= SEND_FILE_MIN))
    }

    fn answer_from_file(&self, mut out: ReplyBuf, extent: Extent) -> Reply {
        put_read_head(out.vec(), extent.count);
        let about = self.about(extent.count);
        self.file.position.set(self.offset + extent.count as u64);
        Reply { extent: Some(extent), ..Reply::new(out).about(about) }
    }

    /// With what precedes the data.
    fn begin(&self, mut out: ReplyBuf) -> ReplyBuf {
        put_read_head(out.vec(), 0);
        debug_assert!(out.len() == START + HEADER + READ_HEAD);
        out
    }

    /// Reads to where it is sent from, without waiting; how many bytes there are.
    fn attempt(&self, core: &Core, who: &Caller, out: &mut ReplyBuf) -> vfs::fs::Result<usize> {
        let reached = &self.file.node.reached;
        core.files.still_reach(who, reached, false)?;
        let cx = Context { cred: &reached.cred, may_block: false };
        let (handle, range) = (&self.file.node.handle, (self.offset, self.count));
        core.inline(|| read_into(&*reached.share.fs, cx, handle, range, out))
    }

    /// The same where it may wait.
    async fn pooled(
        &self,
        core: &Core,
        who: &Caller,
        mut out: ReplyBuf,
    ) -> vfs::fs::Result<(ReplyBuf, usize)> {
        let reached = &self.file.node.reached;
        let (fs, handle) = (Arc::clone(&reached.share.fs), self.file.node.handle);
        let range = (self.offset, self.count);
        let job = move |cx: Context<'_>| {
            let done = read_into(&*fs, cx, &handle, range, &mut out);
            done.map(|got| (out, got))
        };
        core.pooled_look(who, &reached.cred, job).await?
    }

    fn answer(&self, core: &Core, mut out: ReplyBuf, got: usize) -> Reply {
        if got == 0 && self.count > 0 || (got as u64) < u64::from(self.minimum) {
            core.buffers.give_reply(out);
            return self.past_the_end(buffer(core));
        }
        self.file.position.set(self.offset + got as u64);
        patch(out.vec(), START + HEADER + 4, &(got as u32).to_le_bytes());
        Reply::new(out).about(self.about(got))
    }

    /// An error that is measured as a READ of nothing.
    fn past_the_end(&self, mut out: ReplyBuf) -> Reply {
        put_error(out.vec());
        Reply { status: NtStatus::END_OF_FILE, ..Reply::new(out).about(self.about(0)) }
    }

    fn about(&self, got: usize) -> About {
        About::data(&self.file.node, (self.offset, self.count as u64, false), got)
    }
}

fn read_into(
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

/// READ: data is read to where it is sent from.
pub(super) async fn read(request: &Request<'_>) -> Outcome {
    let asked = ReadRequest::decode(request.message).map_err(status::of_wire)?;
    let open = request.open(asked.file)?;
    let file = match &open.of {
        OpenOf::File(file) => file,
        OpenOf::Pipe(_) if asked.length as usize > SMB_IO_MAX => {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        OpenOf::Pipe(pipe) => return pipe::read(request, pipe, asked.length as usize),
    };
    let reading = Reading::new(file, &open, &asked)?;
    let (core, who, id) = (&request.conn.core, &request.session.who, request.file_id(asked.file));
    if request.is_bare
        && let Some(extent) = reading.extent(core, who).map_err(status::of)?
    {
        return Ok(Reply { file: Some(id), ..reading.answer_from_file(request.reply(), extent) });
    }
    let mut out = reading.begin(request.reply());
    let (out, got) = match reading.attempt(core, who, &mut out) {
        Err(Status::WouldBlock) => reading.pooled(core, who, out).await.map_err(status::of)?,
        done => (out, done.map_err(status::of)?),
    };
    Ok(Reply { file: Some(id), ..reading.answer(core, out, got) })
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

/// Notes that data was written.
fn has_written(conn: &Connection, file: &OpenFile, asked: &WriteRequest<'_>) {
    facts::written(conn, file);
    file.position.set(asked.offset + asked.data.len() as u64);
}

/// The answer to a WRITE.
fn written(mut out: ReplyBuf, file: &OpenFile, asked: &WriteRequest<'_>) -> Reply {
    let count = asked.data.len();
    WriteResponse { reserved: 0, count: count as u32, remaining: 0, channel_info: 0 }
        .put_body(out.vec());
    let about = About::data(&file.node, (asked.offset, count as u64, true), count);
    Reply::new(out).about(about)
}

/// WRITE.
pub(super) async fn write(request: &Request<'_>) -> Outcome {
    let asked = WriteRequest::decode(request.message).map_err(status::of_wire)?;
    let open = request.open(asked.file)?;
    let file = match &open.of {
        OpenOf::File(file) => file,
        OpenOf::Pipe(pipe) => return pipe::write(request, pipe, asked.data),
    };
    let refused = NtStatus::FILE_LOCK_CONFLICT;
    grace::wait_with(request, (&open, file), GraceRequest::Write, refused).await?;
    check_write(file, &open, &asked)?;
    if !asked.data.is_empty() {
        write_from(request, file, (asked.offset, asked.data)).await.map_err(status::of)?;
        has_written(request.conn, file, &asked);
        facts::leave_times(request.conn, &request.session.who, file).await?;
    }
    if through(file, &asked) {
        commit(request, file).await?;
    }
    let id = request.file_id(asked.file);
    Ok(Reply { file: Some(id), ..written(request.reply(), file, &asked) })
}

/// Writes what need not wait for anything. A file in memory takes it at once; what of it was taken
/// before a wait it takes again.
fn write_attempt(
    core: &Core,
    who: &Caller,
    file: &OpenFile,
    range: (u64, &[u8]),
) -> Result<(), Status> {
    let (reached, handle) = (&file.node.reached, &file.node.handle);
    core.files.still_reach(who, reached, true)?;
    let cx = Context { cred: &reached.cred, may_block: false };
    let _writing = file.writes().begin();
    core.inline(|| write_out(&*reached.share.fs, cx, handle, range))
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

/// Writes data of the request from where it is: at once if that need not wait, else on the pool.
async fn write_from(
    request: &Request<'_>,
    file: &OpenFile,
    (offset, data): (u64, &[u8]),
) -> Result<(), Status> {
    let (core, who, node) = (&request.conn.core, &request.session.who, &file.node);
    match write_attempt(core, who, file, (offset, data)) {
        Err(Status::WouldBlock) => {}
        written => return written,
    }
    let (fs, handle) = (Arc::clone(&node.reached.share.fs), node.handle);
    let begin = (data.as_ptr() as usize).wrapping_sub(request.bytes.as_ptr() as usize);
    let (bytes, place) = (Arc::clone(request.bytes), begin..begin.wrapping_add(data.len()));
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
pub(super) async fn commit(request: &Request<'_>, file: &OpenFile) -> Result<(), NtStatus> {
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
