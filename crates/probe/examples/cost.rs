//! What measuring costs for each operation: the record on the path, and its counting in idle turns.
//!
//! `cargo run --release -p probe --example cost` prints nanoseconds of CPU time per record.

use std::net::Ipv4Addr;

use base::random::{Random, SeededRandom};
use probe::core::thread_cpu_ns;
use probe::hub::{Hub, HubOptions};
use probe::op::{OpRecord, flag};

/// Records of a run: twice around the ring of 16 MiB.
const RECORDS: u64 = 524_288;
/// Records between idle turns, as a connection's turn has.
const TURN: u64 = 64;

/// A load: numbers of clients and files, and whether the operations are mixed.
struct Load {
    name: &'static str,
    clients: u64,
    files: u64,
    mixed: bool,
}

fn record(load: &Load, random: &mut SeededRandom, n: u64) -> OpRecord {
    let op = if load.mixed { [1, 3, 4, 6, 7][random.below(5) as usize] } else { 6 };
    let data = op == 6 || op == 7;
    OpRecord {
        // 350 000 a second.
        done_ns: 1_000_000_000_000 + n * 2857,
        latency_ns: 5_000 + random.below(200_000),
        file: 1 + random.below(load.files).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        offset: random.below(1 << 30) & !4095,
        bytes: if data { 4096 } else { 0 },
        size: if data { 4096 } else { 0 },
        // A turn is one connection's.
        client: 1 + ((n / TURN) % load.clients) as u32,
        user: 1000,
        share: 1,
        protocol: 1,
        op,
        flags: flag::HAS_FILE | if data { flag::HAS_RANGE } else { 0 },
        ..OpRecord::default()
    }
}

fn main() {
    let loads = [
        Load { name: "1 client, 1 file, reads", clients: 1, files: 1, mixed: false },
        Load { name: "8 clients, 8 files, reads", clients: 8, files: 8, mixed: false },
        Load { name: "8 clients, 1 000 files, mixed", clients: 8, files: 1000, mixed: true },
        Load {
            name: "1 000 clients, 100 000 files, mixed",
            clients: 1000,
            files: 100_000,
            mixed: true,
        },
    ];
    println!("{:40} {:>8} {:>8} {:>8}", "load", "finish", "idle", "off");
    for load in &loads {
        let (finish, idle) = run(load, true);
        let (off, _) = run(load, false);
        println!("{:40} {finish:>5.1} ns {idle:>5.1} ns {off:>5.1} ns", load.name);
    }
}

fn run(load: &Load, collect: bool) -> (f64, f64) {
    let hub = Hub::new(HubOptions { cores: 1, recorder_bytes: 16 << 20 });
    for n in 0..load.clients as u32 {
        hub.clients().intern(Ipv4Addr::from(n).into());
    }
    hub.set_collect(collect);
    let mut core = hub.core(0);
    let mut random = SeededRandom::new(1);
    let records: Vec<OpRecord> = (0..RECORDS).map(|n| record(load, &mut random, n)).collect();
    // Once around, so that every page is there.
    for r in &records {
        core.finish(r);
    }
    while core.idle(1) {}
    let (start, own) = (thread_cpu_ns(), hub.gauges().own_cpu_ns.get());
    let mut idle = 0;
    for turn in records.chunks(TURN as usize) {
        for r in turn {
            core.finish(std::hint::black_box(r));
        }
        let before = hub.gauges().own_cpu_ns.get();
        core.idle(turn[0].done_ns);
        idle += hub.gauges().own_cpu_ns.get() - before;
    }
    let all = thread_cpu_ns() - start;
    assert!(own <= hub.gauges().own_cpu_ns.get());
    let each = |ns: u64| ns as f64 / RECORDS as f64;
    (each(all - idle), each(idle))
}
