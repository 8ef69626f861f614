//! Taking away: what a source that was listed completely does not have, and what a run that broke
//! off has left.

use std::io;

use wire::dsync::{About, Kind};

use super::node::Node;
use super::{Shared, why};
use crate::tree::aside::is_aside;
use crate::tree::{Tree, join};

impl<T: Tree> Shared<T> {
    /// The names that are compared. Those of files that a broken run left beside are kept, to be
    /// taken up, or swept when all in the directory has ended.
    pub(super) fn without_asides(&self, names: Vec<Vec<u8>>, node: &Node) -> Vec<Vec<u8>> {
        let (left, names): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| is_aside(name));
        if !self.options.dry_run && !left.is_empty() {
            node.touch();
            left.into_iter().for_each(|name| node.left(name));
        }
        names
    }

    pub(super) fn sweep(&self, dir: &T::Dir, path: &[u8], name: &[u8]) {
        // As a file: a directory is none of ours, whatever it is called.
        if let Err(e) = self.tree.remove(dir, name, Kind::FILE)
            && e.kind() != io::ErrorKind::NotFound
        {
            self.fail(path, &why(&e));
        }
    }

    /// Takes away an entry with all that is in it, but for what the rules leave alone. Whether it
    /// is gone; in a dry run, whether it would be.
    pub(super) fn delete(&self, dir: &T::Dir, node: &Node, name: &[u8]) -> bool {
        if !self.options.dry_run {
            node.touch();
        }
        self.delete_at(dir, &join(&node.path, name), name)
    }

    fn delete_at(&self, dir: &T::Dir, path: &[u8], name: &[u8]) -> bool {
        let seen = match self.look(dir, name) {
            Ok(seen) => seen,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return true,
            Err(e) => {
                self.fail(path, &why(&e));
                return false;
            }
        };
        let kind = seen.meta.kind;
        let directory = kind == Kind::DIRECTORY;
        if !self.rules.carries(path, directory) || (directory && !self.empty(dir, path, name)) {
            return false;
        }
        if !self.options.dry_run
            && let Err(e) = self.tree.remove(dir, name, kind)
        {
            self.fail(path, &why(&e));
            return false;
        }
        self.note(About::DELETE, path, "");
        self.note_others(path, &seen, None);
        true
    }

    /// Takes away what is in a directory; whether all of it is gone.
    fn empty(&self, dir: &T::Dir, path: &[u8], name: &[u8]) -> bool {
        if !self.options.dry_run {
            // What it cannot do is said by what fails then.
            let _fails_later = self.tree.enable(dir, name);
        }
        let listed = self.tree.dir(path).and_then(|dir| Ok((self.tree.names(&dir)?, dir)));
        let (names, inner) = match listed {
            Ok(listed) => listed,
            Err(e) => {
                self.fail(path, &why(&e));
                return false;
            }
        };
        let mut gone = true;
        for name in names {
            let path = join(path, &name);
            if !is_aside(&name) {
                gone &= self.delete_at(&inner, &path, &name);
            } else if !self.options.dry_run {
                self.sweep(&inner, &path, &name);
            }
        }
        gone
    }
}
