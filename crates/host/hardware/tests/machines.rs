//! Models of captured and constructed machines, and of the same with each of their files damaged.

#[allow(dead_code, reason = "each program of tests uses a part")]
mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Instant;

use common::{MACHINES, Machine, folder};
use e2e::{has, skip};
use host::Root;
use host_hardware::Hardware;
use host_hardware::files::Reason;

/// Bytes of noise of a file, and its length: read without a bound it would not fit into memory.
const NOISE: usize = 4 << 20;
const LENGTH: u64 = 1 << 40;

#[test]
fn models_of_machines() {
    for name in MACHINES {
        let model = Hardware::read(&Machine::unpack(name).root());
        let text = serde_json::to_string_pretty(&model).expect("JSON") + "\n";
        let golden = folder().join(name).with_extension("json");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&golden, &text).expect("a file");
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        assert!(text == expected, "{name} differs; UPDATE_GOLDEN=1 writes {golden:?}\n{text}");
    }
}

#[test]
fn constructed_machines_are_those_of_their_script() {
    if !has("python3") {
        skip!("constructed-machines", "not installed: python3");
    }
    for name in ["hcas", "chassis"] {
        let mut script = Command::new("python3");
        let output = script.arg(folder().join("construct.py")).arg(name).output().expect("python3");
        let tree = fs::read(folder().join(name).with_extension("tree")).expect("a tree");
        assert!(output.stdout == tree, "{name}.tree is not what construct.py {name} prints");
        assert!(tree.starts_with(b"# CONSTRUCTED"));
    }
}

#[test]
fn two_adapters_with_their_links() {
    let hardware = Hardware::read(&Machine::unpack("hcas").root());
    let slot = |name: &str| hardware.slots.iter().find(|slot| slot.name == name).expect("a slot");
    let words = |name: &str| slot(name).functions[0].link.words();
    assert_eq!(words("PCIE2").as_deref(), Some("x8 at 5.0 GT/s"));
    assert_eq!(words("PCIE3").as_deref(), Some("x4 of x8 at 5.0 GT/s"));
    assert!(slot("PCIE1").functions.is_empty());
    assert_eq!(slot("PCIE4").functions.len(), 2);
    let [hca] = slot("PCIE3").hcas.as_slice() else { panic!("one adapter") };
    assert_eq!((hca.name.as_str(), hca.ports.len()), ("mlx4_1", 2));
    assert_eq!(hca.ports[0].guid.as_deref(), Some("0002:c903:000b:0201"));
    assert_eq!(hca.ports[0].pkeys, ["0xffff", "0x8001"]);
    assert!(hca.ports[0].is_active() && !hca.ports[1].is_active());
    // Never read: it would keep the disk awake.
    assert!(!hardware.sensors.iter().any(|sensor| sensor.chip.contains("drivetemp")));
}

#[test]
fn two_paths_to_a_disk_are_one_disk() {
    let machine = Machine::unpack("chassis");
    let device = |name: &str| machine.path().join("sys/block").join(name);
    let target = fs::canonicalize(device("sdc")).expect("a disk");
    let second = target.parent().expect("a folder").join("sdy");
    fs::create_dir(&second).expect("a folder");
    fs::copy(target.join("size"), second.join("size")).expect("a file");
    symlink("../../../0:0:2:0", second.join("device")).expect("a link");
    let relative = fs::read_link(device("sdc")).expect("a link");
    symlink(relative.with_file_name("sdy"), device("sdy")).expect("a link");
    let disks = Hardware::read(&machine.root()).disks;
    assert_eq!(disks.len(), 24);
    let both = disks.iter().find(|disk| disk.devices.len() == 2).expect("a disk of two paths");
    assert_eq!(both.devices, ["sdc", "sdy"]);
}

#[test]
fn an_empty_machine_reports_the_reasons() {
    let scratch = e2e::scratch::Scratch::new("empty");
    let hardware = Hardware::read(&Root::at(scratch.path()));
    assert!(hardware.disks.is_empty() && hardware.slots.is_empty() && hardware.cpus.is_empty());
    assert_eq!(hardware.lacks.len(), 5, "{:?}", hardware.lacks);
    assert!(hardware.lacks.iter().all(|absence| absence.reason == Reason::NotOffered));
}

/// Each file of each machine: missing, noise, a folder, empty. Nothing panics, and nothing but
/// what the file is about changes.
#[test]
fn every_damaged_file_is_absent() {
    let scratch = e2e::scratch::Scratch::new("noise");
    let noise = scratch.path().join("noise");
    let mut seed: u64 = 0x9e37_79b9_7f4a_7c15;
    let byte = |_| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 32) as u8
    };
    fs::write(&noise, (0..NOISE).map(byte).collect::<Vec<u8>>()).expect("noise");
    let file = fs::File::options().write(true).open(&noise).expect("the file");
    file.set_len(LENGTH).expect("a hole");
    for name in MACHINES {
        let machine = Machine::unpack(name);
        let whole = Hardware::read(&machine.root());
        for entry in &machine.entries {
            let aside = scratch.path().join("aside");
            fs::rename(entry, &aside).expect("a file");
            for damage in 0..4 {
                match damage {
                    0 => {}
                    1 => symlink(&noise, entry).expect("a link"),
                    2 => fs::create_dir(entry).expect("a folder"),
                    _ => fs::write(entry, b"").expect("a file"),
                }
                let hardware = Hardware::read(&machine.root());
                let text = serde_json::to_string(&hardware).expect("JSON");
                assert!(text.len() < 1 << 20, "{entry:?}: a model of {} bytes", text.len());
                assert!(hardware.disks.len() <= whole.disks.len() + 1, "{entry:?}");
                match damage {
                    0 => {}
                    2 => fs::remove_dir(entry).expect("a folder"),
                    _ => fs::remove_file(entry).expect("a file"),
                }
            }
            fs::rename(&aside, entry).expect("the file");
        }
        assert!(Hardware::read(&machine.root()) == whole);
    }
}

/// A figure, not a limit: printed for docs.
#[test]
fn the_chassis_is_read_in_a_moment() {
    let machine = Machine::unpack("chassis");
    let start = Instant::now();
    for _ in 0..10 {
        assert_eq!(Hardware::read(&machine.root()).disks.len(), 24);
    }
    println!("24 disks are read in {:.1} ms", start.elapsed().as_secs_f64() * 100.0);
}
