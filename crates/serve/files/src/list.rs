//! What is in a directory, some entries at a time.

use std::sync::Arc;

use base::clock::{NS_PER_S, wall_ns};
use base::limits::{
    POOL_PATIENCE, TRANSFER_LIST_BATCH, TRANSFER_LIST_BATCH_BYTES, TRANSFER_LIST_LOOKED_MAX,
    TRANSFER_LIST_SCANNED_MAX,
};
use vfs::attr::{Attr, FileType, Time};
use vfs::fs::{Context, DirEntry, FileSystem, Result};
use vfs::handle::Handle;
use vfs::status::Status;

use super::caller::Caller;
use super::core::Core;
use super::held::HeldBytes;
use super::node::Node;
use super::{set_aside, upload};
use engine::transport::budget::Need;

/// One entry of a directory; never `.` or `..`, nor what is being uploaded.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Its name.
    pub name: Vec<u8>,
    /// Handle and attributes; `None` if it was gone when they were looked at, or is mounted.
    pub entry: Option<(Handle, Attr)>,
    /// Attributes of what another file system has there: it is shown and cannot be entered.
    pub mounted: Option<Attr>,
    /// The cookie at which the listing continues after it.
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

    /// Where a listing continues behind it: [`Listing::behind`], [`Listing::resume`].
    pub fn cookie(&self) -> u64 {
        self.cookie
    }

    /// Bytes that it takes.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.name.capacity()
    }
}

/// Which names of a directory are listed; called on a thread of the pool.
pub type Filter = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// What of a directory is listed.
#[derive(Clone, Default)]
pub struct ListOptions {
    /// Only these names; attributes of others are not looked at.
    pub filter: Option<Filter>,
    /// Whether names are enough: entries come without attributes, what is gone or mounted too.
    pub names_only: bool,
}

/// A listing in progress.
pub struct Listing {
    dir: Node,
    wanted: ListOptions,
    cookie: u64,
    verifier: [u8; 8],
    done: bool,
    /// Names that were looked at so far.
    looked: usize,
    /// What the last batch takes of the client's part: the next one takes its place.
    held: Option<HeldBytes>,
}

/// One batch, as a pool thread brings it.
struct Batch {
    listed: Vec<Listed>,
    /// Temporary files of uploads, with their attributes as far as they are known.
    uploads: Vec<(Vec<u8>, Option<Attr>)>,
    /// How many entries were read.
    looked: usize,
    cookie: u64,
    verifier: [u8; 8],
    eof: bool,
}

/// A directory, and where in it.
type Position<'a> = (&'a Handle, u64, [u8; 8]);

/// Reads on, with attributes or without, until a batch is full or `looked_max` entries were read.
fn read(
    (fs, cx): (&dyn FileSystem, Context<'_>),
    (dir, from, verifier): Position<'_>,
    filter: Option<&Filter>,
    (plus, looked_max): (bool, usize),
) -> Result<Batch> {
    let (listed, uploads, looked) = (Vec::new(), Vec::new(), 0);
    let mut batch = Batch { listed, uploads, looked, cookie: from, verifier, eof: false };
    let mut each = |entry: DirEntry<'_>| {
        if batch.listed.len() >= TRANSFER_LIST_BATCH || batch.looked >= looked_max {
            return false;
        }
        (batch.cookie, batch.looked) = (entry.cookie, batch.looked + 1);
        match entry.name {
            b"." | b".." => {}
            name if upload::is_one(name) => {
                batch.uploads.push((name.to_vec(), entry.entry.map(|e| e.attr)));
            }
            name if set_aside::is_hidden(name) => {}
            name if filter.is_some_and(|takes| !takes(name)) => {}
            name => {
                let (name, mounted, cookie) = (name.to_vec(), entry.mounted, entry.cookie);
                let entry = entry.entry.map(|e| (e.handle, e.attr));
                batch.listed.push(Listed { name, entry, mounted, cookie });
            }
        }
        true
    };
    let done = fs.list(cx, dir, from, verifier, plus, &mut each)?;
    (batch.verifier, batch.eof) = (done.verifier, done.eof);
    Ok(batch)
}

/// One batch. With a filter names are read alone first, some at a time: to look at the attributes
/// of what is left out costs ten times as much as to read its name.
fn batch(
    (fs, cx): (&dyn FileSystem, Context<'_>),
    mut at: Position<'_>,
    wanted: &ListOptions,
) -> Result<Batch> {
    let filter = wanted.filter.as_ref();
    if wanted.names_only {
        return read((fs, cx), at, filter, (false, TRANSFER_LIST_SCANNED_MAX));
    }
    let mut looked = 0;
    let mut batch = loop {
        if filter.is_none() {
            break read((fs, cx), at, None, (true, TRANSFER_LIST_LOOKED_MAX))?;
        }
        let names = read((fs, cx), at, filter, (false, TRANSFER_LIST_BATCH))?;
        if !names.listed.is_empty() {
            break read((fs, cx), at, filter, (true, names.looked))?;
        }
        looked += names.looked;
        if names.eof || looked >= TRANSFER_LIST_SCANNED_MAX {
            return Ok(Batch { looked, ..names });
        }
        (at.1, at.2) = (names.cookie, names.verifier);
    };
    batch.looked += looked;
    // Some back ends return attributes only for a lookup of the name.
    let dir = at.0;
    for one in batch.listed.iter_mut().filter(|one| one.attr().is_none()) {
        one.entry = fs.lookup(cx, dir, &one.name).ok().map(|(e, _)| (e.handle, e.attr));
    }
    Ok(batch)
}

/// Those of the temporary files that were left behind.
fn left(
    fs: &dyn FileSystem,
    cx: Context<'_>,
    dir: &Handle,
    uploads: Vec<(Vec<u8>, Option<Attr>)>,
) -> Vec<Vec<u8>> {
    let (now, ns) = (wall_ns(), NS_PER_S);
    let now = Time { sec: (now / ns) as i64, nsec: (now % ns) as u32 };
    let left = uploads.into_iter().filter(|(name, attr)| {
        let attr = attr.or_else(|| fs.lookup(cx, dir, name).ok().map(|(e, _)| e.attr));
        // Not when it was modified: clients set that.
        upload::is_left(name, attr.map(|attr| attr.ctime), now)
    });
    left.map(|(name, _)| name).collect()
}

impl Listing {
    /// Begins to list a directory.
    pub fn new(dir: Node) -> Self {
        Self::of(dir, ListOptions::default())
    }

    /// Begins to list a part of what is in a directory.
    pub fn of(dir: Node, wanted: ListOptions) -> Self {
        let (cookie, verifier, done, looked, held) = (0, [0; 8], false, 0, None);
        Self { dir, wanted, cookie, verifier, done, looked, held }
    }

    /// Continues behind the entry that had this cookie in another listing.
    #[must_use]
    pub fn behind(self, cookie: u64) -> Self {
        Self { cookie, ..self }
    }

    /// The directory.
    pub fn dir(&self) -> &Node {
        &self.dir
    }

    /// Whether there are no more entries.
    pub fn is_over(&self) -> bool {
        self.done
    }

    /// Goes back: the next entries are those behind this one.
    pub fn rewind(&mut self, behind: &Listed) {
        self.resume(behind.cookie);
    }

    /// Goes to where it was behind an entry.
    pub fn resume(&mut self, cookie: u64) {
        (self.cookie, self.done, self.held) = (cookie, false, None);
    }

    /// Where it is.
    pub fn cookie(&self) -> u64 {
        self.cookie
    }

    /// Names that were looked at so far, be they listed or not.
    pub fn looked(&self) -> usize {
        self.looked
    }

    /// What the last batch takes of the client's part, for what keeps its entries.
    pub fn take_held(&mut self) -> Option<HeldBytes> {
        self.held.take()
    }

    /// The next entries, at most [`TRANSFER_LIST_BATCH`]; `None` when there are no more. They come
    /// in no order. There may be none for a while: of what is hidden, or left out, so much is read
    /// at once and no more.
    ///
    /// # Errors
    /// As of READDIR; [`Busy`](vfs::status::Status::Busy) if there is no room for a batch for too
    /// long.
    pub async fn next(&mut self, core: &Core, who: &Caller) -> Result<Option<Vec<Listed>>> {
        if self.done {
            return Ok(None);
        }
        self.held = None;
        self.held = Some(room(core, who).await?);
        let reached = &self.dir.reached;
        core.files.still_reach(who, reached, false)?;
        let (fs, dir) = (Arc::clone(&reached.share.fs), self.dir.handle);
        let (from, verifier, wanted) = (self.cookie, self.verifier, self.wanted.clone());
        let clears = wanted.filter.is_none();
        // A directory can be large, and its attributes on disk: never on the connection's thread.
        let run = move |cx: Context<'_>| -> Result<(Batch, Vec<Vec<u8>>)> {
            let mut batch = batch((&*fs, cx), (&dir, from, verifier), &wanted)?;
            let mut uploads = std::mem::take(&mut batch.uploads);
            uploads.truncate(TRANSFER_LIST_BATCH);
            let left = if clears { left(&*fs, cx, &dir, uploads) } else { Vec::new() };
            Ok((batch, left))
        };
        let (batch, left) = core.pooled_look(who, &reached.cred, run).await??;
        self.looked += batch.looked;
        if let Some(held) = &mut self.held {
            held.set(batch.listed.iter().map(Listed::bytes).sum());
        }
        (self.cookie, self.verifier, self.done) = (batch.cookie, batch.verifier, batch.eof);
        if !left.is_empty() && reached.writable {
            upload::clear(core, who, &self.dir, left).await;
        }
        Ok(Some(batch.listed))
    }
}

/// Waits for room for a batch of the usual size, in the part of the client.
async fn room(core: &Core, who: &Caller) -> Result<HeldBytes> {
    let take = || core.held.take(who.queue(), TRANSFER_LIST_BATCH_BYTES);
    let need = Need::bytes(TRANSFER_LIST_BATCH_BYTES);
    core.room(Some(POOL_PATIENCE), need, take).await.ok_or(Status::Busy)
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
