//! From a file to the block devices below it: the device of its file system, then what a loop
//! device, a partition or the device mapper puts it on, down to the disks. Their counters, and what
//! control groups cap on them.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Root;

/// Unit of the kernel's counters, whatever a device's own sector is.
const SECTOR: u64 = 512;
/// Devices on top of each other that are followed.
const DEEP: u32 = 16;

/// Number of a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Number(pub u32, pub u32);

impl Number {
    /// From `st_dev` or `st_rdev`.
    pub fn of(dev: u64) -> Self {
        Self(libc::major(dev), libc::minor(dev))
    }

    /// From `MAJOR:MINOR`.
    pub fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.trim().split_once(':')?;
        Some(Self(major.parse().ok()?, minor.parse().ok()?))
    }

    fn sys(self) -> String {
        format!("sys/dev/block/{}:{}", self.0, self.1)
    }
}

/// Counters of a block device, reads and writes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeviceIo {
    /// Its name.
    pub name: String,
    /// Completed requests.
    pub ops: [u64; 2],
    /// Bytes.
    pub bytes: [u64; 2],
    /// Time that requests took, ms, those of all added up.
    pub ms: [u64; 2],
    /// Flushes, and the time that they took in ms.
    pub flushes: [u64; 2],
    /// Time in which at least one request was in flight, ms.
    pub busy_ms: u64,
}

impl DeviceIo {
    /// Parses `/sys/dev/block/M:N/stat` (Documentation/block/stat.rst).
    pub fn parse(name: &str, text: &str) -> Option<Self> {
        let n: Vec<u64> = text.split_ascii_whitespace().map_while(|w| w.parse().ok()).collect();
        let at = |i: usize| n.get(i).copied();
        let flushes = [at(15).unwrap_or(0), at(16).unwrap_or(0)];
        Some(Self {
            name: name.to_owned(),
            ops: [at(0)?, at(4)?],
            bytes: [at(2)? * SECTOR, at(6)? * SECTOR],
            ms: [at(3)?, at(7)?],
            flushes,
            busy_ms: at(9)?,
        })
    }
}

/// What is capped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capped {
    /// Bytes read per second.
    ReadBytes,
    /// Bytes written per second.
    WriteBytes,
    /// Reads per second.
    Reads,
    /// Writes per second.
    Writes,
}

/// A cap of a control group on a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cap {
    /// Name of the device.
    pub device: String,
    /// What is capped.
    pub of: Capped,
    /// Per second.
    pub most: u64,
    /// The control group.
    pub group: String,
}

/// The devices below a server's data.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Devices {
    /// That of the file system first, the disks last.
    pub chain: Vec<(Number, String)>,
    /// Why there are none.
    pub none: Option<String>,
    /// The folder with the test files, as this process reaches it.
    pub folder: Option<PathBuf>,
    /// The files or devices of logical units, as this process reaches them.
    pub units: Vec<PathBuf>,
}

impl Devices {
    /// Those below the file or block device `path`, of which `pid` has the mounts.
    pub fn below(root: &Root, path: &Path, pid: &str) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        let is_device = found.mode() & libc::S_IFMT == libc::S_IFBLK;
        let number = Number::of(if is_device { found.rdev() } else { found.dev() });
        Some(Self::of(root, number, pid))
    }

    /// This device and those below it.
    pub fn of(root: &Root, number: Number, pid: &str) -> Self {
        let mut devices = Self::default();
        devices.follow(root, number, pid, 0);
        devices
    }

    fn follow(&mut self, root: &Root, number: Number, pid: &str, depth: u32) {
        if depth > DEEP || self.chain.iter().any(|(known, _)| *known == number) {
            return;
        }
        let sys = number.sys();
        let Some(name) = name_of(root, &sys) else {
            self.follow_mount(root, number, pid, depth);
            return;
        };
        self.chain.push((number, name));
        let read = |file: &str| root.read(&format!("{sys}/{file}"));
        if let Ok(file) = read("loop/backing_file") {
            let file = file.trim().trim_end_matches(" (deleted)").to_owned();
            if let Ok(below) = std::fs::metadata(root.path(file.trim_start_matches('/'))) {
                self.follow(root, Number::of(below.dev()), "self", depth + 1);
            }
        }
        for slave in root.list(&format!("{sys}/slaves")) {
            let below = read(&format!("slaves/{slave}/dev"));
            if let Some(below) = below.ok().and_then(|text| Number::parse(&text)) {
                self.follow(root, below, pid, depth + 1);
            }
        }
        if read("partition").is_ok() {
            // The link leads to the partition's folder, which is in that of its disk.
            let disk = read("../dev").ok().and_then(|text| Number::parse(&text));
            if let Some(disk) = disk {
                self.follow(root, disk, pid, depth + 1);
            }
        }
    }

    /// A file system without a device number of its own: the mount entry has its device.
    fn follow_mount(&mut self, root: &Root, number: Number, pid: &str, depth: u32) {
        let mounts = root.read(&format!("proc/{pid}/mountinfo")).unwrap_or_default();
        let Some(mount) = Mount::find(&mounts, number) else {
            self.none.get_or_insert_with(|| {
                format!("the device {}:{} is not a device of this machine", number.0, number.1)
            });
            return;
        };
        let upper = mount.options.split(',').find_map(|o| o.strip_prefix("upperdir="));
        let next = match mount.kind {
            "tmpfs" | "ramfs" => None,
            "overlay" => upper.and_then(|dir| {
                let dir = format!("proc/{pid}/root/{}", dir.trim_start_matches('/'));
                Some(std::fs::metadata(root.path(&dir)).ok()?.dev())
            }),
            _ => mount.source.strip_prefix('/').and_then(|source| {
                let found = std::fs::metadata(root.path(source)).ok()?;
                (found.mode() & libc::S_IFMT == libc::S_IFBLK).then(|| found.rdev())
            }),
        };
        match next.map(Number::of).filter(|next| *next != number) {
            Some(next) => self.follow(root, next, pid, depth + 1),
            None if matches!(mount.kind, "tmpfs" | "ramfs") => {
                self.none = Some("the data is in memory (tmpfs)".to_owned());
            }
            None => self.none = Some(format!("the file system {} has no device", mount.kind)),
        }
    }

    /// Their counters now.
    pub fn counters(&self, root: &Root) -> Vec<DeviceIo> {
        let read = |(number, name): &(Number, String)| {
            DeviceIo::parse(name, &root.read(&format!("{}/stat", number.sys())).ok()?)
        };
        self.chain.iter().filter_map(read).collect()
    }

    /// What the control groups of process `pid` cap on them.
    pub fn caps(&self, root: &Root, pid: u32) -> Vec<Cap> {
        let groups = root.read(&format!("proc/{pid}/cgroup")).unwrap_or_default();
        let mut found = Vec::new();
        for line in groups.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(kinds), Some(path)) = (parts.next(), parts.next()) else { continue };
            let roots: &[&str] = match kinds {
                "" => &["sys/fs/cgroup", "sys/fs/cgroup/unified"],
                _ if kinds.split(',').any(|kind| kind == "blkio") => &["sys/fs/cgroup/blkio"],
                _ => continue,
            };
            // A cap of a group is one for all groups below it.
            for group in Path::new(path).ancestors().filter_map(Path::to_str) {
                for at in roots {
                    let dir = format!("{at}{group}");
                    found.extend(self.caps_of(root, &dir, group));
                }
            }
        }
        found
    }

    fn caps_of(&self, root: &Root, dir: &str, group: &str) -> Vec<Cap> {
        let mut found: Vec<(Number, Capped, u64)> = Vec::new();
        let files = [
            ("read_bps", Capped::ReadBytes),
            ("write_bps", Capped::WriteBytes),
            ("read_iops", Capped::Reads),
            ("write_iops", Capped::Writes),
        ];
        for (name, of) in files {
            let text = root.read(&format!("{dir}/blkio.throttle.{name}_device"));
            found.extend(parse_cap(&text.unwrap_or_default()).into_iter().map(|c| (c.0, of, c.1)));
        }
        found.extend(parse_io_max(&root.read(&format!("{dir}/io.max")).unwrap_or_default()));
        let named = found.into_iter().filter_map(|(number, of, most)| {
            let (_, device) = self.chain.iter().find(|(known, _)| *known == number)?;
            Some(Cap { device: device.clone(), of, most, group: group.to_owned() })
        });
        named.collect()
    }
}

/// Lines of `blkio.throttle.*_device`: `MAJOR:MINOR VALUE`.
pub fn parse_cap(text: &str) -> Vec<(Number, u64)> {
    let row = |line: &str| {
        let (number, most) = line.split_once(' ')?;
        Some((Number::parse(number)?, most.trim().parse().ok()?))
    };
    text.lines().filter_map(row).collect()
}

/// Lines of `io.max`: `MAJOR:MINOR rbps=N wbps=max riops=max wiops=max`.
pub fn parse_io_max(text: &str) -> Vec<(Number, Capped, u64)> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(number) = words.next().and_then(Number::parse) else { continue };
        for (name, most) in words.filter_map(|word| word.split_once('=')) {
            let of = match name {
                "rbps" => Capped::ReadBytes,
                "wbps" => Capped::WriteBytes,
                "riops" => Capped::Reads,
                "wiops" => Capped::Writes,
                _ => continue,
            };
            // "max" is no cap.
            found.extend(most.parse().ok().map(|most| (number, of, most)));
        }
    }
    found
}

/// A line of `/proc/PID/mountinfo`.
struct Mount<'a> {
    kind: &'a str,
    source: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    fn find(text: &'a str, number: Number) -> Option<Self> {
        let wanted = format!("{}:{}", number.0, number.1);
        let line = text.lines().find(|l| l.split(' ').nth(2) == Some(wanted.as_str()))?;
        let mut words = line.split_once(" - ")?.1.split(' ');
        Some(Self { kind: words.next()?, source: words.next()?, options: words.next()? })
    }
}

/// The kernel's name of a device.
fn name_of(root: &Root, sys: &str) -> Option<String> {
    let uevent = root.read(&format!("{sys}/uevent")).ok()?;
    uevent.lines().find_map(|line| line.strip_prefix("DEVNAME=")).map(str::to_owned)
}

#[cfg(test)]
mod tests;
