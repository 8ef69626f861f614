//! What the back end in memory can do beyond the ordinary: room, holes, copies, extended
//! attributes.

use base::limits::{COPY_TURN_MAX, NAME_MAX, XATTR_LIST_MAX, XATTR_VALUE_MAX};

use super::body::{Body, Pages};
use super::{MemFs, State};
use crate::attr::{Attr, FileType};
use crate::cred::Cred;
use crate::fs::{Change, Context, Result, Seek, SetXattr};
use crate::handle::Handle;
use crate::rights::{R, W};
use crate::status::Status;

/// Bytes copied at once.
const COPY_STEP: u64 = 64 << 10;

impl State {
    /// The data of a regular file.
    fn pages(&self, ino: u64) -> Result<&Pages> {
        match &self.get(ino)?.body {
            Body::File(pages) => Ok(pages),
            Body::Directory(_) => Err(Status::IsDirectory),
            _ => Err(Status::Invalid),
        }
    }

    fn may(&self, ino: u64, cred: &Cred, rwx: u32) -> Result<()> {
        if cred.uid == self.get(ino)?.attr.uid { Ok(()) } else { self.require(ino, cred, rwx) }
    }

    /// Changes a file's data, keeps count of the room, and sets its times.
    fn change_pages<T>(
        &mut self,
        ino: u64,
        needs: u64,
        change: impl FnOnce(&mut Pages, &mut Attr) -> T,
    ) -> Result<T> {
        if needs > self.capacity.saturating_sub(self.used) {
            return Err(Status::NoSpace);
        }
        let now = self.now();
        let inode = self.get_mut(ino)?;
        let was = inode.attr.used;
        let Body::File(pages) = &mut inode.body else { return Err(Status::Invalid) };
        let value = change(pages, &mut inode.attr);
        let used = pages.used();
        inode.attr = Attr { used, mtime: now, ..inode.attr };
        inode.changed(now);
        self.used = self.used + used - was;
        Ok(value)
    }
}

impl MemFs {
    pub(super) fn allocate_range(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        len: u64,
    ) -> Change<()> {
        self.change(file, |state, ino| {
            let end = offset.checked_add(len).ok_or(Status::Invalid)?;
            if i64::try_from(end).is_err() {
                return Err(Status::TooLarge);
            }
            state.may(ino, cx.cred, W)?;
            let whole = usize::try_from(len).map_err(|_| Status::NoSpace)?;
            // Looked at before anything is counted one by one.
            if len > state.capacity {
                return Err(Status::NoSpace);
            }
            let needs = state.pages(ino)?.needs(offset, whole);
            state.change_pages(ino, needs, |pages, attr| {
                pages.reserve(offset, len);
                attr.size = attr.size.max(end);
            })
        })
    }

    pub(super) fn deallocate_range(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        len: u64,
    ) -> Change<()> {
        self.change(file, |state, ino| {
            let end = offset.checked_add(len).ok_or(Status::Invalid)?;
            state.may(ino, cx.cred, W)?;
            state.pages(ino)?;
            state.change_pages(ino, 0, |pages, attr| pages.punch(offset, end.min(attr.size)))
        })
    }

    pub(super) fn seek_file(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        what: Seek,
    ) -> Result<Option<u64>> {
        let ino = self.ino(file)?;
        let state = self.read_state();
        let pages = state.pages(ino)?;
        state.may(ino, cx.cred, R)?;
        let size = state.get(ino)?.attr.size;
        if offset >= size {
            return Err(Status::TooLarge);
        }
        Ok(match what {
            Seek::Data => pages.data_from(offset).filter(|at| *at < size),
            Seek::Hole => Some(pages.hole_from(offset).min(size)),
        })
    }

    pub(super) fn copy_file_range(
        &self,
        cx: Context<'_>,
        (from, offset): (&Handle, u64),
        (to, dest): (&Handle, u64),
        len: u64,
    ) -> Change<u64> {
        let source = self.ino(from)?;
        self.change(to, |state, ino| {
            let size = state.get(source)?.attr.size;
            state.pages(source)?;
            state.pages(ino)?;
            state.may(source, cx.cred, R)?;
            state.may(ino, cx.cred, W)?;
            let end =
                if len == 0 { size } else { offset.checked_add(len).ok_or(Status::Invalid)? };
            let len = end.checked_sub(offset).ok_or(Status::Invalid)?;
            let last = dest.checked_add(len).ok_or(Status::TooLarge)?;
            if end > size || (source == ino && dest < end && offset < last) {
                return Err(Status::Invalid);
            }
            if i64::try_from(last).is_err() {
                return Err(Status::TooLarge);
            }
            let len = len.min(COPY_TURN_MAX);
            let mut done = 0;
            while done < len {
                let mut part = vec![0; (len - done).min(COPY_STEP) as usize];
                state.pages(source)?.read(offset + done, &mut part);
                let needs = state.pages(ino)?.needs(dest + done, part.len());
                let count = part.len() as u64;
                state.change_pages(ino, needs, |pages, attr| {
                    pages.write(dest + done, &part);
                    attr.size = attr.size.max(dest + done + count);
                })?;
                done += count;
            }
            Ok(done)
        })
    }

    pub(super) fn read_xattr(
        &self,
        cx: Context<'_>,
        file: &Handle,
        name: &[u8],
    ) -> Result<Vec<u8>> {
        let ino = self.ino(file)?;
        let state = self.read_state();
        state.require(ino, cx.cred, R)?;
        state.get(ino)?.xattrs.get(name).cloned().ok_or(Status::NotFound)
    }

    pub(super) fn write_xattr(
        &self,
        cx: Context<'_>,
        file: &Handle,
        name: &[u8],
        value: &[u8],
        how: SetXattr,
    ) -> Change<()> {
        self.change(file, |state, ino| {
            if name.is_empty() || name.contains(&0) {
                return Err(Status::Invalid);
            }
            if name.len() + b"user.".len() > NAME_MAX {
                return Err(Status::NameTooLong);
            }
            state.may_set_xattr(ino, cx.cred)?;
            let now = state.now();
            let inode = state.get_mut(ino)?;
            match (inode.xattrs.contains_key(name), how) {
                (true, SetXattr::Create) => return Err(Status::Exists),
                (false, SetXattr::Replace) => return Err(Status::NotFound),
                _ => {}
            }
            let others = inode.xattrs.iter().filter(|(other, _)| *other != name);
            let room: usize = others.map(|(name, value)| name.len() + value.len()).sum();
            if value.len() > XATTR_VALUE_MAX {
                return Err(Status::TooLarge);
            }
            if room + name.len() + value.len() > XATTR_LIST_MAX + XATTR_VALUE_MAX {
                return Err(Status::NoSpace);
            }
            inode.xattrs.insert(name.to_vec(), value.to_vec());
            inode.changed(now);
            Ok(())
        })
    }

    pub(super) fn delete_xattr(&self, cx: Context<'_>, file: &Handle, name: &[u8]) -> Change<()> {
        self.change(file, |state, ino| {
            state.may_set_xattr(ino, cx.cred)?;
            let now = state.now();
            let inode = state.get_mut(ino)?;
            inode.xattrs.remove(name).ok_or(Status::NotFound)?;
            inode.changed(now);
            Ok(())
        })
    }

    pub(super) fn xattr_names(
        &self,
        file: &Handle,
        cookie: u64,
        each: &mut dyn FnMut(&[u8], u64) -> bool,
    ) -> Result<bool> {
        let ino = self.ino(file)?;
        let state = self.read_state();
        let skip = usize::try_from(cookie).unwrap_or(usize::MAX);
        for (at, name) in state.get(ino)?.xattrs.keys().enumerate().skip(skip) {
            if !each(name, at as u64 + 1) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl State {
    fn may_set_xattr(&self, ino: u64, cred: &Cred) -> Result<()> {
        match self.get(ino)?.attr.kind {
            FileType::Regular | FileType::Directory => self.require(ino, cred, W),
            _ => Err(Status::NotOwner),
        }
    }
}
