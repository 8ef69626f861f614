//! Names by which files are open (links of MS-FSA §2.1.1.5), and which of them are to be removed at
//! their last close. A name that is marked belongs to the file, whatever protocol renames it
//! meanwhile ([`LockTable::renamed`]); opens that keep the names of a file and marks exclude each
//! another, so that what was marked can be removed.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use super::file::FileLocks;
use super::{FileKey, LockTable, Owner, Refused};
use crate::attr::Attr;
use crate::handle::Handle;

/// Where a file was found: its directory and its name there. To remove or rename it there is to do
/// that with the link, if it is one that was followed.
#[derive(Debug, Clone)]
pub struct Location {
    /// The directory, by the handle of the share through which it was found.
    pub dir: Handle,
    /// The directory, whatever share it was found through.
    pub dir_key: FileKey,
    /// The name.
    pub name: Vec<u8>,
    /// Attributes of the symbolic link that has the name.
    pub link: Option<Box<Attr>>,
}

impl Location {
    /// Whether a link that was followed has the name.
    pub fn is_link(&self) -> bool {
        self.link.is_some()
    }

    /// Whether it is the same name, of the same link or file.
    pub fn is_same(&self, other: &Self) -> bool {
        self.dir_key.is_same_inode(&other.dir_key)
            && self.name == other.name
            && self.is_link() == other.is_link()
    }

    /// Attributes of what has the name: the link, or the file that it leads to.
    pub fn attr<'a>(&'a self, file: &'a Attr) -> &'a Attr {
        self.link.as_deref().unwrap_or(file)
    }

    fn place(&self) -> NameKey {
        ((self.dir_key.fsid, self.dir_key.fileid), self.name.clone())
    }
}

/// A name by which a file is open, among all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinkId(u64);

/// A file that is open, and in which directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenName {
    /// The file.
    pub key: FileKey,
    /// The name by which it is open.
    pub id: LinkId,
    /// The directory of that name.
    pub dir: Handle,
}

/// Why there is no other open by a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkRefused {
    /// The name is to be removed.
    DeletePending,
    /// Another client's open keeps the name, which this one would remove.
    NameInUse(Owner),
}

type NameKey = ((u64, u64), Vec<u8>);

#[derive(Debug)]
struct Link {
    id: LinkId,
    at: Location,
    opens: usize,
    /// The open that marked it.
    marked: Option<Owner>,
    /// Opens that mark it when they are closed.
    closing: Vec<Owner>,
}

impl Link {
    fn open_name(&self, key: FileKey) -> OpenName {
        OpenName { key, id: self.id, dir: self.at.dir }
    }

    /// The open that removes the file by this name: the file itself, not a symbolic link to it.
    fn remover(&self) -> Option<&Owner> {
        self.marked.as_ref().or(self.closing.first()).filter(|_| !self.at.is_link())
    }
}

/// All of them.
#[derive(Default)]
pub(super) struct Links {
    files: HashMap<FileKey, Vec<Link>>,
    places: HashMap<NameKey, Vec<(FileKey, LinkId)>>,
    next: u64,
}

impl Links {
    fn link(&mut self, key: FileKey, id: LinkId) -> Option<&mut Link> {
        self.files.get_mut(&key)?.iter_mut().find(|link| link.id == id)
    }

    fn enter(&mut self, key: FileKey, id: LinkId, at: &Location) {
        self.places.entry(at.place()).or_default().push((key, id));
    }

    fn leave(&mut self, id: LinkId, at: &Location) {
        let place = at.place();
        if let Some(there) = self.places.get_mut(&place) {
            there.retain(|(_, other)| *other != id);
            if there.is_empty() {
                self.places.remove(&place);
            }
        }
    }

    fn move_to(&mut self, key: FileKey, id: LinkId, to: Location) {
        let Some(link) = self.link(key, id) else { return };
        let from = std::mem::replace(&mut link.at, to.clone());
        self.leave(id, &from);
        self.enter(key, id, &to);
    }

    fn remover(&self, key: FileKey) -> Option<&Owner> {
        self.files.get(&key)?.iter().find_map(Link::remover)
    }
}

impl LockTable {
    /// Another open of a file by a name. With `removes` its close removes the name.
    ///
    /// # Errors
    /// [`LinkRefused`].
    pub fn open_link(
        &self,
        key: FileKey,
        at: Location,
        owner: &Owner,
        removes: bool,
    ) -> Result<LinkId, LinkRefused> {
        let files = self.shard(key);
        if removes
            && !at.is_link()
            && let Some(keeper) = files.get(&key).and_then(|file| keeper(file, owner))
        {
            return Err(LinkRefused::NameInUse(keeper.clone()));
        }
        let mut links = self.links.lock();
        let same = |link: &&mut Link| link.at.is_same(&at);
        let of = links.files.entry(key).or_default().iter_mut().find(same);
        if let Some(link) = of {
            if link.marked.is_some() {
                return Err(LinkRefused::DeletePending);
            }
            link.opens += 1;
            link.closing.extend(removes.then(|| owner.clone()));
            return Ok(link.id);
        }
        links.next += 1;
        let id = LinkId(links.next);
        links.enter(key, id, &at);
        let closing = removes.then(|| owner.clone()).into_iter().collect();
        let link = Link { id, at, opens: 1, marked: None, closing };
        links.files.entry(key).or_default().push(link);
        self.counts.links.fetch_add(1, Ordering::SeqCst);
        Ok(id)
    }

    /// Where a file is that is open by this name.
    pub fn location(&self, key: FileKey, id: LinkId) -> Option<Location> {
        self.links.lock().link(key, id).map(|link| link.at.clone())
    }

    /// What has this name has another one now.
    pub fn move_link(&self, key: FileKey, id: LinkId, to: Location) {
        self.links.lock().move_to(key, id, to);
    }

    /// The name is to be removed when it is not open any more.
    ///
    /// # Errors
    /// [`Refused::Shared`] while an open of another client keeps it.
    pub fn mark_link(&self, key: FileKey, id: LinkId, owner: &Owner) -> Result<(), Refused> {
        let files = self.shard(key);
        let mut links = self.links.lock();
        let Some(link) = links.link(key, id) else { return Ok(()) };
        if !link.at.is_link()
            && let Some(keeper) = files.get(&key).and_then(|file| keeper(file, owner))
        {
            self.counts.denied.fetch_add(1, Ordering::Relaxed);
            return Err(Refused::Shared(keeper.clone()));
        }
        link.marked = Some(owner.clone());
        Ok(())
    }

    /// It is not, nor by the close of this open.
    pub fn unmark_link(&self, key: FileKey, id: LinkId, owner: &Owner) {
        if let Some(link) = self.links.lock().link(key, id) {
            link.marked = None;
            link.closing.retain(|other| other != owner);
        }
    }

    /// Whether the name is to be removed.
    pub fn is_marked(&self, key: FileKey, id: LinkId) -> bool {
        self.links.lock().link(key, id).is_some_and(|link| link.marked.is_some())
    }

    /// Whether what is found there is to be removed.
    pub fn is_marked_at(&self, key: FileKey, at: &Location) -> bool {
        if !self.has_links() {
            return false;
        }
        let links = self.links.lock();
        let is = |link: &Link| link.marked.is_some() && link.at.is_same(at);
        links.files.get(&key).is_some_and(|of| of.iter().any(is))
    }

    /// One open of a name less. After the last one: where what is to be removed now is.
    pub fn close_link(&self, key: FileKey, id: LinkId, owner: &Owner) -> Option<Location> {
        let mut links = self.links.lock();
        let of = links.files.get_mut(&key)?;
        let place = of.iter().position(|link| link.id == id)?;
        let link = of.get_mut(place)?;
        if let Some(at) = link.closing.iter().position(|other| other == owner) {
            link.closing.swap_remove(at);
            link.marked = Some(owner.clone());
        }
        link.opens = link.opens.saturating_sub(1);
        if link.opens > 0 {
            return None;
        }
        let gone = of.swap_remove(place);
        if of.is_empty() {
            links.files.remove(&key);
        }
        links.leave(id, &gone.at);
        self.counts.links.fetch_sub(1, Ordering::SeqCst);
        gone.marked.map(|_| gone.at)
    }

    /// An open of a name has come to nothing: it marks nothing. After the last one: where what is
    /// to be removed now is.
    pub fn abandon_link(&self, key: FileKey, id: LinkId, owner: &Owner) -> Option<Location> {
        if let Some(link) = self.links.lock().link(key, id) {
            link.closing.retain(|other| other != owner);
        }
        self.close_link(key, id, owner)
    }

    /// Names of a file system that are open.
    pub fn open_names(&self, fsid: u64) -> Vec<OpenName> {
        let links = self.links.lock();
        let of = links.files.iter().filter(|(key, _)| key.fsid == fsid);
        of.flat_map(|(key, of)| of.iter().map(move |link| link.open_name(*key))).collect()
    }

    /// Whether a file is open by any of its names.
    pub fn is_open_by_name(&self, key: FileKey) -> bool {
        self.has_links() && self.links.lock().files.contains_key(&key)
    }

    /// Whether a file is open by this name.
    pub fn is_open_name(&self, name: &OpenName) -> bool {
        self.links.lock().link(name.key, name.id).is_some()
    }

    /// Whether anything is open by a name: only then [`LockTable::renamed`] has anything to do.
    #[inline]
    pub fn has_links(&self) -> bool {
        self.counts.links.load(Ordering::SeqCst) > 0
    }

    /// A name was given to a file in place of another, over whatever protocol.
    pub fn renamed(&self, from: (FileKey, &[u8]), to: (&Handle, FileKey, &[u8])) {
        let mut links = self.links.lock();
        let place = ((from.0.fsid, from.0.fileid), from.1.to_vec());
        for (key, id) in links.places.get(&place).cloned().unwrap_or_default() {
            let Some(link) = links.link(key, id) else { continue };
            let link = link.at.link.clone();
            let (dir, dir_key, name) = (*to.0, to.1, to.2.to_vec());
            links.move_to(key, id, Location { dir, dir_key, name, link });
        }
    }

    /// An open that removes a name of the file: no other may keep it then.
    pub(super) fn remover(&self, key: FileKey) -> Option<Owner> {
        if !self.has_links() {
            return None;
        }
        self.links.lock().remover(key).cloned()
    }
}

/// Another client's open that keeps the names of a file. Among opens of one protocol, share modes
/// have decided that.
fn keeper<'a>(file: &'a FileLocks, owner: &Owner) -> Option<&'a Owner> {
    file.name_keeper(|other| other.client.protocol == owner.client.protocol)
}

#[cfg(test)]
mod tests;
