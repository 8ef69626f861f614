//! Whether what is here is what should be.

use base::clock::NS_PER_S;
use base::limits::DSYNC_TIME_STEP_MAX_NS;
use wire::dsync::{Kind, Meta, Time};
use wire::xdr::Seq;

use super::Shared;
use crate::tree::{ScannedEntry, Tree};

/// Bits that run a program as another user: meaningless, and dangerous, under another owner.
const SET_ID: u32 = 0o6000;
/// The extended attribute that runs a program with privileges.
const CAPABILITY: &[u8] = b"security.capability";

/// Whether a file has what lets it run as another user, or with privileges. On a directory the bits
/// define the group of its new entries.
pub(super) fn has_set_id(meta: &Meta) -> bool {
    let capable = || meta.xattrs.0.iter().any(|x| x.name.0 == CAPABILITY);
    meta.kind == Kind::FILE && (meta.mode & SET_ID != 0 || capable())
}

impl<T: Tree> Shared<T> {
    /// What of the source's metadata can be kept here.
    pub(super) fn wanted(&self, mut meta: Meta) -> Meta {
        meta.link = None;
        meta.mode &= 0o7777;
        if meta.kind == Kind::FILE && !(self.keep.owners && self.options.set_id) {
            meta.mode &= !SET_ID;
        }
        if meta.kind == Kind::FILE && !self.options.set_id {
            meta.xattrs.0.retain(|x| x.name.0 != CAPABILITY);
        }
        if !self.keep.xattrs {
            meta.xattrs = Seq::default();
        }
        self.owners.translate(&mut meta);
        self.tree.prune(&mut meta);
        meta.xattrs.0.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        meta
    }

    /// Whether a time of change here is that of the source, within the resolution of times here.
    ///
    /// A file that was changed once more within one step of the clock here would look the same. It
    /// does not, if what is here was written behind that time: then it has the later content.
    pub(super) fn is_same_time(
        &self,
        dir: Option<&T::Dir>,
        own: &ScannedEntry,
        wanted: &Time,
    ) -> bool {
        if own.meta.mtime == *wanted {
            return true;
        }
        let (here, there) = (nanoseconds(&own.meta.mtime), nanoseconds(wanted));
        let apart = here.abs_diff(there);
        let Some(dir) = dir.filter(|_| apart < u128::from(DSYNC_TIME_STEP_MAX_NS)) else {
            return false;
        };
        let settled = own.meta.kind != Kind::FILE || own.ctime_ns > there;
        settled && apart < u128::from(self.tree.time_step_ns(dir))
    }

    /// Whether the metadata is the same, as far as it is kept in the directory.
    pub(super) fn is_same(&self, dir: Option<&T::Dir>, own: &ScannedEntry, wanted: &Meta) -> bool {
        let mode = |meta: &Meta| match meta.kind {
            Kind::SYMLINK => 0,
            Kind::FILE if !self.keep.owners => meta.mode & !SET_ID,
            _ => meta.mode,
        };
        let is_same_time = self.is_same_time(dir, own, &wanted.mtime);
        let own = &own.meta;
        let owners = (own.uid, own.gid) == (wanted.uid, wanted.gid) || !self.keep.owners;
        let xattrs = own.xattrs == wanted.xattrs || !self.keep.xattrs;
        mode(own) == mode(wanted) && is_same_time && owners && xattrs
    }
}

fn nanoseconds(time: &Time) -> i128 {
    i128::from(time.seconds) * i128::from(NS_PER_S) + i128::from(time.nanoseconds)
}

/// Whether what is no file and no directory is the same but for its metadata.
pub fn is_same_node(own: &Meta, wanted: &Meta) -> bool {
    let of = |meta: &Meta| (meta.kind, meta.major, meta.minor, meta.target.clone());
    of(own) == of(wanted)
}
