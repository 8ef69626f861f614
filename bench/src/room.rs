//! Memory for the writes of a turn, claimed from the host beforehand.
//!
//! A virtual machine with a host that reclaims free memory pays for each page when it is first
//! written again: the same upload into tmpfs then takes one time or four, by chance. A file of the
//! turn's size, made before the clock starts and removed just before it does, leaves as many pages
//! that the machine has.
//!
//! If free memory is reported to the host every second or two, so that the host reclaims it before
//! it is used, all of the memory is held, and released gradually.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::FromRawFd;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Bytes that are written at once.
const PIECE: usize = 1 << 20;
/// Name of the file.
const NAME: &CStr = c"room";
/// Interval at which the free memory is read.
const LOOK: Duration = Duration::from_millis(5);
/// Bytes that are free for others, of which they can use no more between two readings.
const FREE: u64 = 384 << 20;
/// Bytes that are released at once.
const STEP: u64 = 16 << 20;

/// Pages that are held; free for others when it is dropped. They are of a file without a name,
/// which uses no space where the turn writes.
pub struct ReservedPages {
    file: File,
    bytes: u64,
}

impl ReservedPages {
    /// Holds `bytes`.
    ///
    /// # Errors
    /// When there is less memory.
    pub fn hold(bytes: u64) -> io::Result<Self> {
        let (mut room, piece) = (Self { file: unnamed()?, bytes: 0 }, vec![1; PIECE]);
        while room.bytes < bytes {
            let left = usize::try_from(bytes - room.bytes).unwrap_or(usize::MAX);
            let here = piece.get(..left.min(PIECE)).unwrap_or_default();
            room.file.write_all(here)?;
            room.bytes += here.len() as u64;
        }
        Ok(room)
    }

    /// Holds all free memory.
    ///
    /// # Errors
    /// When there is less memory meanwhile.
    pub fn hold_all() -> io::Result<Self> {
        Self::hold(free()?.saturating_sub(FREE))
    }

    /// Releases the pages as others need some, the rest when the returned value is dropped.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn release_gradually(mut self) -> io::Result<GradualRelease> {
        let (stop, stopped) = channel();
        let gives = move || {
            while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                let missing = FREE.saturating_sub(free().unwrap_or(FREE));
                let left = self.bytes.saturating_sub(missing);
                if missing >= STEP && self.file.set_len(left).is_ok() {
                    self.bytes = left;
                }
            }
        };
        let thread = std::thread::Builder::new().name("room".to_owned()).spawn(gives)?;
        Ok(GradualRelease { stop: Some(stop), thread: Some(thread) })
    }
}

fn unnamed() -> io::Result<File> {
    // SAFETY: the name ends with NUL.
    let fd = unsafe { libc::memfd_create(NAME.as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Pages that are released gradually.
pub struct GradualRelease {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for GradualRelease {
    fn drop(&mut self) {
        self.stop = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Free bytes of memory.
fn free() -> io::Result<u64> {
    let said = fs::read_to_string("/proc/meminfo")?;
    let line = said.lines().find_map(|line| line.strip_prefix("MemFree:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.map(|kib| kib << 10).ok_or_else(|| io::ErrorKind::InvalidData.into())
}
