//! Devices on devices, captured; caps of both versions of control groups.

use super::*;
use crate::observe::tests::Machine;

const STAT: &str = "   15306        2  1094146     5137    23119     1204  2213552    40322 \
    3    21960    46150      100        0       78       12      500      689\n";

/// A device with its folder, `sys/devices/NAME`, where `sys/dev/block/M:N` leads.
fn add(machine: &Machine, number: &str, path: &str) {
    let name = path.rsplit('/').next().unwrap();
    machine.file(&format!("sys/devices/{path}/uevent"), &format!("MAJOR=1\nDEVNAME={name}\n"));
    machine.file(&format!("sys/devices/{path}/dev"), &format!("{number}\n"));
    machine.file(&format!("sys/devices/{path}/stat"), STAT);
    machine.link(&format!("sys/dev/block/{number}"), &format!("../../devices/{path}"));
}

fn names(devices: &Devices) -> Vec<&str> {
    devices.chain.iter().map(|(_, name)| name.as_str()).collect()
}

#[test]
fn counters_of_a_device() {
    let io = DeviceIo::parse("vda", STAT).unwrap();
    assert_eq!((io.ops, io.ms, io.busy_ms), ([15_306, 23_119], [5137, 40_322], 21_960));
    assert_eq!(io.bytes, [1_094_146 * 512, 2_213_552 * 512]);
    assert_eq!(io.flushes, [500, 689]);
    // Kernels before 5.5 count no flushes.
    let short: Vec<&str> = STAT.split_whitespace().take(11).collect();
    assert_eq!(DeviceIo::parse("vda", &short.join(" ")).unwrap().flushes, [0, 0]);
    assert_eq!(DeviceIo::parse("vda", "1 2 3"), None);
}

#[test]
fn a_mapped_device_and_partitions_lead_to_the_disk() {
    let machine = Machine::new();
    add(&machine, "252:0", "virtual/dm-0");
    add(&machine, "8:0", "pci/sda");
    add(&machine, "8:1", "pci/sda/sda1");
    add(&machine, "8:16", "pci/sdb");
    machine.file("sys/devices/pci/sda/sda1/partition", "1\n");
    machine.link("sys/devices/virtual/dm-0/slaves/sda1", "../../../pci/sda/sda1");
    machine.link("sys/devices/virtual/dm-0/slaves/sdb", "../../../pci/sdb");
    let devices = Devices::of(&machine.root, Number(252, 0), "self");
    assert_eq!(names(&devices), ["dm-0", "sda1", "sda", "sdb"]);
    assert_eq!(devices.counters(&machine.root).len(), 4);
    assert_eq!(devices.none, None);
}

#[test]
fn a_loop_device_leads_to_the_device_of_its_file() {
    let machine = Machine::new();
    machine.file("images/disk.img", "");
    let below = Number::of(std::fs::metadata(machine.at("images/disk.img")).unwrap().dev());
    add(&machine, "7:3", "virtual/loop3");
    add(&machine, &format!("{}:{}", below.0, below.1), "pci/vdz");
    machine.file("sys/devices/virtual/loop3/loop/backing_file", "/images/disk.img\n");
    let devices = Devices::of(&machine.root, Number(7, 3), "self");
    assert_eq!(names(&devices), ["loop3", "vdz"]);
}

#[test]
fn file_systems_without_a_number_of_their_own() {
    let machine = Machine::new();
    let mounts = "30 1 0:40 / /dev/shm rw - tmpfs tmpfs rw\n31 1 0:41 / /x rw - fuse.y none rw\n";
    machine.file("proc/7/mountinfo", mounts);
    let none = |number| Devices::of(&machine.root, number, "7").none.unwrap();
    assert_eq!(none(Number(0, 40)), "the data is in memory (tmpfs)");
    assert_eq!(none(Number(0, 41)), "the file system fuse.y has no device");
    assert!(none(Number(0, 42)).contains("0:42"));
}

#[test]
fn an_overlay_leads_to_the_device_of_its_upper_directory() {
    let machine = Machine::new();
    machine.file("proc/7/root/upper/file", "");
    let below = Number::of(std::fs::metadata(machine.at("proc/7/root/upper")).unwrap().dev());
    add(&machine, &format!("{}:{}", below.0, below.1), "pci/vdz");
    let options = "rw,lowerdir=/a,upperdir=/upper,workdir=/w";
    machine.file("proc/7/mountinfo", &format!("30 1 0:40 / / rw - overlay overlay {options}\n"));
    assert_eq!(names(&Devices::of(&machine.root, Number(0, 40), "7")), ["vdz"]);
}

#[test]
fn caps_of_the_group_and_of_those_above() {
    let machine = Machine::new();
    add(&machine, "7:3", "virtual/loop3");
    let devices = Devices::of(&machine.root, Number(7, 3), "self");
    machine.file("proc/9/cgroup", "7:blkio:/a/b\n0::/u\n");
    machine.file("sys/fs/cgroup/blkio/a/blkio.throttle.read_bps_device", "7:3 20000000\n8:0 5\n");
    machine.file("sys/fs/cgroup/blkio/a/b/blkio.throttle.write_iops_device", "7:3 100\n");
    machine.file("sys/fs/cgroup/u/io.max", "7:3 rbps=max wbps=1000 riops=max wiops=max\n");
    let caps = devices.caps(&machine.root, 9);
    let cap =
        |of, most, group: &str| Cap { device: "loop3".into(), of, most, group: group.to_owned() };
    let expected = [
        cap(Capped::Writes, 100, "/a/b"),
        cap(Capped::ReadBytes, 20_000_000, "/a"),
        cap(Capped::WriteBytes, 1000, "/u"),
    ];
    assert_eq!(caps, expected);
    for text in ["", "7:3", "7:3 rbps", "x y", "7:3 x"] {
        assert!(parse_cap(text).is_empty() && parse_io_max(text).is_empty(), "{text}");
    }
}
