//! A well-behaved client that works all the time, checks what it gets, and times it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use e2e::api::wait_for;
use e2e::nfs3::Client;
use e2e::server::Server;
use e2e::took_at_most;
use wire::nfs3::{CreateHow, StableHow};

use super::mode;

/// Its file: the number of blocks, and the bytes of a block.
const BLOCKS: u64 = 64;
const BLOCK: usize = 4096;
/// Operations after which a median and a 99th percentile mean something.
const ENOUGH: usize = 1_000;
/// How long [`ENOUGH`] may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// While others misbehave the 99th percentile may be this many times what it was before: the
/// misbehaviour is work as well, on the same two cores.
const FACTOR: u32 = 10;
/// Below this it is the scheduling of a busy machine, not the server.
const FLOOR: Duration = Duration::from_millis(20);
/// No single operation may take longer.
const LONGEST: Duration = Duration::from_secs(3);

/// The client at work. Dropping it without [`Watch::end`] leaves it to the end of the process.
pub struct Watch {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
    before: Duration,
    from: usize,
    thread: JoinHandle<Vec<Duration>>,
}

impl Watch {
    /// Starts it and lets it measure its latency while nothing disturbs it.
    pub fn start(server: &Server) -> Self {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (address, export) = (server.nfs(), server.export());
        let (its_stop, its_done) = (stop.clone(), done.clone());
        let thread = std::thread::spawn(move || work(address, &export, &its_stop, &its_done));
        let mut watch = Self { stop, done, before: Duration::ZERO, from: 0, thread };
        watch.wait_for_more();
        watch.from = watch.done.load(SeqCst);
        watch
    }

    /// Waits until it has done some hundreds of operations more.
    pub fn wait_for_more(&self) {
        let wanted = self.done.load(SeqCst) + ENOUGH;
        wait_for("the well-behaved client's operations", PATIENCE, || {
            assert!(!self.thread.is_finished(), "the well-behaved client has failed");
            (self.done.load(SeqCst) >= wanted).then_some(())
        });
    }

    /// Ends it. It must not have noticed anything.
    pub fn end(mut self, what: &str) {
        self.wait_for_more();
        self.stop.store(true, SeqCst);
        let mut all = self.thread.join().expect("the well-behaved client");
        let mut during = all.split_off(self.from.min(all.len()));
        self.before = percentile_99(&mut all);
        let p99 = percentile_99(&mut during);
        let longest = during.last().copied().unwrap_or_default();
        let allowed = (self.before * FACTOR).max(FLOOR);
        println!(
            "{what}: {} operations, 99 % within {p99:?} (before: {:?}), longest {longest:?}",
            during.len(),
            self.before
        );
        took_at_most(&format!("{what}: 99 % of the operations"), p99, allowed);
        took_at_most(&format!("{what}: the longest operation"), longest, LONGEST);
    }
}

/// Sorts; the longest is the last then.
fn percentile_99(latencies: &mut [Duration]) -> Duration {
    latencies.sort_unstable();
    latencies.get(latencies.len() * 99 / 100).copied().unwrap_or_default()
}

fn content(block: u64, generation: u8) -> Vec<u8> {
    (0..BLOCK).map(|n| (n as u64 * 7 + block) as u8 ^ generation).collect()
}

fn work(at: SocketAddr, export: &str, stop: &AtomicBool, done: &AtomicUsize) -> Vec<Duration> {
    let mut client = Client::connect(at, 0, 0).expect("a connection");
    let root = client.mnt(export).expect("a mount");
    let how = CreateHow::Unchecked(mode(0o644));
    let file = client.create(&root, "well-behaved", how).expect("a file").handle;
    let mut latencies = Vec::new();
    let mut generations = [0_u8; BLOCKS as usize];
    for block in 0..BLOCKS {
        let data = content(block, 0);
        client.write(&file, block * BLOCK as u64, &data, StableHow::UNSTABLE).expect("a write");
    }
    for round in 0_u64.. {
        if stop.load(SeqCst) {
            return latencies;
        }
        let block = round * 13 % BLOCKS;
        let (offset, generation) = (block * BLOCK as u64, &mut generations[block as usize]);
        let began = Instant::now();
        if round % 32 == 31 {
            *generation = generation.wrapping_add(1);
            let data = content(block, *generation);
            let done = client.write(&file, offset, &data, StableHow::UNSTABLE).expect("a write");
            assert_eq!(done.0 as usize, BLOCK);
        } else if round % 4 == 3 {
            let found = client.lookup(&root, "well-behaved").expect("a lookup");
            assert!(found.handle == file, "another handle");
        } else {
            let (data, _) = client.read(&file, offset, BLOCK as u32).expect("a read");
            assert!(data == content(block, *generation), "block {block} has another content");
        }
        latencies.push(began.elapsed());
        done.fetch_add(1, SeqCst);
    }
    latencies
}
