//! The way from the root of a share to a file: one directory after the other, by handle, with
//! symbolic links followed by us and never out of the share. One that begins with a slash is a path
//! as our clients see it, `/SHARE/path`, of this share: so a link works for him who has made it.
//!
//! Every step is an operation of the caller on a directory that was reached before, so whatever
//! somebody exchanges meanwhile, what is found was within the share.

use base::limits::{TRANSFER_LINKS_MAX, TRANSFER_PARTS_MAX, TRANSFER_STEPS_MAX};
use vfs::attr::{Attr, FileType};
use vfs::fs::{Context, Entry, FileSystem, Result};
use vfs::handle::Handle;
use vfs::share::Share;
use vfs::status::Status;

/// What to do with a symbolic link at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// Go where it leads.
    Follow,
    /// It is meant itself.
    Keep,
}

/// Where a name is, or may be made.
pub(crate) struct At {
    pub(crate) dir: Handle,
    pub(crate) name: Vec<u8>,
    pub(crate) entry: Option<Entry>,
}

struct Walk<'a> {
    fs: &'a dyn FileSystem,
    cx: Context<'a>,
    /// The share's name.
    share: &'a [u8],
    /// Directories from the root to where it is.
    dirs: Vec<Handle>,
    /// What is still to go, the next part last.
    rest: Vec<Vec<u8>>,
    links: usize,
    /// Parts gone so far, those of links among them.
    steps: usize,
}

impl<'a> Walk<'a> {
    fn new(share: &'a Share, cx: Context<'a>, parts: &[Vec<u8>]) -> Self {
        let rest = parts.iter().rev().cloned().collect();
        let (fs, name) = (&*share.fs, share.name.as_bytes());
        Self { fs, cx, share: name, dirs: vec![fs.root()], rest, links: 0, steps: 0 }
    }

    fn here(&self) -> Handle {
        self.dirs.last().copied().unwrap_or_else(|| self.fs.root())
    }

    /// Looks a name up where it is; `None` if there is none.
    fn look(&self, name: &[u8]) -> Result<Option<Entry>> {
        match self.fs.lookup(self.cx, &self.here(), name) {
            Ok((entry, _)) => Ok(Some(entry)),
            Err(failed) if failed.status == Status::NotFound => Ok(None),
            Err(failed) => Err(failed.status),
        }
    }

    /// Puts the target of a link before what is still to go.
    fn follow(&mut self, link: &Handle) -> Result<()> {
        self.links += 1;
        if self.links > TRANSFER_LINKS_MAX {
            return Err(Status::Invalid);
        }
        let (target, _) = self.fs.readlink(self.cx, link)?;
        let mut parts =
            target.split(|b| *b == b'/').filter(|part| !part.is_empty() && *part != b".");
        if target.starts_with(b"/") {
            if !self.fs.is_machine_root() && parts.next() != Some(self.share) {
                return Err(Status::Access);
            }
            self.dirs.truncate(1);
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
    fn step(&mut self, name: &[u8]) -> Result<()> {
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
        self.dirs.pop();
        // Out of the share.
        if self.dirs.is_empty() { Err(Status::Access) } else { Ok(()) }
    }

    /// Goes on until only one part is left, which leads somewhere by its own name; gives it.
    /// `None`: the way ends at the directory where it is.
    fn last(&mut self, links: Links) -> Result<Option<At>> {
        loop {
            let Some(name) = self.rest.pop() else { return Ok(None) };
            self.steps += 1;
            if self.steps > TRANSFER_STEPS_MAX {
                return Err(Status::NameTooLong);
            }
            if !self.rest.is_empty() {
                self.step(&name)?;
                continue;
            }
            if name == b".." {
                self.up()?;
                continue;
            }
            let entry = self.look(&name)?;
            match entry {
                Some(link) if link.attr.kind == FileType::Symlink && links == Links::Follow => {
                    self.follow(&link.handle)?;
                }
                entry => return Ok(Some(At { dir: self.here(), name, entry })),
            }
        }
    }
}

/// Finds what a path within a share leads to.
pub(crate) fn find(
    share: &Share,
    cx: Context<'_>,
    parts: &[Vec<u8>],
    links: Links,
) -> Result<(Handle, Attr)> {
    let mut walk = Walk::new(share, cx, parts);
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
/// [`Status::NotOwner`] for the root of the share, which is in no directory of it.
pub(crate) fn place(share: &Share, cx: Context<'_>, parts: &[Vec<u8>], links: Links) -> Result<At> {
    Walk::new(share, cx, parts).last(links)?.ok_or(Status::NotOwner)
}
