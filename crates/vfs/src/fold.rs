//! Names that differ only in case, for protocols whose clients do not distinguish it.

use base::limits::SMB_FOLD_ENTRIES_MAX;

use crate::fs::{Context, Entry, FileSystem, Result};
use crate::handle::Handle;
use crate::locks::FileKey;
use crate::status::Status;

pub mod index;

pub use index::FoldIndex;

/// A name as it is compared: each character in upper case, if that is one character, as the tables
/// of Windows have it. A name that is no UTF-8 is compared as it is.
pub fn fold(name: &[u8]) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(name) else { return name.to_vec() };
    let mut folded = String::with_capacity(text.len());
    for char in text.chars() {
        let mut upper = char.to_uppercase();
        match (upper.next(), upper.next()) {
            (Some(one), None) => folded.push(one),
            _ => folded.push(char),
        }
    }
    folded.into_bytes()
}

/// Whether a name is another one in a different case; `folded` is the other one folded. Nothing is
/// allocated for names of ASCII, which most are.
fn differs_in_case(name: &[u8], other: &[u8], folded: &[u8]) -> bool {
    if name.is_ascii() && other.is_ascii() {
        return name.eq_ignore_ascii_case(other) && name != other;
    }
    name != other && fold(name) == folded
}

/// Looks for a name that differs from `name` only in case; the first in the order of bytes, so that
/// it is the same each time. To be asked when `name` itself is not there.
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
    let wanted = fold(name);
    let (mut best, mut seen): (Option<Vec<u8>>, usize) = (None, 0);
    let (mut cookie, mut verifier) = (0, [0; 8]);
    loop {
        let done = fs.list(cx, dir, cookie, verifier, false, &mut |entry| {
            (cookie, seen) = (entry.cookie, seen + 1);
            each(entry.name);
            let fits = differs_in_case(entry.name, name, &wanted);
            if fits && best.as_deref().is_none_or(|best| entry.name < best) {
                best = Some(entry.name.to_vec());
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
    let Some(real) = best else { return Ok(None) };
    match fs.lookup(cx, dir, &real) {
        Ok((entry, _)) => Ok(Some((real, entry))),
        Err(failed) if failed.status == Status::NotFound => Ok(None),
        Err(failed) => Err(failed.status),
    }
}

#[cfg(test)]
mod tests;
