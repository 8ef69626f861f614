//! How much memory a process may use, by captured files of both versions of control groups.

use std::fs;
use std::path::{Path, PathBuf};

use host::Root;
use host::memory::{Bound, Memory, available};

const MIB: u64 = 1 << 20;
const V1: &str = "/sys/fs/cgroup/memory";
const V2: &str = "/sys/fs/cgroup";
const MOUNT_V1: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";
const MOUNT_V2: &str = "41 31 0:38 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n";

struct Machine(PathBuf);

impl Machine {
    /// Of 8 GiB.
    fn new(test: &str, groups: &str, mounts: &str) -> Self {
        let name = format!("plimsoll-memory-{test}-{}", std::process::id());
        let machine = Self(std::env::temp_dir().join(name));
        machine.file("/proc/meminfo", "MemTotal: 8388608 kB\nMemFree: 1 kB\n");
        machine.file("/proc/self/cgroup", groups);
        machine.file("/proc/self/mountinfo", mounts);
        machine
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.0.join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn available(&self) -> Memory {
        available(&Root::at(&self.0)).unwrap()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn limited(bytes: u64, file: &str) -> Memory {
    Memory { bytes, bound: Bound::Group(Path::new(file).to_owned()) }
}

const ALL: Memory = Memory { bytes: 8 << 30, bound: Bound::Machine };

#[test]
fn a_machine_without_control_groups() {
    assert_eq!(Machine::new("none", "", "").available(), ALL);
}

#[test]
fn version_1_from_the_own_group_up() {
    let machine = Machine::new("v1", "5:cpu:/other\n4:memory:/a/b\n0::/\n", MOUNT_V1);
    let unlimited = "9223372036854771712\n";
    for dir in ["", "/a", "/a/b"] {
        machine.file(&format!("{V1}{dir}/memory.limit_in_bytes"), unlimited);
    }
    assert_eq!(machine.available(), ALL);
    machine.file(&format!("{V1}/a/memory.limit_in_bytes"), "268435456\n");
    let file = "/sys/fs/cgroup/memory/a/memory.limit_in_bytes";
    assert_eq!(machine.available(), limited(256 * MIB, file));
    machine.file(&format!("{V1}/a/b/memory.limit_in_bytes"), "134217728\n");
    let file = "/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes";
    assert_eq!(machine.available(), limited(128 * MIB, file));
}

#[test]
fn version_2_from_the_own_group_up() {
    let machine = Machine::new("v2", "0::/system.slice/plimsoll.service\n", MOUNT_V2);
    machine.file(&format!("{V2}/system.slice/plimsoll.service/memory.max"), "max\n");
    assert_eq!(machine.available(), ALL);
    machine.file(&format!("{V2}/system.slice/memory.max"), "1073741824\n");
    let file = "/sys/fs/cgroup/system.slice/memory.max";
    assert_eq!(machine.available(), limited(1024 * MIB, file));
}

#[test]
fn a_container_that_sees_its_own_part_of_the_hierarchy() {
    let mount = MOUNT_V1.replace("0:32 /", "0:32 /docker/1234");
    let machine = Machine::new("part", "4:memory:/docker/1234/in\n", &mount);
    machine.file(&format!("{V1}/memory.limit_in_bytes"), "536870912\n");
    machine.file(&format!("{V1}/in/memory.limit_in_bytes"), "1073741824\n");
    let file = "/sys/fs/cgroup/memory/memory.limit_in_bytes";
    assert_eq!(machine.available(), limited(512 * MIB, file));
    // A process that was moved out of what its namespace shows.
    let machine = Machine::new("out", "0::/../elsewhere\n", MOUNT_V2);
    machine.file(&format!("{V2}/memory.max"), "536870912\n");
    assert_eq!(machine.available(), limited(512 * MIB, "/sys/fs/cgroup/memory.max"));
}

#[test]
fn nonsense_is_no_limit() {
    let machine = Machine::new("nonsense", "x\n4:memory:/a\n::\n", "4 memory\n - x\n");
    assert_eq!(machine.available(), ALL);
    let machine = Machine::new("text", "4:memory:/\n", MOUNT_V1);
    machine.file(&format!("{V1}/memory.limit_in_bytes"), "lots\n");
    assert_eq!(machine.available(), ALL);
}
