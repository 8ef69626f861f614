//! Labels of ZFS on disks of a pool that is destroyed: two at the start, two at the end. A label
//! has a list of names and values, packed as XDR, with the number of its pool.

use std::fs::File;
use std::io::{self, Seek};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::{signature, sys};

/// Size of a label.
const LABEL: u64 = 256 << 10;
/// Where its list is, and the size of that.
const LIST: (u64, usize) = (16 << 10, 112 << 10);
/// The first byte of a list that is packed as XDR.
const XDR: u8 = 1;
/// Bytes before the first pair of a list: how it is packed, its version, its flags.
const BEFORE_PAIRS: usize = 12;
/// The type of an unsigned number of 64 bits.
const UINT64: u32 = 8;
/// The number of the pool in a list. Those of caches and of spares that are not in use have none.
const POOL: &[u8] = b"pool_guid";

/// Overwrites all labels of a device, so that it can be used for another pool. Whether it had one.
/// The labels must be of the pool of this number: a name of a device may be another disk's by now.
/// They may be without a number if `may_lack` is set.
///
/// # Errors
/// The operating system's; the device is in use, or of another pool: nothing was written then.
pub fn wipe(path: &Path, pool: u64, may_lack: bool) -> io::Result<bool> {
    let mut file: File = sys::open_exclusive(path, true)?;
    let size = file.seek(io::SeekFrom::End(0))?;
    // Only what ZFS has left is overwritten.
    if signature::identify(&file, size)? != Some("ZFS") {
        return Ok(false);
    }
    let mut known = false;
    for offset in places(size) {
        let found = match list(&file, offset)? {
            Some(list) => number(&list),
            None => continue,
        };
        if found.map_or(!may_lack, |found| found != pool) {
            return Err(io::Error::other("its labels are not of this pool"));
        }
        known = true;
    }
    if !known {
        return Err(io::Error::other("its labels are damaged"));
    }
    let zeros = vec![0; LABEL as usize];
    for offset in places(size) {
        file.write_all_at(&zeros, offset)?;
    }
    file.sync_all()?;
    Ok(true)
}

/// Where a device of this size has labels.
fn places(size: u64) -> impl Iterator<Item = u64> {
    let aligned = size & !(LABEL - 1);
    let at_end = [aligned.checked_sub(2 * LABEL), aligned.checked_sub(LABEL)];
    let all = [Some(0), Some(LABEL)].into_iter().chain(at_end).flatten();
    all.filter(move |offset| offset.checked_add(LABEL).is_some_and(|end| end <= size))
}

/// The list of a label, if it has one.
fn list(file: &File, label: u64) -> io::Result<Option<Vec<u8>>> {
    let (offset, size) = LIST;
    let mut list = vec![0; size];
    file.read_exact_at(&mut list, label + offset)?;
    Ok((list.first() == Some(&XDR)).then_some(list))
}

/// The number of the pool in a list. Of values only this one is read, the others are skipped.
fn number(list: &[u8]) -> Option<u64> {
    let word = |at: usize| {
        let bytes = list.get(at..)?.first_chunk()?;
        Some(u32::from_be_bytes(*bytes))
    };
    let mut at = BEFORE_PAIRS;
    loop {
        // Packed size, unpacked size, name, type, count, value.
        let size = word(at)? as usize;
        let length = word(at + 8)? as usize;
        let name = list.get(at + 12..)?.get(..length)?;
        let after = at + 12 + length.next_multiple_of(4);
        if name == POOL && word(after)? == UINT64 {
            let value = list.get(after + 8..)?.first_chunk()?;
            return Some(u64::from_be_bytes(*value));
        }
        if size == 0 {
            return None;
        }
        at = at.checked_add(size)?;
    }
}

#[cfg(test)]
mod tests;
