//! Files that were found, and places where one is or may be made.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::limits::TRANSFER_LISTED_LINKS;
use probe::op::FileId;
use vfs::attr::{Attr, FileType};
use vfs::fs::{Entry, Result};
use vfs::handle::Handle;
use vfs::locks::FileKey;
use vfs::share::Share;
use vfs::status::Status;

use super::Files;
use super::caller::{Caller, Reached};
use super::core::Core;
use super::path::VPath;
use super::walk::{self, Link, Links, Within};

/// A file, directory or link of a share, as a caller has found it.
#[derive(Clone)]
pub struct Node {
    /// Its share, and what that grants.
    pub reached: Reached,
    /// Its handle.
    pub handle: Handle,
    /// Its attributes, as they were then.
    pub attr: Attr,
}

impl Node {
    /// Its number in the statistics.
    pub fn file_id(&self) -> FileId {
        self.reached.share.fs.file_id(&self.handle)
    }

    /// By what the table of locks knows it.
    pub fn key(&self) -> FileKey {
        FileKey::from(&self.attr)
    }

    /// Whether it is a directory.
    pub fn is_dir(&self) -> bool {
        self.attr.kind == FileType::Directory
    }

    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.attr.kind == FileType::Regular
    }
}

/// What a path leads to.
#[derive(Clone)]
#[expect(clippy::large_enum_variant, reason = "taken apart where it is made; never kept")]
pub enum PathTarget {
    /// The list of shares.
    Root,
    /// Something in a share.
    Node(Node),
}

impl PathTarget {
    /// What is in a share.
    ///
    /// # Errors
    /// [`Status::IsDirectory`] for the list of shares.
    pub fn node(self) -> Result<Node> {
        match self {
            Self::Root => Err(Status::IsDirectory),
            Self::Node(node) => Ok(node),
        }
    }
}

/// A name in a directory: something is there, or may be made.
#[derive(Clone)]
pub struct Spot {
    /// The share, and what that grants.
    pub reached: Reached,
    /// The directory.
    pub dir: Handle,
    /// The name.
    pub name: Vec<u8>,
    /// What is there.
    pub entry: Option<Entry>,
    /// The link that led here, if it was followed.
    pub link: Option<Link>,
}

impl Spot {
    /// What is there.
    ///
    /// # Errors
    /// [`Status::NotFound`].
    pub fn node(&self) -> Result<Node> {
        let Entry { handle, attr } = self.entry.ok_or(Status::NotFound)?;
        Ok(Node { reached: self.reached.clone(), handle, attr })
    }
}

impl Files {
    /// A share by its name, as far as the caller may use it.
    ///
    /// # Errors
    /// [`Status::NotFound`], [`Status::Access`].
    pub fn reach(&self, who: &Caller, share: &[u8]) -> Result<Reached> {
        let table = self.shares.load();
        let name = std::str::from_utf8(share).map_err(|_| Status::NotFound)?;
        who.reach(table.by_name(name).ok_or(Status::NotFound)?)
    }

    /// Whether a caller still is a user with the rights that were checked at sign-in.
    pub fn is_welcome(&self, who: &Caller) -> bool {
        let now = self.identity.generation();
        if who.stood.load(Relaxed) == now {
            return true;
        }
        let stands = self.identity.stands(&who.person);
        if stands {
            who.stood.store(now, Relaxed);
        }
        stands
    }

    /// Checks that a caller still may use a share that was reached before, to change something with
    /// `to_change`. An open file, or an upload in progress, is usable only as long as the rights
    /// and the user exist.
    ///
    /// # Errors
    /// [`Status::Stale`] if the share is not served any more, [`Status::Access`] if nothing is
    /// granted there now, or not by the same identity, or the caller is no user any more,
    /// [`Status::ReadOnly`].
    pub fn still_reach(&self, who: &Caller, reached: &Reached, to_change: bool) -> Result<()> {
        if !self.is_welcome(who) {
            return Err(Status::Access);
        }
        let table = self.shares.load();
        let share = table.by_id(reached.share.id).ok_or(Status::Stale)?;
        if share.tree != reached.share.tree {
            return Err(Status::Stale);
        }
        let stands = share.rules_for(who.service).generation() == reached.rules;
        if stands && Arc::ptr_eq(share, &reached.share) {
            return if to_change { reached.for_change() } else { Ok(()) };
        }
        let now = who.reach(share)?;
        if *now.cred != *reached.cred {
            return Err(Status::Access);
        }
        if to_change { now.for_change() } else { Ok(()) }
    }
}

impl Core {
    /// The share of a path, as far as the caller may use it.
    ///
    /// # Errors
    /// [`Status::NotFound`], [`Status::Access`].
    pub fn reach(&self, who: &Caller, share: &[u8]) -> Result<Reached> {
        self.files.reach(who, share)
    }

    /// The shares that a caller may use, by name.
    pub fn shares(&self, who: &Caller) -> Vec<Arc<Share>> {
        let table = self.files.shares.load();
        let mut shares: Vec<_> =
            table.iter().filter(|share| who.reach(share).is_ok()).cloned().collect();
        shares.sort_by(|a, b| a.name.cmp(&b.name));
        shares
    }

    /// Finds what a path leads to.
    ///
    /// # Errors
    /// [`Status::NotDirectory`] for what is none and is named as one, with a slash at the end.
    /// As of LOOKUP; [`Status::Access`] for a link that leads out of the share, or of the caller's
    /// root.
    pub async fn find(&self, who: &Caller, path: &VPath, links: Links) -> Result<PathTarget> {
        let Some((share, within)) = Within::of(who, path)? else { return Ok(PathTarget::Root) };
        let reached = self.reach(who, share)?;
        let share = Arc::clone(&reached.share);
        let links = if path.is_of_dir() { Links::Follow } else { links };
        let look = move |cx: vfs::fs::Context<'_>| walk::find(&share, cx, &within, links);
        let (handle, attr) = self.look(who, &reached.cred, look).await?;
        if path.is_of_dir() && attr.kind != FileType::Directory {
            return Err(Status::NotDirectory);
        }
        Ok(PathTarget::Node(Node { reached, handle, attr }))
    }

    /// Finds what symbolic links in the directory at `path` lead to, for a listing that shows that,
    /// in their order: `None` for one that leads nowhere, or on a long way.
    ///
    /// # Errors
    /// As for [`Core::find`] of the directory.
    pub async fn find_links(
        &self,
        who: &Caller,
        path: &VPath,
        names: &[Vec<u8>],
    ) -> Result<Vec<Option<Node>>> {
        let (share, within) = Within::of(who, path)?.ok_or(Status::NotOwner)?;
        let reached = self.reach(who, share)?;
        let within = Arc::new(within);
        let mut found = Vec::with_capacity(names.len());
        for names in names.chunks(TRANSFER_LISTED_LINKS) {
            let (share, within, names) =
                (Arc::clone(&reached.share), Arc::clone(&within), names.to_vec());
            let look =
                move |cx: vfs::fs::Context<'_>| walk::find_links(&share, cx, (&within, &names));
            let ends = self.pooled_look(who, &reached.cred, look).await??;
            let node = |(handle, attr)| Node { reached: reached.clone(), handle, attr };
            found.extend(ends.into_iter().map(|end| end.map(node)));
        }
        Ok(found)
    }

    /// Finds the place that the last name of a path has in its directory. With [`Links::Follow`] an
    /// existing link is followed to its target, for operations that write through it.
    ///
    /// # Errors
    /// As for [`Core::find`]; [`Status::NotOwner`] for a share itself, the caller's root and the
    /// list of shares; [`Status::NotDirectory`] for what is none and is named as one, with a slash
    /// at the end, and [`Status::NotFound`] if nothing is there then.
    pub async fn spot(&self, who: &Caller, path: &VPath, links: Links) -> Result<Spot> {
        let spot = self.spot_for_dir(who, path, links).await?;
        if path.is_of_dir() && spot.entry.is_none() { Err(Status::NotFound) } else { Ok(spot) }
    }

    /// As [`Core::spot`], for a directory: it may be named with a slash at the end before it is
    /// there.
    ///
    /// # Errors
    /// The same but for that.
    pub async fn spot_for_dir(&self, who: &Caller, path: &VPath, links: Links) -> Result<Spot> {
        let (share, within) = Within::of(who, path)?.ok_or(Status::NotOwner)?;
        let reached = self.reach(who, share)?;
        let share = Arc::clone(&reached.share);
        let look = move |cx: vfs::fs::Context<'_>| walk::place(&share, cx, &within, links);
        let walk::At { dir, name, entry, link } = self.look(who, &reached.cred, look).await?;
        let is_dir = |entry: &Entry| entry.attr.kind == FileType::Directory;
        if path.is_of_dir() && !entry.as_ref().is_none_or(is_dir) {
            return Err(Status::NotDirectory);
        }
        Ok(Spot { reached, dir, name, entry, link })
    }

    /// A file's attributes as they are now.
    ///
    /// # Errors
    /// As of GETATTR.
    pub async fn attr(&self, who: &Caller, node: &Node) -> Result<Attr> {
        self.files.still_reach(who, &node.reached, false)?;
        let (fs, handle) = (Arc::clone(&node.reached.share.fs), node.handle);
        self.look(who, &node.reached.cred, move |cx| fs.getattr(cx, &handle)).await
    }

    /// Which of the rights in `want` ([`vfs::fs::access`]) the caller has; what would change
    /// something is never granted where the share refuses changes.
    ///
    /// # Errors
    /// As of ACCESS.
    pub async fn access(&self, who: &Caller, node: &Node, want: u32) -> Result<u32> {
        use vfs::fs::access::{DELETE, EXTEND, MODIFY};
        let want = if node.reached.writable { want } else { want & !(MODIFY | EXTEND | DELETE) };
        let (fs, handle) = (Arc::clone(&node.reached.share.fs), node.handle);
        let look = move |cx: vfs::fs::Context<'_>| fs.access(cx, &handle, want);
        self.look(who, &node.reached.cred, look).await.map(|(granted, _)| granted)
    }
}
