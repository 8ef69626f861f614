//! Five milliseconds that are planted in one phase of a command show in that phase and in no other:
//! the clock of the target stands still but for them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use base::clock::{advance_stamps, stop_stamps, wall_ns};
use probe::labels;
use probe::op::{OpRecord, Protocol};
use probe::phases::{PARTS, Phase};
use wire::scsi::cdb::CacheRange;
use wire::scsi::{Cdb, Status};

use super::client::{Client, Got, How, io, read};
use super::planted::Planted;
use super::{BLOCK, Bench};
use crate::targets::SignIn;

const DELAY: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(80);

impl Bench {
    /// Waits until no core is in the middle of something that was begun before.
    fn wait_for_cores(&self) {
        let runtimes = self.runtimes.as_ref().expect("it runs");
        for core in 0..runtimes.cores() {
            let (done, is_done) = channel();
            let spawned =
                runtimes.spawn_on(core, move || async move { done.send(()).expect("it waits") });
            assert!(spawned);
            is_done.recv_timeout(PATIENCE).expect("the core goes on");
        }
    }

    /// The records of commands of this name.
    fn records(&self, op: &str) -> Vec<OpRecord> {
        self.wait_for_cores();
        let mut found = Vec::new();
        self.iscsi.engine.hub.scan(0, u64::MAX, |r| {
            if labels::op_name(Protocol::Iscsi, r.op) == op {
                found.push(*r);
            }
        });
        found
    }

    /// That the newest command of this name took that time, and all of it in this phase.
    fn assert_in(&self, phase: Phase, op: &str) {
        let record = *self.records(op).last().expect("a record");
        assert_eq!(record.latency_ns, DELAY.as_nanos() as u64, "{op}: {phase:?}");
        assert_eq!(record.phases.part(phase), PARTS, "{op}: {:?}", record.phases.parts());
    }
}

/// Has the medium of a bench take that time in its next call of this name, on a thread of its own:
/// while no core does anything.
fn delay_elsewhere(bench: &Arc<Bench>, medium: &Planted, call: &'static str) {
    let bench = Arc::clone(bench);
    medium.before(call, move || {
        bench.wait_for_cores();
        advance_stamps(DELAY);
    });
}

#[test]
fn iscsi_has_a_delay_where_it_was_planted() {
    if !stop_stamps(wall_ns()) {
        return println!("SKIP iscsi/phases: another test of this process reads the clock");
    }
    let medium = Planted::new(32 << 20);
    let bench = Arc::new(Bench::over(vec![Arc::clone(&medium) as _], SignIn::default()));
    let mut client = Client::new(&bench, &How::default());
    client.settle(0);
    client.write(0, 0, &[7; BLOCK]);

    medium.before("read", || advance_stamps(DELAY));
    client.read(0, 0, 1);
    bench.assert_in(Phase::Inline, "read(16)");

    // What comes with it is answered behind it: both are in one send.
    medium.before("read", || advance_stamps(DELAY));
    client.hold(true);
    client.start(0, read(0, 1), false, BLOCK as u32, &[]);
    client.start(0, Cdb::TestUnitReady, false, 0, &[]);
    client.hold(false);
    for _ in 0..2 {
        assert!(
            matches!(client.next(), Some(Got::Answer(_, answer)) if answer.status == Status::GOOD)
        );
    }
    bench.assert_in(Phase::Inline, "read(16)");
    bench.assert_in(Phase::Queue, "test unit ready");

    medium.blocks.store(true, Ordering::Relaxed);
    delay_elsewhere(&bench, &medium, "read");
    client.read(0, 0, 1);
    bench.assert_in(Phase::Pool, "read(16)");

    delay_elsewhere(&bench, &medium, "sync");
    let range = CacheRange { blocks: io(0, 0).blocks, immediate: false };
    client.write(0, 0, &[8; BLOCK]);
    client.run(0, Cdb::SynchronizeCache(range), false, 0, &[]);
    bench.assert_in(Phase::Flush, "synchronize cache(16)");

    wait_for_the_pool(&bench, &medium, &mut client);
    slow_to_take(&bench, &medium, &mut client);
}

/// A command for which no thread of its unit is free.
fn wait_for_the_pool(bench: &Arc<Bench>, medium: &Arc<Planted>, client: &mut Client) {
    let unit = bench.unit(0);
    let engine = unit.threads.engine(&bench.iscsi.engine).expect("threads");
    let gates: Vec<_> = (0..engine.pool.limits().threads as u64)
        .map(|n| {
            let ((open, gate), (started, is_started)) = (channel::<()>(), channel());
            let slot = engine.pool.reserve(1_000_000 + n).expect("a place");
            slot.run(Box::new(move || {
                started.send(()).expect("it waits");
                // It ends with the sender.
                let _ = gate.recv();
            }));
            is_started.recv_timeout(PATIENCE).expect("a thread");
            open
        })
        .collect();
    assert!(medium.blocks.load(Ordering::Relaxed));
    let itt = client.start(0, read(0, 1), false, BLOCK as u32, &[]);
    let until = Instant::now() + PATIENCE;
    while engine.pool.queued() == 0 {
        assert!(Instant::now() < until, "the command does not come to the pool");
        std::thread::yield_now();
    }
    bench.wait_for_cores();
    advance_stamps(DELAY);
    drop(gates);
    client.finish(itt, &[]);
    bench.assert_in(Phase::PoolWait, "read(16)");
}

/// A command with data that its initiator does not take.
fn slow_to_take(bench: &Bench, medium: &Planted, client: &mut Client) {
    medium.blocks.store(false, Ordering::Relaxed);
    let (count, blocks) = (bench.records("read(16)").len(), (8 << 20) / BLOCK as u32);
    let itt = client.start(0, read(0, blocks), false, blocks * BLOCK as u32, &[]);
    client.await_something();
    bench.wait_for_cores();
    advance_stamps(DELAY);
    client.finish(itt, &[]);
    let until = Instant::now() + PATIENCE;
    while bench.records("read(16)").len() == count {
        assert!(Instant::now() < until, "the command does not end");
        advance_stamps(Duration::from_millis(1));
        std::thread::sleep(Duration::from_millis(1));
    }
    let record = *bench.records("read(16)").last().expect("a record");
    assert!(record.latency_ns >= DELAY.as_nanos() as u64);
    assert_eq!(record.phases.part(Phase::Send), PARTS, "{:?}", record.phases.parts());
}
