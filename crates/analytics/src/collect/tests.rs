//! The running collector, from a record to a live answer; and what it does when time jumps.

use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use probe::hub::HubOptions;
use probe::op::OpRecord;

use super::*;
use crate::model::SAMPLE_SCALE;
use crate::names::HubResolver;
use crate::query::Query;

#[test]
fn a_record_becomes_a_live_answer() {
    let hub = Hub::new(HubOptions { cores: 1, recorder_bytes: 1 << 20 });
    let engine = Engine::new(hub.clone(), Arc::new(HubResolver(hub.clone())), None);
    let mut live =
        engine.subscribe(vec!["nfs3.ops[client]".parse().expect("an id")]).expect("a subscription");
    let mut core = hub.core(0);
    let client = hub.clients().intern(std::net::Ipv4Addr::new(10, 0, 0, 7).into());
    let collector = Collector::start(engine.clone(), Vec::new()).expect("a thread");
    let done_ns = clock::wall_ns();
    core.finish(&OpRecord { done_ns, client, protocol: 1, op: 1, ..OpRecord::default() });
    let deadline = Instant::now() + Duration::from_secs(60);
    let row = loop {
        assert!(Instant::now() < deadline, "no answer within 20 s");
        core.idle(clock::wall_ns());
        let Some(update) = live.recv_timeout(Duration::from_millis(10)) else { continue };
        if let Some(row) = update.data[0].rows.iter().flatten().next() {
            break (update.data[0].from, row.key.clone(), row.values.clone());
        }
    };
    assert_eq!(row, (done_ns / NS_PER_S, "10.0.0.7".to_owned(), vec![Some(1.0)]));
    drop(core);
    collector.stop();
    let left = std::iter::from_fn(|| live.recv_timeout(Duration::from_secs(60)));
    assert!(left.take_while(|_| Instant::now() < deadline).count() < 30);
    let stat = "server.connections".parse().expect("an id");
    let data = engine.data(&stat, &Query::default()).expect("an answer");
    assert!(data.total.contains(&Some(0.0)) && data.total.contains(&None));
}

#[test]
fn what_a_counter_had_before_the_collector_began_is_not_lost() {
    let hub = Hub::new(HubOptions { cores: 1, recorder_bytes: 1 << 20 });
    let engine = Engine::new(hub.clone(), Arc::new(HubResolver(hub.clone())), None);
    let stat = "server.drc_replays".parse().expect("an id");
    let mut live = engine.subscribe(vec![stat]).expect("a subscription");
    hub.gauges().drc_replays.set(2);
    let collector = Collector::start(engine, Vec::new()).expect("a thread");
    let deadline = Instant::now() + Duration::from_secs(60);
    let first = loop {
        assert!(Instant::now() < deadline, "no answer within 20 s");
        let Some(update) = live.recv_timeout(Duration::from_millis(10)) else { continue };
        if let Some(total) = update.data[0].total.iter().flatten().next() {
            break *total;
        }
    };
    collector.stop();
    assert_eq!(first, 2.0);
}

#[test]
fn the_collector_follows_the_clock() {
    assert_eq!(next(100, 101), 101);
    assert_eq!(next(100, 105), 101);
    assert_eq!(next(100, 200), 200);
    // Set back by a little: it waits rather than write a second twice.
    assert_eq!(next(100, 97), 101);
    assert_eq!(next(100, 50), 50);
}

/// A clock that the test sets.
struct SetClock(AtomicU64);

impl Clock for SetClock {
    fn monotonic_ns(&self) -> u64 {
        self.wall_ns()
    }

    fn wall_ns(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Reports that the collector has begun.
struct Begun(std::sync::mpsc::Sender<()>);

impl Sampler for Begun {
    fn sample(&mut self, _now_ns: u64) -> Vec<Sample> {
        Vec::new()
    }

    fn begin(&mut self, _now_ns: u64) {
        self.0.send(()).expect("a test that waits");
    }
}

#[test]
fn live_data_continue_when_the_clock_is_set_back() {
    let hub = Hub::new(HubOptions { cores: 1, recorder_bytes: 1 << 20 });
    let engine = Engine::new(hub.clone(), Arc::new(HubResolver(hub)), None);
    let mut ticks = engine.ticks().expect("a subscription");
    let clock = Arc::new(SetClock(AtomicU64::new(5_000 * NS_PER_S)));
    let (begun, begins) = std::sync::mpsc::channel();
    let collector = Collector::start_with(engine, vec![Box::new(Begun(begun))], clock.clone());
    let collector = collector.expect("a thread");
    begins.recv_timeout(Duration::from_secs(60)).expect("it begins");
    // The clock runs from a second on, until a frame of a second before `end` is made: a collector
    // that was late has made more from before the clock was set. Its second, and that of the clock.
    let mut run_from = |start: u64, end: u64| {
        let deadline = Instant::now() + Duration::from_secs(60);
        for now in start.. {
            assert!(Instant::now() < deadline, "no frame after the clock was set to {start}");
            clock.0.store(now * NS_PER_S + COLLECT_AFTER_NS, Ordering::SeqCst);
            collector.thread.thread().unpark();
            let tick = ticks.recv_timeout(Duration::from_millis(200));
            if let Some(tick) = tick.filter(|tick| tick.frame.time < end) {
                return (tick.frame.time, now);
            }
        }
        unreachable!("the range has no end")
    };
    assert_eq!(run_from(5_000, u64::MAX).0, 5_000);
    // By an hour: it continues with what the clock shows.
    let (second, now) = run_from(1_400, 5_000);
    assert!((1_400..now).contains(&second), "{second} at {now}");
    // By two seconds: each second comes once.
    assert_eq!(run_from(second - 1, u64::MAX).0, second + 1);
    collector.stop();
}

#[test]
fn a_second_is_missed_only_when_a_core_has_not_closed_it() {
    let hub = Hub::new(HubOptions { cores: 1, recorder_bytes: 1 << 20 });
    let mut core = hub.core(0);
    let engine = Engine::new(hub.clone(), Arc::new(HubResolver(hub.clone())), None);
    let mut ticks = engine.ticks().expect("a subscription");
    let clock = Arc::new(SetClock(AtomicU64::new(5_000 * NS_PER_S)));
    let (begun, begins) = std::sync::mpsc::channel();
    let collector = Collector::start_with(engine, vec![Box::new(Begun(begun))], clock.clone());
    let collector = collector.expect("a thread");
    begins.recv_timeout(Duration::from_secs(60)).expect("it begins");
    // The clock is set to a second; what is missed until a frame comes.
    let mut missed = |now: u64, frame: u64| {
        clock.0.store(now * NS_PER_S + COLLECT_AFTER_NS, Ordering::SeqCst);
        collector.thread.thread().unpark();
        let mut second =
            || ticks.recv_timeout(Duration::from_secs(60)).expect("a frame").frame.time;
        while second() < frame {}
        hub.gauges().missed_seconds.get()
    };
    // The collector is nine seconds late, and the core is not.
    core.idle(5_009 * NS_PER_S + COLLECT_AFTER_NS);
    assert_eq!(hub.closed(), 5_009);
    assert_eq!(missed(5_009, 5_008), 0);
    // The core is late; for the next second there is still time.
    assert_eq!(missed(5_015, 5_009), 1);
    collector.stop();
}

#[test]
fn what_comes_too_late_is_counted_as_dropped() {
    let hub = Hub::new(HubOptions { cores: 1, recorder_bytes: 1 << 20 });
    let names = Arc::new(Names::new(hub.clone(), Arc::new(HubResolver(hub.clone()))));
    let mut core = hub.core(0);
    core.finish(&OpRecord { done_ns: 100 * NS_PER_S, protocol: 1, ..OpRecord::default() });
    drop(core);
    let late = hub.take_before(101);
    let frame = Assembler::new(hub.clone(), names).frame(101, &late, &[]);
    assert_eq!((frame.dropped, hub.gauges().dropped.get()), (1, 1));
    assert!(frame.tables.iter().all(|t| !t.stat.starts_with("nfs3")));
}

#[test]
fn what_a_counter_had_before_its_first_reading_belongs_to_that() {
    let hub = Hub::new(HubOptions { cores: 1, recorder_bytes: 1 << 20 });
    let names = Arc::new(Names::new(hub.clone(), Arc::new(HubResolver(hub.clone()))));
    let mut assembler = Assembler::new(hub.clone(), names);
    hub.gauges().drc_replays.set(2);
    let total = |frame: Frame| {
        let table = frame.tables.iter().find(|table| &*table.stat == "server.drc_replays");
        table.expect("a gauge of the schema").total[0] as f64 / SAMPLE_SCALE
    };
    assert_eq!(total(assembler.frame(100, &[], &[])), 2.0);
    hub.gauges().drc_replays.set(5);
    assert_eq!(total(assembler.frame(101, &[], &[])), 3.0);
}

#[test]
fn elements_of_a_range_fall_into_buckets() {
    let hub = Hub::new(HubOptions { cores: 1, recorder_bytes: 1 << 20 });
    let names = Arc::new(Names::new(hub.clone(), Arc::new(HubResolver(hub.clone()))));
    let rows = ["16384", "17000", "1000000"].map(|ns| ("forth".into(), ns.into(), 2.0)).into();
    let dimensions = ["way", "lateness"];
    let sample = Sample { stat: "bridge.lateness", dimensions, total: 6.0, rows };
    let frame = Assembler::new(hub, names).frame(100, &[], &[sample]);
    let table = frame.tables.iter().find(|t| &*t.stat == "bridge.lateness").expect("a table");
    let mut found: Vec<_> = table.rows.iter().map(|(_, key, n)| (key.clone(), n[0])).collect();
    found.sort();
    // Two of them are in one.
    let bucket = |ns| Key::Bucket(buckets::index(ns) as u8);
    assert_eq!(found, [(bucket(16_384), 400), (bucket(1_000_000), 200)]);
}
