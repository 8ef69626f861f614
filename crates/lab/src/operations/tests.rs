//! The same seed gives the same hash in any order of slots and clients and at any length; another
//! seed, place or order does not.

use super::*;
use crate::workload::{Kind, Shape, Workload};

fn shape(kind: Kind) -> Shape {
    Shape { kind, block: 4096, files: 2, file_size: 1 << 20, own_files: false }
}

/// What a client is given: `count` operations of a seed, dealt to slots by `slot`.
fn given(kind: Kind, seed: u64, count: u32, apart: bool, slot: impl Fn(u32) -> u32) -> Vec<Lane> {
    let mut work = Workload::new(shape(kind), seed);
    let mut given = Given::default();
    if apart {
        work.each_its_own();
        given.each_its_own();
    }
    for n in 0..count {
        let slot = slot(n);
        let Some(op) = work.next(slot) else { continue };
        given.add(slot, op);
        work.done(slot, op, Ok(0));
    }
    given.lanes()
}

fn run(of: &[(u32, Vec<Lane>)]) -> Operations {
    Operations::of(of.iter().cloned().collect())
}

const KINDS: [Kind; 5] =
    [Kind::RandRead, Kind::SeqRead, Kind::SeqWrite, Kind::SyncWrite, Kind::Create];

#[test]
fn a_seed_gives_one_hash_whatever_slots_do() {
    for kind in KINDS {
        let a = run(&[(0, given(kind, 7, 4000, false, |n| n % 3))]);
        let b = run(&[(0, given(kind, 7, 3000, false, |n| n * 7 % 8))]);
        let common = a.common(&b).expect("both have marks");
        assert!(common.same && common.first >= 256, "{kind:?}: {common:?}");
        assert!(common.sentence().starts_with("same operations: the first "));
    }
}

#[test]
fn another_seed_or_order_is_seen() {
    for kind in [Kind::RandRead, Kind::SyncWrite] {
        let a = run(&[(0, given(kind, 7, 100, false, |_| 0))]);
        let b = run(&[(0, given(kind, 8, 100, false, |_| 0))]);
        let common = a.common(&b).expect("both have marks");
        assert!(!common.same && common.sentence().starts_with("different operations"));
        assert_ne!(a.hash, b.hash);
    }
    let ops = [Op::Read { file: 0, offset: 0, len: 1 }, Op::Read { file: 0, offset: 1, len: 1 }];
    let lane = |order: [usize; 4]| {
        let mut given = Given::default();
        order.iter().for_each(|n| given.add(0, ops[*n]));
        given.lanes()
    };
    let (a, b) = (run(&[(0, lane([0, 1, 0, 1]))]), run(&[(0, lane([0, 1, 1, 0]))]));
    assert!(!a.common(&b).expect("marks").same);
}

#[test]
fn slots_with_files_of_their_own_are_compared_one_by_one() {
    let a = run(&[(0, given(Kind::SeqRead, 7, 400, true, |n| n % 4))]);
    let b = run(&[(0, given(Kind::SeqRead, 7, 300, true, |n| n / 10 % 3))]);
    let common = a.common(&b).expect("marks");
    assert_eq!((common.same, common.lanes), (true, 3));
}

#[test]
fn clients_are_combined_in_any_order_but_not_exchanged() {
    let (x, y) =
        (given(Kind::RandRead, 1, 64, false, |_| 0), given(Kind::RandRead, 2, 64, false, |_| 0));
    let a = run(&[(0, x.clone()), (1, y.clone())]);
    let b = run(&[(1, y.clone()), (0, x.clone())]);
    assert_eq!((a.hash, a.first), (b.hash, 64));
    let exchanged = run(&[(0, y), (1, x)]);
    assert!(a.hash != exchanged.hash && !a.common(&exchanged).expect("marks").same);
}

#[test]
fn a_result_without_hashes_has_nothing_in_common() {
    let a = run(&[(0, given(Kind::RandRead, 1, 64, false, |_| 0))]);
    assert_eq!(a.common(&Operations::default()), None);
    let text = serde_json::to_string(&a).unwrap();
    assert!(
        text.contains("\"hash\":\""),
        "hexadecimal, since not all readers have 64 bits: {text}"
    );
    assert_eq!(serde_json::from_str::<Operations>(&text).unwrap(), a);
}
