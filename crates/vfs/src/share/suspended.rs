//! A share of which the files are being exchanged: each operation is to be tried again, so that no
//! client takes a handle for stale or a name for missing meanwhile.

use probe::op::FileId;

use crate::acl::{Acl, AclKind};
use crate::attr::{Attr, SetAttr, Time, Wcc};
use crate::fs::{
    Abilities, Change, Context, CreateHow, DirEntry, Entry, Failed, Features, FileSystem, ListDone,
    ReadDone, Result, Seek, SetXattr, Space, Special, Stable,
};
use crate::handle::Handle;
use crate::status::Status;

/// Stands in for the files of a share. What is known of it without its files is as before.
pub struct Suspended {
    root: Handle,
    features: Features,
    abilities: Abilities,
}

impl Suspended {
    /// In place of these files.
    pub fn new(files: &dyn FileSystem) -> Self {
        Self { root: files.root(), features: files.features(), abilities: files.abilities() }
    }
}

fn later<T>() -> Result<T> {
    Err(Status::Busy)
}

fn change_later<T>() -> Change<T> {
    Err(Status::Busy.into())
}

impl FileSystem for Suspended {
    fn root(&self) -> Handle {
        self.root
    }
    fn file_id(&self, handle: &Handle) -> FileId {
        crate::host::ids::file_id(handle)
    }
    fn features(&self) -> Features {
        self.features
    }
    fn abilities(&self) -> Abilities {
        self.abilities
    }
    fn path_of(&self, _: FileId) -> Option<Vec<u8>> {
        None
    }
    fn getattr(&self, _: Context<'_>, _: &Handle) -> Result<Attr> {
        later()
    }
    fn setattr(&self, _: Context<'_>, _: &Handle, _: &SetAttr, _: Option<Time>) -> Change<()> {
        change_later()
    }
    fn lookup(
        &self,
        _: Context<'_>,
        _: &Handle,
        _: &[u8],
    ) -> std::result::Result<(Entry, Option<Attr>), Failed> {
        Err(Status::Busy.into())
    }
    fn access(&self, _: Context<'_>, _: &Handle, _: u32) -> Result<(u32, Attr)> {
        later()
    }
    fn readlink(&self, _: Context<'_>, _: &Handle) -> Result<(Vec<u8>, Attr)> {
        later()
    }
    fn read(&self, _: Context<'_>, _: &Handle, _: u64, _: &mut [u8]) -> Result<ReadDone> {
        later()
    }
    fn write(&self, _: Context<'_>, _: &Handle, _: u64, _: &[u8], _: Stable) -> Change<usize> {
        change_later()
    }
    fn commit(&self, _: Context<'_>, _: &Handle) -> Change<()> {
        change_later()
    }
    fn create(&self, _: Context<'_>, _: &Handle, _: &[u8], _: CreateHow) -> Change<Entry> {
        change_later()
    }
    fn mkdir(&self, _: Context<'_>, _: &Handle, _: &[u8], _: &SetAttr) -> Change<Entry> {
        change_later()
    }
    fn symlink(
        &self,
        _: Context<'_>,
        _: &Handle,
        _: &[u8],
        _: &[u8],
        _: &SetAttr,
    ) -> Change<Entry> {
        change_later()
    }
    fn mknod(
        &self,
        _: Context<'_>,
        _: &Handle,
        _: &[u8],
        _: Special,
        _: &SetAttr,
    ) -> Change<Entry> {
        change_later()
    }
    fn remove(&self, _: Context<'_>, _: &Handle, _: &[u8]) -> Change<()> {
        change_later()
    }
    fn rmdir(&self, _: Context<'_>, _: &Handle, _: &[u8]) -> Change<()> {
        change_later()
    }
    fn rename(&self, _: Context<'_>, _: (&Handle, &[u8]), _: (&Handle, &[u8])) -> Change<Wcc> {
        change_later()
    }
    fn link(&self, _: Context<'_>, _: &Handle, _: &Handle, _: &[u8]) -> Change<Option<Attr>> {
        change_later()
    }
    fn list(
        &self,
        _: Context<'_>,
        _: &Handle,
        _: u64,
        _: [u8; 8],
        _: bool,
        _: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<ListDone> {
        later()
    }
    fn space(&self, _: Context<'_>) -> Result<Space> {
        later()
    }
    fn allocate(&self, _: Context<'_>, _: &Handle, _: u64, _: u64) -> Change<()> {
        change_later()
    }
    fn deallocate(&self, _: Context<'_>, _: &Handle, _: u64, _: u64) -> Change<()> {
        change_later()
    }
    fn seek(&self, _: Context<'_>, _: &Handle, _: u64, _: Seek) -> Result<Option<u64>> {
        later()
    }
    fn copy_range(
        &self,
        _: Context<'_>,
        _: (&Handle, u64),
        _: (&Handle, u64),
        _: u64,
    ) -> Change<u64> {
        change_later()
    }
    fn clone_range(
        &self,
        _: Context<'_>,
        _: (&Handle, u64),
        _: (&Handle, u64),
        _: u64,
    ) -> Change<()> {
        change_later()
    }
    fn get_xattr(&self, _: Context<'_>, _: &Handle, _: &[u8]) -> Result<Vec<u8>> {
        later()
    }
    fn set_xattr(&self, _: Context<'_>, _: &Handle, _: &[u8], _: &[u8], _: SetXattr) -> Change<()> {
        change_later()
    }
    fn list_xattrs(
        &self,
        _: Context<'_>,
        _: &Handle,
        _: u64,
        _: &mut dyn FnMut(&[u8], u64) -> bool,
    ) -> Result<bool> {
        later()
    }
    fn remove_xattr(&self, _: Context<'_>, _: &Handle, _: &[u8]) -> Change<()> {
        change_later()
    }
    fn get_acl(&self, _: Context<'_>, _: &Handle, _: AclKind) -> Result<Option<Acl>> {
        later()
    }
    fn set_acl(&self, _: Context<'_>, _: &Handle, _: AclKind, _: Option<&Acl>) -> Change<()> {
        change_later()
    }
}

#[cfg(test)]
mod tests;
