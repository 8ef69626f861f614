//! The sequences of operations are the ones the table promises.

use super::*;

fn shape(kind: Kind, block: u32, files: u32, file_size: u64) -> Shape {
    Shape { kind, block, files, file_size, own_files: false }
}

#[test]
fn names_and_kinds_agree() {
    for (name, kind, _) in KINDS {
        assert_eq!(kind.name(), *name);
        let text = serde_json::to_string(kind).unwrap();
        assert_eq!(text, format!("\"{name}\""));
    }
}

#[test]
fn sequential_reads_cover_every_block_once_per_pass() {
    let mut work = Workload::new(shape(Kind::SeqRead, 4, 2, 12), 1);
    let seen: Vec<_> = (0..6).filter_map(|slot| work.next(slot)).collect();
    let expected: Vec<_> = [(0, 0), (0, 4), (0, 8), (1, 0), (1, 4), (1, 8)]
        .map(|(file, offset)| Op::Read { file, offset, len: 4 })
        .into();
    assert_eq!(seen, expected);
}

#[test]
fn files_are_asked_about_in_turn() {
    let mut work = Workload::new(shape(Kind::Lookup, 1, 3, 1), 1);
    let seen: Vec<_> = (0..4).filter_map(|slot| work.next(slot)).collect();
    assert_eq!(seen, [1, 2, 0, 1].map(|file| Op::Lookup { file }));
}

#[test]
fn random_blocks_stay_inside_and_repeat_with_the_seed() {
    let draw = |seed| {
        let mut work = Workload::new(shape(Kind::RandRead, 4096, 3, 40_960), seed);
        (0..1000).filter_map(|_| work.next(0)).collect::<Vec<_>>()
    };
    assert_eq!(draw(9), draw(9));
    assert_ne!(draw(9), draw(10));
    for op in draw(9) {
        let Op::Read { file, offset, len } = op else { panic!("{op:?}") };
        assert!(file < 3 && offset + u64::from(len) <= 40_960 && offset % 4096 == 0);
    }
}

#[test]
fn commit_follows_the_last_write_of_a_file() {
    let mut work = Workload::new(shape(Kind::SeqWrite, 4, 1, 8), 1);
    let first = work.next(0).unwrap();
    let second = work.next(1).unwrap();
    assert_eq!(work.next(2), None, "the file waits for its commit");
    work.done(0, first, Ok(4));
    assert_eq!(work.next(0), None);
    work.done(1, second, Ok(4));
    let commit = work.next(0).unwrap();
    assert_eq!(commit, Op::Commit { file: 0 });
    assert_eq!(work.next(1), None, "and is not written while that runs");
    work.done(0, commit, Ok(0));
    assert_eq!(work.next(1), Some(Op::Write { file: 0, offset: 0, len: 4, stable: false }));
}

#[test]
fn a_changed_verifier_sends_the_file_again() {
    let mut work = Workload::new(shape(Kind::SeqWrite, 4, 2, 8), 1);
    for _ in 0..2 {
        let write = work.next(0).unwrap();
        work.done(0, write, Ok(4));
    }
    let commit = work.next(0).unwrap();
    work.done(0, commit, Err(Fault::VerifierChanged));
    assert_eq!(work.resent, 1);
    assert_eq!(work.next(0), Some(Op::Write { file: 0, offset: 0, len: 4, stable: false }));
}

#[test]
fn what_is_dirty_is_committed_at_the_end() {
    let mut work = Workload::new(shape(Kind::SeqWrite, 4, 2, 80), 1);
    let write = work.next(0).unwrap();
    work.done(0, write, Ok(4));
    let last = work.last().unwrap();
    assert_eq!(last, Op::Commit { file: 0 });
    work.done(0, last, Ok(0));
    assert_eq!(work.last(), None);
}

#[test]
fn each_slot_removes_what_it_created() {
    let mut work = Workload::new(shape(Kind::Create, 1, 1, 1), 1);
    let made = work.next(0).unwrap();
    let other = work.next(1).unwrap();
    assert_ne!(made, other);
    work.done(0, made, Ok(0));
    let Op::Create { name } = made else { panic!() };
    assert_eq!(work.next(0), Some(Op::Remove { name }));
    work.done(1, other, Ok(0));
    assert_eq!(work.leftovers().len(), 1);
}

#[test]
fn slots_go_through_files_of_their_own() {
    let sequence = |kind| {
        let shape = Shape { kind, block: 10, files: 2, file_size: 25, own_files: false };
        let mut work = Workload::new(shape, 1);
        work.each_its_own();
        let order = [0, 1, 0, 0, 1, 0];
        let ops: Vec<Op> = order.iter().map(|slot| work.next(*slot).unwrap()).collect();
        assert_eq!(work.last(), None);
        ops
    };
    let read = |file, offset| Op::Read { file, offset, len: 10 };
    let expected = [read(0, 0), read(1, 0), read(0, 10), read(1, 0), read(1, 10), read(1, 10)];
    assert_eq!(sequence(Kind::SeqRead), expected);
    let write = |file, offset| Op::Write { file, offset, len: 10, stable: false };
    let commit = Op::Commit { file: 0 };
    let expected = [write(0, 0), write(1, 0), write(0, 10), commit, write(1, 10), write(1, 0)];
    assert_eq!(sequence(Kind::SeqWrite), expected);
}

#[test]
fn slots_commit_the_files_that_they_write_alone() {
    let shape = Shape { kind: Kind::SeqWrite, block: 10, files: 2, file_size: 20, own_files: true };
    let mut work = Workload::new(shape, 1);
    work.begin(2, false);
    let write = |file, offset| Op::Write { file, offset, len: 10, stable: false };
    let mut next = |slot: u32, expected: Op, outcome| {
        let op = work.next(slot).expect("none waits for another");
        assert_eq!(op, expected);
        work.done(slot, op, outcome);
    };
    next(0, write(0, 0), Ok(10));
    next(1, write(1, 0), Ok(10));
    next(0, write(0, 10), Ok(10));
    next(0, Op::Commit { file: 0 }, Ok(0));
    next(0, write(0, 0), Err(Fault::VerifierChanged));
    next(0, write(0, 0), Ok(10));
    // The step ends: what was written is made stable, file by file.
    let mut left = Vec::new();
    while let Some(op) = work.last() {
        work.done(0, op, Ok(0));
        left.push(op);
    }
    assert_eq!(left, [Op::Commit { file: 0 }, Op::Commit { file: 1 }]);
    assert_eq!(work.resent, 1);
}
