//! What layers over a file system have in common: the operations that they pass on as they come.
//!
//! A layer has the file system below it in its field `inner`, and includes these in its
//! implementation of [`FileSystem`](super::FileSystem) in addition to its own operations. Types are
//! those that the layer has in scope.

/// What is asked of the file system as a whole, or of what is known of a file without asking it.
macro_rules! about_inner {
    () => {
        fn root(&self) -> Handle {
            self.inner.root()
        }
        fn is_machine_root(&self) -> bool {
            self.inner.is_machine_root()
        }
        fn file_id(&self, handle: &Handle) -> FileId {
            self.inner.file_id(handle)
        }
        fn change_slot(&self, handle: &Handle) -> u64 {
            self.inner.change_slot(handle)
        }
        fn flush_failures(&self) -> u64 {
            self.inner.flush_failures()
        }
        fn whole(&self) -> Option<$crate::fs::Flush> {
            self.inner.whole()
        }
        fn features(&self) -> Features {
            self.inner.features()
        }
        fn abilities(&self) -> Abilities {
            self.inner.abilities()
        }
        fn path_of(&self, file: FileId) -> Option<Vec<u8>> {
            self.inner.path_of(file)
        }
        fn describe(&self, file: FileId) -> Option<FileName> {
            self.inner.describe(file)
        }
        fn watch(&self, cx: Context<'_>, file: &Handle) -> Result<Watch> {
            self.inner.watch(cx, file)
        }
        fn retain(&self, cx: Context<'_>, file: &Handle) -> Result<$crate::fs::Retained> {
            self.inner.retain(cx, file)
        }
        fn describe_key(&self, key: FileKey) -> Option<FileName> {
            self.inner.describe_key(key)
        }
    };
}

/// Looks that no layer so far has reason to refuse or delay.
macro_rules! looks_at_inner {
    () => {
        fn file_key(&self, cx: Context<'_>, file: &Handle) -> Result<FileKey> {
            self.inner.file_key(cx, file)
        }
        fn lookup(
            &self,
            cx: Context<'_>,
            dir: &Handle,
            name: &[u8],
        ) -> std::result::Result<(Entry, Option<Attr>), Failed> {
            self.inner.lookup(cx, dir, name)
        }
        fn sticky_permits(&self, cx: Context<'_>, dir: &Handle, file: &Attr) -> Result<bool> {
            self.inner.sticky_permits(cx, dir, file)
        }
        fn readlink(&self, cx: Context<'_>, link: &Handle) -> Result<(Vec<u8>, Attr)> {
            self.inner.readlink(cx, link)
        }
        fn list(
            &self,
            cx: Context<'_>,
            dir: &Handle,
            cookie: u64,
            verifier: [u8; 8],
            plus: bool,
            each: &mut dyn FnMut(DirEntry<'_>) -> bool,
        ) -> Result<ListDone> {
            self.inner.list(cx, dir, cookie, verifier, plus, each)
        }
        fn lookup_parent(&self, cx: Context<'_>, dir: &Handle) -> Result<Entry> {
            self.inner.lookup_parent(cx, dir)
        }
        fn ancestors(&self, cx: Context<'_>, dir: &Handle) -> Result<Vec<FileKey>> {
            self.inner.ancestors(cx, dir)
        }
        fn get_xattr(&self, cx: Context<'_>, file: &Handle, name: &[u8]) -> Result<Vec<u8>> {
            self.inner.get_xattr(cx, file, name)
        }
        fn get_xattr_at(
            &self,
            cx: Context<'_>,
            entry: (&Handle, &[u8]),
            name: &[u8],
        ) -> Result<Vec<u8>> {
            self.inner.get_xattr_at(cx, entry, name)
        }
        fn get_xattrs_at(
            &self,
            cx: Context<'_>,
            entries: (&Handle, &[&[u8]]),
            name: &[u8],
            each: &mut dyn FnMut(Result<Vec<u8>>) -> bool,
        ) -> Result<()> {
            self.inner.get_xattrs_at(cx, entries, name, each)
        }
        fn list_xattrs(
            &self,
            cx: Context<'_>,
            file: &Handle,
            cookie: u64,
            each: &mut dyn FnMut(&[u8], u64) -> bool,
        ) -> Result<bool> {
            self.inner.list_xattrs(cx, file, cookie, each)
        }
        fn get_acl(&self, cx: Context<'_>, file: &Handle, which: AclKind) -> Result<Option<Acl>> {
            self.inner.get_acl(cx, file, which)
        }
        fn space(&self, cx: Context<'_>) -> Result<Space> {
            self.inner.space(cx)
        }
    };
}

pub(crate) use {about_inner, looks_at_inner};
