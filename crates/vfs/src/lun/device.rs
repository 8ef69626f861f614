//! What block devices have that files have not.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};

/// Bytes of a block device.
///
/// # Errors
/// The error of the system call.
pub fn size(device: &File) -> io::Result<u64> {
    // The end of a device is where its last byte ends; no ioctl is needed.
    let mut device = device;
    device.seek(SeekFrom::End(0))
}
