//! Labels of ZFS on disks of a pool that is destroyed: two at the start, two at the end.

use std::fs::File;
use std::io::{self, Seek};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::{signature, sys};

/// Size of a label.
const LABEL: u64 = 256 << 10;

/// Overwrites all labels of a device, so that it can be used for another pool. Whether it had one.
///
/// # Errors
/// The operating system's; the device is in use: nothing was written then.
pub fn wipe(path: &Path) -> io::Result<bool> {
    let mut file: File = sys::open_exclusive(path, true)?;
    let size = file.seek(io::SeekFrom::End(0))?;
    // Only what ZFS has left is overwritten.
    if signature::identify(&file, size)? != Some("ZFS") {
        return Ok(false);
    }
    let aligned = size & !(LABEL - 1);
    let at_end = [aligned.checked_sub(2 * LABEL), aligned.checked_sub(LABEL)];
    let zeros = vec![0; LABEL as usize];
    for offset in [Some(0), Some(LABEL)].into_iter().chain(at_end).flatten() {
        if offset.checked_add(LABEL).is_some_and(|end| end <= size) {
            file.write_all_at(&zeros, offset)?;
        }
    }
    file.sync_all()?;
    Ok(true)
}
