//! Where the chunks of a file system are on a device. The kernel reports the progress of a
//! replacement as the place on the device that it has come to, and most of a device may have no
//! chunk: what is left follows from the chunks behind that place, by what is in use of them.

use std::io;

use linux_raw_sys::btrfs::{
    BTRFS_BLOCK_GROUP_ITEM_KEY, BTRFS_BLOCK_GROUP_RAID0, BTRFS_BLOCK_GROUP_RAID10,
    BTRFS_BLOCK_GROUP_TREE_OBJECTID, BTRFS_CHUNK_ITEM_KEY, BTRFS_CHUNK_TREE_OBJECTID,
    BTRFS_EXTENT_TREE_OBJECTID, BTRFS_FIRST_CHUNK_TREE_OBJECTID, btrfs_ioctl_search_args,
};

use crate::btrfs::Volume;
use crate::state::Space;
use crate::sys::{self, Plain, READ, WRITE};

/// Bytes of the header of an item that a search finds.
const HEADER: usize = 32;
/// Bytes of a chunk before its stripes, and of each stripe (`struct btrfs_chunk`).
const CHUNK: usize = 48;
const STRIPE: usize = 32;
/// Trees with what is in use of each chunk: that of block groups where there is one, else that of
/// extents; and the type of such an item.
const USE_TREES: [u32; 2] = [BTRFS_BLOCK_GROUP_TREE_OBJECTID, BTRFS_EXTENT_TREE_OBJECTID];
const USE_ITEM: u32 = BTRFS_BLOCK_GROUP_ITEM_KEY;
/// Most chunks of a file system that are read: 1 PiB in chunks of 10 GiB.
const CHUNKS_MAX: usize = 100_000;

/// A part of a chunk on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    /// Where it begins on the device.
    start: u64,
    length: u64,
    /// Bytes of it that are in use.
    used: u64,
}

/// The parts of chunks on a device.
#[derive(Debug, Default)]
pub(crate) struct Chunks(Vec<Part>);

impl Chunks {
    /// Those on the device with this number, which may be missing.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn of(volume: &Volume, devid: u64) -> io::Result<Self> {
        let spaces = volume.spaces()?;
        let (mut parts, mut next) = (Vec::new(), 0);
        while parts.len() < CHUNKS_MAX {
            let mut search = btrfs_ioctl_search_args::zeroed();
            let key = &mut search.key;
            key.tree_id = BTRFS_CHUNK_TREE_OBJECTID.into();
            key.min_objectid = BTRFS_FIRST_CHUNK_TREE_OBJECTID.into();
            key.max_objectid = key.min_objectid;
            (key.min_type, key.max_type) = (BTRFS_CHUNK_ITEM_KEY, BTRFS_CHUNK_ITEM_KEY);
            (key.min_offset, key.max_offset, key.max_transid) = (next, u64::MAX, u64::MAX);
            key.nr_items = u32::MAX;
            sys::call(volume.folder(), READ | WRITE, 17, &mut search)?;
            let bytes: Vec<u8> = search.buf.iter().map(|byte| *byte as u8).collect();
            let Some(last) = items(&bytes, search.key.nr_items, |at, chunk| {
                parts.extend(part(chunk, devid, &spaces, || used_of(volume, at)));
            }) else {
                break;
            };
            let Some(after) = last.checked_add(1) else { break };
            next = after;
        }
        Ok(Self(parts))
    }

    /// Bytes in use before a place on the device, and all of them.
    pub(crate) fn before(&self, place: u64) -> (u64, u64) {
        let done = |part: &Part| {
            let passed = place.saturating_sub(part.start).min(part.length);
            let used = u128::from(part.used) * u128::from(passed) / u128::from(part.length.max(1));
            u64::try_from(used).unwrap_or(u64::MAX)
        };
        (self.0.iter().map(done).sum(), self.0.iter().map(|part| part.used).sum())
    }
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(N)?)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// Calls `each` with the chunks that a search has found, and where they begin; the key of the last
/// one, if there is one.
fn items(mut bytes: &[u8], count: u32, mut each: impl FnMut(u64, &[u8])) -> Option<u64> {
    let mut last = None;
    for _ in 0..count {
        let (offset, length) = (number::<8>(bytes, 16)?, number::<4>(bytes, 28)?);
        let end = usize::try_from(length).ok()?.checked_add(HEADER)?;
        let (item, rest) = bytes.split_at_checked(end)?;
        each(offset, item.get(HEADER..)?);
        (bytes, last) = (rest, Some(offset));
    }
    last
}

/// Bytes that are in use of the chunk that begins here, as the last complete transaction has it.
fn used_of(volume: &Volume, start: u64) -> Option<u64> {
    USE_TREES.into_iter().find_map(|tree| {
        let mut search = btrfs_ioctl_search_args::zeroed();
        let key = &mut search.key;
        key.tree_id = tree.into();
        (key.min_objectid, key.max_objectid) = (start, start);
        (key.min_type, key.max_type) = (USE_ITEM, USE_ITEM);
        (key.max_offset, key.max_transid, key.nr_items) = (u64::MAX, u64::MAX, 1);
        sys::call(volume.folder(), READ | WRITE, 17, &mut search).ok()?;
        let bytes: Vec<u8> = search.buf.iter().take(HEADER + 8).map(|byte| *byte as u8).collect();
        number::<8>(&bytes, HEADER).filter(|_| search.key.nr_items > 0)
    })
}

/// The parts of a chunk on a device. Without what is in use of it, that is as much as of all of
/// its kind.
fn part(
    chunk: &[u8],
    devid: u64,
    spaces: &[Space],
    in_use: impl FnOnce() -> Option<u64>,
) -> Vec<Part> {
    let parts = || {
        let (length, flags) = (number::<8>(chunk, 0)?, number::<8>(chunk, 24)?);
        let (stripes, copies) = (number::<2>(chunk, 44)?, number::<2>(chunk, 46)?.max(1));
        let is = |bit: u32| flags & u64::from(bit) != 0;
        let whole = length;
        let length = match () {
            () if is(BTRFS_BLOCK_GROUP_RAID0) => length / stripes.max(1),
            () if is(BTRFS_BLOCK_GROUP_RAID10) => length / (stripes / copies).max(1),
            () => length,
        };
        let stripes = (0..usize::try_from(stripes).ok()?).map(|nth| CHUNK + nth * STRIPE);
        let here: Vec<usize> =
            stripes.filter(|at| number::<8>(chunk, *at) == Some(devid)).collect();
        if here.is_empty() {
            return None;
        }
        let space = spaces.iter().find(|space| space.flags == flags);
        let of_kind = || space.map(|space| (space.used, space.total));
        let part_of = |(used, all): (u64, u64)| {
            let used = u128::from(length) * u128::from(used) / u128::from(all.max(1));
            u64::try_from(used).unwrap_or(length)
        };
        let used = in_use().map(|used| (used, whole)).or_else(of_kind).map_or(length, part_of);
        let here = here.into_iter();
        let starts = here.filter_map(|at| number::<8>(chunk, at + 8));
        Some(starts.map(|start| Part { start, length, used }).collect())
    };
    parts().unwrap_or_default()
}

#[cfg(test)]
mod tests;
