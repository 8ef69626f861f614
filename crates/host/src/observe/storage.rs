//! Where a server has the data that it serves: as its owner states it, below the path that it
//! exports, or where it has the test files of the laboratory open.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::Root;

use super::cache::TEST_FILES;
use super::device::Devices;

/// Descriptors and mappings of a server that are looked at, at most.
const OPEN_MAX: usize = 65_536;
/// A file of a logical unit is not smaller than this.
const UNIT_MIN: u64 = 1 << 20;

/// What is known of where the data is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hints {
    /// Stated by the owner: a directory, a file or a block device.
    pub path: Option<PathBuf>,
    /// The path that is exported, which may be one of the server's machine.
    pub exported: Option<PathBuf>,
    /// The folder of the run below the stated path, once it is made.
    pub below: Option<PathBuf>,
    /// Whether it serves blocks: then the files or devices that it has open are the data.
    pub blocks: bool,
}

/// The devices below the data of a server; `None` if that is not known yet.
pub fn find(root: &Root, pids: &[u32], hints: &Hints) -> Option<Devices> {
    let first = pids.first().map_or_else(|| "self".to_owned(), u32::to_string);
    if let Some(path) = &hints.path {
        let below = hints.below.as_ref().map(|below| path.join(below)).filter(|dir| dir.is_dir());
        let path = below.as_ref().unwrap_or(path);
        let mut devices = Devices::below(root, path, "self")?;
        match path.is_dir() {
            true => devices.folder = Some(path.clone()),
            false => devices.units = vec![path.clone()],
        }
        return Some(devices);
    }
    if let Some(path) = &hints.exported {
        let below = path.strip_prefix("/").unwrap_or(path);
        let path = root.path(&format!("proc/{first}/root")).join(below);
        if has_test_files(&path) {
            let mut devices = Devices::below(root, &path, &first)?;
            devices.folder = Some(path);
            return Some(devices);
        }
    }
    pids.iter().find_map(|pid| match hints.blocks {
        true => open_units(root, *pid),
        false => open_test_files(root, *pid),
    })
}

fn has_test_files(dir: &Path) -> bool {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .take(OPEN_MAX)
        .any(|entry| entry.file_name().to_str().is_some_and(|n| n.starts_with(TEST_FILES)))
}

/// The folder that holds a test file, from the file's path.
pub fn folder_of(path: &str) -> Option<&str> {
    let at = path.find(&format!("/{TEST_FILES}"))?;
    Some(path.get(..at)?).map(|dir| if dir.is_empty() { "/" } else { dir })
}

/// By test files that a process has open or mapped.
fn open_test_files(root: &Root, pid: u32) -> Option<Devices> {
    let dir = format!("proc/{pid}/fd");
    let opened = root.list(&dir).into_iter().take(OPEN_MAX);
    let mut opened = opened.filter_map(|fd| root.link(&format!("{dir}/{fd}")));
    let of_descriptor = opened.find_map(|link| Some(folder_of(link.to_str()?)?.to_owned()));
    let folder = of_descriptor.or_else(|| {
        let maps = root.read(&format!("proc/{pid}/maps")).unwrap_or_default();
        let mut paths = maps.lines().filter_map(|line| Some(&line[line.find('/')?..]));
        paths.find_map(|path| folder_of(path).map(str::to_owned))
    })?;
    let below = folder.trim_start_matches('/');
    let path = root.path(&format!("proc/{pid}/root")).join(below);
    let mut devices = Devices::below(root, &path, &pid.to_string())?;
    devices.folder = Some(path);
    Some(devices)
}

/// By the files and devices of logical units, if all that are open are on one device.
fn open_units(root: &Root, pid: u32) -> Option<Devices> {
    let dir = format!("proc/{pid}/fd");
    let mut found: Option<Devices> = None;
    let mut units = Vec::new();
    for fd in root.list(&dir).into_iter().take(OPEN_MAX) {
        let path = root.path(&format!("{dir}/{fd}"));
        let Ok(data) = std::fs::metadata(&path) else { continue };
        let kind = data.file_type();
        if !(kind.is_block_device() || kind.is_file() && data.len() >= UNIT_MIN) {
            continue;
        }
        let devices = Devices::below(root, &path, &pid.to_string())?;
        if found.as_ref().is_some_and(|other| *other != devices) {
            return None;
        }
        found = Some(devices);
        units.push(path);
    }
    found.map(|devices| Devices { units, ..devices })
}

#[cfg(test)]
mod tests;
