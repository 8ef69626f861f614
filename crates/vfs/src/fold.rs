//! Names that differ only in case, or in how Unicode composes their characters, for protocols with
//! clients that do not distinguish that.

use base::limits::SMB_FOLD_ENTRIES_MAX;

use crate::attr::Attr;
use crate::fs::{Context, Entry, FileSystem, Result, access};
use crate::handle::Handle;
use crate::locks::FileKey;
use crate::status::Status;
use crate::work::{COUNTED_AT_ONCE, Work};

pub mod index;
mod key;

pub use index::FoldIndex;
use index::FoldedNames;
use key::NameQuery;
pub use key::fold;

/// Looks for a name that differs from `name` only in case, or else is canonically equivalent to
/// such a name; the first in the order of bytes, so that it is the same each time. To be asked when
/// `name` itself is not there. A directory that the index knows is not searched; what is looked at
/// is counted in `work`.
///
/// # Errors
/// As of LOOKUP and READDIR; [`Status::Busy`] for a directory of more entries than are looked at,
/// and for a request that has looked at too many or has ended.
pub fn find(
    fs: &dyn FileSystem,
    cx: Context<'_>,
    (dir, name): (&Handle, &[u8]),
    (index, work): (&FoldIndex, &Work),
) -> Result<Option<(Vec<u8>, Entry)>> {
    let (granted, attr) = fs.access(cx, dir, access::READ)?;
    // As a search would answer: names that may not be listed are not to be guessed.
    if granted & access::READ == 0 {
        return Err(Status::Access);
    }
    let key = FileKey::from(&attr);
    let sought = NameQuery::new(name);
    let best = match index.known(key, attr.change, name) {
        FoldedNames::Names(names) => {
            let ranked = names.into_iter().filter_map(|one| Some((sought.rank(&one)?, one)));
            ranked.min().map(|(_, one)| one)
        }
        FoldedNames::TooMany => return Err(Status::Busy),
        FoldedNames::Nothing => search(fs, cx, (dir, &attr), &sought, (index, work))?,
    };
    let Some(real) = best else { return Ok(None) };
    match fs.lookup(cx, dir, &real) {
        Ok((entry, _)) => Ok(Some((real, entry))),
        Err(failed) if failed.status == Status::NotFound => Ok(None),
        Err(failed) => Err(failed.status),
    }
}

/// Looks through a directory, which the index knows then.
fn search(
    fs: &dyn FileSystem,
    cx: Context<'_>,
    (dir, attr): (&Handle, &Attr),
    sought: &NameQuery<'_>,
    (index, work): (&FoldIndex, &Work),
) -> Result<Option<Vec<u8>>> {
    // Whatever the file system can do at once: it takes too long for a connection's thread.
    if !cx.may_block {
        return Err(Status::WouldBlock);
    }
    let (mut seen, mut counted): (usize, Result<()>) = (0, Ok(()));
    let mut best: Option<(u8, Vec<u8>)> = None;
    let (mut cookie, mut verifier, mut filling) = (0, [0; 8], index.filling());
    loop {
        let done = fs.list(cx, dir, cookie, verifier, false, &mut |entry| {
            if seen.is_multiple_of(COUNTED_AT_ONCE) {
                counted = work.take(COUNTED_AT_ONCE);
            }
            (cookie, seen) = (entry.cookie, seen + 1);
            filling.add(entry.name);
            if let Some(rank) = sought.rank(entry.name)
                && best.as_ref().is_none_or(|(of, best)| (rank, entry.name) < (*of, best))
            {
                best = Some((rank, entry.name.to_vec()));
            }
            counted.is_ok() && seen <= SMB_FOLD_ENTRIES_MAX
        })?;
        counted?;
        let is_too_large = seen > SMB_FOLD_ENTRIES_MAX;
        if done.eof || is_too_large {
            if done.dir.change == attr.change {
                index.fill(FileKey::from(attr), attr.change, (!is_too_large).then_some(filling));
            }
            let best = best.map(|(_, best)| best);
            return if is_too_large { Err(Status::Busy) } else { Ok(best) };
        }
        verifier = done.verifier;
    }
}

#[cfg(test)]
mod tests;
