//! A second is decided by `done_ns` alone; nothing is counted twice, nothing is lost unseen.

use base::random::{Random, SeededRandom};

use super::*;
use crate::cell::Cell;
use crate::hub::HubOptions;
use crate::op::flag;
use crate::second::CoreSecond;

const S: u64 = NS_PER_S;

fn hub(bytes: usize) -> Arc<Hub> {
    Hub::new(HubOptions { cores: 1, recorder_bytes: bytes })
}

fn read(done_ns: u64, client: u32) -> OpRecord {
    let flags = flag::HAS_RANGE | flag::HAS_FILE;
    let (bytes, size, latency_ns, file) = (4096, 4096, 10_000, 7);
    let (protocol, op, share) = (1, 6, 1);
    OpRecord {
        done_ns,
        latency_ns,
        file,
        bytes,
        size,
        client,
        share,
        protocol,
        op,
        flags,
        ..OpRecord::default()
    }
}

fn total(second: &CoreSecond) -> u64 {
    second.combinations.iter().map(|(_, c)| c.count).sum()
}

#[test]
fn a_second_holds_what_was_done_in_it() {
    let hub = hub(1 << 20);
    let mut core = hub.core(0);
    core.finish(&read(100 * S, 1));
    core.finish(&read(101 * S - 1, 2));
    core.finish(&read(101 * S, 1));
    // Out of order by a little, as stamps that are slewed may be.
    core.finish(&read(101 * S - 2, 1));
    assert!(!core.idle(101 * S + SECOND_GRACE_NS - 1));
    assert_eq!(hub.closed(), 100);
    core.idle(101 * S + SECOND_GRACE_NS);
    assert_eq!(hub.closed(), 101);
    core.idle(102 * S + SECOND_GRACE_NS);
    let seconds = hub.take_before(102);
    assert_eq!(
        seconds.iter().map(|s| (s.second, total(s))).collect::<Vec<_>>(),
        [(100, 3), (101, 1)]
    );
    let first = &seconds[0];
    assert_eq!(first.latencies.len(), 2);
    assert_eq!(first.ranges[0].sizes, [(base::buckets::index(4096) as u8, cell(3))]);
    assert_eq!(first.files[0].cell, cell(3));
    assert_eq!(hub.gauges().late.get(), 0);
    assert!(hub.take_before(u64::MAX).is_empty());
}

fn cell(count: u64) -> Cell {
    Cell { count, bytes: count * 4096 }
}

#[test]
fn a_record_for_a_closed_second_is_counted_late_not_lost() {
    let hub = hub(1 << 20);
    let mut core = hub.core(0);
    core.idle(200 * S + SECOND_GRACE_NS);
    core.finish(&read(150 * S, 1));
    core.idle(202 * S);
    assert_eq!(hub.gauges().late.get(), 1);
    let seconds = hub.take_before(u64::MAX);
    assert_eq!((seconds[0].second, total(&seconds[0])), (200, 1));
}

#[test]
fn out_of_order_after_a_gap_still_finds_its_second() {
    let hub = hub(1 << 20);
    let mut core = hub.core(0);
    for done_ns in [100 * S, 110 * S, 110 * S - 1, 105 * S, 110 * S] {
        core.finish(&read(done_ns, 1));
    }
    drop(core);
    let seconds = hub.take_before(u64::MAX);
    let counts: Vec<_> = seconds.iter().map(|s| (s.second, total(s))).collect();
    // The one at 105 came when 109 was the oldest open second.
    assert_eq!(counts, [(100, 1), (109, 2), (110, 2)]);
    assert_eq!(hub.gauges().late.get(), 1);
}

#[test]
fn a_core_follows_a_clock_that_was_set_back() {
    let hub = hub(1 << 20);
    let mut core = hub.core(0);
    core.finish(&read(5_000 * S, 1));
    core.idle(5_001 * S + SECOND_GRACE_NS);
    core.finish(&read(5_001 * S + SECOND_GRACE_NS, 1));
    core.idle(5_001 * S + S / 2);
    assert_eq!(hub.closed(), 5_001);
    // By a little: what is done before the clock catches up counts for the second that is open.
    core.finish(&read(4_999 * S, 1));
    core.idle(4_999 * S);
    assert_eq!(hub.closed(), 5_001);
    // By an hour, and few operations come, or none.
    let set = 1_400 * S + SECOND_GRACE_NS;
    core.idle(set);
    assert_eq!((hub.closed(), core.rest_ns(set)), (1_400, S));
    core.finish(&read(set + 1, 1));
    core.idle(set + S);
    let seconds = hub.take_before(u64::MAX);
    let counts: Vec<_> = seconds.iter().map(|s| (s.second, total(s))).collect();
    assert_eq!(counts, [(1_400, 1), (5_000, 1)]);
    assert_eq!(hub.gauges().dropped.get(), 2, "of the second that was open");
    // Readers of the recorder do not stop at records of a later time.
    let mut found = 0;
    let recorded = hub.scan(1_400 * S, 1_401 * S, |_| found += 1);
    assert_eq!((found, recorded.since_ns), (1, set));
}

#[test]
fn an_overrun_is_counted() {
    let hub = hub(64 * 64);
    let mut core = hub.core(0);
    for n in 0..100 {
        core.finish(&read(100 * S + n, 1));
    }
    drop(core);
    let seconds = hub.take_before(u64::MAX);
    assert_eq!(total(&seconds[0]) + seconds[0].dropped, 100);
    assert_eq!(hub.gauges().dropped.get(), seconds[0].dropped);
    assert!(seconds[0].dropped >= 36);
}

#[test]
fn while_collection_is_off_only_the_total_is_counted() {
    let hub = hub(1 << 20);
    let mut core = hub.core(0);
    core.finish(&read(100 * S, 1));
    hub.set_collect(false);
    core.finish(&read(100 * S + 1, 1));
    hub.set_collect(true);
    core.finish(&read(100 * S + 2, 1));
    drop(core);
    let second = hub.take_before(u64::MAX).remove(0);
    assert_eq!(total(&second), 3);
    let off = second.combinations.iter().find(|(k, _)| k.op.is_none()).expect("an entry for off");
    assert_eq!(off.1, cell(1));
    assert_eq!(second.files[0].cell, cell(2));
}

#[test]
fn more_combinations_than_fit_are_folded_and_sum_up() {
    let hub = hub(16 << 20);
    let mut core = hub.core(0);
    let mut random = SeededRandom::new(1);
    for n in 0..100_000u64 {
        let mut record = read(100 * S + n, random.below(3000) as u32);
        record.user = random.below(100) as u32;
        record.status = random.below(3) as u16;
        core.finish(&record);
        core.idle(100 * S + n);
    }
    drop(core);
    let second = hub.take_before(u64::MAX).remove(0);
    assert_eq!(total(&second), 100_000);
    let folded: u64 =
        second.combinations.iter().filter(|(k, _)| k.client.is_none()).map(|(_, c)| c.count).sum();
    assert_eq!(folded, second.folded);
    assert!(folded > 0 && second.combinations.len() <= base::limits::COMBINATIONS_MAX);
    let latencies = second.latencies.iter().flat_map(|g| &g.buckets).map(|(_, c)| c.count);
    assert_eq!(latencies.sum::<u64>(), 100_000);
}

#[test]
fn replays_are_kept_apart() {
    let hub = hub(1 << 20);
    let mut core = hub.core(0);
    core.finish(&read(100 * S, 1));
    core.finish(&OpRecord { flags: flag::REPLAY | flag::HAS_FILE, ..read(100 * S, 1) });
    drop(core);
    let second = hub.take_before(u64::MAX).remove(0);
    assert_eq!(second.combinations.iter().filter(|(k, _)| k.replay).count(), 1);
    assert_eq!(second.files[0].cell, cell(1));
    assert_eq!(second.latencies[0].buckets[0].1, cell(1));
}

#[test]
fn an_idle_core_gives_the_memory_of_its_records_back() {
    let hub = hub(1 << 20);
    let mut core = hub.core(0);
    let rest = RECORDER_IDLE.as_nanos() as u64;
    // Later than the start of the hub.
    let now = base::clock::wall_ns() + S;
    core.idle(now);
    for n in 0..100 {
        core.finish(&read(now + n, 1));
    }
    core.idle(now + S);
    core.idle(now + S + rest - 1);
    let count = |from, to| {
        let mut count = 0;
        let recorded = hub.scan(from, to, |_| count += 1);
        (count, recorded.records, recorded.since_ns)
    };
    assert_eq!((count(0, u64::MAX).0, count(0, u64::MAX).1), (100, 100));
    let dropped = now + S + rest + S;
    core.idle(dropped);
    assert_eq!(count(0, u64::MAX), (0, 0, dropped), "it covers what comes from now on");
    core.finish(&read(dropped + 5, 1));
    core.idle(dropped + S);
    assert_eq!(count(dropped, u64::MAX), (1, 1, dropped));
    assert_eq!(core.rest_ns(dropped + S), core.close_ns - dropped - S);
}
