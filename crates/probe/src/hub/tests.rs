//! Cores, collector and recorder readers meet without losing count.

use super::*;

const S: u64 = NS_PER_S;

fn hub(bytes: usize) -> Arc<Hub> {
    Hub::new(HubOptions { cores: 2, recorder_bytes: bytes })
}

fn record(done_ns: u64) -> OpRecord {
    OpRecord { done_ns, protocol: 1, op: 6, client: 1, ..OpRecord::default() }
}

#[test]
fn the_recorder_shows_what_lies_in_the_interval() {
    let hub = hub(1 << 16);
    let (mut a, mut b) = (hub.core(0), hub.core(1));
    for n in 0..100 {
        a.finish(&record(1000 * S + n * S / 10));
        b.finish(&record(1000 * S + n * S / 10));
    }
    let mut seen = 0;
    hub.scan(1002 * S, 1004 * S, |r| {
        assert!((1002 * S..1004 * S).contains(&r.done_ns));
        seen += 1;
    });
    assert_eq!(seen, 40);
}

#[test]
fn the_horizon_moves_when_a_ring_wraps() {
    let hub = hub(2 * 64 * 64);
    let start = hub.recorded().since_ns;
    let mut a = hub.core(0);
    for n in 0..100 {
        a.finish(&record(start + n * S));
    }
    let recorded = hub.recorded();
    assert_eq!(recorded.records, 63);
    assert_eq!(recorded.since_ns, start + 37 * S + SECOND_GRACE_NS);
}

#[test]
fn a_core_has_one_writer() {
    let hub = hub(1 << 16);
    drop(hub.core(0));
    let _first = hub.core(0);
    let second = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| hub.core(0)));
    assert!(second.is_err());
}

#[test]
fn pauses_are_remembered() {
    let hub = hub(1 << 16);
    hub.set_collect_at(false, 10 * S);
    assert!(hub.paused_within(11 * S, 12 * S));
    hub.set_collect_at(true, 20 * S);
    assert!(!hub.paused_within(20 * S, 30 * S));
    assert!(hub.paused_within(19 * S, 30 * S));
    assert!(!hub.paused_within(9 * S, 10 * S));
}
