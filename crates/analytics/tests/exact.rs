//! The exactness that an answer reports is true: whatever was folded, cut or purged, no row is
//! too high, none lacks more than the error bound, and "exact" means that nothing lacks anything.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use analytics::collect::Assembler;
use analytics::names::HubResolver;
use analytics::query::{Data, Engine, Query, Source};
use base::buckets;
use base::clock::{NS_PER_S, wall_ns};
use base::random::{Random, SeededRandom};
use probe::hub::{Hub, HubOptions};
use probe::op::{OpRecord, flag};
use proptest::prelude::*;

const SECONDS: u64 = 2;

/// How many different values the records of a run have.
#[derive(Debug, Clone, Copy)]
struct Spread {
    clients: u64,
    files: u64,
    users: u64,
    statuses: u64,
}

struct Run {
    hub: Arc<Hub>,
    engine: Arc<Engine>,
    start: u64,
    records: Vec<OpRecord>,
}

fn record(random: &mut SeededRandom, spread: Spread, start: u64) -> OpRecord {
    let op = [1, 3, 6, 7, 21][random.below(5) as usize];
    let data = op == 6 || op == 7;
    // Large ones are rare and of all clients and files: what has few operations may have many
    // bytes.
    let size = if data { 1u32 << (10 + 10 * u32::from(random.below(200) == 0)) } else { 0 };
    // Squared, so that low numbers are busier.
    let mut skewed = |n: u64| (random.below(n) * random.below(n)).div_ceil(n);
    let (client, file) = (skewed(spread.clients), skewed(spread.files));
    OpRecord {
        done_ns: start * NS_PER_S + random.below(SECONDS * NS_PER_S),
        latency_ns: 1 << random.below(34),
        file: 1 + file,
        offset: random.below(1 << 40),
        bytes: size,
        size,
        client: 1 + client as u32,
        user: random.below(spread.users) as u32,
        share: 1 + random.below(2) as u16,
        status: random.below(spread.statuses) as u16,
        protocol: 1,
        op,
        flags: flag::HAS_FILE | if data { flag::HAS_RANGE } else { 0 },
        core: random.below(2) as u8,
        ..OpRecord::default()
    }
}

fn run(seed: u64, count: u64, spread: Spread) -> Run {
    let hub = Hub::new(HubOptions { cores: 2, recorder_bytes: 8 << 20 });
    let engine = Engine::new(hub.clone(), Arc::new(HubResolver(hub.clone())), None);
    let start = wall_ns() / NS_PER_S + 10;
    let mut random = SeededRandom::new(seed);
    for n in 0..spread.clients as u32 {
        hub.clients().intern(Ipv4Addr::from(0x0a00_0000 + n).into());
    }
    hub.shares().intern("tank");
    hub.shares().intern("pond");
    let mut records: Vec<OpRecord> =
        (0..count).map(|_| record(&mut random, spread, start)).collect();
    records.sort_by_key(|r| r.done_ns);
    let mut cores = [hub.core(0), hub.core(1)];
    for record in &records {
        cores[usize::from(record.core)].finish(record);
        cores[usize::from(record.core)].idle(record.done_ns);
    }
    drop(cores);
    let mut assembler = Assembler::new(hub.clone(), engine.names().clone());
    for second in start..start + SECONDS {
        let finished = hub.take_before(second + 1);
        engine.push(assembler.frame(second, &finished, &[]));
    }
    Run { hub, engine, start, records }
}

impl Run {
    fn ask(&self, id: &str, step: u64) -> Data {
        let (from, to) = (Some(self.start as i64), Some((self.start + SECONDS) as i64));
        let query = Query { from, to, step, top: 1000, source: None };
        let data = self.engine.data(&id.parse().expect("an id"), &query);
        data.unwrap_or_else(|e| panic!("{id}: {e}"))
    }

    /// The key that the answer should have for a record.
    fn key(&self, dimension: &str, r: &OpRecord) -> String {
        match dimension {
            "client" => self.hub.clients().name_of(r.client),
            "user" => r.user.to_string(),
            "share" => self.hub.shares().name_of(r.share).expect("a share"),
            "file" => format!("{:016x}", r.file),
            "op" => probe::labels::op_name(probe::op::Protocol::Nfs3, r.op).into_owned(),
            "status" => {
                probe::labels::status_name(probe::op::Protocol::Nfs3, r.status).into_owned()
            }
            "latency" => buckets::low(buckets::index(r.latency_ns)).to_string(),
            other => panic!("no dimension {other}"),
        }
    }

    /// Compares an answer with the records. Returns whether it calls itself exact.
    fn check(&self, metric: &str, filter: Option<(&str, &str)>, by: &str, step: u64) -> bool {
        let filters = filter.map_or(String::new(), |(d, value)| format!("[{d}={value}]"));
        let id = format!("{metric}{filters}[{by}]");
        let data = self.ask(&id, step);
        assert_eq!(data.source, Source::Store, "{id}");
        let mut truth: BTreeMap<(String, usize), f64> = BTreeMap::new();
        for r in &self.records {
            if filter.is_none_or(|(d, value)| self.key(d, r) == value) {
                let at = (r.done_ns / NS_PER_S - self.start) / step;
                let value = if metric == "nfs3.ops" { 1.0 } else { f64::from(r.bytes) };
                *truth.entry((self.key(by, r), at as usize)).or_default() += value / step as f64;
            }
        }
        let mut found: BTreeMap<(String, usize), f64> = BTreeMap::new();
        let rows = data.rows.iter().flatten().map(|r| (r.key.clone(), &r.values));
        let ranges = data.buckets.iter().flatten().map(|b| (b.low.to_string(), &b.values));
        for (key, values) in rows.chain(ranges) {
            for (at, value) in values.iter().enumerate() {
                found.insert((key.clone(), at), value.expect("data for every second"));
            }
        }
        for (place, value) in &found {
            let is = truth.get(place).copied().unwrap_or(0.0);
            assert!(*value <= is + 1e-6, "{id} {place:?}: {value} is more than {is}");
        }
        let mut worst = 0.0f64;
        for (place, is) in &truth {
            let value = found.get(place).copied().unwrap_or(0.0);
            worst = worst.max(is - value);
        }
        assert!(
            worst <= data.error_bound + 1e-6,
            "{id}: lacks {worst}, bound {}",
            data.error_bound
        );
        assert_eq!(data.exact, data.error_bound == 0.0, "{id}");
        data.exact
    }

    fn check_all(&self) -> Vec<String> {
        let mut inexact = Vec::new();
        for metric in ["nfs3.ops", "nfs3.bytes"] {
            for step in [1, SECONDS] {
                for by in ["client", "user", "share", "file", "op", "status", "latency"] {
                    if !self.check(metric, None, by, step) {
                        inexact.push(format!("{metric}[{by}]"));
                    }
                }
                let client = self.key("client", &self.records[0]);
                let file = self.key("file", &self.records[0]);
                for (filter, by) in [
                    (("client", client.as_str()), "latency"),
                    (("client", client.as_str()), "op"),
                    (("share", "tank"), "latency"),
                    (("file", file.as_str()), "op"),
                    (("op", "read"), "file"),
                    (("op", "read"), "client"),
                    (("op", "write"), "latency"),
                ] {
                    if !self.check(metric, Some(filter), by, step) {
                        inexact.push(format!("{metric}[{}][{by}]", filter.0));
                    }
                }
            }
        }
        inexact
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(6)
    })]

    /// Around every limit: 50 stored files, 200 stored clients, 512 latency groups, 4096
    /// combinations.
    #[test]
    fn no_row_lacks_more_than_the_bound(
        seed in any::<u64>(),
        clients in 1u64..800,
        files in 1u64..3000,
        users in 1u64..40,
        statuses in 1u64..4,
    ) {
        run(seed, 20_000, Spread { clients, files, users, statuses }).check_all();
    }
}

#[test]
fn a_few_of_everything_is_exact() {
    let run = run(1, 20_000, Spread { clients: 8, files: 30, users: 3, statuses: 3 });
    assert_eq!(run.check_all(), Vec::<String>::new());
}

#[test]
fn more_files_and_clients_than_rows_is_not_exact() {
    let run = run(2, 30_000, Spread { clients: 650, files: 120, users: 1, statuses: 1 });
    let inexact = run.check_all();
    for id in ["nfs3.ops[file]", "nfs3.bytes[file]", "nfs3.ops[client]", "nfs3.bytes[client]"] {
        assert!(inexact.iter().any(|i| i == id), "{id} calls itself exact");
    }
    // More (operation, client, share) than histograms: the client's heat map lacks some.
    assert!(inexact.iter().any(|i| i == "nfs3.ops[client][latency]"), "{inexact:?}");
    // The groups that did not fit have lost their share too.
    assert!(inexact.iter().any(|i| i == "nfs3.ops[share][latency]"), "{inexact:?}");
    for id in ["nfs3.ops[op]", "nfs3.ops[share]", "nfs3.ops[latency]", "nfs3.ops[op][latency]"] {
        assert!(inexact.iter().all(|i| i != id), "{id} is exact");
    }
}

#[test]
fn an_answer_with_collection_off_marks_its_rows_as_incomplete() {
    let hub = Hub::new(HubOptions { cores: 1, recorder_bytes: 1 << 20 });
    let engine = Engine::new(hub.clone(), Arc::new(HubResolver(hub.clone())), None);
    let start = wall_ns() / NS_PER_S + 10;
    let client = hub.clients().intern(Ipv4Addr::LOCALHOST.into());
    let mut core = hub.core(0);
    for n in 0..10 {
        hub.set_collect(n < 6);
        let done_ns = start * NS_PER_S + n;
        core.finish(&OpRecord { done_ns, client, protocol: 1, op: 1, ..OpRecord::default() });
    }
    drop(core);
    let mut assembler = Assembler::new(hub.clone(), engine.names().clone());
    engine.push(assembler.frame(start, &hub.take_before(start + 1), &[]));
    let query = Query {
        from: Some(start as i64),
        to: Some(start as i64 + 1),
        source: Some(Source::Store),
        ..Query::default()
    };
    for by in ["client", "op", "latency", "share", "status", "user"] {
        let id = format!("nfs3.ops[{by}]").parse().expect("an id");
        let data = engine.data(&id, &query).expect("an answer");
        assert_eq!(data.total, [Some(10.0)], "{by}");
        assert_eq!((data.exact, data.error_bound), (false, 4.0), "{by}");
    }
}
