//! How much memory this process may use: that of the machine, or less if a control group limits it.
//!
//! A control group counts for all groups below it, so the whole way up from the process's own group
//! is read, in both versions: `memory.max` of version 2 and `memory.limit_in_bytes` of version 1.
//! A process that uses more is killed, without any allocation having failed before.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use crate::Root;
use crate::counters;

/// The memory that this process may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// In bytes.
    pub bytes: u64,
    /// What sets this bound.
    pub bound: Bound,
}

/// What bounds the memory of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound {
    /// The machine has no more.
    Machine,
    /// A control group, by the file that sets its limit.
    Group(PathBuf),
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine => f.write_str("all that the machine has"),
            Self::Group(file) => write!(f, "the limit of the control group, {}", file.display()),
        }
    }
}

/// Reads the smallest bound; `None` when not even the machine's memory is known.
pub fn available(root: &Root) -> Option<Memory> {
    let machine = root.read("proc/meminfo").map(|text| counters::memory(&text).total);
    let machine = machine.ok().filter(|bytes| *bytes > 0);
    let machine = machine.map(|bytes| Memory { bytes, bound: Bound::Machine });
    let groups = root.read("proc/self/cgroup").unwrap_or_default();
    let mounts = root.read("proc/self/mountinfo").unwrap_or_default();
    let limits = limit_files(&groups, &mounts).into_iter().filter_map(|file| {
        let text = root.read(file.strip_prefix("/").ok()?.to_str()?).ok()?;
        // "max" is no limit.
        Some(Memory { bytes: text.trim().parse().ok()?, bound: Bound::Group(file) })
    });
    // What is equal goes to the first: the machine, then the innermost group.
    machine.into_iter().chain(limits).min_by_key(|memory| memory.bytes)
}

/// The files that may limit the memory of the process with these `/proc/self/cgroup` and
/// `/proc/self/mountinfo`, from the inside out.
pub fn limit_files(groups: &str, mounts: &str) -> Vec<PathBuf> {
    let mounts: Vec<Mount<'_>> = mounts.lines().filter_map(Mount::parse).collect();
    groups.lines().flat_map(|group| files_of(group, &mounts)).collect()
}

/// Those of one line of `/proc/self/cgroup`: `NUMBER:CONTROLLERS:PATH`.
fn files_of(group: &str, mounts: &[Mount<'_>]) -> Vec<PathBuf> {
    let mut fields = group.splitn(3, ':');
    let (Some(number), Some(controllers), Some(path)) =
        (fields.next(), fields.next(), fields.next())
    else {
        return Vec::new();
    };
    let has_memory = controllers.split(',').any(|controller| controller == "memory");
    let (kind, file) = match (number, controllers, has_memory) {
        ("0", "", _) => ("cgroup2", "memory.max"),
        (_, _, true) => ("cgroup", "memory.limit_in_bytes"),
        _ => return Vec::new(),
    };
    let mount = mounts.iter().find(|mount| {
        mount.kind == kind && (kind == "cgroup2" || mount.options.split(',').any(|o| o == "memory"))
    });
    let Some(mount) = mount else { return Vec::new() };
    let mut below = Path::new(path).strip_prefix(mount.root).unwrap_or(Path::new(""));
    if below.components().any(|part| !matches!(part, Component::Normal(_))) {
        // The group is outside of what this namespace shows.
        below = Path::new("");
    }
    below.ancestors().map(|dir| Path::new(mount.point).join(dir).join(file)).collect()
}

/// A line of `/proc/self/mountinfo` (proc(5)).
struct Mount<'a> {
    /// The directory of the hierarchy that is mounted here.
    root: &'a str,
    point: &'a str,
    kind: &'a str,
    /// Those of the file system: the controllers in version 1.
    options: &'a str,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (mount, system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let mut system = system.split(' ');
        let (root, point) = (mount.next()?, mount.next()?);
        let (kind, _source, options) = (system.next()?, system.next()?, system.next()?);
        Some(Self { root, point, kind, options })
    }
}
