//! Pools of disks on btrfs and ZFS: what is on each disk of this machine, which of them can be
//! used, and the file systems that are made of them.
//!
//! - [`signature`]: what is on a disk, by its magic numbers. [`superblock`]: that of btrfs.
//! - [`disk`]: the disks of this machine, and why one cannot be used.
//! - [`profile`]: how data is spread over disks, and what of it a failure leaves.
//! - [`state`]: the state of a pool from what is observed; pure.
//! - [`record`]: the file in a pool with its name, its settings and its writable degraded mounts.
//! - [`btrfs`]: a mounted file system by ioctl. [`pool`]: create, mount, compare, destroy.
//! - [`subvolume`]: subvolumes and snapshots. [`quota`]: their space, limits and compression.
//! - [`schedule`]: which snapshots a schedule makes and destroys; pure.
//! - [`zfs`]: pools of ZFS by its commands.
//! - [`request`]: what can be requested of the pools of a machine, and their state. [`keeper`]:
//!   does it: mounts below one folder, tasks with progress, what is remembered of each pool.
//!
//! A disk is written only after all checks of all disks of the request, and is opened exclusively
//! first: the kernel refuses one that is mounted, swap or a part of another device.

pub mod btrfs;
mod chunks;
pub mod disk;
pub mod keeper;
pub mod pool;
pub mod profile;
pub mod quota;
pub mod record;
pub mod request;
pub mod schedule;
pub mod signature;
pub mod state;
pub mod subvolume;
pub mod superblock;
mod sys;
pub mod zfs;
