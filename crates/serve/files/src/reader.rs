//! Downloads: the data of a file that is sent to a client.

use std::sync::Arc;

use base::limits::TRANSFER_OPEN_TRIES;
use vfs::fs::{Context, Result, SendfileRange, access};
use vfs::status::Status;

use super::caller::Caller;
use super::core::Core;
use super::node::Node;
use super::opened::Opened;
use super::path::VPath;
use super::walk::Links;
use engine::transport::buffers::ReplyBuf;

/// A file opened for reading.
pub struct Reader {
    node: Node,
    _opened: Opened,
}

impl Core {
    /// Opens a regular file for reading. It is read to its end also if its name is removed, or
    /// given to another file, meanwhile.
    ///
    /// # Errors
    /// [`Status::IsDirectory`] and [`Status::Invalid`] for what is no regular file;
    /// [`Status::Access`] if the caller may not read it; [`Status::Stale`] if it is gone; as for
    /// [`Core::open`].
    pub async fn reader(&self, who: &Caller, node: Node) -> Result<Reader> {
        if node.is_dir() {
            return Err(Status::IsDirectory);
        }
        if !node.is_file() {
            return Err(Status::Invalid);
        }
        if self.access(who, &node, access::READ).await? & access::READ == 0 {
            return Err(Status::Access);
        }
        let opened = self.open_retained(who, &node, false).await?;
        Ok(Reader { node, _opened: opened })
    }

    /// As [`Core::reader`] of what was found at `path`. If that has been replaced since, the
    /// current file is read.
    ///
    /// # Errors
    /// The same; as for [`Core::find`].
    pub async fn reader_at(&self, who: &Caller, path: &VPath, found: Node) -> Result<Reader> {
        let mut node = found;
        for _ in 1..TRANSFER_OPEN_TRIES {
            match self.reader(who, node).await {
                Err(Status::Stale) => {}
                done => return done,
            }
            node = self.find(who, path, Links::Follow).await?.node()?;
        }
        self.reader(who, node).await
    }
}

impl Reader {
    /// The file.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Reads up to `count` bytes at `offset` and appends them to `into`. Returns how many, and
    /// whether the file ends there.
    ///
    /// # Errors
    /// As of READ.
    pub async fn read(
        &self,
        core: &Core,
        who: &Caller,
        (offset, count): (u64, usize),
        into: &mut ReplyBuf,
    ) -> Result<(usize, bool)> {
        core.files.still_reach(who, &self.node.reached, false)?;
        let (fs, file) = (Arc::clone(&self.node.reached.share.fs), self.node.handle);
        let read = move |cx: Context<'_>, buf: &mut ReplyBuf| {
            let start = buf.extend_stale(count);
            let room = buf.vec().get_mut(start..).unwrap_or_default();
            let done = fs.read(cx, &file, offset, room);
            buf.truncate(start + done.map_or(0, |d| d.count));
            done.map(|d| (d.count, d.eof))
        };
        let cred = &self.node.reached.cred;
        let start = into.len();
        match core.inline(|| read(Context { cred, may_block: false }, into)) {
            Err(Status::WouldBlock) => {}
            // It may have panicked half done.
            done => return done.inspect_err(|_| into.truncate(start)),
        }
        let mut buf = std::mem::take(into);
        let job = move |cx: Context<'_>| {
            let done = read(cx, &mut buf);
            (buf, done)
        };
        let (buf, done) = core.pooled_look(who, cred, job).await?;
        *into = buf;
        done
    }

    /// Up to `count` bytes at `offset`, brought into memory if they are not, for the kernel to send
    /// unencrypted ([`engine::transport::link::Link::send_file`]). `None` if [`Reader::read`] has
    /// to do it.
    ///
    /// # Errors
    /// As of READ.
    pub async fn sendfile_range(
        &self,
        core: &Core,
        who: &Caller,
        (offset, count): (u64, usize),
    ) -> Result<Option<SendfileRange>> {
        core.files.still_reach(who, &self.node.reached, false)?;
        let (fs, file) = (Arc::clone(&self.node.reached.share.fs), self.node.handle);
        let look = move |cx: Context<'_>| fs.stretch(cx, &file, offset, count);
        match core.look(who, &self.node.reached.cred, look).await {
            Err(Status::NotSupported) => Ok(None),
            looked => looked.map(Some),
        }
    }
}
