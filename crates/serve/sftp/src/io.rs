//! READ, WRITE, fsync and copy-data: the data of open files.

use std::sync::Arc;

use base::limits::{COPY_BUFFER, SFTP_IO_MAX};
use vfs::fs::{Context, FileSystem};
use vfs::status::Status;
use wire::sftp::reply::data_head;
use wire::xdr::Writer;

use super::attr;
use super::state::{OpenFile, Session};
use super::status::{Refusal, Result};
use engine::transport::buffers::ReplyBuf;
use files::append::WriteOffset;

/// READ: the whole answer, its data read to where it is sent from.
pub(super) async fn read(
    s: &Session,
    file: &OpenFile,
    (id, offset, len): (u32, u64, u32),
) -> Result<(ReplyBuf, usize)> {
    let reader = file.reader.as_ref().ok_or(Status::Access)?;
    let mut reply = s.core.buffers.take_reply();
    let count = (len as usize).min(SFTP_IO_MAX);
    data_head(&mut Writer::new(reply.vec()), id, count);
    let read = reader.read(&s.core, &s.who, (offset, count), &mut reply).await;
    match read {
        Ok((0, _)) if count > 0 => {
            s.core.buffers.give_reply(reply);
            Err(Refusal::EOF)
        }
        Ok((got, _)) => {
            if got < count {
                patch_head(&mut reply, id, got);
            }
            Ok((reply, got))
        }
        Err(status) => {
            s.core.buffers.give_reply(reply);
            Err(status.into())
        }
    }
}

/// There is less than requested.
fn patch_head(reply: &mut ReplyBuf, id: u32, got: usize) {
    let mut head = Vec::with_capacity(wire::sftp::reply::DATA_HEAD);
    data_head(&mut Writer::new(&mut head), id, got);
    Writer::new(reply.vec()).patch(0, &head);
}

/// WRITE; where that was.
pub(super) async fn write(s: &Session, file: &OpenFile, offset: u64, data: Vec<u8>) -> Result<u64> {
    if !file.writes {
        return Err(Status::Access.into());
    }
    let place = if file.append { WriteOffset::End } else { WriteOffset::At(offset) };
    let written = s.core.write_to(&s.who, &file.node, place, data).await;
    let (spare, at) = file.changed(written)?;
    s.core.engine.large.give(spare);
    Ok(at)
}

/// fsync@openssh.com: what was written is there after a power cut, and so at its name.
pub(super) async fn fsync(s: &Session, file: &OpenFile) -> Result<()> {
    if !file.writes {
        return Ok(());
    }
    let handle = file.node.handle;
    let commit = move |fs: &dyn FileSystem, cx: Context<'_>| fs.commit(cx, &handle);
    // A kernel may report a failed flush only once: the next one proves nothing.
    file.changed(s.core.alter(&s.who, &file.node.reached, commit).await)?;
    if let Some(why) = file.failed.get() {
        return Err(why.into());
    }
    attr::publish_file(file).await
}

/// copy-data: `len` 0 is to the end of the source. A handle that appends takes each piece at the
/// end of its file, as it does what is written.
pub(super) async fn copy(
    s: &Session,
    (from, from_offset): (&OpenFile, u64),
    (to, to_offset): (&OpenFile, u64),
    len: u64,
) -> Result<()> {
    if from.reader.is_none() || !to.writes {
        return Err(Status::Access.into());
    }
    let to_offset = match to.append {
        true => s.core.attr(&s.who, &to.node).await?.size,
        false => to_offset,
    };
    let (from_end, to_end) = match len {
        0 => (u64::MAX, u64::MAX),
        _ => (from_offset.saturating_add(len), to_offset.saturating_add(len)),
    };
    // Whatever names, handles and shares led to it.
    let same = from.node.key().is_same_inode(&to.node.key());
    if same && from_offset < to_end && to_offset < from_end {
        return Err(Refusal::failure("The ranges overlap"));
    }
    if !to.up.has_moved() {
        // What is copied comes from here, and is no transfer.
        to.up.keep_silent();
    }
    let mut done = 0;
    loop {
        let left = if len == 0 { u64::MAX } else { len - done };
        if left == 0 {
            return Ok(());
        }
        let at = from_offset.saturating_add(done);
        let place =
            if to.append { WriteOffset::End } else { WriteOffset::At(to_offset).behind(done) };
        s.core.files.still_reach(&s.who, &from.node.reached, false)?;
        let copied = match from.node.reached.share.id == to.node.reached.share.id {
            true => copy_inside(s, (from, at), (to, place), left).await,
            false => Err(Status::NotSupported),
        };
        let copied = to.changed(match copied {
            Err(Status::NotSupported | Status::CrossDevice | Status::Invalid) => {
                copy_through(s, (from, at), (to, place), left).await
            }
            copied => copied,
        })?;
        if copied == 0 {
            return Ok(());
        }
        done += copied;
    }
}

/// Within a file system.
async fn copy_inside(
    s: &Session,
    (from, from_at): (&OpenFile, u64),
    (to, place): (&OpenFile, WriteOffset),
    left: u64,
) -> vfs::fs::Result<u64> {
    if s.core.attr(&s.who, &from.node).await?.size <= from_at {
        return Ok(0);
    }
    let len = if left == u64::MAX { 0 } else { left };
    let (source, target, key) = (from.node.handle, to.node.handle, to.node.key());
    let copy = move |fs: &dyn FileSystem, cx: Context<'_>| {
        let (to_at, _step) = place.settle((fs, cx), (key, &target))?;
        fs.copy_range(cx, (&source, from_at), (&target, to_at), len)
    };
    s.core.alter(&s.who, &to.node.reached, copy).await
}

/// Through our memory.
async fn copy_through(
    s: &Session,
    (from, from_at): (&OpenFile, u64),
    (to, place): (&OpenFile, WriteOffset),
    left: u64,
) -> vfs::fs::Result<u64> {
    let mut data = s.core.engine.large.take(COPY_BUFFER);
    data.resize(COPY_BUFFER.min(usize::try_from(left).unwrap_or(usize::MAX)), 0);
    let (fs, source) = (Arc::clone(&from.node.reached.share.fs), from.node.handle);
    let read = move |cx: Context<'_>| {
        let done = fs.read(cx, &source, from_at, &mut data);
        done.map(|done| {
            data.truncate(done.count);
            data
        })
    };
    let data = s.core.pooled_look(&s.who, &from.node.reached.cred, read).await??;
    let count = data.len() as u64;
    if count > 0 {
        let (spare, _) = s.core.write_to(&s.who, &to.node, place, data).await?;
        s.core.engine.large.give(spare);
    }
    Ok(count)
}
