//! Random records: every breakdown of a second sums to the same total, and the recorder's answer is
//! the store's.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use analytics::collect::Assembler;
use analytics::names::HubResolver;
use analytics::query::{Data, Engine, Query, Source};
use base::clock::{NS_PER_S, wall_ns};
use base::random::{Random, SeededRandom};
use probe::hub::{Hub, HubOptions};
use probe::op::{OpRecord, flag};
use probe::phases::{PARTS, Phase, PhaseParts};
use probe::stat::StatId;
use proptest::prelude::*;

const DIMENSIONS: [&str; 11] = [
    "op",
    "client",
    "user",
    "share",
    "file",
    "latency",
    "size",
    "offset",
    "status",
    "transport",
    "phase",
];

/// An engine that has seen `count` random records within `seconds` from the start that is returned.
fn engine(seed: u64, count: u64, seconds: u64) -> (Arc<Engine>, u64, Vec<OpRecord>) {
    let hub = Hub::new(HubOptions { cores: 2, recorder_bytes: 4 << 20 });
    let engine = Engine::new(hub.clone(), Arc::new(HubResolver(hub.clone())), None);
    // In the future, so that the recorder's horizon (the hub's start) lies before it.
    let start = wall_ns() / NS_PER_S + 10;
    let mut random = SeededRandom::new(seed);
    let clients: Vec<u32> =
        (0..8).map(|n| hub.clients().intern(Ipv4Addr::new(10, 0, 0, n).into())).collect();
    hub.shares().intern("tank");
    let mut records: Vec<OpRecord> =
        (0..count).map(|_| record(&mut random, &clients, start, seconds)).collect();
    records.sort_by_key(|r| r.done_ns);
    let mut cores = [hub.core(0), hub.core(1)];
    for record in &records {
        cores[usize::from(record.core)].finish(record);
        cores[usize::from(record.core)].idle(record.done_ns);
    }
    let mut assembler = Assembler::new(hub.clone(), engine.names().clone());
    drop(cores);
    for second in start..start + seconds {
        let finished = hub.take_before(second + 1);
        engine.push(assembler.frame(second, &finished, &[]));
    }
    assert_eq!(hub.gauges().late.get() + hub.gauges().dropped.get(), 0);
    (engine, start, records)
}

fn record(random: &mut SeededRandom, clients: &[u32], start: u64, seconds: u64) -> OpRecord {
    let op = [1, 3, 6, 7, 21][random.below(5) as usize];
    let data = op == 6 || op == 7;
    let size = if data { 1 << random.below(20) } else { 0 };
    let mut flags = if random.below(10) == 0 { 0 } else { flag::HAS_FILE };
    flags |= if data { flag::HAS_RANGE } else { 0 };
    flags |= if random.below(50) == 0 { flag::REPLAY } else { 0 };
    flags |= if data && random.below(4) == 0 { flag::PIECE } else { 0 };
    flags |= if random.below(3) == 0 { flag::RDMA } else { 0 };
    let latency_ns = 1 << random.below(34);
    let phases = PhaseParts::of(latency_ns, std::array::from_fn(|_| random.below(latency_ns) / 4));
    OpRecord {
        done_ns: start * NS_PER_S + random.below(seconds * NS_PER_S),
        latency_ns,
        phases,
        file: if flags & flag::HAS_FILE != 0 { 1 + random.below(40) } else { 0 },
        offset: random.below(1 << 40),
        bytes: size,
        size,
        client: clients[random.below(8) as usize],
        user: [0, 1000, u32::MAX][random.below(3) as usize],
        share: random.below(2) as u16,
        status: [0, 0, 0, 2][random.below(4) as usize],
        protocol: 1,
        op,
        flags,
        core: random.below(2) as u8,
    }
}

fn ask(engine: &Engine, id: &str, from: u64, seconds: u64, source: Option<Source>) -> Data {
    let stat: StatId = id.parse().expect("an id");
    let (from, to) = (Some(from as i64), Some((from + seconds) as i64));
    let query = Query { from, to, step: 1, top: 1000, source };
    engine.data(&stat, &query).unwrap_or_else(|e| panic!("{id}: {e}"))
}

/// A value as a whole number: phases have parts of operations.
fn parts(value: f64) -> u64 {
    (value * PARTS as f64).round() as u64
}

/// Every element and second with its value; what belongs to none under `other`.
fn flat(data: &Data) -> BTreeMap<(String, usize), u64> {
    let mut all = BTreeMap::new();
    let mut put = |key: &str, values: &[Option<f64>]| {
        for (n, value) in values.iter().enumerate() {
            let value = parts(value.expect("data for every second"));
            if value > 0 {
                all.insert((key.to_owned(), n), value);
            }
        }
    };
    for row in data.rows.iter().flatten() {
        put(&row.key, &row.values);
    }
    for bucket in data.buckets.iter().flatten() {
        put(&format!("{}-{}", bucket.low, bucket.high), &bucket.values);
    }
    if let Some(other) = &data.other {
        put("other", &other.values);
    }
    all
}

fn check_sums(data: &Data) {
    let mut sums = vec![0; data.times.len()];
    flat(data).iter().for_each(|((_, second), value)| sums[*second] += value);
    let total: Vec<u64> = data.total.iter().map(|t| parts(t.expect("data"))).collect();
    assert_eq!(sums, total, "{} from {:?}", data.stat, data.source);
}

/// A line of values as whole numbers.
fn rounded(values: &[Option<f64>]) -> Vec<Option<u64>> {
    values.iter().map(|value| value.map(parts)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(12)
    })]

    #[test]
    fn breakdowns_sum_up_and_recorder_and_store_agree(seed in any::<u64>(), count in 1u64..3000) {
        let seconds = 3;
        let (engine, start, records) = engine(seed, count, seconds);
        for metric in ["nfs3.ops", "nfs3.bytes"] {
            let value = |r: &&OpRecord| match metric {
                "nfs3.ops" => u64::from(r.flags & flag::PIECE == 0),
                _ => u64::from(r.bytes),
            };
            let counted = records.iter().filter(|r| r.flags & flag::REPLAY == 0);
            let truth: u64 = counted.map(|r| value(&r)).sum();
            let raw = ask(&engine, metric, start, seconds, None);
            prop_assert_eq!(raw.total.iter().flatten().sum::<f64>() as u64, truth);
            // Bytes do not spend time.
            let all = DIMENSIONS.into_iter().filter(|d| metric == "nfs3.ops" || *d != "phase");
            for dimension in all {
                let id = format!("{metric}[{dimension}]");
                let store = ask(&engine, &id, start, seconds, None);
                let recorder = ask(&engine, &id, start, seconds, Some(Source::Recorder));
                prop_assert_eq!(store.source, Source::Store);
                prop_assert_eq!(recorder.source, Source::Recorder);
                prop_assert_eq!(rounded(&store.total), rounded(&raw.total), "{}", id);
                check_sums(&store);
                check_sums(&recorder);
                prop_assert_eq!(flat(&store), flat(&recorder), "{}", id);
                prop_assert!(store.exact && recorder.exact);
            }
        }
    }
}

#[test]
fn drilling_down_partitions_the_parent() {
    let (engine, start, _) = engine(7, 2000, 2);
    // Any two of them combined: the children of every element add up to the element.
    for first in DIMENSIONS {
        let parent = ask(&engine, &format!("nfs3.ops[{first}]"), start, 2, None);
        for second in DIMENSIONS {
            for row in parent.rows.iter().flatten().take(3) {
                let id = format!("nfs3.ops[{first}={}][{second}]", row.key);
                let child = ask(&engine, &id, start, 2, None);
                check_sums(&child);
                assert_eq!(rounded(&child.total), rounded(&row.values), "{id}");
            }
            for bucket in parent.buckets.iter().flatten().take(3) {
                let id = format!("nfs3.ops[{first}={}-{}][{second}]", bucket.low, bucket.high);
                let child = ask(&engine, &id, start, 2, None);
                check_sums(&child);
                assert_eq!(rounded(&child.total), rounded(&bucket.values), "{id}");
            }
        }
    }
}

#[test]
fn replays_are_counted_apart() {
    let (engine, start, records) = engine(11, 2000, 2);
    let whole = |r: &&OpRecord| r.flags & (flag::REPLAY | flag::PIECE) == flag::REPLAY;
    let truth = records.iter().filter(whole).count();
    for source in [None, Some(Source::Recorder)] {
        let data = ask(&engine, "nfs3.replays[client]", start, 2, source);
        assert_eq!(data.total.iter().flatten().sum::<f64>() as usize, truth);
        check_sums(&data);
    }
}

#[test]
fn any_chain_is_answered_from_the_recorder() {
    let (engine, start, records) = engine(3, 6000, 2);
    let id = "nfs3.ops[op=read][client=10.0.0.3][user=1000][latency=0-1000000][file]";
    let data = ask(&engine, id, start, 2, None);
    assert_eq!(data.source, Source::Recorder);
    let mut truth: BTreeMap<String, u64> = BTreeMap::new();
    let client = records.iter().map(|r| r.client).min().expect("records") + 3;
    for r in records.iter().filter(|r| r.op == 6 && r.client == client && r.user == 1000) {
        if r.latency_ns < 1_000_000 && r.flags & (flag::REPLAY | flag::PIECE) == 0 {
            *truth.entry(format!("{:016x}", r.file)).or_default() += PARTS;
        }
    }
    let none = truth.remove(&format!("{:016x}", 0)).unwrap_or(0);
    assert!(truth.values().sum::<u64>() > 10 * PARTS);
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    for ((key, _), value) in flat(&data) {
        *found.entry(key).or_default() += value;
    }
    assert_eq!(found.remove("other").unwrap_or(0), none);
    assert_eq!(found, truth);
}

#[test]
fn times_of_phases_add_up_to_the_mean_latency() {
    let (engine, start, records) = engine(43, 5000, 3);
    let counts = |r: &&OpRecord| r.flags & (flag::REPLAY | flag::PIECE) == 0;
    for op in [None, Some((6, "read"))] {
        let all: Vec<&OpRecord> = records
            .iter()
            .filter(counts)
            .filter(|r| op.is_none_or(|(number, _)| r.op == number))
            .collect();
        let count = all.len() as f64;
        let mut truth = [0.0; Phase::ALL.len()];
        for r in &all {
            let ns = r.phases.ns(r.latency_ns);
            truth.iter_mut().zip(ns).for_each(|(sum, ns)| *sum += ns as f64 / count);
        }
        let latency = all.iter().map(|r| r.latency_ns as f64).sum::<f64>() / count;
        let filter = op.map_or(String::new(), |(_, name)| format!("[op={name}]"));
        for source in [None, Some(Source::Recorder)] {
            let data = ask(&engine, &format!("nfs3.ops{filter}[phase]"), start, 3, source);
            let times = data
                .rows()
                .iter()
                .map(|row| (row.key.as_str(), row.time.as_ref().expect("a time")));
            let times: BTreeMap<&str, _> = times.collect();
            assert_eq!(times.len(), Phase::ALL.len());
            let sum: f64 = times.values().map(|time| time.average_ns).sum();
            let shares: f64 = times.values().map(|time| time.share).sum();
            assert!((sum / latency - 1.0).abs() < 1e-3, "{sum} is not {latency}");
            assert!((shares - 1.0).abs() < 1e-6, "{shares}");
            for phase in Phase::ALL {
                let (is, should) = (times[phase.id()].average_ns, truth[phase as usize]);
                assert!((is - should).abs() < 1e-3 * latency, "{phase:?}: {is} is not {should}");
            }
        }
    }
}

#[test]
fn a_phase_as_a_filter_leaves_the_parts_of_it() {
    let (engine, start, records) = engine(44, 3000, 2);
    let counts = |r: &&OpRecord| r.flags & (flag::REPLAY | flag::PIECE) == 0;
    let truth: u64 = records.iter().filter(counts).map(|r| r.phases.part(Phase::Flush)).sum();
    for (id, source) in [
        ("nfs3.ops[phase=flush]", None),
        ("nfs3.ops[phase=flush]", Some(Source::Recorder)),
        ("nfs3.ops[phase=flush][client]", None),
        ("nfs3.ops[phase=flush][phase]", Some(Source::Recorder)),
    ] {
        let data = ask(&engine, id, start, 2, source);
        assert_eq!(data.total.iter().flatten().map(|v| parts(*v)).sum::<u64>(), truth, "{id}");
    }
    let none = ask(&engine, "nfs3.ops[phase=flush][phase=send]", start, 2, Some(Source::Recorder));
    assert_eq!(none.total.iter().flatten().sum::<f64>(), 0.0);
    let unknown: StatId = "nfs3.ops[phase=disk]".parse().expect("an id");
    assert!(engine.data(&unknown, &Query::default()).is_err(), "there is no such phase");
}
