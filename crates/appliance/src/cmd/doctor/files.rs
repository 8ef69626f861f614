//! What the file system of the directory can do, and room for the state.

use std::ffi::CStr;
use std::fs::File;
use std::io::Result;
use std::os::fd::AsFd;
use std::path::Path;

use vfs::host::sys::{extents, xattr};

use super::finding::{Finding, why_not};
use super::machine::first_line;
use crate::sys;

/// Statistics of a busy year, keys and configuration fit.
const STATE_ROOM: u64 = 1 << 30;
/// Below that a few clients with delegations use all watches up.
const WATCHES_FEW: u64 = 8192;
/// Longest access control list that Linux keeps.
const ACL_MAX: usize = 65_536;
/// Bytes that every file system can share: its block.
const BLOCK: usize = 65_536;

/// Everything about files.
pub fn findings(path: &Path, dir: &File, state: &Path) -> Vec<Finding> {
    vec![
        nowait(path, dir),
        lookups(),
        watches(path),
        attributes(path),
        access_lists(dir),
        shared_blocks(path),
        quotas(dir),
        unnamed(path),
        room(state),
    ]
}

/// What cannot be tried because no file can be made in the directory.
const NO_FILE: &str = "no file can be made in this directory to try";

fn attributes(path: &Path) -> Finding {
    const NAME: &CStr = c"user.plimsoll-doctor";
    let finding = Finding::new(
        "attributes",
        "NFSv4.2 clients keep extended attributes of their own with files",
        "clients are told that there are none",
        "ext4, xfs or btrfs; tmpfs from Linux 6.6 on",
    )
    .optional();
    match sys::unnamed_file(path) {
        Ok(file) => finding.tried(xattr::set(file.as_fd(), NAME, b"1", 0)),
        Err(_) => finding.unknown(NO_FILE),
    }
}

fn access_lists(dir: &File) -> Finding {
    let finding = Finding::new(
        "access lists",
        "POSIX access control lists of files decide about rights, and NFSv4 clients see them",
        "the permission bits alone decide",
        "a file system mounted with acl",
    )
    .optional();
    match xattr::get(dir.as_fd(), c"system.posix_acl_access", ACL_MAX) {
        Err(e) if e.raw_os_error() == Some(libc::EOPNOTSUPP) => finding.is(false, why_not(&e)),
        // None on this directory is an answer of one who knows them.
        Err(e) if e.raw_os_error() != Some(libc::ENODATA) => finding.unknown(e.to_string()),
        _ => finding.is(true, "works"),
    }
}

fn shared_blocks(path: &Path) -> Finding {
    let finding = Finding::new(
        "shared blocks",
        "NFSv4.2 clients clone and copy files without moving data",
        "COPY moves the data on this machine, and CLONE is refused",
        "xfs with reflink=1, or btrfs",
    )
    .optional();
    match clone_of(path) {
        Some(result) => finding.tried(result),
        None => finding.unknown(NO_FILE),
    }
}

/// Clones an unnamed file; `None` if none can be made.
fn clone_of(path: &Path) -> Option<Result<()>> {
    use std::os::unix::fs::FileExt;
    let (from, to) = (sys::unnamed_file(path).ok()?, sys::unnamed_file(path).ok()?);
    from.write_all_at(&[1; BLOCK], 0).ok()?;
    Some(extents::clone((from.as_fd(), 0), (to.as_fd(), 0), 0))
}

/// Nothing is missing where nobody has asked for them.
fn quotas(dir: &File) -> Finding {
    let finding = Finding::new(
        "quotas",
        "each user may write what the file system's quota leaves him, and is told so",
        "the room on the file system is everybody's",
        "mount with usrquota, quotaon(8)",
    )
    .optional();
    match sys::quotas_are_on(dir) {
        Ok(true) => finding.is(true, "on for users"),
        Ok(false) => finding.is(false, "off"),
        Err(e) => finding.unknown(why_not(&e)),
    }
}

fn unnamed(path: &Path) -> Finding {
    let finding = Finding::new(
        "O_TMPFILE",
        "files could be complete before they have a name",
        "files are made under their names; this version does nothing else",
        "ext4, xfs, btrfs or tmpfs",
    )
    .not_used();
    finding.tried(sys::unnamed_file(path).map(drop))
}

fn nowait(path: &Path, dir: &File) -> Finding {
    let finding = Finding::new(
        "RWF_NOWAIT",
        "cached reads are answered without a change of thread",
        "reads go to the pool of threads",
        "a directory on ext4, xfs or btrfs",
    );
    if sys::is_in_memory(dir) {
        return finding.is(true, "not needed: these files are in memory");
    }
    match sys::try_nowait(path) {
        Some(result) => finding.tried(result),
        None => finding.unknown(NO_FILE),
    }
}

fn lookups() -> Finding {
    Finding::new(
        "RESOLVE_CACHED",
        "cached lookups are answered without a change of thread",
        "lookups go to the pool of threads",
        "Linux 5.12 or newer",
    )
    .tried(sys::try_resolve_cached())
}

fn watches(path: &Path) -> Finding {
    let finding = Finding::new(
        "inotify watches",
        "clients with delegations hear of what programs on this machine change",
        "files that cannot be watched are not delegated",
        "sysctl fs.inotify.max_user_watches=524288",
    );
    if let Err(e) = sys::try_watch(path) {
        return finding.tried(Err(e));
    }
    let most: u64 = first_line("/proc/sys/fs/inotify/max_user_watches").parse().unwrap_or(0);
    finding.is(most >= WATCHES_FEW, format!("at most {most}"))
}

/// The state may not exist yet: then what is above it counts.
fn room(state: &Path) -> Finding {
    let finding = Finding::new(
        "room for state",
        "statistics, keys and configuration are kept, 1 GiB for a busy year",
        "statistics are lost when the file system is full",
        "--state DIR on a larger file system",
    );
    let above = state.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    match sys::bytes_free(above) {
        Ok(free) => {
            let found = format!("{} free for {}", base::units::bytes(free as f64), state.display());
            finding.is(free >= STATE_ROOM, found)
        }
        Err(e) => finding.unknown(e.to_string()),
    }
}
