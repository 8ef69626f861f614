//! Tests of task management, with a disk that answers nothing, and of COMPARE AND WRITE by many.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use vfs::lun::Medium;
use vfs::lun::mapping::Initiators;
use wire::iscsi::tmf::{Function, TmfOutcome};
use wire::scsi::{Asc, Cdb, Status};

use super::client::{Client, Got, How, io, read, write};
use super::{BLOCK, Bench};
use crate::scsi::tests::select_cache;
use crate::targets::{SignIn, Target};
use crate::unit::UnitSettings;

fn ready(bench: &Bench, isid: u8) -> Client {
    let mut client = Client::new(bench, &How { isid, ..How::default() });
    for lun in 0..bench.media.len() as u16 {
        client.settle(lun);
    }
    client
}

#[test]
fn a_command_that_waits_for_data_is_aborted() {
    let bench = Bench::new(1, SignIn::default());
    let mut client = ready(&bench, 1);
    let size = 256 << 10;
    let itt = client.start(0, write(0, (size / BLOCK) as u32), true, size as u32, &[]);
    assert!(matches!(client.next(), Some(Got::R2t(_))));
    assert_eq!(client.managed(0, Function::ABORT_TASK, 4711), TmfOutcome::NO_TASK);
    assert_eq!(client.managed(0, Function::ABORT_TASK, itt), TmfOutcome::COMPLETE);
    assert_eq!(client.managed(0, Function::ABORT_TASK, itt), TmfOutcome::NO_TASK, "it is gone");
    assert_eq!(client.managed(9, Function::LOGICAL_UNIT_RESET, 0), TmfOutcome::NO_LUN);
    assert_eq!(client.managed(0, Function::TASK_REASSIGN, 0), TmfOutcome::REASSIGN_NOT_SUPPORTED);
    assert_eq!(client.managed(0, Function::QUERY_TASK, 0), TmfOutcome::NOT_SUPPORTED);
    // Its place in the window was given back.
    for n in 0..200 {
        assert_eq!(client.read(0, n, 1).status, Status::GOOD);
    }
}

#[test]
fn a_disk_that_does_not_answer_delays_no_other_unit() {
    let bench = Bench::new(2, SignIn::default());
    let (mut client, mut other) = (ready(&bench, 1), ready(&bench, 2));
    bench.media[0].stick(true);
    let stuck: Vec<u32> =
        (0..12).map(|n| client.start(0, read(n, 1), false, BLOCK as u32, &[])).collect();
    // Another unit, by the same session and by another one: nothing waits, although the disk
    // does not answer until the end.
    for n in 0..50 {
        other.write(1, n, &[n as u8; BLOCK]);
        assert_eq!(client.read(1, n, 1).data, [n as u8; BLOCK]);
    }
    while bench.media[0].waiting() == 0 {
        std::thread::yield_now();
    }
    // The last of them has not begun, and the first is with the disk.
    let last = *stuck.last().expect("one");
    assert_eq!(client.managed(0, Function::ABORT_TASK, last), TmfOutcome::COMPLETE);
    // Both are answered while the disk still is stuck.
    assert_eq!(client.managed(0, Function::ABORT_TASK, stuck[0]), TmfOutcome::REJECTED);
    assert_eq!(other.managed(0, Function::LOGICAL_UNIT_RESET, 0), TmfOutcome::REJECTED);
    bench.media[0].stick(false);
    // Each command at the disk was aborted, by the other session or by its own; none is left.
    let mut answered = 0;
    while bench.unit(0).ranges.count() > 0 || answered + 2 < stuck.len() {
        let Some(Got::Answer(_, answer)) = client.next() else { panic!("an answer") };
        assert_eq!(answer.status, Status::TASK_ABORTED);
        answered += 1;
    }
    let answer = client.read(0, 0, 1);
    assert_eq!(answer.sense.map(|sense| sense.asc), Some(Asc::DEVICE_RESET));
    assert_eq!(client.read(0, 0, 1).status, Status::GOOD);
}

#[test]
fn a_service_ends_with_a_stuck_disk() {
    let bench = Bench::new(1, SignIn::default());
    let mut client = ready(&bench, 1);
    bench.media[0].stick(true);
    for n in 0..12 {
        client.start(0, read(n, 1), false, BLOCK as u32, &[]);
    }
    // All of them have come.
    assert!(client.ping(b"").is_some());
    // The disk answers nothing until this has returned.
    let _ = bench.end();
}

#[test]
fn a_reset_ends_commands_of_all_and_establishes_unit_attentions() {
    let bench = Bench::new(1, SignIn::default());
    let (mut one, mut other) = (ready(&bench, 1), ready(&bench, 2));
    let size = 256 << 10;
    let waiting = other.start(0, write(0, (size / BLOCK) as u32), true, size as u32, &[]);
    assert!(matches!(other.next(), Some(Got::R2t(_))));
    assert_eq!(one.run(0, Cdb::Reserve6, false, 0, &[]).status, Status::GOOD);
    assert_eq!(one.managed(0, Function::LOGICAL_UNIT_RESET, 0), TmfOutcome::COMPLETE);
    let Some(Got::Answer(itt, answer)) = other.next() else { panic!("it ends") };
    assert_eq!((itt, answer.status), (waiting, Status::TASK_ABORTED));
    for client in [&mut one, &mut other] {
        let answer = client.run(0, Cdb::TestUnitReady, false, 0, &[]);
        assert_eq!(answer.sense.map(|sense| sense.asc), Some(Asc::DEVICE_RESET));
    }
    assert_eq!(other.run(0, Cdb::Reserve6, false, 0, &[]).status, Status::GOOD, "it is free");
    other.run(0, Cdb::Release6, false, 0, &[]);
    assert_eq!(one.managed(0, Function::CLEAR_TASK_SET, 0), TmfOutcome::COMPLETE);
    let answer = other.run(0, Cdb::TestUnitReady, false, 0, &[]);
    assert_eq!(answer.sense.map(|sense| sense.asc), Some(Asc::COMMANDS_CLEARED));
    assert_eq!(one.run(0, Cdb::TestUnitReady, false, 0, &[]).status, Status::GOOD);
    assert_eq!(one.managed(0, Function::TARGET_COLD_RESET, 0), TmfOutcome::COMPLETE);
    assert_eq!((one.next(), other.next()), (None, None), "all sessions end");
}

#[test]
fn a_reset_that_ends_the_write_cache_is_over_when_it_is_on_disk() {
    let bench = Bench::new(1, SignIn::default());
    let mut client = ready(&bench, 1);
    let off = UnitSettings { write_cache: false, read_only: false };
    bench.unit(0).set(off).expect("nothing is in it");
    let medium = &bench.media[0];
    for function in [Function::LOGICAL_UNIT_RESET, Function::TARGET_WARM_RESET] {
        for (fails, outcome) in [(false, TmfOutcome::COMPLETE), (true, TmfOutcome::REJECTED)] {
            let ready = |client: &mut Client| client.run(0, Cdb::TestUnitReady, false, 0, &[]);
            while ready(&mut client).status != Status::GOOD {}
            let (select, list) = select_cache(true);
            let on = client.run(0, select, true, list.len() as u32, &list);
            assert_eq!(on.status, Status::GOOD);
            assert_eq!(client.write(0, 0, &[1; BLOCK]).status, Status::GOOD);
            assert!(medium.status().is_dirty);
            medium.faults.flush.store(fails, Relaxed);
            assert_eq!(client.managed(0, function, 0), outcome);
            medium.faults.flush.store(false, Relaxed);
            assert!(!medium.status().is_dirty && !bench.unit(0).write_cache());
        }
    }
}

#[test]
fn increments_by_compare_and_write_are_all_there() {
    const CLIENTS: u8 = 8;
    const TIMES: u64 = 1000;
    let bench = Bench::new(1, SignIn::default());
    let clients: Vec<_> = (1..=CLIENTS).map(|isid| ready(&bench, isid)).collect();
    let increment = |client: &mut Client| loop {
        let old = client.read(0, 7, 1).data;
        let value = u64::from_le_bytes(*old.first_chunk().expect("a block"));
        let mut both = old.clone();
        both.extend_from_slice(&(value + 1).to_le_bytes());
        both.extend_from_slice(&old[8..]);
        let expected = both.len() as u32;
        let answer = client.run(0, Cdb::CompareAndWrite(io(7, 1)), true, expected, &both);
        if answer.status == Status::GOOD {
            return;
        }
        assert_eq!(answer.sense.map(|sense| sense.asc), Some(Asc::MISCOMPARE));
    };
    let mut last = std::thread::scope(|scope| {
        let threads: Vec<_> = clients
            .into_iter()
            .map(|mut client| {
                scope.spawn(move || {
                    (0..TIMES).for_each(|_| increment(&mut client));
                    client
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).last()
    })
    .expect("a client");
    let value = last.read(0, 7, 1).data;
    let value = u64::from_le_bytes(*value.first_chunk().expect("a block"));
    assert_eq!(value, u64::from(CLIENTS) * TIMES);
}

#[test]
fn a_flush_that_fails_after_its_abort_is_reported_by_the_next_one() {
    let bench = Bench::new(1, SignIn::default());
    let mut client = ready(&bench, 1);
    let width = wire::scsi::cdb::Width::Sixteen;
    let blocks = wire::scsi::cdb::Blocks { width, lba: 0, count: 0, group: 0 };
    let range = wire::scsi::cdb::CacheRange { blocks, immediate: false };
    let sync = Cdb::SynchronizeCache(range);
    assert_eq!(client.write(0, 0, &[1; BLOCK]).status, Status::GOOD);
    bench.media[0].stick(true);
    let aborted = client.start(0, sync, false, 0, &[]);
    assert_eq!(client.managed(0, Function::ABORT_TASK, aborted), TmfOutcome::COMPLETE);
    let medium = &bench.media[0];
    medium.faults.flush.store(true, Relaxed);
    medium.stick(false);
    let end = Instant::now() + Duration::from_secs(30);
    while medium.status().flush_failures == 0 {
        assert!(Instant::now() < end, "its flush fails all the same");
        std::thread::yield_now();
    }
    medium.faults.flush.store(false, Relaxed);
    let answer = client.run(0, sync, false, 0, &[]);
    assert_eq!(answer.sense.map(|sense| sense.asc), Some(Asc::WRITE_ERROR), "it was lost");
    assert_eq!(client.run(0, sync, false, 0, &[]).status, Status::GOOD, "and is told once");
}

#[test]
fn sessions_of_one_port_at_two_targets_are_two() {
    const OTHER: &str = "iqn.2026-01.test:u";
    let bench = Bench::new(1, SignIn::default());
    let second = Target::new(OTHER, SignIn::default());
    second.add(None, Initiators::Everybody, bench.unit(0)).expect("room");
    assert!(bench.iscsi.targets.add(second));
    let mut one = ready(&bench, 1);
    let mut other = Client::new(&bench, &How { target: OTHER, ..How::default() });
    other.settle(0);
    let (size, data) = (256 << 10, vec![7; 256 << 10]);
    let start = |client: &mut Client| {
        let itt = client.start(0, write(0, (size / BLOCK) as u32), true, size as u32, &[]);
        let Some(Got::R2t(ask)) = client.next() else { panic!("it is asked for") };
        (itt, ask)
    };
    // What ends the tasks of one session leaves those of the other alone.
    let (itt, ask) = start(&mut other);
    assert_eq!(one.managed(0, Function::ABORT_TASK_SET, 0), TmfOutcome::COMPLETE);
    other.answer(&ask, &data, 8192);
    assert_eq!(other.finish(itt, &data).status, Status::GOOD);
    // A function that ends tasks of all sessions is reported to the other session.
    for function in [Function::LOGICAL_UNIT_RESET, Function::CLEAR_TASK_SET] {
        let (itt, _) = start(&mut other);
        assert_eq!(one.managed(0, function, 0), TmfOutcome::COMPLETE);
        let Some(Got::Answer(tag, answer)) = other.next() else { panic!("it ends") };
        assert_eq!((tag, answer.status), (itt, Status::TASK_ABORTED));
        let attention = other.run(0, Cdb::TestUnitReady, false, 0, &[]).sense;
        assert!(attention.is_some(), "and why");
        if function == Function::LOGICAL_UNIT_RESET {
            assert!(one.run(0, Cdb::TestUnitReady, false, 0, &[]).sense.is_some());
        }
    }
}

#[test]
fn a_cold_reset_takes_the_right_to_all_units() {
    let bench = Bench::new(1, SignIn::default());
    let others = Initiators::Named(["iqn.2026-01.test:other".to_owned()].into());
    bench.target.add(None, others, bench.unit(0)).expect("room");
    let mut client = ready(&bench, 1);
    let other = How { name: "iqn.2026-01.test:other", isid: 2, ..How::default() };
    let mut other = Client::new(&bench, &other);
    assert_eq!(client.managed(0, Function::TARGET_COLD_RESET, 0), TmfOutcome::NOT_AUTHORIZED);
    assert!(matches!(other.ping(b""), Some(Got::Pong(..))), "its session goes on");
    assert_eq!(other.managed(0, Function::TARGET_COLD_RESET, 0), TmfOutcome::COMPLETE);
    assert_eq!((client.next(), other.next()), (None, None));
}
