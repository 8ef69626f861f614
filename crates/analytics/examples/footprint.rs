//! What a second of statistics costs on disk, all together and for each table.
//!
//! `cargo run --release -p analytics --example footprint` writes two hours of a steady synthetic
//! load (8 clients, reads, writes and attributes on 40 files, latencies spread over two powers of
//! ten) and prints bytes per second of sealed segments, and how long an answer takes.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use analytics::collect::Assembler;
use analytics::model::Frame;
use analytics::names::HubResolver;
use analytics::query::{Engine, Query};
use analytics::store::{Fidelity, Retention, Store};
use base::clock::NS_PER_S;
use base::random::{Random, SeededRandom};
use probe::hub::{Hub, HubOptions};
use probe::op::{OpRecord, flag};

/// Two hours, so that two second-segments are sealed.
const SECONDS: u64 = 2 * 3600;
/// Operations per second.
const RATE: u64 = 5_000;
/// Start of an hour.
const START: u64 = 3600 * 490_000;

fn record(random: &mut SeededRandom, second: u64, n: u64) -> OpRecord {
    let op = [1, 4, 6, 6, 6, 7, 7, 21][random.below(8) as usize];
    let data = op == 6 || op == 7;
    // Eight coin tosses make most latencies middling and some far out.
    let spread = (random.next_u64() & 0xff).count_ones();
    let client = random.below(8);
    OpRecord {
        done_ns: second * NS_PER_S + n * (NS_PER_S / RATE),
        latency_ns: (20_000 << spread) + random.below(20_000 << spread),
        file: 1 + client * 5 + random.below(5),
        offset: random.below(1 << 32) & !4095,
        bytes: if data { 4096 } else { 0 },
        size: if data { 4096 } else { 0 },
        client: 1 + client as u32,
        user: 1000 + client as u32 % 3,
        share: 1,
        protocol: 1,
        op,
        flags: flag::HAS_FILE | if data { flag::HAS_RANGE } else { 0 },
        ..OpRecord::default()
    }
}

fn frames() -> Vec<Frame> {
    let hub = Hub::new(HubOptions { cores: 1, recorder_bytes: 1 << 20 });
    for n in 0..8 {
        hub.clients().intern(std::net::Ipv4Addr::new(10, 0, 0, n).into());
    }
    hub.shares().intern("tank");
    let engine = Engine::new(hub.clone(), Arc::new(HubResolver(hub.clone())), None);
    let mut assembler = Assembler::new(hub.clone(), engine.names().clone());
    let mut core = hub.core(0);
    let mut random = SeededRandom::new(1);
    let mut frames = Vec::new();
    for second in START..START + SECONDS + 1 {
        for n in 0..RATE {
            let record = record(&mut random, second, n);
            core.finish(&record);
            core.idle(record.done_ns);
        }
        let finished = hub.take_before(second);
        frames.extend((second > START).then(|| assembler.frame(second - 1, &finished, &[])));
    }
    frames
}

fn write(dir: &Path, frames: &[Frame], table: Option<&str>) -> Store {
    // Left by a run before.
    drop(std::fs::remove_dir_all(dir));
    let store = Store::open(dir, Retention::default()).expect("a store");
    for frame in frames {
        let mut frame = frame.clone();
        frame.tables.retain(|t| {
            table.is_none_or(|wanted| {
                format!("{}[{}][{}]", t.stat, t.dimensions[0], t.dimensions[1]) == wanted
            })
        });
        store.append(&frame).expect("appended");
    }
    // The first second of the next hour seals the last one.
    let end = Frame { time: START + SECONDS, span: 1, covered: 1, ..Frame::default() };
    store.append(&end).expect("appended");
    store
}

fn sealed_bytes(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir.join("second")).expect("segments").flatten();
    let sealed = entries.filter(|e| e.path().extension().is_some_and(|e| e == "seg"));
    sealed.map(|e| e.metadata().map_or(0, |m| m.len())).sum()
}

fn main() {
    let dir = std::env::temp_dir().join(format!("plimsoll-footprint-{}", std::process::id()));
    let frames = frames();
    let mut tables: Vec<String> = Vec::new();
    for t in frames.iter().flat_map(|f| &f.tables) {
        let id = format!("{}[{}][{}]", t.stat, t.dimensions[0], t.dimensions[1]);
        if !tables.contains(&id) {
            tables.push(id);
        }
    }
    for table in &tables {
        drop(write(&dir, &frames, Some(table)));
        println!("{table:40} {:7.1} B/s", sealed_bytes(&dir) as f64 / SECONDS as f64);
    }
    let store = write(&dir, &frames, None);
    println!("{:40} {:7.1} B/s", "everything", sealed_bytes(&dir) as f64 / SECONDS as f64);
    drop(store);
    let start = Instant::now();
    let store = Store::open(&dir, Retention::default()).expect("a store");
    println!("open {:?}, oldest {:?}", start.elapsed(), store.oldest(Fidelity::Second));
    let hub = Hub::new(HubOptions { cores: 1, recorder_bytes: 1 << 20 });
    let engine = Engine::new(hub.clone(), Arc::new(HubResolver(hub)), Some(store));
    for (id, step) in [("nfs3.ops[op=read][latency]", 1), ("nfs3.ops[client]", 60)] {
        let (from, to) = (Some(START as i64), Some((START + SECONDS) as i64));
        let start = Instant::now();
        let query = Query { from, to, step, ..Query::default() };
        let data = engine.data(&id.parse().expect("an id"), &query).expect("an answer");
        println!(
            "{id} two hours, step {step}: {} points in {:?}",
            data.times.len(),
            start.elapsed()
        );
    }
    drop(std::fs::remove_dir_all(&dir));
}
