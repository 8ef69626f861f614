//! Results of profiles: read as they were written, and in their schema.

use super::{
    ConnectionRecord, EndRecord, FlowopRecord, HostRecord, InterfaceRecord, KIND, NetResult,
    TransactionRecord, VERSION,
};
use crate::agent::net::{ContextCount, Interface, Segments};
use crate::net::judge::{both_ends, evenness};
use crate::record::Latency;
use crate::record::provenance::Provenance;
use crate::report::tests::schema::all_faults;
use crate::report::{self, Figures};
use crate::verdict::evenness::{Evenness, Uneven};
use lab_net::count::{ConnCount, Fault, Faults, Key, Sums, TcpAccount};

const SCHEMA: &str = include_str!("../../../../../docs/formats/net.schema.json");

fn key(thread: u32) -> Key {
    Key { host: 0, thread, conn: 0 }
}

fn count(thread: u32, sent: u64, received: u64) -> ConnCount {
    ConnCount { key: key(thread), sent, received }
}

fn context(name: &str, segments: u64, bytes: u64, squares: u64) -> ContextCount {
    ContextCount { context: name.into(), segments, bytes, squares }
}

/// A transaction with one of everything.
fn transaction() -> TransactionRecord {
    let near = [count(0, 1_000_000_000, 0), count(1, 1_000_000_000, 0)];
    let far = [count(0, 0, 1_000_000_000), count(1, 0, 1_000_000_000)];
    let fault = Fault {
        key: key(1),
        group: 0,
        line: 3,
        flowop: "write".into(),
        what: "the other end read nothing".into(),
    };
    let uneven = Uneven { client: 0, to_others: 0.4, sentence: "slow".into() };
    TransactionRecord {
        bytes: both_ends(&near, &far),
        windows: vec![Sums { sent: 5, received: 0, calls: 1 }],
        used: (0, 1),
        flowops: vec![FlowopRecord {
            end: "near".into(),
            group: "group 1".into(),
            name: "write".into(),
            line: 3,
            calls: 7,
            failed: 1,
            bytes: 458_752,
            latency: Latency::default(),
        }],
        by_host: vec![HostRecord { host: "h".into(), bytes: 2_000_000_000 }],
        evenness: Some(Evenness { min_over_mean: 0.5, jain: 0.9, uneven: vec![uneven] }),
        connections: evenness(&near),
        cpu_s: vec![1.0, 2.0],
        interfaces: vec![InterfaceRecord {
            end: "near".into(),
            counted: Interface { name: "eth0".into(), ..Interface::default() },
            payload_out: 1,
            payload_in: 0,
            expected: Some(67),
            ratio: Some(1.0),
        }],
        segments: Some(Segments {
            source: "programs".into(),
            contexts: vec![
                context("sender", 3, 300_000, 30_000_000_000),
                context("ack", 1, 100_000, 10_000_000_000),
            ],
        }),
        faults: vec![Faults { count: 1, first: vec![fault] }],
        ..TransactionRecord::default()
    }
}

/// A result with a transaction that failed.
pub(crate) fn net_result() -> NetResult {
    let tcp = TcpAccount { connections: 1, retransmits: 7, ..TcpAccount::default() };
    NetResult {
        provenance: Provenance {
            ended: 2.0,
            ..Provenance::new(KIND, VERSION, 1.0, vec!["plimsoll".into()])
        },
        profile: "p <b>".into(),
        hosts: vec!["h".into()],
        groups: vec!["group 1".into()],
        threads: 2,
        published: Some("the source saw 40 KiB".into()),
        notes: vec!["line 2: stack=bbr is ignored".into()],
        ends: Vec::new(),
        transactions: vec![transaction()],
        connections: vec![ConnectionRecord { end: "near".into(), key: key(0), tcp }],
        degraded: Vec::new(),
        failed: Some("why".into()),
    }
}

#[test]
fn a_result_is_read_as_it_was_written() {
    let dir = std::env::temp_dir().join(format!("plimsoll-net-{}", std::process::id()));
    let files = report::net_files(&net_result()).expect("files");
    report::write_files(&files, &dir).expect("written");
    assert_eq!(NetResult::read(&dir).expect("a result"), Some(net_result()));
    let figures = Figures::read(&dir).expect("figures");
    assert_eq!((figures.kind, &figures), ("net", &Figures::of_net(&net_result())));
    for name in ["report.html", "figures.csv", "result.csv", "result.md"] {
        let text = std::fs::read_to_string(dir.join(name)).expect(name);
        assert!(text.contains("line 3: write of group 1"), "{name}: {text}");
    }
    std::fs::remove_dir_all(&dir).expect("removed");
}

#[test]
fn a_result_matches_its_schema() {
    let mut result = net_result();
    result.ends.push(EndRecord {
        name: "near".into(),
        agent: "127.0.0.1:1".into(),
        pid: 1,
        machine: crate::proc::machine(),
        lost: None,
    });
    let value = serde_json::to_value(&result).expect("JSON");
    assert_eq!(all_faults(SCHEMA, &value), [""; 0]);
    // The least that there can be: nothing was measured.
    result.transactions = vec![TransactionRecord::default()];
    (result.failed, result.published, result.connections) = (None, None, Vec::new());
    let mut value = serde_json::to_value(&result).expect("JSON");
    assert_eq!(all_faults(SCHEMA, &value), [""; 0]);
    value["transactions"][0]["bytes"]["near_sent"] = "many".into();
    value["ends"][0]["extra"] = 1.into();
    let found = all_faults(SCHEMA, &value).join("; ");
    assert!(found.contains("near_sent") && found.contains("extra"), "{found}");
}
