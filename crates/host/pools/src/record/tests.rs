//! Records are compared by their marks, and come back from disk as they were written.

use e2e::scratch::Scratch;

use super::{FILE, MARKS_MAX, RESERVE, RESERVE_BYTES, Record, Repair, give_reserve};
use crate::profile::Profile;

fn with_marks(marks: &[u64]) -> Record {
    let mut record = Record::new("tank", Profile::Mirror);
    marks.iter().for_each(|nonce| record.mark(nonce * 1_000, *nonce, &[2]));
    record
}

#[test]
fn a_record_that_another_continues_is_not_apart_from_it() {
    let lists: [&[u64]; 3] = [&[], &[1], &[1, 2, 3]];
    for one in lists {
        for other in lists {
            assert_eq!(with_marks(one).apart(&with_marks(other)), None, "{one:?} {other:?}");
        }
    }
}

#[test]
fn records_that_part_name_both_times() {
    let (one, other) = (with_marks(&[1, 2, 5]), with_marks(&[1, 3]));
    let (first, second) = one.apart(&other).expect("apart");
    assert_eq!((first.time_ms, second.time_ms), (2_000, 3_000));
    let (first, second) = other.apart(&one).expect("apart");
    assert_eq!((first.time_ms, second.time_ms), (3_000, 2_000));
}

#[test]
fn a_scrub_that_is_needed_is_not_replaced_by_a_conversion() {
    let mut record = with_marks(&[]);
    record.needs(Repair::Convert);
    record.needs(Repair::Scrub);
    // A replacement of another disk, and its end.
    record.needs(Repair::Convert);
    assert_eq!(record.repair, Some(Repair::Scrub));
    record.has_copies();
    assert_eq!(record.repair, Some(Repair::Scrub), "a disk may lack what was written");
    record.repair = Some(Repair::Convert);
    record.has_copies();
    assert_eq!(record.repair, None);
}

#[test]
fn marks_are_bounded_and_still_compared() {
    let count = MARKS_MAX as u64 + 50;
    let long = with_marks(&(1..=count).collect::<Vec<_>>());
    assert_eq!(long.marks.len(), MARKS_MAX);
    assert_eq!(long.apart(&with_marks(&(1..=count - 1).collect::<Vec<_>>())), None);
    let mut other: Vec<u64> = (1..=count).collect();
    other[1_000] = 7_777;
    assert!(long.apart(&with_marks(&other)).is_some());
}

#[test]
fn a_record_comes_back_as_it_was_written() {
    let scratch = Scratch::new("record");
    assert_eq!(Record::read(scratch.path()).expect("read"), None);
    let record = with_marks(&[1, 2]);
    record.write(scratch.path()).expect("written");
    assert_eq!(Record::read(scratch.path()).expect("read"), Some(record.clone()));
    // With the reserve, which is taken again after it has given way.
    let reserve = scratch.path().join(RESERVE);
    for _ in 0..2 {
        assert_eq!(std::fs::metadata(&reserve).expect("there").len(), u64::from(RESERVE_BYTES));
        give_reserve(scratch.path()).expect("given");
        assert!(!reserve.exists());
        record.write(scratch.path()).expect("written");
    }
    std::fs::write(scratch.path().join(FILE), "{").expect("written");
    assert!(Record::read(scratch.path()).is_err());
}

#[test]
fn the_reserve_has_room_for_two_records() {
    let mut largest = Record::new(&"n".repeat(32), Profile::Mirror);
    (0..MARKS_MAX as u64)
        .for_each(|at| largest.mark(u64::MAX - at, u64::MAX - at, &[4_096, 4_095]));
    let bytes = serde_json::to_vec(&largest).expect("JSON").len();
    assert!(2 * bytes <= RESERVE_BYTES as usize, "{bytes}");
}
