//! What is aborted while it waits, or between two parts of it, changes nothing from then on.

use std::time::{Duration, Instant};

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
        // With its range, it changes the medium.
        while !bench.medium.ledger().is_dirty() && Instant::now() < end {
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
