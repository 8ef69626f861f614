//! What one mount shows: a head examines the directories of its resources before it claims any.

use std::ffi::{CStr, CString};
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use crate::config::{Config, Resource};
use crate::file_lock::lock;

/// File systems in user space of which mounts on several machines see each other's locks.
const FUSE_SHARED: [&str; 3] = ["fuse.ceph", "fuse.ceph-fuse", "fuse.glusterfs"];
/// What a client has written reaches no file of these after its locks were given to another one:
/// CephFS refuses its writes before. Of other file systems of a network nothing is known.
const FENCES: [&str; 3] = CEPH;
/// CephFS: by FUSE, of which the name differs by version, and of the kernel.
const CEPH: [&str; 3] = ["fuse.ceph", "fuse.ceph-fuse", "ceph"];
/// The attribute of each of its files that has the client of the mount, as `client4123`.
const CEPH_CLIENT: &CStr = c"ceph.client_id";
/// Longest value of that: a number of 64 bits.
const CEPH_CLIENT_MAX: usize = 32;
/// Beginnings of the types of file systems of which the server drops the locks of a client that it
/// does not reach.
const OF_NETWORK: [&str; 6] = ["fuse", "nfs", "cifs", "smb3", "9p", "afs"];
/// Those in the kernel that are of one machine and in memory.
const OF_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];

/// Examines the directories of all resources of a head.
///
/// # Errors
/// One sentence about the first that may not be served, and why.
pub fn examine(config: &Config) -> Result<(), String> {
    config.resources.iter().try_for_each(|resource| {
        examine_one(resource, config.unchecked_file_system)
            .map_err(|why| format!("resource {} cannot be served: {why}", resource.name))
    })
}

fn examine_one(resource: &Resource, unchecked: bool) -> Result<(), String> {
    let (directory, state) = (&resource.directory, &resource.state);
    let shown = directory.display();
    let metadata = fs::metadata(directory).map_err(|e| format!("{shown}: {e}"))?;
    if !metadata.is_dir() {
        return Err(format!("{shown} is not a directory"));
    }
    let cannot = |e| format!("the state directory {} cannot be made: {e}", state.display());
    DirBuilder::new().recursive(true).mode(0o700).create(state).map_err(cannot)?;
    let of_state = fs::metadata(state).map_err(cannot)?;
    if of_state.dev() != metadata.dev() {
        return Err(format!("{shown} and {} are on two file systems", state.display()));
    }
    if !unchecked {
        check_type(directory)?;
    }
    check_locks(state)
}

fn check_type(directory: &Path) -> Result<(), String> {
    let Some(kind) = file_system(directory) else { return Ok(()) };
    let shown = directory.display();
    if OF_MEMORY.contains(&kind.as_str()) {
        return Err(format!("{shown} is on {kind}, which no other machine has"));
    }
    if kind.starts_with("fuse") && !FUSE_SHARED.contains(&kind.as_str()) {
        return Err(format!(
            "{shown} is on {kind}, of which mounts may not see each other's locks; try two mounts \
             with `plimsoll doctor cluster`, and if they are fit set unchecked_file_system = true"
        ));
    }
    Ok(())
}

/// Locks of two open files exclude each other.
fn check_locks(state: &Path) -> Result<(), String> {
    let path = state.join(format!(".lock-check-{}", std::process::id()));
    let tried = || {
        let (a, b) = (File::create(&path)?, File::options().write(true).open(&path)?);
        Ok::<_, std::io::Error>(lock(&a)? && !lock(&b)?)
    };
    let tried = tried();
    // A file that is left is empty, and replaced by the next check of this process number.
    let _left = fs::remove_file(&path);
    match tried {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!("locks in {} exclude no other open file", state.display())),
        Err(e) => Err(format!("files in {} cannot be locked: {e}", state.display())),
    }
}

/// Whether the file system on which a path is keeps a former owner from writing before another
/// machine gets its locks. File systems on disks do: their locks end with the process, or with the
/// machine that their own fence has ended.
pub fn fences(path: &Path) -> bool {
    let Some(kind) = file_system(path) else { return false };
    let dropped = OF_NETWORK.iter().any(|of_network| kind.starts_with(of_network));
    !dropped || FENCES.contains(&kind.as_str())
}

/// The type of the file system that a path is on, as mountinfo(5) has it.
pub(super) fn file_system(path: &Path) -> Option<String> {
    mount_of(&fs::canonicalize(path).ok()?).map(|(_, kind)| kind)
}

/// The place of the mount that a path is on, if it has no symbolic links, and its type.
fn mount_of(path: &Path) -> Option<(String, String)> {
    let text = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let entries = text.lines().filter_map(|line| {
        let (mount, rest) = line.split_once(" - ")?;
        let point = unescaped(mount.split(' ').nth(4)?);
        path.starts_with(&point).then(|| Some((point, rest.split(' ').next()?.to_owned())))?
    });
    // Of mounts at one place the last one is seen.
    entries.max_by_key(|(point, _)| point.len())
}

/// The client by which this machine has the CephFS that a path is on; nothing on another file
/// system. The mount has it in memory: no server is asked.
pub fn ceph_client(path: &Path) -> Option<u64> {
    let (point, kind) = mount_of(path)?;
    if !CEPH.contains(&kind.as_str()) {
        return None;
    }
    let point = CString::new(point).ok()?;
    let mut value = [0_u8; CEPH_CLIENT_MAX];
    // SAFETY: two strings that end with 0, and room of the length that is given.
    let length = unsafe {
        libc::getxattr(point.as_ptr(), CEPH_CLIENT.as_ptr(), value.as_mut_ptr().cast(), value.len())
    };
    let value = value.get(..usize::try_from(length).ok()?)?;
    std::str::from_utf8(value).ok()?.strip_prefix("client")?.parse().ok()
}

/// A path of mountinfo(5), in which spaces, tabs, line ends and backslashes are octal.
fn unescaped(text: &str) -> String {
    let mut out = text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n");
    if out.contains("\\134") {
        out = out.replace("\\134", "\\");
    }
    out
}
