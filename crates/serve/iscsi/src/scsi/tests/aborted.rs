//! What is aborted while it waits, or between two parts of it, changes nothing from then on.

use std::time::{Duration, Instant};

use base::limits::LUN_BUFFER;
use vfs::lun::mapping::Mapping;
use vfs::lun::reservations::Reservations;

use crate::state::tasks::{Mark, Verdict};

use super::*;

/// A command of the first initiator that has begun where it may block.
fn begun(bench: &Bench, cdb: Cdb) -> (Request, Arc<Mark>) {
    let nexus = Arc::clone(&bench.nexuses[0]);
    let mark = Mark::new(nexus.port.clone(), 1, &Arc::default());
    assert!(mark.begin());
    let (unit, target) = (Arc::clone(&bench.unit), Arc::clone(&bench.target));
    let limit = u32::MAX;
    (Request { unit, nexus, target, cdb, limit, mark: Some(Arc::clone(&mark)) }, mark)
}

/// Reservations with one that permits writes to these initiators alone.
fn reserved_by(nexus: &Nexus) -> Reservations {
    let (free, key) = (Reservations::default(), 22);
    let origin = Origin { port: &nexus.port, address: HOME };
    let registered = free.register(origin, Some(0), key, &[], false).expect("room").state;
    let kind = reservations::Kind::WriteExclusive;
    registered.reserve(&nexus.port, key, kind).expect("it is free").state
}

const ABORTED: Fail = Fail::Status(Status::TASK_ABORTED);

#[test]
fn what_was_aborted_before_it_had_its_range_changes_nothing() {
    let bench = Bench::new();
    bench.good(Cdb::Write(io(0, 8)), &[1; 8 * BLOCK]);
    let mut unmap = Vec::new();
    wire::scsi::unmap::put(&[Extent { lba: 0, count: 8 }], &mut unmap);
    let verify = VerifyIo { blocks: blocks(0, 1), no_cache: false, compare: Compare::Each };
    let same = WriteSame { blocks: blocks(0, 8), unmap: false, no_data: true };
    let both = [[1; BLOCK], [2; BLOCK]].concat();
    let more = More::Plain { all_ports: false, initiators: Vec::new() };
    let mut register = Vec::new();
    Parameters { key: 0, action_key: 1, persist: false, more }.put(&mut register);
    let (copy, copy_list) = copy_within((100, 0, 8));
    let action = ReserveOut::Register;
    let list_length = register.len() as u32;
    let out = PersistentReserveOut { action, scope: 0, kind: 0, list_length };
    let cases: [(Cdb, &[u8]); 8] = [
        (Cdb::Write(io(0, 1)), &[2; BLOCK]),
        (Cdb::WriteAndVerify(verify), &[2; BLOCK]),
        (Cdb::OrWrite(io(0, 1)), &[2; BLOCK]),
        (Cdb::CompareAndWrite(io(0, 1)), &both),
        (Cdb::WriteSame(same), &[]),
        (Cdb::Unmap { group: 0, list_length: unmap.len() as u16 }, &unmap),
        (copy, &copy_list),
        (Cdb::PersistentReserveOut(out), &register),
    ];
    for (cdb, data) in cases {
        let (mut request, mark) = begun(&bench, cdb);
        if let Cdb::CompareAndWrite(_) = cdb {
            request.limit = data.len() as u32;
        }
        assert!(!mark.judge(Verdict::Silent), "it runs");
        let done = execute(&request, data, true, &mut ReplyBuf::default()).map(drop);
        assert_eq!(done, Err(ABORTED), "{cdb:?}");
        assert_eq!(bench.good(Cdb::Read(io(0, 8)), &[]), vec![1; 8 * BLOCK], "{cdb:?}");
    }
    assert!(bench.unit.reservations().is_empty());
}

#[test]
fn a_copy_ends_with_the_segment_in_which_it_was_aborted() {
    let bench = Bench::new();
    bench.good(Cdb::Write(io(0, 8)), &[5; 8 * BLOCK]);
    bench.good(sync_cache(), &[]);
    let segments = vec![copy_segment((0, 100, 8)), copy_segment((0, 200, 8))];
    let mut list = Vec::new();
    Copy { targets: vec![copy_target(0)], segments, ..Copy::default() }.put(&mut list);
    let (request, mark) = begun(&bench, Cdb::ExtendedCopy { list_length: list.len() as u32 });
    bench.medium.stick(true);
    let done = std::thread::scope(|scope| {
        let run = || execute(&request, &list, true, &mut ReplyBuf::default()).map(drop);
        let copy = scope.spawn(run);
        let end = Instant::now() + Duration::from_secs(30);
        while bench.medium.waiting() == 0 && Instant::now() < end {
            std::thread::yield_now();
        }
        mark.judge(Verdict::Silent);
        bench.medium.stick(false);
        copy.join().expect("no panic")
    });
    assert_eq!(done, Err(ABORTED));
    assert_eq!(bench.good(Cdb::Read(io(100, 8)), &[]), vec![5; 8 * BLOCK], "the first");
    assert_eq!(bench.good(Cdb::Read(io(200, 8)), &[]), vec![0; 8 * BLOCK], "and no other");
}

const CONFLICT: Fail = Fail::Status(Status::RESERVATION_CONFLICT);

/// PREEMPT AND ABORT does not wait for what comes to its blocks later: a command that is not known
/// as a task yet.
#[test]
fn what_is_preempted_before_it_has_its_range_changes_nothing() {
    let bench = Bench::new();
    let held = bench.unit.ranges.take(0, BLOCK as u64, false).expect("free");
    let done = std::thread::scope(|scope| {
        let (request, _) = begun(&bench, Cdb::Write(io(0, 1)));
        let request = Request { mark: None, ..request };
        let write = scope.spawn(move || {
            execute(&request, &[2; BLOCK], true, &mut ReplyBuf::default()).map(drop)
        });
        let end = Instant::now() + Duration::from_secs(30);
        while bench.unit.ranges.waiting() == 0 && Instant::now() < end {
            std::thread::yield_now();
        }
        let reserved = reserved_by(&bench.nexuses[1]);
        bench.unit.change_reservations((), |_| Ok((reserved, ()))).expect("in memory");
        drop(held);
        write.join().expect("no panic")
    });
    assert_eq!(done, Err(CONFLICT));
    assert_eq!(bench.good(Cdb::Read(io(0, 1)), &[]), vec![0; BLOCK]);
}

/// A copy is a task of the unit that was asked for it, not of its destination.
#[test]
fn a_copy_ends_when_its_destination_is_reserved_by_another() {
    let mut bench = Bench::new();
    let source = Arc::new(MemMedium::new(4 << 20));
    (bench.unit, bench.medium) = (unit_of(&source, 0), source);
    let (medium, count) = (Planted::new(4 << 20), (2 * LUN_BUFFER / BLOCK) as u16);
    let other = unit_over(Arc::clone(&medium) as Arc<dyn Medium>, 1);
    bench.target.set_units(Mapping::default());
    for unit in [&bench.unit, &other] {
        bench.target.add(None, Initiators::Everybody, Arc::clone(unit)).expect("room");
    }
    bench.medium.write(0, &vec![5; 2 * LUN_BUFFER], true).expect("written");
    let targets = vec![copy_target(0), copy_target(1)];
    let segments = vec![Segment { destination: 1, ..copy_segment((0, 0, count)) }];
    let mut list = Vec::new();
    Copy { targets, segments, ..Copy::default() }.put(&mut list);
    let (request, _) = begun(&bench, Cdb::ExtendedCopy { list_length: list.len() as u32 });
    let reserved = reserved_by(&bench.nexuses[1]);
    medium.before("write", move || {
        other.change_reservations((), |_| Ok((reserved, ()))).expect("in memory");
    });
    let done = execute(&request, &list, true, &mut ReplyBuf::default()).map(drop);
    assert_eq!(done, Err(CONFLICT));
    let mut there = vec![0; 2 * LUN_BUFFER];
    medium.inner.read(0, &mut there, true).expect("read");
    assert!(there[..LUN_BUFFER].iter().all(|byte| *byte == 5), "what it had begun");
    assert!(there[LUN_BUFFER..].iter().all(|byte| *byte == 0), "and no more");
}
