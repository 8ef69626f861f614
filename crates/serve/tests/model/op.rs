//! An operation of a client: which, what it makes of the tree when it is done, and how one is
//! chosen.

use base::random::Random;

use crate::tree::{Node, Path, SHARES, Tree, holds_share, root_of};

/// By what protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Dav,
    Sftp,
    Ftp,
    Nfs3,
    Nfs4,
}

/// A path as clients send it.
#[derive(Clone)]
pub struct SharePath {
    pub share: &'static str,
    pub path: Path,
}

impl std::fmt::Debug for SharePath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text())
    }
}

impl SharePath {
    /// As text, from the list of shares on.
    pub fn text(&self) -> String {
        let mut text = format!("/{}", self.share);
        for part in &self.path {
            text.push('/');
            text.push_str(part);
        }
        text
    }

    fn at(&self, tree: &Tree, follow: bool) -> Option<Path> {
        tree.resolve(self.share, &self.path, follow)
    }
}

/// What it does.
#[derive(Debug, Clone)]
pub enum What {
    /// Writes a file, a new one or in the place of one.
    Put(SharePath, String),
    Mkdir(SharePath),
    Symlink(SharePath, String),
    Link(SharePath, SharePath),
    /// Removes a file; over WebDAV and NFSv4 a directory too, over WebDAV with all in it.
    Remove(SharePath),
    Rmdir(SharePath),
    /// Whether what is at the new place may be replaced is up to the protocol where `replaces` has
    /// no word for it.
    Rename {
        from: SharePath,
        to: SharePath,
        replaces: bool,
    },
    Copy {
        from: SharePath,
        to: SharePath,
        replaces: bool,
        deep: bool,
    },
}

/// An operation.
#[derive(Debug, Clone)]
pub struct Op {
    pub by: By,
    pub what: What,
}

/// The names of all places: few, so that the same ones meet often.
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
/// The targets of symbolic links, in addition to existing paths.
const TARGETS: [&str; 8] =
    ["a", "../b", "b/c", "..", "../part", "/part/a", "/all/part/deep", "part"];

fn pick<'a, T>(random: &mut impl Random, all: &'a [T]) -> &'a T {
    &all[random.below(all.len() as u64) as usize]
}

/// A target for a link.
pub fn target(random: &mut impl Random) -> String {
    (*pick(random, &TARGETS)).to_owned()
}

/// A name.
pub fn name(random: &mut impl Random) -> String {
    (*pick(random, &NAMES)).to_owned()
}

/// Data that no other file has.
pub fn data(random: &mut impl Random) -> String {
    format!("{:016x}{}", random.next_u64(), ".".repeat(random.below(60) as usize))
}

/// A place: often an existing one, or next to one, or beyond a link.
fn place(random: &mut impl Random, tree: &Tree, share: &'static str) -> SharePath {
    let there = tree.paths(&root_of(share));
    let mut path = Path::new();
    if !there.is_empty() && random.below(20) > 0 {
        let (at, leads_on) = pick(random, &there);
        path.clone_from(at);
        if *leads_on && random.below(2) == 0 {
            path.push(name(random));
        }
    } else {
        path.push(name(random));
    }
    SharePath { share, path }
}

/// A place for something new: often nothing is there.
fn fresh(random: &mut impl Random, tree: &Tree, share: &'static str) -> SharePath {
    let mut dirs = tree.paths(&root_of(share));
    dirs.retain(|(_, leads_on)| *leads_on);
    dirs.push((Path::new(), true));
    let mut path = pick(random, &dirs).0.clone();
    path.push(name(random));
    SharePath { share, path }
}

/// Another path to what a place is, or to what is around it or in it: through another share.
fn alias(random: &mut impl Random, tree: &Tree, of: &SharePath) -> Option<SharePath> {
    let mut there = of.at(tree, false)?;
    match random.below(4) {
        0 => drop(there.pop()),
        1 => there.push(name(random)),
        _ => {}
    }
    let (share, root) = *pick(random, &SHARES);
    let within = root.len() < there.len() && root.iter().zip(&there).all(|(a, b)| a == b);
    within.then(|| SharePath { share, path: there.split_off(root.len()) })
}

impl Op {
    /// An operation on what is there. `None` if it would be on a share's own directory.
    pub fn random(random: &mut impl Random, tree: &Tree) -> Option<Self> {
        let by = *pick(random, &[By::Dav, By::Dav, By::Sftp, By::Ftp, By::Nfs3, By::Nfs4]);
        let (share, _) = *pick(random, &SHARES);
        // Often within one, where more can be done.
        let (other, _) =
            if random.below(3) == 0 { *pick(random, &SHARES) } else { (share, &[][..]) };
        let (one, mut two) = (place(random, tree, share), place(random, tree, other));
        if random.below(4) == 0 {
            two = alias(random, tree, &one).unwrap_or(two);
        }
        let replaces = random.below(4) > 0;
        let what = match random.below(16) {
            0 | 1 => What::Put(one, data(random)),
            2 => What::Mkdir(fresh(random, tree, share)),
            3 => What::Symlink(fresh(random, tree, share), target(random)),
            4 => What::Link(one, fresh(random, tree, share)),
            5 => What::Remove(one),
            6 => What::Rmdir(one),
            7..=11 => What::Rename { from: one, to: two, replaces },
            _ => What::Copy { from: one, to: two, replaces, deep: random.below(4) > 0 },
        };
        let op = Self { by: fitting(by, &what), what };
        let named = op.named(tree);
        named.iter().flatten().all(|path| !holds_share(path)).then_some(op)
    }

    /// The paths that it changes, without what is followed to get there.
    fn named(&self, tree: &Tree) -> [Option<Path>; 2] {
        match &self.what {
            What::Put(at, _) => [at.at(tree, true), at.at(tree, false)],
            What::Mkdir(at) | What::Symlink(at, _) | What::Remove(at) | What::Rmdir(at) => {
                [at.at(tree, false), None]
            }
            What::Rename { from, to, .. } => [from.at(tree, false), to.at(tree, false)],
            What::Link(_, to) | What::Copy { to, .. } => [to.at(tree, false), None],
        }
    }

    /// What it is counted as.
    pub fn kind(&self) -> String {
        let what = match &self.what {
            What::Put(..) => "put",
            What::Mkdir(_) => "mkdir",
            What::Symlink(..) => "symlink",
            What::Link(..) => "link",
            What::Remove(_) => "remove",
            What::Rmdir(_) => "rmdir",
            What::Rename { .. } => "rename",
            What::Copy { .. } => "copy",
        };
        format!("{:?} {what}", self.by)
    }

    /// The tree after it was done. `now` is what is on disk then: it shows whether a file that was
    /// written again is still the same file under its other names.
    pub fn apply(&self, before: &Tree, now: &Tree) -> Tree {
        let mut tree = before.clone();
        let at =
            |place: &SharePath, follow| place.at(before, follow).expect("done where it is refused");
        match &self.what {
            What::Put(place, data) => written(&mut tree, &at(place, true), data.clone(), now),
            What::Mkdir(place) => tree.put(&at(place, false), Node::Dir(Default::default())),
            What::Symlink(place, target) => {
                let number = tree.number();
                tree.put(&at(place, false), Node::Link(number, target.clone()));
            }
            What::Link(from, to) => {
                let node = before.get(&at(from, false)).expect("linked").clone();
                tree.put(&at(to, false), node);
            }
            What::Remove(place) | What::Rmdir(place) => drop(tree.take(&at(place, false))),
            What::Rename { from, to, .. } => {
                let (old, new) = (at(from, false), at(to, false));
                let number = |path: &Path| before.get(path).and_then(Node::number);
                // Two names of one file: rename(2) does nothing.
                if old == new || (number(&old).is_some() && number(&old) == number(&new)) {
                    return tree;
                }
                let node = tree.take(&old);
                let moved = match self.by == By::Dav && from.share != to.share {
                    true => tree.copy(&node, true),
                    false => node,
                };
                replaced(&mut tree, &new, moved, now);
            }
            What::Copy { from, to, deep, .. } => {
                let node = before.get(&at(from, true)).expect("copied").clone();
                let copy = tree.copy(&node, *deep);
                replaced(&mut tree, &at(to, false), copy, now);
            }
        }
        tree
    }
}

/// Puts a node where something is; a file that replaces a file with other names may be written into
/// it.
fn replaced(tree: &mut Tree, at: &Path, node: Node, now: &Tree) {
    match (tree.get(at), node) {
        (Some(Node::File(_)), Node::File(number)) if number >= 1 << 60 => {
            let data = tree.data[&number].clone();
            written(tree, at, data, now);
        }
        (_, node) => tree.put(at, node),
    }
}

/// Writes a file: into the existing one, if it is still that one, or as a new one.
fn written(tree: &mut Tree, at: &Path, data: String, now: &Tree) {
    let same = match (tree.get(at), now.get(at)) {
        (Some(Node::File(old)), Some(Node::File(new))) => (old == new).then_some(*old),
        _ => None,
    };
    let number = same.unwrap_or_else(|| tree.number());
    tree.data.insert(number, data);
    tree.put(at, Node::File(number));
}

/// A protocol that has the operation, if `by` has not.
fn fitting(by: By, what: &What) -> By {
    match (what, by) {
        (What::Copy { .. }, _) => By::Dav,
        (What::Symlink(..) | What::Link(..), By::Dav | By::Ftp) => By::Sftp,
        (What::Rmdir(_), By::Dav) => By::Ftp,
        (What::Rmdir(_), By::Nfs4) => By::Nfs3,
        (What::Put(..), By::Nfs4) => By::Nfs3,
        _ => by,
    }
}
