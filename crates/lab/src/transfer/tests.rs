//! The comparison against the small servers of the clients' tests: figures, intervals, ratios, what
//! is taken over, what degrades it.

use super::plan::{BUILT_IN, Plan};
use super::record::{Comparison, Direction, Sample};
use super::run::{ComparisonRequest, run};
use super::stats::{COVERAGE, Middle, coverage};
use crate::client::service::at::ServiceAt;
use crate::client::service::tests::{Store, service, targets};
use std::sync::atomic::Ordering;

fn plan(settings: &[&str]) -> Plan {
    let settings: Vec<String> = settings.iter().map(|s| (*s).to_owned()).collect();
    Plan::parse("secure-protocols", BUILT_IN[0].1, &settings).unwrap()
}

fn compare(plan: &Plan, targets: &[ServiceAt], earlier: Option<Comparison>) -> Comparison {
    let own = std::process::id();
    let command = vec!["plimsoll".to_owned()];
    run(&ComparisonRequest { plan, targets, server_pids: &[own], command, earlier }, &mut |_, _| {})
}

#[test]
fn every_protocol_moves_the_same_files_each_round() {
    let store = Store::new();
    let all = targets(&store);
    let plan = plan(&["files=5", "file_size=70000", "streams=2", "rounds=6", "check_one_in=1"]);
    let result = compare(&plan, &all, None);
    assert_eq!((result.failed.clone(), result.degraded.clone()), (None, vec![]));
    assert_eq!(result.lines.len(), 7);
    for line in &result.lines {
        for way in Direction::BOTH {
            let of = |s: &&Sample| s.way == way;
            let rounds: Vec<u32> = line.samples.iter().filter(of).map(|s| s.round).collect();
            assert_eq!(rounds, [0, 1, 2, 3, 4, 5], "{}", line.target);
            let figures = line.figures(way).unwrap();
            assert!(figures.bytes_s.low <= figures.bytes_s.median && figures.files_s > 0.0);
            assert!(figures.bytes_s.is_sure() && figures.client_cpu_s_gb.median > 0.0);
            assert!(figures.server_cpu_s_gb.is_some());
            assert_eq!(figures.to_plain.is_some(), line.plain.is_some());
        }
        assert!(line.samples.iter().all(|s| s.bytes == 350_000 && s.sign_in_s > 0.0));
        assert_eq!(line.cipher.is_some(), line.secure, "{}", line.target);
        assert!(!line.target.contains("a%40b") && !line.target.contains("a@b"));
    }
    let plain: Vec<Option<usize>> = result.lines.iter().map(|l| l.plain).collect();
    assert_eq!(plain, [None, Some(0), None, None, Some(3), None, Some(5)]);
    let known: Vec<&str> = result.lines.iter().map(|l| l.identity.as_str()).collect();
    assert_eq!(known, ["none", "pin", "insecure", "none", "pin", "none", "insecure"]);
    assert!(store.files().is_empty(), "files were not removed");
    // Each way: the fastest, four protected ones, what a gigabyte costs.
    assert_eq!(result.findings.len(), 12, "{:#?}", result.findings);
    let text = result.text();
    assert!(result.findings.iter().all(|sentence| text.contains(sentence)));
    assert!(text.contains("FTPS") && text.contains("TLS 1.3") && text.contains("of plain"));
}

#[test]
fn damage_and_a_target_that_is_not_there_degrade() {
    let store = Store::new();
    let all = targets(&store);
    let mut two = vec![all[3].clone(), service("ftp://ann@127.0.0.1:1/share")];
    let plan = plan(&["file_size=9000", "rounds=2"]);
    let result = compare(&plan, &two, None);
    assert_eq!(result.failed, None);
    // The target, and that two rounds are too few.
    assert_eq!(result.degraded.len(), 2, "{:?}", result.degraded);
    assert!(result.lines[1].failed.is_some() && result.lines[0].failed.is_none());
    two.remove(0);
    let result = compare(&plan, &two, None);
    let failed = result.failed.unwrap();
    assert!(failed.contains("ftp://ann@127.0.0.1:1/share"), "{failed}");
}

#[test]
fn a_comparison_that_was_interrupted_continues() {
    let store = Store::new();
    let all = &targets(&store)[..2];
    let dir = std::env::temp_dir().join(format!("plimsoll-compare-{}", std::process::id()));
    let first = compare(&plan(&["file_size=9000", "rounds=2"]), all, None);
    first.write(&dir).unwrap();
    let read = Comparison::read(&dir).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    let read = read.unwrap();
    assert_eq!((&read.plan, read.lines.len()), (&first.plan, 2));
    assert_eq!(read.lines[1].samples.len(), 4);
    let longer = plan(&["file_size=9000", "rounds=6"]);
    let second = compare(&longer, all, Some(first.clone()));
    assert_eq!(second.degraded, [""; 0]);
    assert_eq!(second.lines[0].samples.len(), 12);
    assert_eq!(second.lines[0].samples[..4], first.lines[0].samples[..]);
    assert_eq!(second.started, first.started);
    let other = compare(&plan(&["file_size=9001", "rounds=6"]), all, Some(read));
    assert!(other.degraded[0].contains("another comparison"), "{:?}", other.degraded);
    assert_eq!(other.lines[0].samples.len(), 12);
}

#[test]
fn content_that_is_not_what_was_sent_is_seen() {
    let store = Store::new();
    let at = targets(&store).swap_remove(3);
    let plan = plan(&["file_size=300000", "rounds=1", "check_one_in=1"]);
    store.damages.store(true, Ordering::SeqCst);
    let result = compare(&plan, &[at], None);
    assert!(result.failed.as_ref().unwrap().contains("wrong content"), "{:?}", result.failed);
}

#[test]
fn intervals_are_those_of_order_statistics() {
    // Tables of nonparametric intervals for the median: n = 6, 9, 20.
    let near = |a: f64, b: f64| (a - b).abs() < 5e-4;
    assert!(near(coverage(6, 0), 0.9688) && near(coverage(5, 0), 0.9375));
    assert!(near(coverage(9, 1), 0.9609) && near(coverage(9, 2), 0.8203));
    assert!(near(coverage(20, 5), 0.9586));
    let values: Vec<f64> = (1..=9).rev().map(f64::from).collect();
    let middle = Middle::of(&values).unwrap();
    assert_eq!((middle.low, middle.median, middle.high), (2.0, 5.0, 8.0));
    assert!(middle.is_sure() && middle.coverage >= COVERAGE);
    let few = Middle::of(&[3.0, 1.0, 2.0, 10.0]).unwrap();
    assert_eq!((few.low, few.median, few.high), (1.0, 2.5, 10.0));
    assert!(!few.is_sure());
    assert_eq!(Middle::of(&[]), None);
    assert_eq!(Middle::of(&[7.0]).unwrap().median, 7.0);
}

#[test]
fn invalid_plans_are_refused() {
    let parse = |setting: &str| Plan::parse("x", BUILT_IN[0].1, &[setting.to_owned()]);
    for setting in ["files=0", "streams=0", "streams=2", "rounds=0", "rounds=5000", "block=4k"] {
        assert!(parse(setting).is_err(), "{setting}");
    }
    assert_eq!(plan(&["file_size=1m"]).bytes(), 1 << 20);
    assert_eq!(Plan::load("iops-4k", &[]).unwrap(), None);
    assert_eq!(Plan::load("secure-protocols", &[]).unwrap().unwrap(), plan(&[]));
}

/// Without a process that is stated the server is found where it listens.
#[test]
fn servers_are_found_by_their_addresses() {
    let store = Store::new();
    let all = targets(&store);
    let plan = plan(&["files=1", "file_size=1000", "streams=1", "rounds=1"]);
    let wanted = ComparisonRequest {
        plan: &plan,
        targets: &all,
        server_pids: &[],
        command: vec![],
        earlier: None,
    };
    let result = run(&wanted, &mut |_, _| {});
    for line in &result.lines {
        let own = Some(std::process::id());
        assert_eq!((line.server.seen.as_str(), line.server.pid), ("process", own));
        assert!(line.samples.iter().all(|s| s.server_cpu_s.is_some_and(|cpu| cpu > 0.0)));
    }
    let absent = ServiceAt { host: "192.0.2.1".into(), ..all[0].clone() };
    let (server, family) = super::run::server_of(&absent, None);
    assert!(server.seen == "unseen" && server.unseen.is_some() && family.is_none());
}
