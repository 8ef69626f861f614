//! Tests of the table of units.

use std::path::PathBuf;

use vfs::journal::{Journal, Limits};

use super::{MAGIC, Record, Stage, Table};

fn record(name: &str) -> Record {
    Record {
        number: 3,
        block: 4096,
        stage: Stage::Copied,
        name: name.to_owned(),
        before: "p/old".to_owned(),
        path: PathBuf::from("/dev/vg0/disk"),
    }
}

#[test]
fn records_are_read_as_they_were_written() {
    let one = record("p/new");
    let bytes = one.encode();
    assert_eq!(Record::decode(&bytes), Some(one));
    for cut in 0..bytes.len() {
        assert_eq!(Record::decode(&bytes[..cut]), None, "cut at {cut}");
    }
}

#[test]
fn units_of_before_keep_their_identifier() {
    let path = std::env::temp_dir().join(format!("plimsoll-lun-table-{}", std::process::id()));
    let limits = Limits { record_max: 1024, file_max: 1 << 20, compact: 1 << 10 };
    let (journal, _) = Journal::open(&path, MAGIC, limits).expect("a journal");
    let mut value = vec![0x61; 16];
    value.extend(7_u16.to_le_bytes());
    value.extend(512_u32.to_le_bytes());
    journal.put(b"disk", &value).expect("a record");
    drop(journal);
    for _ in 0..2 {
        let table = Table::open(&path).expect("the table");
        let (guid, record) = table.of("default/disk", &|_| false).expect("the unit");
        assert_eq!((guid, record.number, record.block), ([0x61; 16], 7, 512));
        assert_eq!(record.path, PathBuf::from("disk.lun"));
        assert_eq!(table.records().len(), 1);
    }
    std::fs::remove_file(&path).expect("removed");
}

#[test]
fn a_unit_is_found_by_its_name_before() {
    let path = std::env::temp_dir().join(format!("plimsoll-lun-before-{}", std::process::id()));
    let table = Table::open(&path).expect("a table");
    table.put(&[1; 16], &record("p/new")).expect("kept");
    let none = |_: &str| false;
    assert_eq!(table.of("p/old", &none).map(|(guid, _)| guid), Some([1; 16]));
    let both = |name: &str| name == "p/new";
    assert_eq!(table.of("p/old", &both), None, "it is another one's");
    table.put(&[2; 16], &Record { before: String::new(), ..record("p/old") }).expect("kept");
    assert_eq!(table.of("p/old", &none).map(|(guid, _)| guid), Some([2; 16]), "who has it now");
    assert_eq!(table.of("p/new", &none).map(|(guid, _)| guid), Some([1; 16]));
    std::fs::remove_file(&path).expect("removed");
}
