//! Disks with and without serial numbers, partitions, names that another disk has now.

use super::*;

fn member(device: &str, serial: &str, id: &str, missing: bool) -> Member {
    let [device, serial, id] = [device, serial, id].map(str::to_owned);
    Member { pool: "tank".to_owned(), device, serial, id, missing }
}

fn disk(device: &str, serial: Option<&str>, by_id: &[&str]) -> Disk {
    Disk {
        devices: vec![device.to_owned()],
        serial: serial.map(str::to_owned),
        by_id: by_id.iter().map(|&id| id.to_owned()).collect(),
        ..Disk::default()
    }
}

#[test]
fn by_serial_number_name_or_device() {
    let cases = [
        (member("sdb", "Z1", "", false), disk("sdc", Some("Z1"), &[]), false, true),
        (member("sdb", "", "ata-Z1", false), disk("sdc", None, &["ata-Z1"]), true, true),
        (member("sdb", "", "", false), disk("sdb", None, &[]), false, true),
        // Absent, or missing in the pool: another disk may have the name.
        (member("sdb", "", "", false), disk("sdb", None, &[]), true, false),
        (member("sdb", "", "", true), disk("sdb", None, &[]), false, false),
        (member("sdb", "Z1", "", true), disk("sdb", Some("Z1"), &[]), true, true),
        (member("sdb", "Z1", "", true), disk("sdb", Some("Z2"), &[]), false, false),
        // Partitions.
        (member("sdb1", "", "", false), disk("sdb", None, &[]), false, true),
        (member("sdba", "", "", false), disk("sdb", None, &[]), false, false),
        (member("nvme0n1p2", "", "", false), disk("nvme0n1", None, &[]), false, true),
        (member("nvme0n10", "", "", false), disk("nvme0n1", None, &[]), false, false),
        (member("", "", "", false), disk("sdb", None, &[]), false, false),
    ];
    for (member, disk, absent, is_in) in cases {
        let pool = is_in.then_some("tank");
        assert_eq!(
            pool_of(std::slice::from_ref(&member), &disk, absent),
            pool,
            "{member:?} {disk:?}"
        );
    }
}
