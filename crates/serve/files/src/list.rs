//! What is in a directory, some entries at a time.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::clock::{Deadline, NS_PER_S, wall_ns};
use base::limits::{POOL_LOOK, POOL_PATIENCE, TRANSFER_LIST_BATCH, TRANSFER_LIST_BATCH_BYTES};
use vfs::attr::{Attr, FileType, Time};
use vfs::fs::{Context, DirEntry, FileSystem, Result};
use vfs::handle::Handle;
use vfs::status::Status;

use super::caller::Caller;
use super::core::Core;
use super::node::Node;
use super::{set_aside, upload};
use engine::transport::budget::ReservedBytes;

/// One entry of a directory; never `.` or `..`, nor what is being uploaded.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Its name.
    pub name: Vec<u8>,
    /// Handle and attributes; `None` if it was gone when they were looked at, or is mounted.
    pub entry: Option<(Handle, Attr)>,
    /// Attributes of what another file system has there: it is shown and cannot be entered.
    pub mounted: Option<Attr>,
    /// Where the listing goes on behind it.
    cookie: u64,
}

impl Listed {
    /// An entry that no listing has brought.
    pub fn new(name: Vec<u8>, entry: Option<(Handle, Attr)>) -> Self {
        Self { name, entry, mounted: None, cookie: 0 }
    }

    /// What is shown of it; `None` if it was gone.
    pub fn attr(&self) -> Option<Attr> {
        self.entry.map(|(_, attr)| attr).or(self.mounted)
    }

    /// Bytes that it takes.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.name.capacity()
    }
}

/// A listing under way.
pub struct Listing {
    dir: Node,
    cookie: u64,
    verifier: [u8; 8],
    done: bool,
    /// What the last batch takes of the account: whoever asks for the next one is done with it.
    held: Option<ReservedBytes>,
}

/// One batch, as a pool thread brings it.
struct Batch {
    listed: Vec<Listed>,
    left: Vec<Vec<u8>>,
    cookie: u64,
    verifier: [u8; 8],
    eof: bool,
}

fn batch(
    fs: &dyn FileSystem,
    cx: Context<'_>,
    dir: &Handle,
    (from, verifier): (u64, [u8; 8]),
) -> Result<Batch> {
    let (mut listed, mut uploads, mut cookie) = (Vec::new(), Vec::new(), from);
    let mut each = |entry: DirEntry<'_>| {
        if listed.len() >= TRANSFER_LIST_BATCH {
            return false;
        }
        cookie = entry.cookie;
        let (name, mounted) = (entry.name.to_vec(), entry.mounted);
        match entry.name {
            b"." | b".." => {}
            name if upload::is_one(name) => {
                uploads.push((name.to_vec(), entry.entry.map(|e| e.attr)));
            }
            name if set_aside::is_hidden(name) => {}
            _ => {
                let entry = entry.entry.map(|e| (e.handle, e.attr));
                listed.push(Listed { name, entry, mounted, cookie });
            }
        }
        true
    };
    let done = fs.list(cx, dir, from, verifier, true, &mut each)?;
    // Some back ends give attributes only to those who ask for a name.
    for one in listed.iter_mut().filter(|one| one.attr().is_none()) {
        one.entry = fs.lookup(cx, dir, &one.name).ok().map(|(e, _)| (e.handle, e.attr));
    }
    let (now, ns) = (wall_ns(), NS_PER_S);
    let now = Time { sec: (now / ns) as i64, nsec: (now % ns) as u32 };
    let left = uploads.into_iter().filter(|(name, attr)| {
        let attr = attr.or_else(|| fs.lookup(cx, dir, name).ok().map(|(e, _)| e.attr));
        // Not when it was modified: clients set that.
        upload::is_left(name, attr.map(|attr| attr.ctime), now)
    });
    let left = left.map(|(name, _)| name).collect();
    Ok(Batch { listed, left, cookie, verifier: done.verifier, eof: done.eof })
}

impl Listing {
    /// Begins to list a directory.
    pub fn new(dir: Node) -> Self {
        Self { dir, cookie: 0, verifier: [0; 8], done: false, held: None }
    }

    /// The directory.
    pub fn dir(&self) -> &Node {
        &self.dir
    }

    /// Goes back: the next entries are those behind this one.
    pub fn rewind(&mut self, behind: &Listed) {
        (self.cookie, self.done) = (behind.cookie, false);
    }

    /// The next entries, at most [`TRANSFER_LIST_BATCH`]; `None` when there are no more. They come
    /// in no order.
    ///
    /// # Errors
    /// As of READDIR; [`Status::Busy`] if there is no room for a batch for too long.
    pub async fn next(&mut self, core: &Core, who: &Caller) -> Result<Option<Vec<Listed>>> {
        if self.done {
            return Ok(None);
        }
        self.held = None;
        self.held = Some(room(core).await?);
        let reached = &self.dir.reached;
        core.files.still_reach(who, reached, false)?;
        let (fs, dir) = (Arc::clone(&reached.share.fs), self.dir.handle);
        let from = (self.cookie, self.verifier);
        // A directory can be large, and its attributes on disk: never on the connection's thread.
        let run = move |cx: Context<'_>| batch(&*fs, cx, &dir, from);
        let batch = core.pooled(who, &reached.cred, run).await??;
        if let Some(held) = &mut self.held {
            held.set(batch.listed.iter().map(Listed::bytes).sum());
        }
        (self.cookie, self.verifier, self.done) = (batch.cookie, batch.verifier, batch.eof);
        if !batch.left.is_empty() && reached.writable {
            upload::clear(core, who, &self.dir, batch.left).await;
        }
        Ok(Some(batch.listed))
    }
}

/// Waits for room for a batch of the usual size.
async fn room(core: &Core) -> Result<ReservedBytes> {
    let until = Deadline::after(POOL_PATIENCE);
    loop {
        if let Some(held) = core.budget.try_hold(TRANSFER_LIST_BATCH_BYTES) {
            return Ok(held);
        }
        if until.passed() {
            return Err(Status::Busy);
        }
        core.engine.budgets.stalls.fetch_add(1, Relaxed);
        tokio::time::sleep(POOL_LOOK).await;
    }
}

/// Type and permissions in the ten characters that `ls -l` has for them.
pub fn mode_text(kind: FileType, mode: u32) -> [u8; 10] {
    let mut text = *b"----------";
    text[0] = match kind {
        FileType::Regular => b'-',
        FileType::Directory => b'd',
        FileType::Symlink => b'l',
        FileType::Block => b'b',
        FileType::Character => b'c',
        FileType::Fifo => b'p',
        FileType::Socket => b's',
    };
    for (n, letter) in b"rwxrwxrwx".iter().enumerate() {
        if mode & (0o400 >> n) != 0 {
            text[n + 1] = *letter;
        }
    }
    for (bit, at, letter) in [(0o4000, 3, b's'), (0o2000, 6, b's'), (0o1000, 9, b't')] {
        if mode & bit != 0 {
            let executable = text[at] == b'x';
            text[at] = if executable { letter } else { letter.to_ascii_uppercase() };
        }
    }
    text
}

#[cfg(test)]
mod tests;
