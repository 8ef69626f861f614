//! The walk: directory by directory, each before what is in it, names by their bytes.

use std::collections::VecDeque;
use std::io;

use base::limits::{DSYNC_ENTRIES_BYTES, DSYNC_ENTRIES_MAX, DSYNC_NAME_OVERHEAD, PATH_MAX};
use wire::dsync::frame::{self, HEAD};
use wire::dsync::{Bytes, Directory, DirectoryEnd, Entries, Entry, Kind, Message, Meta, Time};
use wire::xdr::Seq;

use super::Shared;
use crate::error::{SyncError, Why};
use crate::link::sentence;
use crate::memory::Reserved;
use crate::tree::aside::is_aside;
use crate::tree::{ScannedEntry, Tree, join};

/// What an entry takes of a message, its strings apart.
const ENTRY_BYTES: usize = 100;

/// Lists the whole tree.
pub(super) fn walk<T: Tree>(shared: &Shared<T>) -> Result<(), Why> {
    let top = shared.tree.dir(b"").and_then(|dir| shared.tree.look(&dir, b""));
    let meta = match top {
        Ok(seen) => sent(shared, seen)?,
        Err(e) => {
            return Err(shared
                .stop
                .fail(SyncError::Place { place: "the top of the source".to_owned(), source: e }));
        }
    };
    let mut scan = Scan { shared, batch: Vec::new(), bytes: 0 };
    // Directories that were not walked yet, by the directory that they are in.
    let mut above: Vec<(Vec<u8>, Waiting)> = Vec::new();
    above.push((Vec::new(), scan.directory(b"", b"", Some(meta))?));
    while let Some((path, left)) = above.last_mut() {
        match left.names.pop_front() {
            Some(name) => {
                left.held.shrink(held(&name));
                let path = join(path, &name);
                let inner = scan.directory(&path, &name, None)?;
                above.push((path, inner));
            }
            None => drop(above.pop()),
        }
    }
    scan.send(&Message::ScanEnd(()))
}

/// Metadata as it is sent.
///
/// # Errors
/// Why the run ends.
pub(super) fn sent<T: Tree>(shared: &Shared<T>, seen: ScannedEntry) -> Result<Meta, Why> {
    let mut meta = seen.meta;
    if seen.names < 2 || meta.kind == Kind::DIRECTORY {
        meta.link = None;
    }
    if !shared.options.xattrs {
        meta.xattrs = Seq::default();
    }
    // Within one machine names and numbers are the same.
    if shared.options.owners && shared.options.names && shared.lends.is_none() {
        shared.owners.send_names(&shared.tree, &shared.out, &meta)?;
    }
    Ok(meta)
}

/// Directories that wait to be walked, by their names in the one that they are in.
struct Waiting {
    names: VecDeque<Vec<u8>>,
    held: Reserved,
}

/// What a name takes that waits.
fn held(name: &[u8]) -> u64 {
    name.len() as u64 + DSYNC_NAME_OVERHEAD
}

struct Scan<'a, T> {
    shared: &'a Shared<T>,
    batch: Vec<Entry>,
    bytes: usize,
}

impl<T: Tree> Scan<'_, T> {
    /// Sends a directory; the names of those in it.
    fn directory(&mut self, path: &[u8], name: &[u8], meta: Option<Meta>) -> Result<Waiting, Why> {
        self.send(&Message::Directory(Directory { name: Bytes(name.to_vec()), meta }))?;
        let tree = &self.shared.tree;
        let mut inner = Waiting { names: VecDeque::new(), held: tree.memory().reserve() };
        let listed = tree.dir(path).and_then(|dir| Ok((tree.names(&dir)?, dir)));
        let failed = match listed {
            Ok(((names, _held), dir)) => {
                for name in names.into_iter().filter(|name| !is_aside(name)) {
                    self.entry(path, &dir, name, &mut inner)?;
                }
                None
            }
            Err(e) => Some(sentence(&e.to_string())),
        };
        self.leave()?;
        self.send(&Message::DirectoryEnd(DirectoryEnd { failed }))?;
        Ok(inner)
    }

    fn entry(
        &mut self,
        path: &[u8],
        dir: &T::Dir,
        name: Vec<u8>,
        inner: &mut Waiting,
    ) -> Result<(), Why> {
        let path = join(path, &name);
        let meta = match self.shared.tree.look(dir, &name) {
            _ if path.len() >= PATH_MAX => unreadable("its path is longer than PATH_MAX"),
            Ok(seen) => sent(self.shared, seen)?,
            // Removed since the directory was read.
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) => unreadable(&e.to_string()),
        };
        let directory = meta.kind == Kind::DIRECTORY;
        if !self.shared.rules.carries(&path, directory) {
            return Ok(());
        }
        if directory {
            let grown = inner.held.grow(held(&name));
            grown.map_err(|full| self.shared.stop.fail(SyncError::Directories(full)))?;
            inner.names.push_back(name.clone());
        }
        let xattrs = meta.xattrs.0.iter().map(|x| x.name.0.len() + x.value.0.len() + 16);
        let bytes = ENTRY_BYTES + name.len() + meta.target.0.len() + xattrs.sum::<usize>();
        if self.bytes + bytes > DSYNC_ENTRIES_BYTES {
            self.leave()?;
        }
        self.bytes += bytes;
        self.batch.push(Entry { name: Bytes(name), meta });
        if self.batch.len() == DSYNC_ENTRIES_MAX { self.leave() } else { Ok(()) }
    }

    /// Sends what was gathered.
    fn leave(&mut self) -> Result<(), Why> {
        self.bytes = 0;
        if self.batch.is_empty() {
            return Ok(());
        }
        let entries = Seq(std::mem::take(&mut self.batch));
        self.send(&Message::Entries(Entries { entries }))
    }

    /// Sends when the other side has room.
    fn send(&self, message: &Message<'_>) -> Result<(), Why> {
        let mut bytes = Vec::new();
        frame::put(message, &mut bytes);
        let costs = (bytes.len() - HEAD) as u64;
        self.shared.credit.wait(|credit| {
            *credit = credit.checked_sub(costs)?;
            Some(())
        })?;
        self.shared.out.send_frame(bytes)
    }
}

/// An entry that exists, of which nothing more is known.
fn unreadable(why: &str) -> Meta {
    Meta {
        kind: Kind::UNREADABLE,
        mode: 0,
        uid: 0,
        gid: 0,
        size: 0,
        mtime: Time { seconds: 0, nanoseconds: 0 },
        major: 0,
        minor: 0,
        target: sentence(why),
        link: None,
        xattrs: Seq::default(),
    }
}
