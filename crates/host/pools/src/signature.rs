//! What is on a disk, by its magic numbers: file systems, members of other volumes, partition
//! tables. Only places are read at which a format has its magic number.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// A magic number at a fixed offset from the start.
struct Magic {
    name: &'static str,
    offset: u64,
    bytes: &'static [u8],
}

const fn magic(name: &'static str, offset: u64, bytes: &'static [u8]) -> Magic {
    Magic { name, offset, bytes }
}

/// UUID of the superblock of bcache, and of bcachefs before 2023.
const BCACHE: &[u8] = &[
    0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca, 0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba, 0x6d, 0x81,
];
/// UUID of the superblock of bcachefs.
const BCACHEFS: &[u8] = &[
    0xc6, 0x85, 0x73, 0xf6, 0x66, 0xce, 0x90, 0xa9, 0xd9, 0x6a, 0x60, 0xcf, 0x80, 0x3d, 0xf7, 0xef,
];
/// The superblock of MD, version 1 (little-endian).
const MD: &[u8] = &[0xfc, 0x4e, 0x2b, 0xa9];

/// In the order in which they are looked for: what is more specific first, a partition table last,
/// since the first sector of a file system may end as one.
const MAGICS: &[Magic] = &[
    magic("btrfs", 0x1_0040, b"_BHRfS_M"),
    magic("LUKS", 0, b"LUKS\xba\xbe"),
    magic("LVM", 0x200, b"LABELONE"),
    magic("LVM", 0, b"LABELONE"),
    magic("LVM", 0x400, b"LABELONE"),
    magic("LVM", 0x600, b"LABELONE"),
    magic("MD member", 0, MD),
    magic("MD member", 0x1000, MD),
    magic("bcache", 0x1018, BCACHE),
    magic("bcachefs", 0x1018, BCACHEFS),
    magic("Ceph BlueStore", 0, b"bluestore block device"),
    magic("XFS", 0, b"XFSB"),
    magic("ext", 0x438, &[0x53, 0xef]),
    magic("F2FS", 0x400, &[0x10, 0x20, 0xf5, 0xf2]),
    magic("ReiserFS", 0x1_0034, b"ReIsEr"),
    magic("swap", 0x0ff6, b"SWAPSPACE2"),
    magic("swap", 0x1ff6, b"SWAPSPACE2"),
    magic("swap", 0x3ff6, b"SWAPSPACE2"),
    magic("swap", 0xfff6, b"SWAPSPACE2"),
    magic("swap", 0x0ff6, b"SWAP-SPACE"),
    magic("squashfs", 0, b"hsqs"),
    magic("ISO 9660", 0x8001, b"CD001"),
    magic("NTFS", 3, b"NTFS    "),
    magic("exFAT", 3, b"EXFAT   "),
    magic("FAT", 0x36, b"FAT1"),
    magic("FAT", 0x52, b"FAT32"),
    magic("GPT partition table", 0x200, b"EFI PART"),
    magic("GPT partition table", 0x1000, b"EFI PART"),
    magic("partition table", 0x1fe, &[0x55, 0xaa]),
];

/// Start and size of the ring of uberblocks in a label of ZFS, and the steps between them.
const ZFS_RING: (u64, usize, usize) = (128 << 10, 128 << 10, 1 << 10);
/// Size of a label of ZFS: two at the start, two at the end.
const ZFS_LABEL: u64 = 256 << 10;
const ZFS_UBERBLOCK: u64 = 0x00ba_b10c;

/// Bytes of a file at an offset; none of what is beyond its end.
fn read<const N: usize>(file: &File, offset: u64, size: u64) -> io::Result<Option<[u8; N]>> {
    let mut bytes = [0; N];
    if offset.checked_add(N as u64).is_none_or(|end| end > size) {
        return Ok(None);
    }
    file.read_exact_at(&mut bytes, offset)?;
    Ok(Some(bytes))
}

/// What is on a device of this size; nothing if no signature is there.
///
/// # Errors
/// The device cannot be read.
pub fn identify(file: &File, size: u64) -> io::Result<Option<&'static str>> {
    for magic in MAGICS {
        let Some(bytes) = read::<22>(file, magic.offset, size)? else { continue };
        if bytes.starts_with(magic.bytes) {
            return Ok(Some(magic.name));
        }
    }
    // At the end: MD 1.0 and 0.90, the second partition table, labels of ZFS.
    let ends = [
        ("MD member", (size >> 9).checked_sub(16).map(|sector| (sector & !7) << 9), MD),
        ("MD member", (size & !0xffff).checked_sub(0x1_0000), MD),
        ("GPT partition table", size.checked_sub(512), b"EFI PART"),
        ("GPT partition table", size.checked_sub(4096), b"EFI PART"),
    ];
    for (name, offset, expected) in ends {
        let Some(offset) = offset else { continue };
        let bytes = read::<8>(file, offset, size)?;
        if bytes.is_some_and(|bytes| bytes.starts_with(expected)) {
            return Ok(Some(name));
        }
    }
    let aligned = size & !(ZFS_LABEL - 1);
    let labels = [Some(0), Some(ZFS_LABEL), aligned.checked_sub(2 * ZFS_LABEL)];
    for label in labels.into_iter().chain([aligned.checked_sub(ZFS_LABEL)]).flatten() {
        if is_zfs(file, label, size)? {
            return Ok(Some("ZFS"));
        }
    }
    Ok(None)
}

/// Whether a label of ZFS has an uberblock.
fn is_zfs(file: &File, label: u64, size: u64) -> io::Result<bool> {
    let (start, length, step) = ZFS_RING;
    let Some(offset) = label.checked_add(start).filter(|at| at + length as u64 <= size) else {
        return Ok(false);
    };
    let mut ring = vec![0; length];
    file.read_exact_at(&mut ring, offset)?;
    let is_one = |block: &[u8]| {
        let word = block.first_chunk::<8>();
        word.is_some_and(|word| {
            [u64::from_le_bytes(*word), u64::from_be_bytes(*word)].contains(&ZFS_UBERBLOCK)
        })
    };
    Ok(ring.chunks(step).any(is_one))
}

#[cfg(test)]
mod tests;
