//! Names that differ only in case, or in how Unicode composes their characters, for protocols whose
//! clients do not distinguish that.

use base::limits::SMB_FOLD_ENTRIES_MAX;

use crate::fs::{Context, Entry, FileSystem, Result};
use crate::handle::Handle;
use crate::locks::FileKey;
use crate::status::Status;

pub mod index;
mod key;

pub use index::FoldIndex;
use key::Sought;
pub use key::fold;

/// Looks for a name that differs from `name` only in case, or else is canonically equivalent to
/// such a name; the first in the order of bytes, so that it is the same each time. To be asked when
/// `name` itself is not there.
///
/// # Errors
/// As of LOOKUP and READDIR; [`Status::Busy`] for a directory of more entries than are looked at.
pub fn find(
    fs: &dyn FileSystem,
    cx: Context<'_>,
    dir: &Handle,
    name: &[u8],
) -> Result<Option<(Vec<u8>, Entry)>> {
    find_in(fs, cx, dir, name, &mut |_| {})
}

/// As [`find`]; a directory that is known not to have the name is not looked through.
///
/// # Errors
/// The same.
pub fn find_indexed(
    fs: &dyn FileSystem,
    cx: Context<'_>,
    dir: &Handle,
    name: &[u8],
    index: &FoldIndex,
) -> Result<Option<(Vec<u8>, Entry)>> {
    let attr = fs.getattr(cx, dir)?;
    let key = FileKey::from(&attr);
    match index.may_have(key, attr.change, name) {
        Some(false) => return Ok(None),
        Some(true) => return find(fs, cx, dir, name),
        None => {}
    }
    let mut hashes = Vec::new();
    let found = find_in(fs, cx, dir, name, &mut |name| hashes.push(index.hash(name)))?;
    if fs.getattr(cx, dir)?.change == attr.change {
        index.fill(key, attr.change, hashes);
    }
    Ok(found)
}

fn find_in(
    fs: &dyn FileSystem,
    cx: Context<'_>,
    dir: &Handle,
    name: &[u8],
    each: &mut dyn FnMut(&[u8]),
) -> Result<Option<(Vec<u8>, Entry)>> {
    let wanted = Sought::new(name);
    let (mut best, mut seen): (Option<(u8, Vec<u8>)>, usize) = (None, 0);
    let (mut cookie, mut verifier) = (0, [0; 8]);
    loop {
        let done = fs.list(cx, dir, cookie, verifier, false, &mut |entry| {
            (cookie, seen) = (entry.cookie, seen + 1);
            each(entry.name);
            if let Some(rank) = wanted.rank(entry.name)
                && best.as_ref().is_none_or(|(of_best, best)| (rank, entry.name) < (*of_best, best))
            {
                best = Some((rank, entry.name.to_vec()));
            }
            seen <= SMB_FOLD_ENTRIES_MAX
        })?;
        if seen > SMB_FOLD_ENTRIES_MAX {
            return Err(Status::Busy);
        }
        if done.eof {
            break;
        }
        verifier = done.verifier;
    }
    let Some((_, real)) = best else { return Ok(None) };
    match fs.lookup(cx, dir, &real) {
        Ok((entry, _)) => Ok(Some((real, entry))),
        Err(failed) if failed.status == Status::NotFound => Ok(None),
        Err(failed) => Err(failed.status),
    }
}

#[cfg(test)]
mod tests;
