//! What spoils a run.

use super::*;

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

fn verdict(tally: &Tally) -> Vec<String> {
    tally.snapshot().spoiled_by("forth", 10 * SECOND, MS)
}

#[test]
fn one_late_packet_in_a_hundred_is_good_and_two_are_not() {
    let tally = Tally::default();
    (0..99).for_each(|_| tally.arrived(20_000, MS));
    tally.arrived(50 * MS, MS);
    assert_eq!(verdict(&tally), Vec::<String>::new());
    tally.arrived(50 * MS, MS);
    let why = verdict(&tally).concat();
    assert!(why.contains("2 of 101 packets were late by more than 1 ms"), "{why}");
    assert!(why.contains("max 50 ms"), "{why}");
    let late = tally.snapshot().lateness;
    assert!(late.p50_ns > 15_000 && late.p50_ns < 25_000, "{late:?}");
    assert_eq!(late.max_ns, 50 * MS);
    // Each bucket by its lower edge, empty ones left out.
    let edge = |ns| buckets::low(buckets::index(ns));
    assert_eq!(late.by, [(edge(20_000), 99), (edge(50 * MS), 2)]);
}

#[test]
fn pauses_spoil_a_run_by_their_sum_or_by_one() {
    let tally = Tally::default();
    (0..9).for_each(|_| tally.paused(10 * MS));
    assert_eq!(verdict(&tally), Vec::<String>::new());
    // More than 1 % of 10 s.
    tally.paused(11 * MS);
    assert!(
        verdict(&tally).concat().contains("10 pauses, 101 ms of 10 s"),
        "{:?}",
        verdict(&tally)
    );
    let tally = Tally::default();
    tally.paused(101 * MS);
    let long = tally.snapshot().spoiled_by("back", 1_000 * SECOND, MS).concat();
    assert!(long.starts_with("back: the emulator was starved"), "{long}");
}

#[test]
fn packets_that_the_bridge_could_not_take_spoil_a_run() {
    let tally = Tally::default();
    add(&tally.overrun, 1);
    add(&tally.no_room, 2);
    assert_eq!(verdict(&tally).len(), 2, "{:?}", verdict(&tally));
    // Those that the link drops are what was wanted.
    let tally = Tally::default();
    add(&tally.lost, 1_000);
    add(&tally.queue_full, 1_000);
    assert_eq!(verdict(&tally), Vec::<String>::new());
}
