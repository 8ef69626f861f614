//! Figures of a result, and its schema.

use crate::net::judge::both_ends;
use crate::net::record::{ConnectionRecord, NetResult, TransactionRecord};
use crate::report::Figures;
use lab_net::count::{ConnCount, Key, TcpAccount};

/// A result with a transaction.
pub(crate) fn result() -> NetResult {
    let key = Key { host: 0, thread: 0, conn: 0 };
    let near = [ConnCount { key, sent: 2_000_000_000, received: 0 }];
    let far = [ConnCount { key, sent: 0, received: 2_000_000_000 }];
    let transaction = TransactionRecord {
        bytes: both_ends(&near, &far),
        cpu_s: vec![1.0, 2.0],
        ..TransactionRecord::default()
    };
    let tcp = TcpAccount { connections: 1, retransmits: 7, ..TcpAccount::default() };
    NetResult {
        kind: "net".into(),
        format: 1,
        program: "plimsoll".into(),
        started: 1.0,
        ended: 2.0,
        command: vec!["plimsoll".into()],
        machine: serde_json::Value::Null,
        profile: "p <b>".into(),
        hosts: vec!["h".into()],
        groups: vec!["group 1".into()],
        threads: 1,
        notes: Vec::new(),
        ends: Vec::new(),
        transactions: vec![transaction],
        connections: vec![ConnectionRecord { end: "near".into(), key, tcp }],
        degraded: Vec::new(),
        failed: Some("why".into()),
    }
}

#[test]
fn figures_show_both_ends_and_what_tcp_says() {
    let text = Figures::of_net(&result()).text();
    for part in ["failed: why", "0.0000 %", "1.00 + 2.00 s", "1.50 s/GB", "retransmits"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let page = crate::report::net_page(&result());
    assert!(page.contains("p &lt;b&gt;") && !page.contains("p <b>"), "escaped");
    assert!(page.contains("figures-ends"));
}

#[test]
fn a_result_is_read_again() {
    let dir = std::env::temp_dir().join(format!("plimsoll-net-{}", std::process::id()));
    result().write(&dir).expect("write");
    assert_eq!(NetResult::read(&dir).expect("read"), Some(result()));
    assert_eq!(crate::report::Figures::read(&dir).expect("figures").kind, "net");
    std::fs::remove_dir_all(&dir).expect("remove");
}
