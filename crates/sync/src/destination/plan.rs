//! The plan: the listing of the source, compared with what is here, a directory at a time.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use base::limits::{DSYNC_DEPTH_MAX, DSYNC_NAME_OVERHEAD, DSYNC_SCAN_WINDOW, PATH_MAX};
use wire::dsync::{About, Credit, Directory, Entries, Entry, Kind, Message, Meta, Xattr};

use super::failed::{Failed, broken};
use super::link_table::Links;
use super::node::{LocalEntry, Node};
use super::{Shared, why};
use crate::error::SyncError;
use crate::memory::{MemoryFull, Reserved};
use crate::tree::aside::is_aside;
use crate::tree::{ScannedEntry, Tree, is_name, join};

/// A directory of the source that will be listed.
pub(super) struct Child {
    pub name: Vec<u8>,
    pub wanted: Meta,
    pub here: LocalEntry,
    /// Whether it has to be made what it should be.
    pub changed: bool,
    /// What of it is held, in bytes.
    bytes: u64,
}

/// A directory that is being listed, or was, and has directories that were not.
pub(super) struct Open<T: Tree> {
    pub node: Arc<Node>,
    /// Nothing where it is not there.
    pub dir: Option<T::Dir>,
    /// The names here, the memory of them, and how many of them were looked at.
    own: Vec<Vec<u8>>,
    own_held: Option<Reserved>,
    at: usize,
    /// Of them, those that the source does not have.
    extra: Vec<Vec<u8>>,
    last: Option<Vec<u8>>,
    children: VecDeque<Child>,
    ended: bool,
    /// What is held of the directory itself, in bytes.
    bytes: u64,
}

/// The plan as far as it is made.
pub struct Plan<T: Tree> {
    pub(super) shared: Arc<Shared<T>>,
    open: Vec<Open<T>>,
    pub(super) links: Links,
    begun: bool,
    /// Bytes that were dealt with and not given back.
    spent: u64,
    /// What is held of directories of which not all entries were received.
    held: Reserved,
    /// Why no more of them can be held.
    full: Option<MemoryFull>,
}

impl<T: Tree> Plan<T> {
    /// Nothing was listed.
    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        let (links, held) = (Links::new(shared.tree.memory()), shared.tree.memory().reserve());
        Self { shared, open: Vec::new(), links, begun: false, spent: 0, held, full: None }
    }

    /// Takes a message of the source.
    pub(super) fn take(&mut self, message: Message<'_>) -> Result<(), Failed> {
        match message {
            Message::Directory(directory) => self.directory(directory),
            Message::Entries(entries) => self.entries(entries),
            Message::DirectoryEnd(end) => {
                let failed = end.failed.map(|text| String::from_utf8_lossy(&text.0).into_owned());
                self.end(failed)
            }
            _ => self.end_of_entries(),
        }
    }

    /// Lets the source be ahead again, by what was dealt with.
    pub(super) fn credit(&mut self, bytes: u64) -> Result<(), Failed> {
        self.spent += bytes;
        if self.spent >= DSYNC_SCAN_WINDOW / 8 {
            let bytes = std::mem::take(&mut self.spent);
            self.shared.out.send(&Message::Credit(Credit { bytes }))?;
        }
        Ok(())
    }

    /// Waits for all operations in progress, and does what comes last.
    pub(super) fn finish(&mut self) -> Result<(), Failed> {
        self.shared.tracker.idle()?;
        self.make_links();
        if !self.shared.options.dry_run
            && let Err(e) = self.shared.tree.flush()
        {
            self.shared.fail(b"", &format!("flushing it to disk: {}", why(&e)));
        }
        Ok(())
    }

    fn directory(&mut self, directory: Directory) -> Result<(), Failed> {
        while let Some(open) = self.open.pop_if(|open| open.ended && open.children.is_empty()) {
            self.held.shrink(open.bytes);
        }
        let Some(above) = self.open.last_mut() else { return self.top(directory) };
        if !above.ended {
            return broken("a directory before the end of another");
        }
        let Some(child) = above.children.pop_front().filter(|c| c.name == directory.name.0) else {
            return broken("a directory out of order");
        };
        let path = join(&above.node.path, &child.name);
        let node = Node::new(path, child.here, child.wanted, Some(Arc::clone(&above.node)));
        if child.changed {
            node.touch();
        }
        if self.open.len() >= DSYNC_DEPTH_MAX {
            return broken("directories deeper than any path");
        }
        self.begin(node, child.bytes);
        Ok(())
    }

    fn top(&mut self, directory: Directory) -> Result<(), Failed> {
        let Some(meta) = directory.meta.filter(|meta| meta.kind == Kind::DIRECTORY) else {
            return broken("a top that is not a directory");
        };
        if std::mem::replace(&mut self.begun, true) || !directory.name.0.is_empty() {
            return broken("a second top");
        }
        let (shared, wanted) = (Arc::clone(&self.shared), self.shared.wanted(meta));
        let dir = shared.tree.dir(b"");
        let seen = dir.and_then(|dir| Ok((shared.tree.look(&dir, b"")?, dir)));
        let (here, changed) = match &seen {
            _ if shared.tree.is_new() => {
                shared.note(About::CREATE, b"", "");
                (if seen.is_ok() { LocalEntry::There } else { LocalEntry::Would }, true)
            }
            Ok((seen, dir)) => {
                let changed = !shared.is_same(Some(dir), seen, &wanted);
                if changed {
                    shared.note(About::METADATA, b"", "");
                }
                (LocalEntry::There, self.enable(b"", b"") || changed)
            }
            Err(e) => {
                shared.fail(b"", &why(e));
                (LocalEntry::Not, false)
            }
        };
        let node = Node::new(Vec::new(), here, wanted, None);
        if changed {
            node.touch();
        }
        self.begin(node, 0);
        Ok(())
    }

    /// Begins with a directory: what is here of it.
    fn begin(&mut self, node: Arc<Node>, bytes: u64) {
        let shared = Arc::clone(&self.shared);
        let mut open = Open {
            node,
            dir: None,
            own: Vec::new(),
            own_held: None,
            at: 0,
            extra: Vec::new(),
            last: None,
            children: VecDeque::new(),
            ended: false,
            bytes,
        };
        if open.node.here == LocalEntry::There {
            let listed = shared.tree.dir(&open.node.path);
            match listed.and_then(|dir| Ok((shared.tree.names(&dir)?, dir))) {
                Ok(((names, held), dir)) => {
                    open.own_held = Some(held);
                    open.own = shared.without_asides(names, &open.node);
                    open.dir = Some(dir);
                }
                // Without knowing what is here nothing can be done here.
                Err(e) => shared.fail(&open.node.path, &why(&e)),
            }
        }
        self.open.push(open);
    }

    fn entries(&mut self, entries: Entries) -> Result<(), Failed> {
        let count = entries.entries.0.len() as u64;
        self.shared.tracker.count(|counts| counts.entries += count);
        let Some(mut open) = self.open.pop() else {
            return broken("entries for no directory");
        };
        let taken = match open.ended {
            true => broken("entries after their directory's end"),
            false => entries.entries.0.into_iter().try_for_each(|e| {
                self.entry(&mut open, e)?;
                self.full.map_or(Ok(()), |full| Err(Failed::Run(SyncError::Directories(full))))
            }),
        };
        self.open.push(open);
        taken
    }

    fn entry(&mut self, open: &mut Open<T>, entry: Entry) -> Result<(), Failed> {
        let name = entry.name.0;
        check(&name, &entry.meta)?;
        if open.last.as_ref().is_some_and(|last| *last >= name) {
            return broken("entries out of order");
        }
        open.last = Some(name.clone());
        let path = join(&open.node.path, &name);
        if path.len() >= PATH_MAX && entry.meta.kind != Kind::UNREADABLE {
            return broken("a path that is too long");
        }
        if !self.shared.rules.carries(&path, entry.meta.kind == Kind::DIRECTORY) {
            return broken("excluded entries");
        }
        while let Some(own) = open.own.get_mut(open.at) {
            match (*own).cmp(&name) {
                Ordering::Less => open.extra.push(std::mem::take(own)),
                Ordering::Equal => {}
                Ordering::Greater => break,
            }
            open.at += 1;
        }
        let lost = open.node.here == LocalEntry::Not
            || (open.node.here == LocalEntry::There && open.dir.is_none());
        if lost {
            if entry.meta.kind == Kind::DIRECTORY {
                self.child(open, name, entry.meta, LocalEntry::Not, false);
            }
            return Ok(());
        }
        let own = match self.look(open, &name) {
            Ok(own) => own,
            Err(e) => {
                self.shared.fail(&path, &why(&e));
                if entry.meta.kind == Kind::DIRECTORY {
                    self.child(open, name, entry.meta, LocalEntry::Not, false);
                }
                return Ok(());
            }
        };
        self.decide(open, name, path, entry.meta, own)
    }

    /// What is here under a name.
    fn look(&self, open: &Open<T>, name: &[u8]) -> io::Result<Option<ScannedEntry>> {
        let Some(dir) = &open.dir else { return Ok(None) };
        match self.shared.look(dir, name) {
            Ok(seen) => Ok(Some(seen)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Remembers a directory that will be listed.
    pub(super) fn child(
        &mut self,
        open: &mut Open<T>,
        name: Vec<u8>,
        wanted: Meta,
        here: LocalEntry,
        changed: bool,
    ) {
        open.node.hold();
        let wanted = self.shared.wanted(wanted);
        let bytes = size(&name, &wanted);
        if let Err(full) = self.held.grow(bytes) {
            self.full.get_or_insert(full);
            return;
        }
        open.children.push_back(Child { name, wanted, here, changed, bytes });
    }

    /// Ends a directory's entries. Only what a source knows completely may be taken for removed.
    fn end(&mut self, failed: Option<String>) -> Result<(), Failed> {
        let Some(mut open) = self.open.pop() else { return broken("the end of no directory") };
        if open.ended {
            self.open.push(open);
            return broken("a second end of a directory");
        }
        open.ended = true;
        let rest = open.own.split_off(open.at.min(open.own.len()));
        open.extra.extend(rest);
        open.own = Vec::new();
        let (extra, _held) = (std::mem::take(&mut open.extra), open.own_held.take());
        match (failed, &open.dir) {
            (Some(text), _) => {
                // What belongs to a file that was not listed may still be of use.
                open.node.take_left();
                self.shared.fail(&open.node.path, &format!("at the source: {text}"));
            }
            (None, Some(dir)) if self.shared.options.delete => {
                for name in extra {
                    self.shared.delete(dir, &open.node, &name);
                }
            }
            _ => {}
        }
        self.shared.release(&open.node);
        self.open.push(open);
        Ok(())
    }

    fn end_of_entries(&mut self) -> Result<(), Failed> {
        let left = self.open.iter().any(|open| !open.ended || !open.children.is_empty());
        if left || !self.begun {
            return broken("an end before all entries");
        }
        self.open.clear();
        self.shared.tracker.count(|counts| counts.scanned = true);
        Ok(())
    }

    /// Lets this process work in a directory. Whether its mode has to be set again behind it.
    pub(super) fn enable(&self, dir: &[u8], name: &[u8]) -> bool {
        let tree = &self.shared.tree;
        let enabled = || tree.dir(dir).and_then(|dir| tree.enable(&dir, name));
        // An error is ignored: what it prevents fails later with an error of its own.
        !self.shared.options.dry_run && enabled().unwrap_or(false)
    }
}

/// What a directory that was listed takes while it is held, in bytes.
fn size(name: &[u8], wanted: &Meta) -> u64 {
    let xattr = |x: &Xattr| x.name.0.len() as u64 + x.value.0.len() as u64 + DSYNC_NAME_OVERHEAD;
    let xattrs: u64 = wanted.xattrs.0.iter().map(xattr).sum();
    size_of::<Child>() as u64 + name.len() as u64 + xattrs + wanted.target.0.len() as u64
}

/// Whether an entry is one that a source may send.
fn check(name: &[u8], meta: &Meta) -> Result<(), Failed> {
    if !is_name(name) {
        return broken("a name that is not inside the directory");
    }
    if is_aside(name) {
        return broken("a name of dsync's own");
    }
    check_meta(meta)
}

/// Whether metadata is such as a file can have.
pub(super) fn check_meta(meta: &Meta) -> Result<(), Failed> {
    if meta.kind.known_name().is_none() {
        return broken("an entry of an unknown kind");
    }
    if meta.mtime.nanoseconds >= 1_000_000_000 {
        return broken("an invalid time");
    }
    let target = &meta.target.0;
    if meta.kind == Kind::SYMLINK && (target.is_empty() || target.contains(&0)) {
        return broken("a symbolic link to nothing");
    }
    if meta.xattrs.0.iter().any(|x| x.name.0.is_empty() || x.name.0.contains(&0)) {
        return broken("an extended attribute without a name");
    }
    Ok(())
}
