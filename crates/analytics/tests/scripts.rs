//! Runs `tests/scripts/*.test`: records in, questions, expected answers, as text.
//!
//! `load CLIENT USER SHARE OP FILE COUNT BYTES LATENCY [at SECOND] [status N] [offset N] [replay]`
//! puts COUNT equal records into second SECOND (0 if omitted) of the test; OP is one of NFSv3, or
//! `nfs4:OP`; FILE is a number, `-` is none. `ask ID [FROM..TO] [step N] [top N]` is a query, and
//! the lines up to the next empty line are the answer: `total V…`, then each row as `KEY V…`,
//! `other V…`, and what is not usual: `source recorder`, `inexact`, `note`. `_` is "no data".
//! `fail ID` expects the error on the next line.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;

use analytics::collect::Assembler;
use analytics::names::Resolver;
use analytics::query::{Data, Engine, Query, Source};
use base::clock::{NS_PER_S, wall_ns};
use probe::hub::{Hub, HubOptions};
use probe::labels;
use probe::op::{OpRecord, Protocol, flag};
use probe::stat::StatId;

/// Names as an appliance would give them.
struct Names;

impl Resolver for Names {
    fn user(&self, uid: u32) -> Option<String> {
        (uid == 1000).then(|| "ada".to_owned())
    }
    fn share(&self, _: u16) -> Option<String> {
        None
    }
    fn path_of(&self, file: u64) -> Option<String> {
        (file < 100).then(|| format!("/export/tank/file[{file}]"))
    }
}

struct Script {
    engine: Arc<Engine>,
    start: u64,
    records: Vec<OpRecord>,
    collected: bool,
}

impl Script {
    fn new() -> Self {
        let hub = Hub::new(HubOptions { cores: 1, recorder_bytes: 4 << 20 });
        let engine = Engine::new(hub, Arc::new(Names), None);
        // Beyond the recorder's horizon, which is the hub's start.
        let start = wall_ns() / NS_PER_S + 10;
        Self { engine, start, records: Vec::new(), collected: false }
    }

    fn load(&mut self, line: &str) {
        let mut words = line.split_ascii_whitespace();
        let mut word = || words.next().expect("eight words after `load`");
        let hub = self.engine.hub();
        let address: IpAddr = word().parse().expect("an address");
        let client = hub.clients().intern(address);
        let user = word().parse().unwrap_or(u32::MAX);
        let share = hub.shares().intern(word());
        let op = word();
        let (protocol, op) = match op.strip_prefix("nfs4:") {
            Some(op) => (Protocol::Nfs4, op),
            None => (Protocol::Nfs3, op),
        };
        let op = labels::op_number(protocol, op).expect("an operation");
        let file = word().parse::<u64>();
        let count: u64 = word().parse().expect("a count");
        let size: u32 = word().parse().expect("bytes");
        let latency_ns = word().parse().expect("a latency in ns");
        let mut flags = if size > 0 { flag::HAS_RANGE } else { 0 };
        flags |= if file.is_ok() { flag::HAS_FILE } else { 0 };
        let (mut second, mut status, mut offset) = (0, 0, 0);
        while let Some(word) = words.next() {
            let mut number = || words.next().and_then(|w| w.parse().ok()).expect("a number");
            match word {
                "at" => second = number(),
                "status" => status = number() as u16,
                "offset" => offset = number(),
                "replay" => flags |= flag::REPLAY,
                other => panic!("`{other}` after load"),
            }
        }
        let done_ns = (self.start + second) * NS_PER_S + 1;
        let file = file.unwrap_or(0);
        let (bytes, protocol) = (size, protocol as u8);
        let record = OpRecord {
            done_ns,
            latency_ns,
            file,
            offset,
            bytes,
            size,
            client,
            user,
            share,
            status,
            protocol,
            op,
            flags,
            ..OpRecord::default()
        };
        self.records.extend((0..count).map(|_| record));
    }

    /// Puts what was loaded through a core, the assembler and the engine.
    fn collect(&mut self) {
        if std::mem::replace(&mut self.collected, true) {
            return;
        }
        self.records.sort_by_key(|r| r.done_ns);
        let hub = self.engine.hub().clone();
        let mut core = hub.core(0);
        for record in &self.records {
            core.finish(record);
            core.idle(record.done_ns);
        }
        drop(core);
        let mut assembler = Assembler::new(hub.clone(), self.engine.names().clone());
        let last = self.records.last().map_or(self.start, |r| r.done_ns / NS_PER_S);
        for second in self.start..=last {
            self.engine.push(assembler.frame(second, &hub.take_before(second + 1), &[]));
        }
    }

    fn ask(&mut self, line: &str) -> String {
        self.collect();
        let mut words = line.split_ascii_whitespace();
        let stat: StatId = words.next().expect("an id").parse().expect("an id");
        let mut query = Query { top: 10, ..Query::default() };
        let second = |n: &str| (self.start + n.parse::<u64>().expect("a second")) as i64;
        (query.from, query.to) = (Some(second("0")), Some(second("1")));
        while let Some(word) = words.next() {
            match (word, word.split_once("..")) {
                (_, Some((from, to))) => {
                    (query.from, query.to) = (Some(second(from)), Some(second(to)));
                }
                ("step", _) => query.step = number(words.next()),
                ("top", _) => query.top = number(words.next()) as usize,
                _ => panic!("`{word}` after ask"),
            }
        }
        text(&self.engine.data(&stat, &query).expect("an answer"))
    }
}

fn number(word: Option<&str>) -> u64 {
    word.and_then(|w| w.parse().ok()).expect("a number")
}

fn text(data: &Data) -> String {
    let mut out = String::new();
    let mut line = |name: &str, values: &[Option<f64>]| {
        let values = values.iter().map(|v| v.map_or_else(|| "_".to_owned(), |v| v.to_string()));
        let values: Vec<String> = values.collect();
        writeln!(out, "{name} {}", values.join(" ")).expect("a string");
    };
    line("total", &data.total);
    for row in data.rows.iter().flatten() {
        let name = if row.label == row.key {
            row.key.clone()
        } else {
            format!("{}={}", row.key, row.label)
        };
        line(&name, &row.values);
    }
    for bucket in data.buckets.iter().flatten() {
        line(&format!("{}-{}", bucket.low, bucket.high), &bucket.values);
    }
    if let Some(other) = &data.other {
        line("other", &other.values);
    }
    if data.source == Source::Recorder {
        out += "source recorder\n";
    }
    if !data.exact {
        out += "inexact\n";
    }
    if let Some(note) = &data.note {
        writeln!(out, "note {note}").expect("a string");
    }
    out
}

fn run(name: &str, script: &str) {
    let mut state = Script::new();
    let mut lines = script.lines().enumerate().filter(|(_, l)| !l.starts_with('#'));
    while let Some((n, line)) = lines.next() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let place = format!("{name}:{}: {line}", n + 1);
        match word {
            "" => {}
            "load" => state.load(rest),
            "ask" => {
                let wanted: String = lines
                    .by_ref()
                    .map(|(_, l)| l)
                    .take_while(|l| !l.is_empty())
                    .fold(String::new(), |all, l| all + l + "\n");
                assert_eq!(state.ask(rest), wanted, "{place}");
            }
            "title" => {
                let stat: StatId = rest.parse().expect("an id");
                state.collect();
                let data = state.engine.data(&stat, &Query::default()).expect("an answer");
                assert_eq!(Some(data.title.as_str()), lines.next().map(|(_, l)| l), "{place}");
            }
            "fail" => {
                let result = rest.parse::<StatId>().map_err(|e| e.to_string()).and_then(|stat| {
                    let answer = state.engine.data(&stat, &Query::default());
                    answer.map(|_| ()).map_err(|e| e.to_string())
                });
                let wanted = lines.next().map_or("", |(_, l)| l).to_owned();
                assert_eq!(result, Err(wanted), "{place}");
            }
            _ => panic!("{place}: what is `{word}`?"),
        }
    }
}

#[test]
fn scripts() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the scripts") {
        let path = entry.expect("a script").path();
        if path.extension().is_some_and(|e| e == "test") {
            run(&path.display().to_string(), &std::fs::read_to_string(&path).expect("text"));
            count += 1;
        }
    }
    assert!(count >= 3, "{count} scripts");
}
