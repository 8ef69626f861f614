//! Faults by what was seen, their words, and how they end.

use super::*;
use crate::disk::Disk;
use crate::smart::report::Report;

fn machine(failed: u64) -> Hardware {
    let disk = Disk {
        name: "ST4000-Z1".to_owned(),
        identity: "naa.1".to_owned(),
        devices: vec!["sdc".to_owned()],
        model: Some("ST4000".to_owned()),
        serial: Some("Z1".to_owned()),
        bay: Some("enclosure 0, Slot 03".to_owned()),
        failed_commands: Some(failed),
        ..Disk::default()
    };
    Hardware { disks: vec![disk], ..Hardware::default() }
}

fn no_pool(_: &Remembered) -> Option<String> {
    None
}

fn ids(hardware: &Hardware, watch: &Watch) -> Vec<String> {
    faults(hardware, watch, &no_pool).into_iter().map(|fault| fault.id).collect()
}

#[test]
fn errors_of_a_disk_until_they_are_marked() {
    let mut watch = Watch::default();
    watch.see(&machine(0));
    assert!(ids(&machine(0), &watch).is_empty());
    watch.see(&machine(2));
    let [fault] = faults(&machine(2), &watch, &no_pool).try_into().expect("one fault");
    assert_eq!(
        fault.what,
        "2 commands to the disk ST4000 (serial number Z1, enclosure 0, Slot 03, sdc) failed."
    );
    assert!(fault.impact.contains("whether a copy is left is not known"), "{}", fault.impact);
    let of_pool = |one: &Remembered| one.disk.serial.as_ref().map(|_| "tank".to_owned());
    let [named] = faults(&machine(2), &watch, &of_pool).try_into().expect("one fault");
    assert_eq!(
        named.what,
        "2 commands to the disk ST4000 (serial number Z1, enclosure 0, Slot 03, sdc, pool tank) \
         failed."
    );
    assert_eq!(named.impact, "The pool tank may have fewer copies of its data: see its state.");
    assert_eq!(fault.id, "disk-errors-ST4000-Z1");
    mark_repaired(&mut watch, &fault.id).expect("it can be marked");
    watch.see(&machine(2));
    assert!(ids(&machine(2), &watch).is_empty());
    watch.see(&machine(3));
    assert_eq!(ids(&machine(3), &watch), ["disk-errors-ST4000-Z1"]);
}

#[test]
fn a_disk_that_is_absent_until_it_is_back_or_forgotten() {
    let mut watch = Watch::default();
    watch.see(&machine(0));
    watch.see(&Hardware::default());
    assert_eq!(ids(&Hardware::default(), &watch), ["disk-absent-ST4000-Z1"]);
    watch.see(&machine(0));
    assert!(ids(&machine(0), &watch).is_empty());
    watch.see(&Hardware::default());
    mark_repaired(&mut watch, "disk-absent-ST4000-Z1").expect("it can be marked");
    assert!(watch.disks.is_empty());
}

#[test]
fn health_by_its_verdict() {
    let mut watch = Watch::default();
    let hardware = machine(0);
    watch.see(&hardware);
    for (verdict, severity) in [
        (Verdict::Healthy, None),
        (Verdict::Standby, None),
        (Verdict::Unknown, None),
        (Verdict::PreFailure, Some(Severity::Minor)),
        (Verdict::Failing, Some(Severity::Major)),
    ] {
        let report = Report { verdict, sentence: "a sentence".to_owned(), ..Report::default() };
        watch.report("naa.1", report, None, 1);
        let found = faults(&hardware, &watch, &no_pool);
        assert_eq!(found.first().map(|fault| fault.severity), severity, "{verdict:?}");
    }
    mark_repaired(&mut watch, "disk-health-ST4000-Z1").expect("it can be marked");
    assert!(ids(&hardware, &watch).is_empty());
    assert!(mark_repaired(&mut watch, "slot-width-PCIE3").is_err());
    assert!(mark_repaired(&mut watch, "").is_err());
}
