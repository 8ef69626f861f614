//! The log of transfers: its form, its files, its bounds, and what is found in it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use base::limits::{
    TRANSFER_LOG_BYTES, TRANSFER_LOG_FILE_BYTES, TRANSFER_LOG_QUEUE_MAX, TRANSFER_LOG_SHOWN,
};
use base::node::{Path, Value};
use probe::hub::{Hub, HubOptions};
use serde_json::{Value as Json, json};
use vfs::cred::Cred;
use vfs::identity::Person;
use vfs::transfers::{Direction, Ended, Log, Outcome, Scheme, Security};

use super::record::{escape, unescape};
use super::{Record, TransferFilter, Transfers};
use crate::tree::store::Disk;
use crate::tree::tests::disk::MemoryDisk;
use crate::tree::{Actor, Operational};

/// 2026-11-21 22:50:11.042 UTC.
const BEGUN_NS: u64 = 1_795_301_411_042_000_000;

fn ended(path: &[u8]) -> Ended {
    let cred = Cred { uid: 1, gid: 1, groups: Vec::new() };
    let person = Person { name: "anna".to_owned(), cred, home: None, anonymous: false };
    Ended {
        begun_ns: BEGUN_NS,
        took_ns: 1_500_250_000,
        protocol: Scheme::Ftps,
        direction: Direction::Upload,
        path: path.to_vec(),
        person: Arc::new(person),
        client: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)),
        security: Some(Security { version: "TLSv1.3", cipher: "TLS13_AES_256_GCM_SHA384" }),
        offset: 0,
        bytes: 123_456,
        outcome: Outcome::Complete,
        why: "".into(),
    }
}

fn open(disk: &MemoryDisk) -> (Arc<Transfers>, Arc<Hub>) {
    let hub = Hub::new(HubOptions { cores: 1, recorder_bytes: 1 << 16 });
    let log = Transfers::open(Arc::new(disk.clone()), hub.clone()).unwrap();
    log.set(true, TRANSFER_LOG_BYTES);
    (log, hub)
}

fn all() -> TransferFilter {
    TransferFilter { limit: usize::MAX, ..TransferFilter::default() }
}

fn paths(found: &[Record]) -> Vec<&str> {
    found.iter().map(|record| record.path.as_str()).collect()
}

#[test]
fn any_name_is_a_text_and_comes_back() {
    let every: Vec<u8> = (0..=255).collect();
    let names: [&[u8]; 6] =
        [&every, b"", b"a\\xff", b"\\\\", "grün \u{1b}[2J\u{85}".as_bytes(), b"\xc3"];
    for name in names {
        let text = escape(name);
        assert!(text.chars().all(|c| !c.is_control()), "{text:?}");
        assert_eq!(unescape(&text).as_deref(), Some(name), "{text:?}");
    }
    assert_eq!(escape(b"gr\xc3\xbcn\xff\\\n"), "grün\\xff\\\\\\x0a");
    for wrong in ["\\", "\\x", "\\x1", "\\xg0", "\\n", "\\xü"] {
        assert_eq!(unescape(wrong), None, "{wrong:?}");
    }
}

#[test]
fn a_record_has_the_documented_form() {
    let record = Record::from(&ended(b"/box/dir/gr\xfcn"));
    let expected = json!({
        "start": "2026-11-21T22:50:11.042Z", "end": "2026-11-21T22:50:12.542Z",
        "protocol": "ftps", "direction": "upload", "share": "box", "path": "dir/gr\\xfcn",
        "user": "anna", "client": "192.0.2.7", "bytes": 123_456, "duration_us": 1_500_250,
        "outcome": "complete", "security": "TLSv1.3", "cipher": "TLS13_AES_256_GCM_SHA384",
    });
    assert_eq!(serde_json::to_value(&record).unwrap(), expected);
    assert_eq!(serde_json::from_value::<Record>(expected).unwrap(), record);
    let cut = Ended {
        offset: 5,
        outcome: Outcome::Cut,
        why: "the client has gone".into(),
        security: None,
        ..ended(b"/box")
    };
    let cut = Record::from(&cut);
    assert_eq!((cut.share.as_str(), cut.path.as_str(), cut.offset), ("box", "", 5));
    assert_eq!(
        cut.sentence(),
        "2026-11-21T22:50:12.542Z  ftps upload cut /box/ by anna from 192.0.2.7: \
         123456 bytes in 1.500 s, from 5 on, the client has gone"
    );
}

#[test]
fn other_servers_form_is_that_of_theirs() {
    let line = Record::from(&ended(b"/box/a b")).xferlog();
    let expected = "Sat Nov 21 22:50:12 2026 2 192.0.2.7 123456 /box/a_b b _ i r anna ftps 0 * c";
    assert_eq!(line, expected);
    let down = Ended {
        begun_ns: 951_782_400_000_000_000, // 29 February 2000.
        direction: Direction::Download,
        outcome: Outcome::Cut,
        ..ended(b"/box/f")
    };
    let line = Record::from(&down).xferlog();
    assert!(line.starts_with("Tue Feb 29 00:00:01 2000 "), "{line}");
    assert!(line.ends_with(" o r anna ftps 0 * i"), "{line}");
}

#[test]
fn what_has_just_ended_is_found_by_each_condition() {
    let (log, _) = open(&MemoryDisk::default());
    log.ended(ended(b"/box/first"));
    let person = Person { name: "ben".to_owned(), ..Person::clone(&ended(b"").person) };
    log.ended(Ended {
        begun_ns: BEGUN_NS + 10_000_000_000,
        protocol: Scheme::Sftp,
        direction: Direction::Download,
        outcome: Outcome::Cut,
        person: Arc::new(person),
        client: IpAddr::V4(Ipv4Addr::LOCALHOST),
        ..ended(b"/other/second")
    });
    assert_eq!(paths(&log.read(&all()).unwrap()), ["second", "first"]);
    assert_eq!(paths(&log.read(&TransferFilter { limit: 1, ..all() }).unwrap()), ["second"]);
    let text = |word: &str| Some(word.to_owned());
    let second = BEGUN_NS / 1_000_000_000 + 2;
    let wanted = [
        (TransferFilter { protocol: text("sftp"), ..all() }, "second"),
        (TransferFilter { protocol: text("ftps"), ..all() }, "first"),
        (TransferFilter { direction: text("upload"), ..all() }, "first"),
        (TransferFilter { outcome: text("cut"), ..all() }, "second"),
        (TransferFilter { user: text("ben"), ..all() }, "second"),
        (TransferFilter { client: text("192.0.2.7"), ..all() }, "first"),
        (TransferFilter { share: text("other"), ..all() }, "second"),
        (TransferFilter { since: Some(second), ..all() }, "second"),
        (TransferFilter { until: Some(second), ..all() }, "first"),
    ];
    for (wanted, path) in wanted {
        assert_eq!(paths(&log.read(&wanted).unwrap()), [path], "{wanted:?}");
    }
    assert_eq!(paths(&log.recent()), ["second", "first"]);
    let who = Actor::new("anna", "local");
    let given = BTreeMap::from([("share".to_owned(), Value::text("box"))]);
    let found = log.act(&Path::of(&["maintenance"]), "find", &given, &who).unwrap();
    assert_eq!(found["rows"][0]["path"], "first");
    assert_eq!(found["rows"].as_array().map(Vec::len), Some(1));
    assert_eq!(found["columns"][0], "end");
}

#[test]
fn a_queue_that_is_full_drops_and_counts() {
    let (log, hub) = open(&MemoryDisk::default());
    // Nothing is written: the thread was not started.
    for _ in 0..TRANSFER_LOG_QUEUE_MAX + 3 {
        log.ended(ended(b"/box/f"));
    }
    assert_eq!(log.counts(), (0, 3));
    assert_eq!(hub.gauges().transfers_unlogged.get(), 3);
    assert_eq!(log.read(&all()).unwrap().len(), TRANSFER_LOG_QUEUE_MAX);
    assert_eq!(log.counts(), (TRANSFER_LOG_QUEUE_MAX as u64, 3));
    assert_eq!(log.recent().len(), TRANSFER_LOG_SHOWN);
}

#[test]
fn the_thread_writes_and_ends_with_all_of_it() {
    let disk = MemoryDisk::default();
    let (log, _) = open(&disk);
    log.start().unwrap();
    log.ended(ended(b"/box/one"));
    log.ended(ended(b"/box/two"));
    log.end();
    let file = disk.file("transfers.log").unwrap();
    let lines: Vec<Json> = file.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["path"], &lines[1]["path"]), (&json!("one"), &json!("two")));
    log.set(false, TRANSFER_LOG_BYTES);
    assert!(!log.is_on());
}

#[test]
fn a_line_that_was_cut_is_passed_over() {
    let disk = MemoryDisk::default();
    disk.append("transfers.log", b"{\"start\":\"2026-").unwrap();
    let (log, _) = open(&disk);
    log.ended(ended(b"/box/after"));
    assert_eq!(paths(&log.read(&all()).unwrap()), ["after"]);
}

#[test]
fn a_disk_that_refuses_costs_records_and_is_reported() {
    let disk = MemoryDisk::default();
    let (log, hub) = open(&disk);
    log.ended(ended(b"/box/before"));
    log.recent();
    disk.fail(Some("transfers"));
    log.ended(ended(b"/box/lost"));
    log.recent();
    assert_eq!(log.counts(), (1, 1));
    assert_eq!(hub.gauges().transfers_unlogged.get(), 1);
    assert!(log.problem().is_some_and(|why| why.contains("no space left")));
    disk.fail(None);
    log.ended(ended(b"/box/after"));
    assert_eq!(paths(&log.read(&all()).unwrap()), ["after", "before"]);
    assert_eq!(log.problem(), None);
}

#[test]
fn full_files_turn_over_and_the_oldest_goes() {
    let disk = MemoryDisk::default();
    let (log, _) = open(&disk);
    log.set(true, 3 * TRANSFER_LOG_FILE_BYTES);
    let long = [b"/box/".as_slice(), &[b'x'; 4000]].concat();
    log.ended(ended(b"/box/first"));
    for _ in 0..4 * TRANSFER_LOG_FILE_BYTES / 4_000 {
        log.ended(ended(&long));
    }
    log.ended(ended(b"/box/last"));
    let found = log.read(&all()).unwrap();
    assert_eq!(found[0].path, "last");
    assert!(found.iter().all(|record| record.path != "first"), "the oldest has gone");
    let size = |name: &str| disk.file(name).map(|text| text.len() as u64);
    for name in ["transfers.log", "transfers.log.1", "transfers.log.2"] {
        assert!(size(name).is_some_and(|size| size <= TRANSFER_LOG_FILE_BYTES), "{name}");
    }
    assert_eq!(size("transfers.log.3"), None);
    // Less is kept from now on.
    log.set(true, TRANSFER_LOG_FILE_BYTES);
    assert_eq!((size("transfers.log.1"), size("transfers.log.2")), (None, None));
    assert_eq!(log.read(&all()).unwrap()[0].path, "last");
}
