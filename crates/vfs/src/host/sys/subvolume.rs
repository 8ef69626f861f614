//! Of when the state of a snapshot of a btrfs is.

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::attr::Time;

/// BTRFS_IOC_GET_SUBVOL_INFO: `_IOR(0x94, 60, struct btrfs_ioctl_get_subvol_info_args)`.
const GET_SUBVOL_INFO: libc::c_ulong = 0x81f8_943c;
/// Words of that structure, and where seconds and nanoseconds of `ctime` and `otime` stand.
const INFO_WORDS: usize = 504 / 8;
const CTIME: usize = 376 / 8;
const OTIME: usize = 392 / 8;

/// When a subvolume was created or last changed: of a snapshot, when it was taken; of a state that
/// a rollback has replaced, when that was. `None` on other file systems.
pub fn state_time(root: BorrowedFd<'_>) -> Option<Time> {
    let mut info = [0u64; INFO_WORDS];
    // SAFETY: the kernel writes as many bytes as `info` has.
    let done = unsafe { libc::ioctl(root.as_raw_fd(), GET_SUBVOL_INFO, info.as_mut_ptr()) };
    let time = |at: usize| {
        let [sec, nsec] = info.get(at..)?.first_chunk::<2>()?;
        // Four bytes, and as many that are not used.
        let nsec = nsec.to_ne_bytes().first_chunk().map(|n| u32::from_ne_bytes(*n))?;
        Some(Time { sec: i64::try_from(*sec).ok()?, nsec })
    };
    // The kernel may answer 1 for success.
    time(CTIME).max(time(OTIME)).filter(|_| done >= 0)
}
