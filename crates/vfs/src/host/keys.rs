//! The key that makes and checks the handles of a directory: what it is bound to.

use super::HostOptions;
use super::directory::{Top, without_subvolume};
use super::ids::Keys;
use super::kept_id::IdentityFile;

/// The keys of a directory; its file system may have an identity in the state directory.
pub(super) fn keys(top: &Top, options: &HostOptions, kept: Option<&IdentityFile>) -> Keys {
    let subvolume = options.exchangeable.then(|| top.subvolume()).flatten();
    let fsid = subvolume.map_or(top.fsid, |id| without_subvolume(top.fsid, id));
    let bound_to = kept.map_or(fsid, IdentityFile::id);
    let former = kept.map(IdentityFile::former).unwrap_or_default();
    Keys::new(&options.secret, options.tag, bound_to)
        .after(&options.secret, &former)
        .of_snapshot(options.snapshot.map(|_| top.identity().number()))
        .of_subvolume(subvolume)
}
