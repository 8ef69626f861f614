//! A machine of QEMU without acceleration. Its NVMe and ATA disk and its SMBIOS table are named on
//! its command line: this program runs in it, and what it reads there is what was given.

use std::path::Path;
use std::process::{Command, Stdio};

use e2e::scratch::Scratch;
use e2e::{has, skip};
use host::Root;
use host_hardware::Hardware;
use host_hardware::smart;
use host_hardware::smart::report::{Report, Verdict};
use serde_json::{Value, json};

/// Set in the guest.
const GUEST: &str = "PLIMSOLL_QEMU_GUEST";
/// Begins the line of the console that has what the guest has read.
const MARK: &str = "=READ=";
/// Disks of the guest.
const DISKS: [&str; 2] = ["sda", "nvme0n1"];
/// Where the image has smartctl.
const SMARTCTL: &str = "/usr/sbin/smartctl";
/// Sizes of the disks.
const DISK_BYTES: u64 = 64 << 20;

/// In the guest: all that is read, in a line.
fn print() {
    let query = || -> Vec<Value> {
        let output = |disk| match smart::run(disk) {
            Ok(output) => json!({ "status": output.status, "text": output.text }),
            Err(e) => json!(e.to_string()),
        };
        DISKS.into_iter().map(output).collect()
    };
    let outputs = query();
    // Without the program NVMe disks are queried by ioctl.
    std::fs::remove_file(SMARTCTL).expect("smartctl of the image");
    let without_program = query();
    let hardware = Hardware::read(&Root::default());
    let read = json!({ "hardware": hardware, "outputs": outputs, "ioctl": without_program });
    println!("\n{MARK}{read}");
}

/// Runs the guest to its end; what it has read.
fn boot(scratch: &Scratch) -> Value {
    let image = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/qemu/image");
    let program = std::env::current_exe().expect("this program");
    let made = Command::new(image).arg(scratch.path()).arg(program).status().expect("a shell");
    assert!(made.success());
    let disk = |name: &str| {
        let path = scratch.path().join(name);
        let file = std::fs::File::create(&path).expect("a disk");
        file.set_len(DISK_BYTES).expect("its size");
        path.display().to_string()
    };
    let (ata, nvme) = (disk("ata"), disk("nvme"));
    let path = |name: &str| scratch.path().join(name).display().to_string();
    let mut qemu = Command::new("qemu-system-x86_64");
    qemu.args(["-M", "pc,accel=tcg", "-m", "512", "-nographic", "-no-reboot", "-net", "none"]);
    qemu.args(["-kernel", &path("vmlinuz"), "-initrd", &path("initramfs")]);
    qemu.args(["-append", "console=ttyS0 quiet panic=1"]);
    qemu.args(["-drive", &format!("file={ata},format=raw,if=none,id=a")]);
    qemu.args(["-device", "ide-hd,drive=a,serial=ATA0001,wwn=0x5000c500a1b2c3d4"]);
    qemu.args(["-drive", &format!("file={nvme},format=raw,if=none,id=n")]);
    qemu.args(["-device", "nvme,drive=n,serial=NV0001"]);
    qemu.args(["-smbios", "type=1,manufacturer=Example,product=Storage-1,serial=S1,family=F1"]);
    qemu.args(["-smbios", "type=3,manufacturer=Example,serial=C1"]);
    qemu.args([
        "-smbios",
        "type=17,loc_pfx=DIMM_A,manufacturer=ACME,serial=D1,part=X16,speed=2666",
    ]);
    let output = qemu.stdin(Stdio::null()).output().expect("QEMU");
    let console = String::from_utf8_lossy(&output.stdout);
    let line = console.lines().find_map(|line| line.trim().strip_prefix(MARK));
    serde_json::from_str(line.unwrap_or_else(|| panic!("{console}"))).expect("JSON")
}

/// The fields of an output, as `a.b`, without those that depend on the disk's kind or the program.
fn fields(value: &Value, at: &str, all: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            map.iter().for_each(|(name, value)| fields(value, &format!("{at}.{name}"), all));
        }
        _ => all.push(at.to_owned()),
    }
}

/// Members of smartctl's output that the health log of the controller has, too.
const OF_THE_LOG: [&str; 10] = [
    "/smart_support/available",
    "/smart_status/passed",
    "/temperature/current",
    "/power_on_time/hours",
    "/nvme_smart_health_information_log/critical_warning",
    "/nvme_smart_health_information_log/available_spare",
    "/nvme_smart_health_information_log/available_spare_threshold",
    "/nvme_smart_health_information_log/percentage_used",
    "/nvme_smart_health_information_log/media_errors",
    "/nvme_smart_health_information_log/num_err_log_entries",
];

/// What the ioctl reads of the NVMe disk is what smartctl has printed of it; an ATA disk cannot be
/// queried so.
fn by_ioctl(read: &Value) {
    assert_eq!(read["ioctl"][0], "smartctl is not installed: install the package smartmontools");
    let parsed = |of: &str| -> Value {
        let text = read[of][1]["text"].as_str().unwrap_or_else(|| panic!("{}", read[of][1]));
        serde_json::from_str(text).expect("JSON")
    };
    let (by_program, by_ioctl) = (parsed("outputs"), parsed("ioctl"));
    for member in OF_THE_LOG {
        let wanted = by_program.pointer(member);
        assert!(wanted.is_some(), "smartctl has no {member}: {by_program}");
        assert_eq!(by_ioctl.pointer(member), wanted, "{member}");
    }
    println!("by ioctl: {by_ioctl}");
}

#[test]
fn disks_and_modules_of_a_guest() {
    if std::env::var_os(GUEST).is_some() {
        return print();
    }
    let tools = ["qemu-system-x86_64", "busybox", "cpio", "smartctl", "depmod", "apt-get"];
    let missing: Vec<_> = tools.into_iter().filter(|tool| !has(tool)).collect();
    if !missing.is_empty() {
        skip!("hardware-qemu", "not installed: {}", missing.join(", "));
    }
    let read = boot(&Scratch::new("qemu"));
    let hardware: Hardware = serde_json::from_value(read["hardware"].clone()).expect("a model");
    let system = &hardware.chassis.system;
    assert_eq!(system.manufacturer.as_deref(), Some("Example"));
    assert_eq!(system.product.as_deref(), Some("Storage-1"));
    assert_eq!(system.serial.as_deref(), Some("S1"));
    assert_eq!(hardware.chassis.chassis.serial.as_deref(), Some("C1"));
    let module = &hardware.memory[0].device;
    assert_eq!(module.locator.as_deref(), Some("DIMM_A 0"));
    assert_eq!((module.size, module.speed_mts), (Some(512 << 20), Some(2_666)));
    let texts = [&module.manufacturer, &module.serial, &module.part].map(|text| text.as_deref());
    assert_eq!(texts, [Some("ACME"), Some("D1"), Some("X16")]);
    let disk = |device: &str| {
        let mut disks = hardware.disks.iter();
        disks.find(|disk| disk.devices == [device]).unwrap_or_else(|| panic!("no {device}"))
    };
    let (ata, nvme) = (disk("sda"), disk("nvme0n1"));
    assert_eq!(ata.serial.as_deref(), Some("ATA0001"));
    assert_eq!(ata.model.as_deref(), Some("QEMU HARDDISK"));
    assert_eq!(ata.wwid.as_deref(), Some("naa.5000c500a1b2c3d4"));
    assert_eq!((ata.transport.as_deref(), ata.size), (Some("sata"), DISK_BYTES));
    assert_eq!(nvme.serial.as_deref(), Some("NV0001"));
    assert_eq!(nvme.model.as_deref(), Some("QEMU NVMe Ctrl"));
    assert_eq!((nvme.transport.as_deref(), nvme.size), (Some("nvme"), DISK_BYTES));
    for (at, name) in [(0, "ata"), (1, "nvme")] {
        let text = read["outputs"][at]["text"].as_str().expect("an output");
        let report = Report::read(&smart::Output { status: 0, text: text.to_owned() });
        assert_eq!(report.verdict, Verdict::Healthy, "{report:?}");
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/smartctl");
        let capture = std::fs::read(folder.join(name).with_extension("json")).expect("a capture");
        let (mut now, mut then) = (Vec::new(), Vec::new());
        fields(&serde_json::from_str(text).expect("JSON"), "", &mut now);
        fields(&serde_json::from_slice(&capture).expect("JSON"), "", &mut then);
        let lost: Vec<_> = then.iter().filter(|field| !now.contains(field)).collect();
        assert!(lost.is_empty(), "{name} has no more: {lost:?}");
    }
    by_ioctl(&read);
    println!("an ATA and an NVMe disk, a module and the chassis are as given to QEMU");
}
