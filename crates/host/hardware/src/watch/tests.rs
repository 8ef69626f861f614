//! Disks that come and go, counts that grow and begin again.

use super::*;

fn disk(device: &str, failed: u64) -> Hardware {
    let disk = Disk {
        name: "X-1".to_owned(),
        identity: "naa.1".to_owned(),
        devices: vec![device.to_owned()],
        failed_commands: Some(failed),
        ..Disk::default()
    };
    Hardware { disks: vec![disk], ..Hardware::default() }
}

fn grown(watch: &Watch) -> u64 {
    watch.disks["naa.1"].failed.expect("a count").grown
}

#[test]
fn a_disk_that_goes_and_comes_back_is_the_same() {
    let mut watch = Watch::default();
    watch.see(&disk("sda", 2));
    assert_eq!((watch.disks.len(), grown(&watch)), (1, 0));
    watch.see(&disk("sda", 3));
    assert_eq!(grown(&watch), 1);
    watch.see(&Hardware::default());
    assert!(watch.disks["naa.1"].absent);
    // The new device has counted errors of its start.
    watch.see(&disk("sdb", 5));
    assert!(!watch.disks["naa.1"].absent);
    assert_eq!((watch.disks.len(), grown(&watch)), (1, 1));
    // A machine that has started again.
    watch.see(&disk("sdb", 1));
    watch.see(&disk("sdb", 2));
    assert_eq!(grown(&watch), 2);
}

#[test]
fn a_query_does_not_count_as_an_error() {
    let mut watch = Watch::default();
    watch.see(&disk("sda", 2));
    watch.report("naa.1", Report::standby(), Some(9), 100);
    watch.see(&disk("sda", 9));
    assert_eq!(grown(&watch), 0);
}

#[test]
fn a_disk_that_fails_does_not_recover_by_sleeping() {
    let mut watch = Watch::default();
    watch.see(&disk("sda", 0));
    let failing = Report { verdict: Verdict::Failing, ..Report::default() };
    watch.report("naa.1", failing.clone(), None, 100);
    watch.report("naa.1", Report::standby(), None, 3_700);
    assert_eq!(watch.disks["naa.1"].report, Some(failing));
    let healthy = Report { verdict: Verdict::Healthy, ..Report::default() };
    watch.report("naa.1", healthy.clone(), None, 7_400);
    assert_eq!(watch.disks["naa.1"].report, Some(healthy));
}
