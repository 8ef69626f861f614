//! How long a year of history takes to open and to query.
//!
//! `TMPDIR=/dev/shm cargo run --release -p analytics --example history [HOURS]` writes a
//! synthetic year: hours for a year, minutes for a quarter, seconds for HOURS (default 6), each
//! frame with all tables of a busy server (32 clients, 50 files, five operations), in turn from a
//! few that are made beforehand. In memory, because each minute is brought to the disk. It prints
//! how long opening takes, the slowest append (the collector's thread), and how long some
//! questions take; the page cache is warm.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use analytics::model::{Frame, Key, Name, PAIRS, Rows, Table};
use analytics::names::HubResolver;
use analytics::query::{Engine, Query};
use analytics::store::{Fidelity, Retention, Store};
use base::random::{Random, SeededRandom};
use probe::hub::{Hub, HubOptions};

/// Start of the year: midnight, at the start of a segment of hours.
const START: u64 = 32 * 86_400 * 620;
const DAY: u64 = 86_400;
const YEAR: u64 = 365 * DAY;

fn keys(dimension: &str) -> Vec<Key> {
    let named = |count: u64, name: &dyn Fn(u64) -> String| {
        (0..count).map(|n| Key::Name(Name::plain(&name(n)))).collect()
    };
    match dimension {
        "op" => ["getattr", "lookup", "read", "write", "commit"]
            .map(|op| Key::Name(Name::plain(op)))
            .to_vec(),
        "client" => named(32, &|n| format!("10.0.0.{n}")),
        "user" => named(10, &|n| (1000 + n).to_string()),
        "file" => named(50, &|n| format!("/export/tank/project/data/file-{n:04}")),
        "latency" => (40..70).map(Key::Bucket).collect(),
        "size" | "offset" => (40..60).map(Key::Bucket).collect(),
        "share" => named(2, &|n| format!("share{n}")),
        _ => named(2, &|n| format!("NFS3_{n}")),
    }
}

/// Frames with all tables; the names are the same ones in all of them.
struct Maker {
    dimensions: Vec<(&'static str, Vec<Key>)>,
    random: SeededRandom,
}

impl Maker {
    fn frame(&mut self, time: u64, fidelity: Fidelity) -> Frame {
        let span = fidelity.span();
        let keys = |d: &str| self.dimensions.iter().find(|(n, _)| *n == d).map(|(_, keys)| keys);
        let mut tables = Vec::new();
        for pair in PAIRS {
            let mut rows = Rows::default();
            let (Some(first), Some(second)) = (keys(pair[0]), keys(pair[1])) else { continue };
            for a in first {
                for b in second {
                    rows.add(a.clone(), b.clone(), [self.random.below(200) * span, 4096 * span]);
                }
            }
            tables.push(Table::from_rows("nfs3.ops".into(), pair.map(Arc::from), rows, [0; 2]));
        }
        Frame { time, span: span as u32, covered: span as u32, dropped: 0, tables }
    }
}

/// Frames made beforehand.
const MADE: usize = 20;

fn write(dir: &Path, seconds: u64) -> Duration {
    let store = Store::open(dir, Retention::default()).expect("a store");
    let dimensions =
        ["op", "client", "user", "file", "latency", "size", "offset", "share", "status"];
    let mut maker = Maker {
        dimensions: dimensions.map(|d| (d, keys(d))).to_vec(),
        random: SeededRandom::new(1),
    };
    let end = START + YEAR;
    for (fidelity, from) in [(Fidelity::Hour, START), (Fidelity::Minute, end - 92 * DAY)] {
        let mut frames: Vec<Frame> = (0..MADE).map(|_| maker.frame(from, fidelity)).collect();
        for (n, time) in (from..end).step_by(fidelity.span() as usize).enumerate() {
            frames[n % MADE].time = time;
            store.import(fidelity, &frames[n % MADE]).expect("appended");
        }
        println!("written by the {}", fidelity.name());
    }
    let mut slowest = Duration::ZERO;
    let mut frames: Vec<Frame> = (0..MADE).map(|_| maker.frame(end, Fidelity::Second)).collect();
    for (n, time) in (end - seconds..end).enumerate() {
        frames[n % MADE].time = time;
        let start = Instant::now();
        store.import(Fidelity::Second, &frames[n % MADE]).expect("appended");
        slowest = slowest.max(start.elapsed());
    }
    store.settle();
    println!("{:.1} MB on disk", store.bytes() as f64 / 1e6);
    slowest
}

fn main() {
    let hours: u64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(6);
    let dir = std::env::temp_dir().join(format!("plimsoll-history-{}", std::process::id()));
    let slowest = write(&dir, hours * 3600);
    println!("slowest append of a second: {slowest:?}");
    let start = Instant::now();
    let store = Store::open(&dir, Retention::default()).expect("a store");
    println!("open: {:?}", start.elapsed());
    let hub = Hub::new(HubOptions { cores: 1, recorder_bytes: 1 << 20 });
    let engine = Engine::new(hub.clone(), Arc::new(HubResolver(hub)), Some(store));
    let end = START + YEAR;
    let asks = [
        ("nfs3.ops[client]", 30 * DAY, 3600),
        ("nfs3.ops[op=read][latency]", 30 * DAY, 3600),
        ("nfs3.ops", 365 * DAY, 3600),
        ("nfs3.ops[file]", 365 * DAY, 86_400),
        ("nfs3.ops[client]", DAY, 60),
        ("nfs3.ops", 3600, 1),
        ("nfs3.ops[client]", 3600, 1),
        ("nfs3.ops[op=read][latency]", 7200, 1),
    ];
    for (id, length, step) in asks {
        let (from, to) = (Some((end - length) as i64), Some(end as i64));
        let query = Query { from, to, step, ..Query::default() };
        let start = Instant::now();
        let data = engine.data(&id.parse().expect("an id"), &query).expect("an answer");
        let took = start.elapsed();
        assert!(data.total.iter().all(Option::is_some), "{id}: data for all of it");
        let hours = length / 3600;
        println!("{id:28} {hours:5} h, step {step:5}: {:5} points {took:?}", data.times.len());
    }
    drop(std::fs::remove_dir_all(&dir));
}
