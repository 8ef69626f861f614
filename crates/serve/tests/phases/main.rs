//! Five milliseconds that are planted in one phase of an operation show in that phase and in no
//! other, over each kind of connection: the clock of the server stands still but for them.

#![allow(clippy::unwrap_used, clippy::expect_used)]
// The contract's own failures, passed on.
#![allow(clippy::result_large_err)]
#![allow(clippy::duplicate_mod, reason = "clients of NFSv3 and of NFSv4 have streams of their own")]

#[path = "../nfs3/client.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod client;
mod ftp;
#[path = "../ftp/client.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod ftp_client;
mod http;
mod nfs3;
mod nfs4;
#[path = "../files/planted.rs"]
mod planted;
mod rdma;
#[path = "../smb/running.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod running;
#[path = "../files/scene.rs"]
mod scene;
#[path = "../nfs3/scripted.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod scripted;
#[path = "../nfs3/server.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod server;
#[path = "../callbacks/scene.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod sessions;
mod sftp;
mod smb;
#[path = "../http/stand.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod stand;

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use base::clock::{advance_stamps, stop_stamps, wall_ns};
use probe::hub::Hub;
use probe::labels;
use probe::op::{OpRecord, Protocol, flag};
use probe::phases::{PARTS, Phase};
use serve::exec::Engine;
use serve::pool::Pool;
use serve::transport::Runtimes;

use crate::planted::Planted;

/// What is planted.
const DELAY: Duration = Duration::from_millis(5);
/// How long something may take.
const PATIENCE: Duration = Duration::from_secs(80);

/// Stops the clock of this process; false, with a printed line, if it is read already.
fn stop_clock(test: &str) -> bool {
    let stopped = stop_stamps(wall_ns());
    if !stopped {
        println!("SKIP phases/{test}: another test of this process reads the clock");
    }
    stopped
}

/// Waits until no core is in the middle of something that was begun before.
fn settle(runtimes: &Runtimes) {
    for core in 0..runtimes.cores() {
        let (done, is_done) = channel();
        assert!(runtimes.spawn_on(core, move || async move { done.send(()).unwrap() }));
        is_done.recv_timeout(PATIENCE).expect("the core goes on");
    }
}

/// A server with a clock that stands still.
struct Bench {
    fs: Arc<Planted>,
    runtimes: Arc<Runtimes>,
    pool: Arc<Pool>,
    hub: Arc<Hub>,
}

impl Bench {
    /// Time passes while no core does anything.
    fn pass(runtimes: &Runtimes) {
        settle(runtimes);
        advance_stamps(DELAY);
    }

    /// The next call of this name on a thread of a core takes that time.
    fn delay_inline(&self, call: &'static str) {
        self.fs.blocks.store(false, std::sync::atomic::Ordering::SeqCst);
        self.fs.before(call, || advance_stamps(DELAY));
    }

    /// The next call of this name on another thread takes that time.
    fn delay_elsewhere(&self, call: &'static str) {
        let runtimes = Arc::clone(&self.runtimes);
        self.fs.before(call, move || Self::pass(&runtimes));
    }

    /// Sends two batches of requests. The first makes this call, and holds its core until the
    /// second has come, so that all of that have arrived when the first of them begins; the next
    /// call of the other name on a core then takes that time.
    fn delay_together(
        &self,
        (holds, delayed): (&'static str, &'static str),
        batches: [&[u8]; 2],
        mut send: impl FnMut(&[u8]),
    ) {
        let ((begun, has_begun), (open, gate)) = (channel(), channel::<()>());
        self.fs.before(holds, move || {
            begun.send(()).unwrap();
            // It ends with the sender.
            let _ = gate.recv();
        });
        send(batches[0]);
        has_begun.recv_timeout(PATIENCE).expect("it begins");
        send(batches[1]);
        self.fs.before(delayed, || advance_stamps(DELAY));
        drop(open);
    }

    /// Calls that must not wait go to the pool.
    fn block(&self, blocks: bool) {
        self.fs.blocks.store(blocks, std::sync::atomic::Ordering::SeqCst);
    }

    /// Runs a request for which no thread of the pool is free for that time.
    fn delay_pool<T: Send>(&self, request: impl FnOnce() -> T + Send) -> T {
        let (started, is_started) = channel();
        // One for each thread, each of a client of its own.
        let gates: Vec<_> = (0..self.pool.limits().threads as u64)
            .map(|n| {
                let (open, gate) = channel::<()>();
                let started = started.clone();
                let slot = self.pool.reserve(1_000_000 + n).expect("a place");
                slot.run(Box::new(move || {
                    started.send(()).unwrap();
                    // It ends with the sender.
                    let _ = gate.recv();
                }));
                open
            })
            .collect();
        for _ in &gates {
            is_started.recv_timeout(PATIENCE).expect("a thread");
        }
        std::thread::scope(|scope| {
            let request = scope.spawn(request);
            let until = std::time::Instant::now() + PATIENCE;
            while self.pool.queued() == 0 {
                assert!(std::time::Instant::now() < until, "the request does not come to the pool");
                std::thread::yield_now();
            }
            Self::pass(&self.runtimes);
            drop(gates);
            request.join().expect("answered")
        })
    }

    /// The newest record of an operation of this name, once all cores have written theirs down.
    fn record(&self, op: &str) -> Option<OpRecord> {
        settle(&self.runtimes);
        self.records(op).pop()
    }

    /// That the newest operation of this name took that time, and all of it in this phase.
    #[track_caller]
    fn assert_in(&self, phase: Phase, op: &str) {
        let record = self.record(op).expect("a record");
        assert_eq!(record.latency_ns, DELAY.as_nanos() as u64, "{op}: {phase:?}");
        assert_eq!(record.phases.part(phase), PARTS, "{phase:?}: {:?}", record.phases.parts());
        assert_eq!(record.phases.ns(record.latency_ns).iter().sum::<u64>(), record.latency_ns);
    }

    /// The same of one that waits for its client to take the reply: the server looks from time to
    /// time whether it has arrived. It is the first of `new` operations since there were `before`.
    fn assert_sent(&self, op: &str, (before, new): (usize, usize)) {
        let until = std::time::Instant::now() + PATIENCE;
        while self.count(op) < before + new {
            assert!(std::time::Instant::now() < until, "{op} does not end");
            advance_stamps(Duration::from_millis(1));
            std::thread::sleep(Duration::from_millis(1));
        }
        settle(&self.runtimes);
        let record = self.records(op)[before];
        assert!(record.latency_ns >= DELAY.as_nanos() as u64);
        assert_eq!(record.phases.part(Phase::Send), PARTS, "{:?}", record.phases.parts());
    }

    /// How many operations of this name were recorded.
    fn count(&self, op: &str) -> usize {
        self.records(op).len()
    }

    /// The operations of this name that were recorded, in the order of their ends: cores have
    /// records of their own.
    fn records(&self, op: &str) -> Vec<OpRecord> {
        let mut records = Vec::new();
        self.hub.scan(0, u64::MAX, |r| {
            let protocol = Protocol::from_u8(r.protocol).expect("a protocol");
            let is_it = r.flags & flag::PIECE == 0 && labels::op_name(protocol, r.op) == op;
            records.extend(is_it.then_some(*r));
        });
        records.sort_by_key(|r| r.done_ns);
        records
    }

    fn of(fs: &Arc<Planted>, engine: &Engine, runtimes: &Arc<Runtimes>) -> Self {
        let (pool, hub) = (Arc::clone(&engine.pool), Arc::clone(&engine.hub));
        Self { fs: Arc::clone(fs), runtimes: Arc::clone(runtimes), pool, hub }
    }
}
