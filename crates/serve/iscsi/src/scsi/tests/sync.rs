//! Tests of flushes of the cache, and of the initiators that get their outcome.

use std::time::{Duration, Instant};

use base::limits::{LUN_FLUSHES_BEHIND_CLIENT_MAX, LUN_FLUSHES_BEHIND_MAX};

use super::*;

fn stop(immediate: bool, power_condition: u8) -> Cdb {
    let (modifier, no_flush, load_eject, start) = (0, false, false, false);
    Cdb::StartStop(StartStop { immediate, modifier, power_condition, no_flush, load_eject, start })
}

fn write(bench: &Bench) {
    bench.good(Cdb::Write(io(0, 1)), &[1; BLOCK]);
    assert!(bench.medium.status().is_dirty);
}

#[test]
fn a_unit_that_is_stopped_has_nothing_left_in_its_cache() {
    let bench = Bench::new();
    for (immediate, power_condition) in [(false, 0), (true, 0), (false, 3), (true, 0xb)] {
        write(&bench);
        bench.good(stop(immediate, power_condition), &[]);
        let end = Instant::now() + Duration::from_secs(30);
        while immediate && bench.medium.status().is_dirty && Instant::now() < end {
            std::thread::yield_now();
        }
        assert!(!bench.medium.status().is_dirty, "IMMED {immediate}, {power_condition}");
    }
    write(&bench);
    bench.good(stop(false, 1), &[]);
    assert!(bench.medium.status().is_dirty, "active is no stop");
}

fn settle(bench: &Bench) {
    bench.nexuses.iter().for_each(|nexus| while nexus.take_unit_attention().is_some() {});
}

/// An initiator flushes no more once it knows that there is no cache.
#[test]
fn a_cache_that_is_switched_off_has_nothing_left_in_it() {
    let bench = Bench::new();
    let set = |write_cache| bench.unit.set(UnitSettings { write_cache, read_only: false });
    write(&bench);
    assert_eq!(set(false), Ok(()));
    assert!(!bench.medium.status().is_dirty, "by an administrator");
    let changed = Some(Asc::MODE_PARAMETERS_CHANGED);
    assert_eq!([0, 1].map(|who: usize| bench.nexuses[who].take_unit_attention()), [changed; 2]);
    // Until a reset, by an initiator.
    let (select, list) = select_cache(true);
    bench.good(select, &list);
    write(&bench);
    bench.unit.reset().wait().expect("flushed");
    assert!(!bench.medium.status().is_dirty && !bench.unit.write_cache());
    // What cannot be brought to disk is still reported, so the cache stays.
    assert_eq!(set(true), Ok(()));
    settle(&bench);
    write(&bench);
    bench.medium.faults.flush.store(true, Ordering::Relaxed);
    assert_eq!(set(false), Err(vfs::status::Status::Io));
    assert!(bench.unit.write_cache() && bench.unit.settings().write_cache);
    assert_eq!([0, 1].map(|who: usize| bench.nexuses[who].take_unit_attention()), [None; 2]);
    bench.medium.faults.flush.store(false, Ordering::Relaxed);
    assert_eq!(bench.asc(sync_cache(), &[]), (SenseKey::MEDIUM_ERROR, Asc::WRITE_ERROR));
}

#[test]
fn a_write_during_which_the_cache_is_switched_off_is_flushed() {
    let mut bench = Bench::new();
    let medium = Planted::new(1 << 20);
    bench.unit = unit_over(Arc::clone(&medium) as Arc<dyn Medium>, 0);
    let unit = Arc::clone(&bench.unit);
    let off = UnitSettings { write_cache: false, read_only: false };
    medium.before("write", move || unit.set(off).expect("flushed"));
    bench.good(Cdb::Write(io(0, 1)), &[1; BLOCK]);
    assert!(!bench.unit.write_cache() && !medium.status().is_dirty);
}

#[test]
fn a_command_with_a_reservation_conflict_aborts_nothing() {
    let bench = Bench::new();
    assert!(reserve_out(&bench, 0, ReserveOut::Register, (0, 11)).is_ok());
    assert!(reserve_out(&bench, 0, ReserveOut::Reserve, (11, 0)).is_ok());
    let conflict = Err(Fail::Status(Status::RESERVATION_CONFLICT));
    let run = |who, cdb| bench.run(who, cdb, &[]).map(drop);
    let start = match stop(false, 0) {
        Cdb::StartStop(command) => Cdb::StartStop(StartStop { start: true, ..command }),
        other => other,
    };
    assert_eq!((run(1, stop(false, 0)), run(1, stop(false, 3))), (conflict, conflict));
    assert_eq!((run(1, start), run(0, stop(false, 0))), (Ok(()), Ok(())));
}

#[test]
fn flushes_of_immediate_commands_are_limited() {
    let bench = Bench::new();
    write(&bench);
    bench.medium.stick(true);
    let at_once = |session: usize| {
        let (unit, nexus) = (Arc::clone(&bench.unit), Arc::clone(&bench.nexuses[session]));
        let cdb = Cdb::SynchronizeCache(CacheRange { blocks: blocks(0, 0), immediate: true });
        let target = Arc::clone(&bench.target);
        let request = Request { unit, nexus, target, cdb, limit: 0, mark: None };
        let done = execute(&request, &[], false, &mut ReplyBuf::default());
        done.is_ok_and(|done| done.flush.is_empty())
    };
    let (most, of_one) = (LUN_FLUSHES_BEHIND_MAX, LUN_FLUSHES_BEHIND_CLIENT_MAX);
    let count = |session| (0..1000).filter(|_| at_once(session)).count();
    assert_eq!(count(0), of_one, "the others are waited for");
    assert_eq!(count(1), most - of_one, "what is left to other sessions");
    bench.medium.stick(false);
    let end = Instant::now() + Duration::from_secs(30);
    while !at_once(0) {
        assert!(Instant::now() < end, "those have ended");
        std::thread::yield_now();
    }
}

#[test]
fn lost_writes_of_a_session_are_reported_to_the_next_one_of_its_initiator() {
    let mut bench = Bench::new();
    write(&bench);
    bench.unit.leave(&bench.nexuses[0]);
    // A flush of another initiator fails, and loses it.
    bench.medium.faults.flush.store(true, Ordering::Relaxed);
    assert!(bench.run(1, sync_cache(), &[]).is_err());
    bench.medium.faults.flush.store(false, Ordering::Relaxed);
    let again = |bench: &Bench, who: usize| {
        let nexus = bench.unit.join(bench.nexuses[who].port.clone(), HOME);
        assert_eq!(nexus.take_unit_attention(), Some(Asc::POWER_ON_OR_RESET));
        nexus
    };
    bench.nexuses[0] = again(&bench, 0);
    let lost = (SenseKey::MEDIUM_ERROR, Asc::WRITE_ERROR);
    assert_eq!(bench.asc(sync_cache(), &[]), lost);
    bench.good(sync_cache(), &[]);
    // Lost writes are reported to their initiator alone, and once.
    bench.unit.leave(&bench.nexuses[0]);
    bench.nexuses[0] = again(&bench, 0);
    bench.good(sync_cache(), &[]);
}
