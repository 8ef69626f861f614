//! The resolution of a path from the root of a share to a file: one directory after the other, by
//! handle. Symbolic links are followed here and never out of the share. An absolute link is a path
//! as clients see it, `/SHARE/path`, of this share: so a link works for the client that has made
//! it.
//!
//! A caller with a directory of the share as its root, by the setting `login_root`, is confined to
//! that as others are to the share: a link of the caller that leads above it fails, even if it
//! leads back.
//!
//! Every step is an operation of the caller on a directory that was reached before, so whatever is
//! renamed or replaced meanwhile, the file that is found was within the share.

use base::limits::{
    SMB_WORK_STEP, TRANSFER_LINKS_MAX, TRANSFER_LISTED_STEPS_MAX, TRANSFER_PARTS_MAX,
    TRANSFER_STEPS_MAX,
};
use vfs::attr::{Attr, FileType};
use vfs::fs::{Context, Entry, FileSystem, Result};
use vfs::handle::Handle;
use vfs::share::Share;
use vfs::status::Status;

use super::caller::{Caller, Folding};
use super::path::VPath;

/// What to do with a symbolic link at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// Go where it leads.
    Follow,
    /// It is meant itself.
    Keep,
}

/// Where a name is, or may be made.
pub struct At {
    /// The directory.
    pub dir: Handle,
    /// The name in it.
    pub name: Vec<u8>,
    /// What has the name, unless it is free.
    pub entry: Option<Entry>,
    /// The link that the path has named and that led here.
    pub link: Option<Link>,
}

/// A symbolic link that was followed: where it is itself.
#[derive(Debug, Clone)]
pub struct Link {
    /// Its directory.
    pub dir: Handle,
    /// Its name in that.
    pub name: Vec<u8>,
    /// Its attributes.
    pub attr: Attr,
}

struct Walk<'a> {
    fs: &'a dyn FileSystem,
    cx: Context<'a>,
    /// What a link that begins with a slash must begin with: the name of the share, and the way to
    /// the caller's root.
    top: Vec<&'a [u8]>,
    /// Directories from the share's root to where it is.
    dirs: Vec<Handle>,
    /// How many of them lead to the caller's root: there is no way up from the last of these.
    top_dirs: usize,
    /// What is still to go, the next part last.
    rest: Vec<Vec<u8>>,
    links: usize,
    /// The link at the end of the path, once it was followed.
    link: Option<Link>,
    /// With what a name is looked for in another case, if that will do.
    folds: Option<&'a Folding>,
    /// Parts gone so far, those of links among them.
    steps: usize,
}

impl<'a> Walk<'a> {
    /// A walk along `parts` of a share, of which the first `root` are the way to the caller's root.
    /// The configuration sets that part, so links on it may lead anywhere in the share.
    fn new(share: &'a Share, cx: Context<'a>, within: &'a Within) -> Result<Self> {
        let Within { parts, root, folds } = within;
        let (above, below) = parts.split_at_checked(*root).ok_or(Status::Invalid)?;
        let reversed = |parts: &[Vec<u8>]| parts.iter().rev().cloned().collect();
        let fs = &*share.fs;
        // Clients of a share that is all of the machine see no name of it.
        let top = if fs.is_machine_root() { vec![] } else { vec![share.name.as_bytes()] };
        let (dirs, rest) = (vec![fs.root()], reversed(above));
        let folds = folds.as_ref();
        let (links, link, steps) = (0, None, 0);
        let mut walk = Self { fs, cx, top, dirs, top_dirs: 1, rest, links, link, folds, steps };
        if let Some(At { entry, .. }) = walk.last(Links::Follow)? {
            let entry = entry.ok_or(Status::NotFound)?;
            if entry.attr.kind != FileType::Directory {
                return Err(Status::NotDirectory);
            }
            walk.dirs.push(entry.handle);
        }
        walk.top_dirs = walk.dirs.len();
        walk.top.extend(above.iter().map(Vec::as_slice));
        (walk.rest, walk.link) = (reversed(below), None);
        Ok(walk)
    }

    fn here(&self) -> Handle {
        self.dirs.last().copied().unwrap_or_else(|| self.fs.root())
    }

    /// Looks a name up where it is; `None` if there is none. Where a name in another case will do,
    /// gives it.
    fn look(&self, name: &mut Vec<u8>) -> Result<Option<Entry>> {
        match self.fs.lookup(self.cx, &self.here(), name) {
            Ok((entry, _)) => Ok(Some(entry)),
            Err(failed) if failed.status == Status::NotFound => match self.folds {
                Some(folds) => self.look_folded(name, folds),
                None => Ok(None),
            },
            Err(failed) => Err(failed.status),
        }
    }

    fn look_folded(&self, name: &mut Vec<u8>, folds: &Folding) -> Result<Option<Entry>> {
        let Folding { index, work } = folds;
        let found = vfs::fold::find(self.fs, self.cx, (&self.here(), name), (index, work))?;
        Ok(found.map(|(real, entry)| {
            *name = real;
            entry
        }))
    }

    /// Puts the target of a link before what is still to go.
    fn follow(&mut self, link: &Handle) -> Result<()> {
        self.links += 1;
        if self.links > TRANSFER_LINKS_MAX {
            return Err(Status::Loop);
        }
        let (target, _) = self.fs.readlink(self.cx, link)?;
        let mut parts =
            target.split(|b| *b == b'/').filter(|part| !part.is_empty() && *part != b".");
        if target.starts_with(b"/") {
            if self.top.iter().any(|part| parts.next() != Some(part)) {
                return Err(Status::Access);
            }
            self.dirs.truncate(self.top_dirs);
        }
        let before = self.rest.len();
        self.rest.extend(parts.map(<[u8]>::to_vec));
        if self.rest.len() > TRANSFER_PARTS_MAX {
            return Err(Status::NameTooLong);
        }
        if let Some(added) = self.rest.get_mut(before..) {
            added.reverse();
        }
        Ok(())
    }

    /// Goes into what a part before the last one names; `..` comes from links only.
    fn step(&mut self, name: &mut Vec<u8>) -> Result<()> {
        if name == b".." {
            return self.up();
        }
        let entry = self.look(name)?.ok_or(Status::NotFound)?;
        match entry.attr.kind {
            FileType::Directory => self.dirs.push(entry.handle),
            FileType::Symlink => self.follow(&entry.handle)?,
            _ => return Err(Status::NotDirectory),
        }
        Ok(())
    }

    fn up(&mut self) -> Result<()> {
        // Out of the share, or of what the caller has of it.
        if self.dirs.len() <= self.top_dirs {
            return Err(Status::Access);
        }
        self.dirs.pop();
        Ok(())
    }

    /// Walks until only the last name is left, with links in its place followed as `links` demands,
    /// and returns it. `None`: the path ends at the current directory.
    fn last(&mut self, links: Links) -> Result<Option<At>> {
        loop {
            let Some(mut name) = self.rest.pop() else { return Ok(None) };
            self.steps += 1;
            if self.steps > TRANSFER_STEPS_MAX {
                return Err(Status::NameTooLong);
            }
            if let Some(folds) = self.folds {
                folds.work.take(SMB_WORK_STEP)?;
            }
            if !self.rest.is_empty() {
                self.step(&mut name)?;
                continue;
            }
            if name == b".." {
                self.up()?;
                continue;
            }
            let entry = self.look(&mut name)?;
            match entry {
                Some(link) if link.attr.kind == FileType::Symlink && links == Links::Follow => {
                    let dir = self.here();
                    self.link.get_or_insert(Link { dir, name, attr: link.attr });
                    self.follow(&link.handle)?;
                }
                entry => {
                    let (dir, link) = (self.here(), self.link.take());
                    return Ok(Some(At { dir, name, entry, link }));
                }
            }
        }
    }
}

/// A path within a share, and how many of its first parts are the way to the caller's root.
#[derive(Debug, Clone)]
pub struct Within {
    parts: Vec<Vec<u8>>,
    root: usize,
    folds: Option<Folding>,
}

impl Within {
    /// The share of a path, and the path within it; `None` for the list of shares.
    ///
    /// # Errors
    /// [`Status::Access`] for what is not below the caller's root.
    pub fn of<'p>(who: &Caller, path: &'p VPath) -> Result<Option<(&'p [u8], Self)>> {
        if !path.starts_with(&who.root) {
            return Err(Status::Access);
        }
        let root = who.root.parts().len().saturating_sub(1);
        let folds = who.folds.clone();
        let within = |(share, parts): (&'p [u8], &[Vec<u8>])| {
            (share, Self { parts: parts.to_vec(), root, folds })
        };
        Ok(path.share().map(within))
    }
}

/// Finds what a path within a share leads to.
pub fn find(
    share: &Share,
    cx: Context<'_>,
    within: &Within,
    links: Links,
) -> Result<(Handle, Attr)> {
    let mut walk = Walk::new(share, cx, within)?;
    match walk.last(links)? {
        Some(at) => at.entry.map(|e| (e.handle, e.attr)).ok_or(Status::NotFound),
        None => {
            let here = walk.here();
            Ok((here, share.fs.getattr(cx, &here)?))
        }
    }
}

/// Finds where the last name of a path is, or may be made.
///
/// # Errors
/// [`Status::NotOwner`] for the root of the share, which is in no directory of it, and for the
/// caller's root, which is in no directory that the caller can reach.
pub fn place(share: &Share, cx: Context<'_>, within: &Within, links: Links) -> Result<At> {
    let mut walk = Walk::new(share, cx, within)?;
    walk.last(links)?.ok_or(Status::NotOwner)
}

/// Finds what symbolic links in the directory at a path lead to, in their order: `None` for those
/// that lead nowhere, or on a way longer than [`TRANSFER_LISTED_STEPS_MAX`].
///
/// # Errors
/// Of the directory.
pub fn find_links(
    share: &Share,
    cx: Context<'_>,
    (within, names): (&Within, &[Vec<u8>]),
) -> Result<Vec<Option<(Handle, Attr)>>> {
    let mut walk = Walk::new(share, cx, within)?;
    if let Some(At { entry, .. }) = walk.last(Links::Follow)? {
        let entry = entry.ok_or(Status::NotFound)?;
        if entry.attr.kind != FileType::Directory {
            return Err(Status::NotDirectory);
        }
        walk.dirs.push(entry.handle);
    }
    let dirs = walk.dirs.clone();
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        walk.dirs.clone_from(&dirs);
        walk.rest = vec![name.clone()];
        walk.steps = TRANSFER_STEPS_MAX.saturating_sub(TRANSFER_LISTED_STEPS_MAX);
        (walk.links, walk.link) = (0, None);
        let end = match walk.last(Links::Follow) {
            Ok(Some(at)) => at.entry.map(|e| (e.handle, e.attr)),
            Ok(None) => {
                let here = walk.here();
                share.fs.getattr(cx, &here).ok().map(|attr| (here, attr))
            }
            Err(Status::WouldBlock) => return Err(Status::WouldBlock),
            Err(_) => None,
        };
        found.push(end);
    }
    Ok(found)
}
