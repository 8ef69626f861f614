//! Taking away: what a source that was listed completely does not have, and what a run that broke
//! off has left.

use std::io;

use wire::dsync::{About, Kind};

use super::node::Node;
use super::{Shared, why};
use crate::memory::Reserved;
use crate::tree::aside::is_aside;
use crate::tree::{ScannedEntry, Tree, join};

impl<T: Tree> Shared<T> {
    /// The names that are compared. Temporary files of a broken run are left out: they are resumed,
    /// or swept when all in the directory has ended.
    pub(super) fn without_asides(&self, names: Vec<Vec<u8>>, node: &Node) -> Vec<Vec<u8>> {
        let (left, names): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| is_aside(name));
        if !self.options.dry_run && !left.is_empty() {
            node.touch();
            left.into_iter().for_each(|name| node.left(name));
        }
        names
    }

    pub(super) fn sweep(&self, dir: &T::Dir, path: &[u8], name: &[u8]) {
        // As a file: a directory is not dsync's, whatever it is called.
        if let Err(e) = self.tree.remove(dir, name, Kind::FILE)
            && e.kind() != io::ErrorKind::NotFound
        {
            self.fail(path, &why(&e));
        }
    }

    /// Deletes an entry with all that is in it, but for what the rules leave alone. Whether it is
    /// gone; in a dry run, whether it would be.
    pub(super) fn delete(&self, dir: &T::Dir, node: &Node, name: &[u8]) -> bool {
        if !self.options.dry_run {
            node.touch();
        }
        self.delete_at(dir, join(&node.path, name), name.to_vec())
    }

    /// The depth of a tree is not trusted: open levels are kept in a list, without recursion.
    fn delete_at(&self, dir: &T::Dir, path: Vec<u8>, name: Vec<u8>) -> bool {
        let mut levels = match self.begin(dir, path, name) {
            Begun::Ended(gone) => return gone,
            Begun::Directory(level) => vec![level],
        };
        loop {
            let Some(level) = levels.last_mut() else { return true };
            if let Some(name) = level.names.next() {
                let path = join(&level.path, &name);
                match self.member(level, path, name) {
                    Begun::Ended(gone) => level.gone &= gone,
                    Begun::Directory(inner) => {
                        // A descriptor for each would be more than there may be.
                        level.inner = None;
                        levels.push(inner);
                    }
                }
                continue;
            }
            let Some(level) = levels.pop() else { return true };
            let Level { path, name, seen, gone, .. } = *level;
            match levels.last_mut() {
                None => return gone && self.take(dir, &path, &name, &seen),
                Some(around) => {
                    around.gone &= gone
                        && match self.inner(around) {
                            Some(dir) => self.take(dir, &path, &name, &seen),
                            None => false,
                        };
                }
            }
        }
    }

    /// Deletes an entry of a directory that is being emptied, or begins to empty it.
    fn member(&self, level: &mut Level<T>, path: Vec<u8>, name: Vec<u8>) -> Begun<T> {
        let Some(inner) = self.inner(level) else { return Begun::Ended(false) };
        if !is_aside(&name) {
            return self.begin(inner, path, name);
        }
        if !self.options.dry_run {
            self.sweep(inner, &path, &name);
        }
        Begun::Ended(true)
    }

    /// A directory that is being emptied, opened.
    fn inner<'a>(&self, level: &'a mut Level<T>) -> Option<&'a T::Dir> {
        if level.inner.is_none() {
            match self.tree.dir(&level.path) {
                Ok(dir) => level.inner = Some(dir),
                Err(e) => self.fail(&level.path, &why(&e)),
            }
        }
        level.inner.as_ref()
    }

    /// Deletes an entry, or begins to empty it.
    fn begin(&self, dir: &T::Dir, path: Vec<u8>, name: Vec<u8>) -> Begun<T> {
        let seen = match self.look(dir, &name) {
            Ok(seen) => seen,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Begun::Ended(true),
            Err(e) => {
                self.fail(&path, &why(&e));
                return Begun::Ended(false);
            }
        };
        let directory = seen.meta.kind == Kind::DIRECTORY;
        if !self.rules.carries(&path, directory) {
            return Begun::Ended(false);
        }
        if !directory {
            return Begun::Ended(self.take(dir, &path, &name, &seen));
        }
        if !self.options.dry_run {
            // An error is ignored: what it prevents fails later with an error of its own.
            let _fails_later = self.tree.enable(dir, &name);
        }
        let listed = self.tree.dir(&path).and_then(|dir| Ok((self.tree.names(&dir)?, dir)));
        match listed {
            Ok(((names, held), inner)) => {
                let (names, inner, _held) = (names.into_iter(), Some(inner), held);
                let level = Level { path, name, seen, inner, names, _held, gone: true };
                Begun::Directory(Box::new(level))
            }
            Err(e) => {
                self.fail(&path, &why(&e));
                Begun::Ended(false)
            }
        }
    }

    /// Deletes an entry that is not a directory, or an empty one; whether it is gone.
    fn take(&self, dir: &T::Dir, path: &[u8], name: &[u8], seen: &ScannedEntry) -> bool {
        if !self.options.dry_run
            && let Err(e) = self.tree.remove(dir, name, seen.meta.kind)
        {
            self.fail(path, &why(&e));
            return false;
        }
        self.note(About::DELETE, path, "");
        self.note_others(path, seen, None);
        true
    }
}

/// A directory that is being emptied.
struct Level<T: Tree> {
    path: Vec<u8>,
    name: Vec<u8>,
    seen: ScannedEntry,
    /// Opened, unless what is in one of it is looked at.
    inner: Option<T::Dir>,
    names: std::vec::IntoIter<Vec<u8>>,
    _held: Reserved,
    /// Whether all that was looked at so far is gone.
    gone: bool,
}

/// The state of an entry that is to be deleted.
enum Begun<T: Tree> {
    /// Whether it is gone.
    Ended(bool),
    /// It is to be emptied first.
    Directory(Box<Level<T>>),
}
