//! The readers against programs that read the same: lspci, dmidecode, lsblk, ibstat.

#[allow(dead_code, reason = "each program of tests uses a part")]
mod common;
#[path = "oracles/ibstat.rs"]
mod ibstat;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use common::Machine;
use e2e::scratch::Scratch;
use e2e::{has, skip};
use host::Root;
use host_hardware::Hardware;

/// Offset of the table in a dump of dmidecode.
const TABLE_AT: u32 = 32;

/// What a program of the system folders prints; none if it fails.
fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let mut command = Command::new(program);
    let output = command.args(arguments).env("PATH", path).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Blocks of `key: value` lines; a line without a value is a key.
fn blocks(text: &str) -> Vec<BTreeMap<String, String>> {
    let block = |block: &str| {
        let lines = block.lines().map(|line| line.split_once(':').unwrap_or((line, "")));
        lines.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned())).collect()
    };
    text.split("\n\n").map(block).filter(|block: &BTreeMap<_, _>| !block.is_empty()).collect()
}

#[test]
fn functions_as_lspci() {
    if !has("lspci") {
        skip!("hardware-lspci", "not installed: lspci");
    }
    let Some(numbers) = run("lspci", &["-vmm", "-n", "-D"]) else {
        skip!("hardware-lspci", "lspci cannot run here");
    };
    let names = run("lspci", &["-vmm", "-D"]).unwrap_or_default();
    let functions = Hardware::read(&Root::default()).functions;
    let (numbers, names) = (blocks(&numbers), blocks(&names));
    assert_eq!(functions.len(), numbers.len());
    for (function, (numbers, names)) in functions.iter().zip(numbers.iter().zip(&names)) {
        let number = |key: &str| numbers.get(key).map(String::as_str);
        let hex = |number: u16| format!("{number:04x}");
        assert_eq!(number("Slot"), Some(function.address.as_str()));
        assert_eq!(number("Class"), Some(format!("{:04x}", function.class >> 8).as_str()));
        assert_eq!(number("Vendor"), Some(hex(function.vendor).as_str()));
        assert_eq!(number("Device"), Some(hex(function.device).as_str()));
        let subsystem = function.subsystem.map(|(vendor, device)| (hex(vendor), hex(device)));
        let printed = number("SVendor").zip(number("SDevice"));
        assert_eq!(printed.map(|(v, d)| (v.to_owned(), d.to_owned())), subsystem, "{numbers:?}");
        let revision = number("Rev").unwrap_or("00");
        assert_eq!(revision, format!("{:02x}", function.revision));
        if let Some(name) = &function.vendor_name {
            assert_eq!(names.get("Vendor"), Some(name));
        }
        if let Some(name) = &function.device_name {
            assert_eq!(names.get("Device"), Some(name));
        }
        if let Some(name) = &function.class_name {
            assert_eq!(names.get("Class"), Some(name));
        }
    }
    println!("{} functions are as lspci prints them", functions.len());
}

/// A dump for dmidecode of a folder's table: the entry point, which names where the table begins.
fn dump(root: &Path, to: &Path) {
    let tables = root.join("sys/firmware/dmi/tables");
    let mut entry = fs::read(tables.join("smbios_entry_point")).expect("an entry point");
    let table = fs::read(tables.join("DMI")).expect("a table");
    entry.resize(TABLE_AT as usize, 0);
    entry[0x18..0x1c].copy_from_slice(&TABLE_AT.to_le_bytes());
    let sum = |bytes: &[u8]| bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    entry[0x15] = 0;
    entry[0x15] = sum(&entry[0x10..0x1f]).wrapping_neg();
    entry[0x04] = 0;
    entry[0x04] = sum(&entry[..0x1f]).wrapping_neg();
    fs::write(to, [entry, table].concat()).expect("a dump");
}

fn compare(printed: &BTreeMap<String, String>, key: &str, ours: Option<&str>) {
    let theirs = printed.get(key).map(String::as_str);
    let nothing =
        ["Not Specified", "Unknown", "To Be Filled By O.E.M.", "NO DIMM", "None", "Unspecified"];
    let theirs = theirs.filter(|text| !nothing.contains(text));
    assert_eq!(ours, theirs, "{key} of {printed:?}");
}

#[test]
fn tables_as_dmidecode() {
    if !has("dmidecode") {
        skip!("hardware-dmidecode", "not installed: dmidecode");
    }
    for name in ["hcas", "chassis"] {
        let machine = Machine::unpack(name);
        let scratch = Scratch::new("dump");
        let file = scratch.path().join("dump");
        dump(machine.path(), &file);
        let text = run("dmidecode", &["--from-dump", &file.to_string_lossy()]);
        let printed = blocks(&text.expect("dmidecode reads its own form"));
        agrees(&Hardware::read(&machine.root()), &printed);
    }
}

fn agrees(hardware: &Hardware, printed: &[BTreeMap<String, String>]) {
    let of = |kind: &str| {
        let is_it = |block: &&BTreeMap<String, String>| {
            block.keys().any(|key| key.contains(&format!("DMI type {kind},")))
        };
        printed.iter().filter(is_it).collect::<Vec<_>>()
    };
    let chassis = &hardware.chassis;
    for (kind, product) in [("1", &chassis.system), ("2", &chassis.board), ("3", &chassis.chassis)]
    {
        let printed = of(kind)[0];
        compare(printed, "Manufacturer", product.manufacturer.as_deref());
        compare(printed, "Version", product.version.as_deref());
        compare(printed, "Serial Number", product.serial.as_deref());
        let key = if kind == "3" { "Type" } else { "Product Name" };
        compare(printed, key, product.product.as_deref());
    }
    compare(of("1")[0], "UUID", chassis.system.uuid.as_deref());
    let height = chassis.chassis.height_u.map(|units| format!("{units} U"));
    compare(of("3")[0], "Height", height.as_deref());
    let processors = of("4");
    assert_eq!(processors.len(), hardware.cpus.len());
    for (printed, cpu) in processors.iter().zip(&hardware.cpus) {
        let one = &cpu.processor;
        compare(printed, "Socket Designation", one.socket.as_deref());
        if one.populated {
            compare(printed, "Version", one.version.as_deref());
            let mhz = |mhz: Option<u16>| mhz.map(|mhz| format!("{mhz} MHz"));
            compare(printed, "Max Speed", mhz(one.speed_mhz_max).as_deref());
            compare(printed, "Current Speed", mhz(one.speed_mhz).as_deref());
            let count = |count: Option<u16>| count.map(|count| count.to_string());
            compare(printed, "Core Count", count(one.cores).as_deref());
            compare(printed, "Thread Count", count(one.threads).as_deref());
        }
    }
    let modules = of("17");
    assert_eq!(modules.len(), hardware.memory.len());
    for (printed, module) in modules.iter().zip(&hardware.memory) {
        let one = &module.device;
        compare(printed, "Locator", one.locator.as_deref());
        compare(printed, "Serial Number", one.serial.as_deref());
        compare(printed, "Part Number", one.part.as_deref());
        let size = match one.size {
            None => "No Module Installed".to_owned(),
            Some(bytes) => format!("{} GB", bytes >> 30),
        };
        compare(printed, "Size", Some(&size));
        let speed = one.speed_mts.map(|speed| format!("{speed} MT/s"));
        compare(printed, "Speed", speed.as_deref());
        compare(printed, "Type", one.kind.as_deref());
        compare(printed, "Form Factor", one.form.as_deref());
    }
    let slots = of("9");
    for printed in &slots {
        let designation = printed.get("Designation").map(String::as_str);
        let mut all = hardware.slots.iter();
        let slot = all.find(|slot| slot.designation.as_deref() == designation).expect("a slot");
        let address = slot.address.as_ref().map(|address| format!("{address}.0"));
        assert_eq!(printed.get("Bus Address").map(String::as_str), address.as_deref());
    }
}

#[test]
fn disks_as_lsblk() {
    let columns = "NAME,SIZE,ROTA,TYPE,MODEL,SERIAL,WWN,TRAN";
    let Some(text) = run("lsblk", &["-J", "-b", "-d", "-o", columns]) else {
        skip!("hardware-lsblk", "lsblk cannot run here");
    };
    let printed: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let printed = printed["blockdevices"].as_array().expect("devices");
    let disks = Hardware::read(&Root::default()).disks;
    for disk in &disks {
        let device = disk.devices.first().expect("a device").as_str();
        let theirs = printed.iter().find(|one| one["name"] == device).expect("the disk");
        assert_eq!(theirs["type"], "disk");
        assert_eq!(theirs["size"].as_u64(), Some(disk.size), "{theirs}");
        assert_eq!(theirs["rota"].as_bool(), Some(disk.rotational), "{theirs}");
        // lsblk has these from udev's database, which containers lack.
        for (field, ours) in [("model", &disk.model), ("serial", &disk.serial)] {
            if let (Some(theirs), Some(ours)) = (theirs[field].as_str(), ours) {
                let plain = |text: &str| text.replace(['_', ' '], "");
                assert!(plain(ours).contains(&plain(theirs)), "{field}: {ours}, lsblk {theirs}");
            }
        }
    }
    println!("{} disks are as lsblk prints them", disks.len());
}
