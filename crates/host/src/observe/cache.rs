//! What of the test files is in the page cache: `cachestat` (Linux 6.5), or mincore(2) of a mapping
//! that touches nothing.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::process::page_size;

/// How the names of the laboratory's folders and files begin.
pub const TEST_FILES: &str = "plimsoll-lab";
/// Test files that are looked at; a run of file creation makes more.
const FILES_MAX: usize = 1024;
/// Directories on top of each other that are entered.
const DEEP: u32 = 4;
/// Bytes that are mapped at a time.
const PIECE: u64 = 1 << 30;

/// Pages of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Pages {
    /// Bytes of the files, in pages.
    pub all: u64,
    /// Of these in memory.
    pub resident: u64,
    /// Of these not written back yet; 0 where the kernel does not count them.
    pub dirty: u64,
}

impl Pages {
    fn add(&mut self, other: Self) {
        self.all += other.all;
        self.resident += other.resident;
        self.dirty += other.dirty;
    }
}

/// Pages of the test files in a folder; `None` when there are none or too many.
pub fn of_test_files(folder: &Path) -> Option<Pages> {
    let mut pages = Pages::default();
    let files = test_files(folder)?;
    for path in &files {
        let Ok(file) = File::open(path) else { continue };
        pages.add(of(&file).ok()?);
    }
    (!files.is_empty()).then_some(pages)
}

/// The test files in a folder; `None` when they are more than [`FILES_MAX`].
fn test_files(folder: &Path) -> Option<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut dirs = vec![(folder.to_owned(), 0)];
    while let Some((dir, depth)) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let named = entry.file_name().to_str().is_some_and(|n| n.starts_with(TEST_FILES));
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && depth < DEEP && (named || depth > 0) {
                dirs.push((entry.path(), depth + 1));
            } else if kind.is_file() && (named || depth > 0) {
                found.push(entry.path());
            }
            if found.len() > FILES_MAX {
                return None;
            }
        }
    }
    Some(found)
}

/// Pages of one file.
///
/// # Errors
/// When the kernel does not say.
pub fn of(file: &File) -> io::Result<Pages> {
    let all = file.metadata()?.len().div_ceil(page_size());
    match cachestat(file) {
        Ok((resident, dirty)) => Ok(Pages { all, resident, dirty }),
        Err(e) if e.raw_os_error() == Some(libc::ENOSYS) => {
            Ok(Pages { all, resident: mincore(file)?, dirty: 0 })
        }
        Err(e) => Err(e),
    }
}

/// Resident and dirty pages by cachestat(2).
fn cachestat(file: &File) -> io::Result<(u64, u64)> {
    /// Its number, the same on all architectures.
    const CACHESTAT: libc::c_long = 451;
    // Offset and length; 0 is up to the end.
    let range = [0u64; 2];
    // Cached, dirty, in writeback, evicted, recently evicted.
    let mut counts = [0u64; 5];
    // SAFETY: the call reads two and writes five 64-bit numbers, which live as long as it lasts.
    let failed = unsafe {
        libc::syscall(CACHESTAT, file.as_raw_fd(), range.as_ptr(), counts.as_mut_ptr(), 0u32)
    };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((counts[0], counts[1]))
}

/// Resident pages by mincore(2).
fn mincore(file: &File) -> io::Result<u64> {
    let length = file.metadata()?.len();
    let mut resident = 0;
    let mut offset = 0;
    while offset < length {
        let piece = (length - offset).min(PIECE);
        resident += mincore_piece(file, offset, piece)?;
        offset += piece;
    }
    Ok(resident)
}

fn mincore_piece(file: &File, offset: u64, length: u64) -> io::Result<u64> {
    let length = usize::try_from(length).map_err(io::Error::other)?;
    let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
    let (none, shared) = (libc::PROT_NONE, libc::MAP_SHARED);
    // SAFETY: a new mapping, placed by the kernel; it is never read or written.
    let at =
        unsafe { libc::mmap(std::ptr::null_mut(), length, none, shared, file.as_raw_fd(), offset) };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let mut pages = vec![0u8; length.div_ceil(page_size() as usize)];
    // SAFETY: the mapping above, and a byte for each of its pages.
    let failed = unsafe { libc::mincore(at, length, pages.as_mut_ptr()) };
    let error = io::Error::last_os_error();
    // SAFETY: the mapping above, once.
    unsafe { libc::munmap(at, length) };
    if failed != 0 {
        return Err(error);
    }
    Ok(pages.iter().filter(|page| **page & 1 != 0).count() as u64)
}

#[cfg(test)]
mod tests;
