//! The identity that a file system has on its own, independent of its current device.

use std::os::fd::{AsRawFd, BorrowedFd};

/// `f_type` of XFS.
pub const XFS: u64 = 0x5846_5342;
/// XFS_IOC_FSGEOMETRY_V1: `_IOR('X', 100, struct xfs_fsop_geom_v1)`.
const GEOMETRY_V1: libc::c_ulong = 0x8070_5864;
/// Bytes of `struct xfs_fsop_geom_v1`, and where its UUID stands.
const GEOMETRY_LEN: usize = 112;
const GEOMETRY_UUID: usize = 64;

/// `f_fsid` of statfs(2), and for XFS, which makes that of the device's number, its UUID: a device
/// may be another one after a restart, and handles are bound to this. 0 where there is none.
pub fn identity(root: BorrowedFd<'_>, stats: &libc::statfs) -> u64 {
    let id = super::fsid(stats);
    if stats.f_type as u64 != XFS {
        return id;
    }
    xfs_uuid(root).unwrap_or(id)
}

/// Both halves of the UUID of an XFS in one number.
fn xfs_uuid(root: BorrowedFd<'_>) -> Option<u64> {
    let mut geometry = [0u64; GEOMETRY_LEN / 8];
    // SAFETY: the kernel writes `GEOMETRY_LEN` bytes into as many that are ours.
    let done = unsafe { libc::ioctl(root.as_raw_fd(), GEOMETRY_V1, geometry.as_mut_ptr()) };
    let [high, low] = geometry.get(GEOMETRY_UUID / 8..)?.first_chunk::<2>()?;
    (done == 0).then_some(high ^ low).filter(|id| *id != 0)
}
