//! Names of disks in requests.

use super::*;
use crate::state::Member;

fn disk(name: &str, serial: &str, ids: &[&str]) -> Disk {
    let ids = ids.iter().map(|id| (*id).to_owned()).collect();
    Disk { name: name.to_owned(), serial: serial.to_owned(), ids, ..Disk::default() }
}

#[test]
fn a_disk_is_named_by_what_stays() {
    let disks = [
        disk("sda", "S1", &["wwn-1", "ata-EXAMPLE_S1"]),
        disk("sdb", "S2", &[]),
        disk("sdc", "SAME", &[]),
        disk("sdd", "SAME", &[]),
        disk("loop0", "", &[]),
    ];
    let good = [
        ("wwn-1", "/dev/disk/by-id/wwn-1"),
        ("/dev/disk/by-id/ata-EXAMPLE_S1", "/dev/disk/by-id/ata-EXAMPLE_S1"),
        ("S2", "/dev/sdb"),
        ("loop0", "/dev/loop0"),
        ("/dev/loop0", "/dev/loop0"),
        ("/dev/other", "/dev/other"),
    ];
    for (name, expected) in good {
        assert_eq!(path(&disks, name).as_deref(), Ok(expected));
    }
    let bad = [
        ("sda", "use wwn-1"),
        ("/dev/sdb", "use S2"),
        ("SAME", "several disks"),
        ("", "no such disk"),
        ("../loop0", "no such disk"),
    ];
    for (name, why) in bad {
        let refused = path(&disks, name).expect_err(name);
        assert!(refused.contains(why), "{refused}");
    }
}

#[test]
fn a_missing_member_is_named_by_its_serial_number_and_not_by_a_device() {
    let one = |devid, device: &str, serial: &str, missing| MemberStatus {
        identity: Identity {
            devid,
            device: device.to_owned(),
            serial: serial.to_owned(),
            ..Identity::default()
        },
        member: Member { devid, missing, ..Member::default() },
        ..MemberStatus::default()
    };
    let members = [one(1, "sda", "S1", false), one(2, "sdb", "S2", true)];
    assert_eq!(member(&members, "S2").expect("named").identity.devid, 2);
    assert_eq!(member(&members, "2").expect("named").identity.devid, 2);
    assert_eq!(member(&members, "/dev/sda").expect("named").identity.devid, 1);
    // Another disk may have its name by now.
    assert!(member(&members, "sdb").is_err());
    assert!(member(&members, "").is_err());
}
