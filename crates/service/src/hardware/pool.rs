//! Which pool a disk of the machine is in.

use host_hardware::disk::Disk;

/// A disk as a pool has it.
#[derive(Debug, Clone, Default)]
pub struct Member {
    /// Name of the pool.
    pub pool: String,
    /// Name of the kernel when it was last seen; it may be that of a partition.
    pub device: String,
    /// Serial number; empty if it has none.
    pub serial: String,
    /// Name below `/dev/disk/by-id`; empty if it has none.
    pub id: String,
    /// Whether the pool does not find it.
    pub missing: bool,
}

/// Reads the disks of all pools.
pub type Members = Box<dyn Fn() -> Vec<Member> + Send + Sync>;

/// The pool of a disk. Names of the kernel count only while both are present: after that another
/// disk may have them.
pub(super) fn pool_of<'a>(members: &'a [Member], disk: &Disk, absent: bool) -> Option<&'a str> {
    let is_it = |member: &&Member| {
        let same_serial =
            !member.serial.is_empty() && disk.serial.as_deref() == Some(&*member.serial);
        let same_id = !member.id.is_empty() && disk.by_id.contains(&member.id);
        let is_present = !absent && !member.missing;
        let mut devices = disk.devices.iter();
        same_serial || same_id || is_present && devices.any(|one| is_on(&member.device, one))
    };
    members.iter().find(is_it).map(|member| member.pool.as_str())
}

/// Whether a device is a disk or a partition of it: `sda1` of `sda`, `nvme0n1p2` of `nvme0n1`.
fn is_on(device: &str, disk: &str) -> bool {
    let Some(rest) = device.strip_prefix(disk).filter(|_| !disk.is_empty()) else { return false };
    let number = match disk.ends_with(|c: char| c.is_ascii_digit()) {
        true => rest.strip_prefix('p'),
        false => Some(rest),
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    rest.is_empty() || number.is_some_and(is_number)
}

#[cfg(test)]
mod tests;
