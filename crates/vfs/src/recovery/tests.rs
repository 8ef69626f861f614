//! Records of clients: which clients may reclaim after what, and the content of torn or damaged
//! files.

use std::path::PathBuf;

use super::*;

/// A file of its own below the temporary folder.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir();
        Self(dir.join(format!("plimsoll-clients-{}-{name}", std::process::id())))
    }
    fn open(&self) -> FileRecords {
        FileRecords::open(&self.0).expect("can be opened").0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What a failed test leaves behind is in the temporary folder.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn client(name: &str) -> ClientId {
    ClientId { protocol: 4, owner: name.as_bytes().to_vec(), principal: b"sys".to_vec() }
}

#[test]
fn only_recorded_clients_may_reclaim() {
    let scratch = Scratch::new("reclaim");
    let records = scratch.open();
    assert!(records.known().is_empty());
    for name in ["a", "b", "c"] {
        records.record(&client(name)).expect("written");
        records.record(&client(name)).expect("on record");
        assert!(!records.may_reclaim(&client(name)), "it has nothing of an earlier life");
    }
    records.forget(&client("b")).expect("written");
    drop(records);
    let records = scratch.open();
    assert_eq!(records.known(), [client("a"), client("c")]);
    assert!(!records.may_reclaim(&client("b")));
    let other = ClientId { principal: b"somebody else".to_vec(), ..client("a") };
    assert!(!records.may_reclaim(&other), "not in another's name");
    assert!(!records.reclaim_complete(&client("a")), "c is still missing");
    assert!(!records.may_reclaim(&client("a")), "it is done");
    assert!(records.reclaim_complete(&client("c")));
}

#[test]
fn a_client_that_did_not_reclaim_may_not_after_the_next_restart() {
    let scratch = Scratch::new("edge");
    let records = scratch.open();
    ["a", "b"].iter().for_each(|name| records.record(&client(name)).expect("written"));
    drop(records);
    // A restart in the middle of grace changes nothing.
    drop(scratch.open());
    let records = scratch.open();
    records.record(&client("a")).expect("comes back");
    records.end_of_grace().expect("written");
    assert!(!records.may_reclaim(&client("a")), "grace is over");
    drop(records);
    assert_eq!(scratch.open().known(), [client("a")]);
}

#[test]
fn a_torn_end_is_cut_off_wherever_it_is_torn() {
    let scratch = Scratch::new("torn");
    let records = scratch.open();
    ["a", "b"].iter().for_each(|name| records.record(&client(name)).expect("written"));
    drop(records);
    let whole = std::fs::read(&scratch.0).expect("there");
    let record = encode(Verb::Recorded, &client("b")).len();
    for cut in 0..whole.len() {
        std::fs::write(&scratch.0, &whole[..cut]).expect("writable");
        let records = scratch.open();
        let expected = match cut {
            n if n >= whole.len() - record => vec![client("a")],
            _ => vec![],
        };
        assert_eq!(records.known(), expected, "cut at {cut}");
        // New records can be added.
        records.record(&client("new")).expect("written");
        drop(records);
        assert!(scratch.open().may_reclaim(&client("new")));
    }
}

#[test]
fn damage_is_seen() {
    let record = encode(Verb::Recorded, &client("a"));
    let whole = [&MAGIC[..], &record].concat();
    assert_eq!(read(&whole).expect("ours"), [client("a")]);
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        let seen = read(&bytes).unwrap_or_default();
        assert!(seen.is_empty(), "byte {at} is not what it was");
    }
    assert!(read(b"something else").is_err());
}

#[test]
fn limits_hold_and_the_file_stays_short() {
    let scratch = Scratch::new("limits");
    let records = scratch.open();
    let long = ClientId { owner: vec![b'x'; CLIENT_RECORD_MAX], ..client("") };
    assert!(matches!(records.record(&long), Err(RecordError::TooLong)));
    let wide = ClientId { owner: vec![b'x'; CLIENT_RECORD_MAX - 3], ..client("") };
    records.record(&wide).expect("the longest");
    drop(records);
    assert_eq!(scratch.open().known(), [wide]);
    // An unwritable place: nothing may be given out.
    let nowhere = FileRecords::open(std::path::Path::new("/proc/nowhere/clients"));
    let (nowhere, unwritten) = nowhere.expect("nobody is on record");
    assert!(matches!(unwritten, Some(RecordError::Write { .. })));
    assert!(matches!(nowhere.record(&client("a")), Err(RecordError::Write { .. })));
}

#[test]
fn recorded_clients_may_reclaim_while_nothing_can_be_written() {
    let folder = std::env::temp_dir().join(format!("plimsoll-clients-full-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("clients");
    let (records, unwritten) = FileRecords::open(&path).expect("can be opened");
    assert!(unwritten.is_none());
    records.record(&client("a")).expect("written");
    drop(records);
    // The file that is written aside cannot be made: a directory is in its place.
    let aside = path.with_extension("new");
    std::fs::create_dir(&aside).expect("a directory");
    let (records, unwritten) = FileRecords::open(&path).expect("can be read");
    assert!(matches!(unwritten, Some(RecordError::Write { .. })), "it is told");
    assert_eq!(records.known(), [client("a")]);
    assert!(records.may_reclaim(&client("a")));
    records.record(&client("a")).expect("it is on disk already");
    assert!(records.record(&client("b")).is_err(), "not on disk, so no state");
    assert!(records.end_of_grace().is_err());
    drop(records);
    let (records, _) = FileRecords::open(&path).expect("can be read");
    assert_eq!(records.known(), [client("a")], "nothing was lost");
    std::fs::remove_dir(&aside).expect("there is room again");
    records.record(&client("b")).expect("written");
    drop(records);
    let (records, _) = FileRecords::open(&path).expect("can be read");
    assert_eq!(records.known(), [client("a"), client("b")]);
    std::fs::remove_dir_all(&folder).expect("cleared");
}
