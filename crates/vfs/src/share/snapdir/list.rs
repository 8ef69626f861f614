//! Listings: the root of a share with `.snapshot` in it, `.snapshot` itself, and the root of a
//! snapshot.

use super::{FILE_ID, NAME, SnapshotDirectory, file_id_of};
use crate::fs::{Context, DirEntry, FileSystem, ListDone, Result, access};
use crate::handle::Handle;
use crate::share::ReadOnly;
use crate::status::Status;

/// The cookie after `.snapshot`, which is the first name of the root: the directory itself begins
/// there. No file system gives a place so near to the last one.
const AFTER_SNAPDIR: u64 = i64::MAX as u64 - 0x1000;
/// Cookies after `.` and `..` of `.snapshot`; those after snapshots are higher.
const AFTER_SELF: u64 = 3;
const AFTER_PARENT: u64 = 4;

/// The cookie after a snapshot: made of its number, so that it stays while others come and go.
fn after(snapshot: u64) -> u64 {
    (snapshot >> 2).saturating_add(AFTER_PARENT + 1)
}

impl SnapshotDirectory {
    /// The root of the share: what really has the name there is not seen.
    pub(super) fn list_root(
        &self,
        cx: Context<'_>,
        (cookie, verifier): (u64, [u8; 8]),
        plus: bool,
        each: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<ListDone> {
        let root = self.live.root();
        if cookie == 0 && self.is_visible() {
            self.check(cx, access::READ)?;
            let entry = if plus { Some(self.entry(cx)?) } else { None };
            let (name, cookie) = (NAME, AFTER_SNAPDIR);
            if !each(DirEntry { fileid: FILE_ID, name, cookie, entry, mounted: None }) {
                let dir = self.live.getattr(cx, &root)?;
                return Ok(ListDone { dir, verifier, eof: false });
            }
        }
        let cookie = if cookie == AFTER_SNAPDIR { 0 } else { cookie };
        let mut others = |entry: DirEntry<'_>| entry.name == NAME || each(entry);
        self.live.list(cx, &root, cookie, verifier, plus, &mut others)
    }

    /// The root of a snapshot: above it is `.snapshot`.
    pub(super) fn list_snapshot(
        &self,
        cx: Context<'_>,
        (fs, dir): (&ReadOnly, &Handle),
        (cookie, verifier): (u64, [u8; 8]),
        plus: bool,
        each: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<ListDone> {
        let above = if plus { Some(self.entry(cx)?) } else { None };
        let mut with_above = |entry: DirEntry<'_>| match entry.name {
            b".." => each(DirEntry { fileid: FILE_ID, entry: above, ..entry }),
            _ => each(entry),
        };
        fs.list(cx, dir, cookie, verifier, plus, &mut with_above)
    }

    /// `.snapshot` itself.
    pub(super) fn list_snapshots(
        &self,
        cx: Context<'_>,
        cookie: u64,
        plus: bool,
        each: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<ListDone> {
        if !cx.may_block {
            return Err(Status::WouldBlock);
        }
        self.check(cx, access::READ)?;
        let dir = self.attr(cx)?;
        let done = |eof| Ok(ListDone { dir, verifier: [0; 8], eof });
        let mut give = |name: &[u8], fileid, next, entry| {
            next <= cookie || each(DirEntry { fileid, name, cookie: next, entry, mounted: None })
        };
        let own = if plus { Some(self.entry(cx)?) } else { None };
        if !give(b".", FILE_ID, AFTER_SELF, own) {
            return done(false);
        }
        let above = self.live_root(cx)?;
        let entry = plus.then_some(above);
        if !give(b"..", above.attr.fileid, AFTER_PARENT, entry) {
            return done(false);
        }
        for snapshot in self.snapshots.list(cx)?.iter() {
            let (next, entry) = (after(snapshot.number), plus.then_some(snapshot.root));
            if !give(&snapshot.name, file_id_of(snapshot.number), next, entry) {
                return done(false);
            }
        }
        done(true)
    }
}
