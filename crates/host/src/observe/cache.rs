//! What of the test files is in the page cache: `cachestat` (Linux 6.5), or mincore(2) of a mapping
//! that touches nothing. And how they leave it: written back, then dropped; what a server has
//! mapped stays, which the count afterwards shows.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::clock::Deadline;
use base::memory::{CachedPages, cached_pages, dont_need, page_size};

use serde::{Deserialize, Serialize};

/// How the names of the laboratory's folders and files begin.
pub const TEST_FILES: &str = "plimsoll-lab";
/// How the names of folders begin that hold such files.
const TEST_FOLDERS: [&str; 2] = [TEST_FILES, "plimsoll-limits"];
/// Longest time for dropping files: their data is written back first.
const DROP_MAX: Duration = Duration::from_secs(120);
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
    of_files(&test_files(folder)?)
}

/// Pages of these files; `None` without any.
pub fn of_files(files: &[PathBuf]) -> Option<Pages> {
    let mut pages = Pages::default();
    for path in files {
        let Ok(file) = File::open(path) else { continue };
        pages.add(of(&file).ok()?);
    }
    (!files.is_empty()).then_some(pages)
}

/// What became of files that were to leave the page cache.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Dropped {
    /// Files.
    pub files: u64,
    /// Their pages before.
    pub before: Pages,
    /// Their pages after: the proof.
    pub after: Pages,
    /// Number of the device of their file system, as `st_dev` has it; of a block device its own.
    pub device: Option<u64>,
    /// The first thing that failed.
    pub failed: Option<String>,
}

/// Drops the test files in a folder, those on its file system.
///
/// # Errors
/// There are none, or too many.
pub fn drop_test_files(folder: &Path) -> Result<Dropped, String> {
    let files = test_files(folder).ok_or_else(|| format!("more than {FILES_MAX} test files"))?;
    if files.is_empty() {
        return Err(format!("{} has no test files", folder.display()));
    }
    let dev = std::fs::metadata(folder).map_err(|e| format!("{}: {e}", folder.display()))?.dev();
    Ok(drop_files(&files, Some(dev)))
}

/// Drops files or block devices. With `on` only those of this file system, and no symbolic links.
pub fn drop_files(files: &[PathBuf], on: Option<u64>) -> Dropped {
    let mut dropped = Dropped::default();
    let deadline = Deadline::after(DROP_MAX);
    for path in files {
        let done = match deadline.passed() {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => drop_file(path, on, &mut dropped),
        };
        if let Err(error) = done {
            let why = format!("{}: {error}", path.display());
            dropped.failed.get_or_insert(why);
        }
    }
    dropped
}

fn drop_file(path: &Path, on: Option<u64>, dropped: &mut Dropped) -> io::Result<()> {
    let follow = if on.is_some() { libc::O_NOFOLLOW } else { 0 };
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(libc::O_NONBLOCK | follow).open(path)?;
    let found = file.metadata()?;
    let is_device = found.mode() & libc::S_IFMT == libc::S_IFBLK;
    let device = if is_device { found.rdev() } else { found.dev() };
    if on.is_some_and(|on| on != device) {
        return Ok(());
    }
    dropped.device.get_or_insert(device);
    dropped.files += 1;
    dropped.before.add(of(&file)?);
    // Dirty pages stay: a file of which data is not on the disk keeps them.
    let done = file.sync_data().and_then(|()| dont_need(file.as_fd()));
    dropped.after.add(of(&file)?);
    done
}

/// The test files in a folder; `None` when they are more than [`FILES_MAX`].
fn test_files(folder: &Path) -> Option<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut dirs = vec![(folder.to_owned(), 0)];
    while let Some((dir, depth)) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let begins = |with: &str| name.to_str().is_some_and(|name| name.starts_with(with));
            let Ok(kind) = entry.file_type() else { continue };
            let named = match kind.is_dir() {
                true => TEST_FOLDERS.into_iter().any(begins),
                false => begins(TEST_FILES),
            };
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
/// When the kernel does not report it.
pub fn of(file: &File) -> io::Result<Pages> {
    use std::io::{Seek, SeekFrom};
    let found = file.metadata()?;
    let is_device = found.mode() & libc::S_IFMT == libc::S_IFBLK;
    // A block device has its size at its end only.
    let mut end = file;
    let size = if is_device { end.seek(SeekFrom::End(0))? } else { found.len() };
    let all = size.div_ceil(page_size());
    match cached_pages(file.as_fd(), 0, 0) {
        Ok(CachedPages { resident, dirty, .. }) => Ok(Pages { all, resident, dirty }),
        Err(e) if e.raw_os_error() == Some(libc::ENOSYS) => {
            Ok(Pages { all, resident: mincore(file)?, dirty: 0 })
        }
        Err(e) => Err(e),
    }
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
