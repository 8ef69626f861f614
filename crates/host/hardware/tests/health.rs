//! Health of disks: each kind of output of smartctl, and how often a fake one is called.

#[allow(dead_code, reason = "each program of tests uses a part")]
mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use common::Machine;
use e2e::scratch::Scratch;
use host_hardware::Hardware;
use host_hardware::smart::report::{Report, Verdict};
use host_hardware::smart::{Output, RunError, run_on_path};
use host_hardware::watch::Watch;
use serde_json::{Value, json};

fn captured(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/smartctl");
    let text = fs::read_to_string(folder.join(name).with_extension("json")).expect("a capture");
    serde_json::from_str(&text).expect("JSON")
}

/// The report of a capture with some fields changed.
fn report(name: &str, status: u8, changes: &[(&str, Value)]) -> Report {
    let mut output = captured(name);
    for (at, value) in changes {
        let (parent, field) = at.rsplit_once('/').expect("a pointer");
        match output.pointer_mut(parent) {
            Some(Value::Array(list)) => {
                list[field.parse::<usize>().expect("an index")] = value.clone()
            }
            Some(parent) => parent[field] = value.clone(),
            None => panic!("no {at}"),
        }
    }
    Report::read(&Output { status, text: output.to_string() })
}

fn is(report: &Report, verdict: Verdict, sentence: &str) {
    assert_eq!((report.verdict, report.sentence.as_str()), (verdict, sentence), "{report:?}");
}

#[test]
fn healthy_disks() {
    for (name, serial, temperature) in
        [("ata", "QM00001", 31), ("nvme", "NV0001", 50), ("scsi", "Z1Z00000", 34)]
    {
        let report = report(name, 0, &[]);
        is(&report, Verdict::Healthy, "the disk is healthy");
        assert_eq!(report.serial.as_deref(), Some(serial));
        assert_eq!(report.temperature_c, Some(temperature));
        assert!(report.errors.is_empty() && report.hours.is_some());
    }
    // The exit status is a mask: entries of logs alone do not make a disk bad.
    let with_log = report("ata", 1 << 6, &[("/ata_smart_error_log/summary/count", json!(3))]);
    is(&with_log, Verdict::Healthy, "the disk is healthy; its log has errors");
    assert_eq!(with_log.errors, ["3 errors in its log"]);
    let past = report("ata", 1 << 5, &[]);
    is(&past, Verdict::Healthy, "the disk is healthy");
    let odd = report("ata", 1 << 2 | 1 << 7, &[]);
    is(&odd, Verdict::Healthy, "the disk is healthy; its log has self-tests that failed");
}

#[test]
fn disks_that_will_fail() {
    let below = [
        ("/ata_smart_attributes/table/3/value", json!(30)),
        ("/ata_smart_attributes/table/3/when_failed", json!("now")),
    ];
    let ata = report("ata", 1 << 4, &below);
    let why = "the disk will fail: Reallocated_Sector_Ct below the threshold";
    is(&ata, Verdict::PreFailure, why);
    let pending = json!({ "id": 197, "name": "Current_Pending_Sector", "value": 100,
        "raw": { "value": 8, "string": "8" } });
    let ata = report("ata", 0, &[("/ata_smart_attributes/table/1", pending)]);
    is(&ata, Verdict::PreFailure, "the disk will fail: 8 sectors that cannot be read");
    let log = "/nvme_smart_health_information_log";
    let spare = [
        (&*format!("{log}/available_spare"), json!(4)),
        (&*format!("{log}/available_spare_threshold"), json!(10)),
        (&*format!("{log}/percentage_used"), json!(103)),
    ];
    let nvme = report("nvme", 0, &spare);
    let why = "the disk will fail: 4 % spare capacity, below 10 %, 103 % of its endurance used";
    is(&nvme, Verdict::PreFailure, why);
    assert_eq!(nvme.wear_percent, Some(103));
    let at = "/scsi_error_counter_log/read/total_uncorrected_errors";
    let scsi = report("scsi", 0, &[(at, json!(2)), ("/scsi_grown_defect_list", json!(7))]);
    is(&scsi, Verdict::PreFailure, "the disk will fail: 2 errors that it could not correct");
    assert_eq!(scsi.errors[0], "7 sectors in the grown defect list");
}

#[test]
fn disks_that_fail() {
    let failed = ("/smart_status/passed", json!(false));
    let attribute = ("/ata_smart_attributes/table/0/when_failed", json!("now"));
    let ata = report("ata", 1 << 3 | 1 << 4, &[failed.clone(), attribute]);
    let why = "the disk reports its own failure: Raw_Read_Error_Rate";
    is(&ata, Verdict::Failing, why);
    let warning = ("/nvme_smart_health_information_log/critical_warning", json!(0b1100));
    let nvme = report("nvme", 1 << 3, &[failed.clone(), warning]);
    let why = "the disk reports its own failure: reliability is degraded, the disk is read-only";
    is(&nvme, Verdict::Failing, why);
    let ie = json!({ "asc": 93, "ascq": 16, "ie_string": "FAILURE PREDICTION THRESHOLD EXCEEDED" });
    let scsi = report("scsi", 1 << 3, &[failed, ("/smart_status/scsi", ie)]);
    let why = "the disk reports its own failure: failure prediction threshold exceeded";
    is(&scsi, Verdict::Failing, why);
    // The bit alone.
    let bare = report("scsi", 1 << 3, &[]);
    is(&bare, Verdict::Failing, "the disk reports its own failure: no reason is given");
}

#[test]
fn disks_that_are_not_known() {
    let standby = report("standby", 2, &[]);
    is(&standby, Verdict::Standby, "the disk is in standby and was not queried");
    let why = "no permission: smartctl has to run as root";
    is(&report("no-permission", 2, &[]), Verdict::Unknown, why);
    let why = "the USB bridge passes no health data (smartctl does not support it)";
    is(&report("usb-bridge", 1, &[]), Verdict::Unknown, why);
    let gone = ("/smartctl/messages", json!([{ "string": "No such device" }]));
    is(&report("standby", 2, &[gone]), Verdict::Unknown, "smartctl: No such device");
    let none = ("/smart_support/available", json!(false));
    is(&report("scsi", 0, &[none]), Verdict::Unknown, "the disk offers no health data");
    let why = "smartctl has printed no JSON: version 7.0 or later is needed";
    for text in ["", "smartctl 6.6", "[", &"[".repeat(100_000), "{\"a\":1e999}"] {
        is(&Report::read(&Output { status: 0, text: text.to_owned() }), Verdict::Unknown, why);
    }
    for text in ["{}", "[]", "null", "{\"smart_status\":7,\"smartctl\":[]}"] {
        let report = Report::read(&Output { status: 0, text: text.to_owned() });
        assert_eq!(report.verdict, Verdict::Unknown, "{text}");
    }
}

/// A program in a folder that notes its arguments and prints a capture.
fn fake(folder: &Path, capture: &str, status: u8) {
    let prints = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/smartctl").join(capture);
    let log = folder.join("calls");
    let (log, prints) = (log.display(), prints.display());
    let text = format!("#!/bin/sh\necho \"$*\" >>{log}\n/bin/cat {prints}.json\nexit {status}\n");
    let program = folder.join("smartctl");
    fs::write(&program, text).expect("a program");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("its mode");
}

fn calls(folder: &Path) -> Vec<String> {
    let text = fs::read_to_string(folder.join("calls")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// A clock that is handed in: three hours and a bit, with a look each minute.
#[test]
fn each_disk_is_queried_once_an_hour() {
    let machine = Machine::unpack("hcas");
    let (root, scratch) = (machine.root(), Scratch::new("smartctl"));
    let path = scratch.path().to_string_lossy().into_owned();
    let suspended = fs::canonicalize(machine.path().join("sys/block/sdb/device")).expect("sdb");
    fs::create_dir(suspended.join("power")).expect("a folder");
    fs::write(suspended.join("power/runtime_status"), "suspended\n").expect("a file");
    let mut watch = Watch::default();
    for (capture, status, verdict) in
        [("ata", 0, Verdict::Healthy), ("standby", 2, Verdict::Standby)]
    {
        fake(scratch.path(), capture, status);
        let before = calls(scratch.path()).len();
        let start = 1_000_000 + if capture == "ata" { 0 } else { 1_000_000 };
        for now in (start..start + 3 * 3_600 + 60).step_by(60) {
            watch.see(&Hardware::read(&root));
            for (identity, device) in watch.due(&root, now) {
                let output = run_on_path(&root, &device, &path).expect("the fake");
                watch.report(&identity, Report::read(&output), None, now);
            }
        }
        let made = calls(scratch.path()).split_off(before);
        // At 0, 1, 2 and 3 hours; sdb is suspended and never opened.
        assert_eq!(made.len(), 2 * 4, "{made:?}");
        assert!(made.iter().all(|call| call.contains("-n standby")), "{made:?}");
        assert!(!made.iter().any(|call| call.contains("sdb")), "{made:?}");
        for device in ["/dev/sda", "/dev/nvme0n1"] {
            assert_eq!(made.iter().filter(|call| call.ends_with(device)).count(), 4);
        }
        let disk = watch.disks.values().find(|one| one.disk.devices == ["sda"]).expect("sda");
        assert_eq!(disk.report.as_ref().map(|report| report.verdict), Some(verdict));
    }
}

#[test]
fn only_disks_are_queried() {
    let (machine, scratch) = (Machine::unpack("hcas"), Scratch::new("smartctl"));
    fake(scratch.path(), "ata", 0);
    let path = scratch.path().to_string_lossy().into_owned();
    for name in ["", "loop0", "../sda", "sda/..", "-a", "sda -s", "SDA", "/dev/sda", "sdz"] {
        let refused = run_on_path(&machine.root(), name, &path);
        assert!(matches!(refused, Err(RunError::NoDisk(_))), "{name}: {refused:?}");
    }
    assert!(calls(scratch.path()).is_empty());
}
