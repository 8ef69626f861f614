//! Changes of the network on a kernel in memory, by the keeper with its files: the helper ends at
//! each step, and the guard, or the next helper, finds the old state again.

#[path = "changes/bed.rs"]
mod bed;
#[allow(dead_code, reason = "each program of tests uses a part")]
#[path = "../../network/tests/configurations/mod.rs"]
mod configurations;

use std::collections::BTreeSet;

use base::random::SeededRandom;
use host_helper::keeper::{Keeper, Refusal, take_back};
use host_helper::request::{Proposal, Reply};
use host_network::backend::Backend;
use host_network::configuration::Configuration;

use bed::{Bed, wanted};
use configurations::generate;

/// Pairs of configurations in the gate; `PLIMSOLL_HELPER_PAIRS` sets another number. Each has tens
/// of cuts with flushes of their own.
const PAIRS: u64 = 16;
/// Seconds for a confirmation that no test waits for.
const LONG: u32 = 3_600;

#[test]
fn a_helper_that_ends_at_any_step_leaves_the_way_back() {
    let (mut cuts, pairs) = (0, e2e::env_number("PLIMSOLL_HELPER_PAIRS", PAIRS));
    for seed in 0..pairs {
        let bed = Bed::new(seed);
        for cut in 0.. {
            let kernel = bed.kernel();
            let whole = bed.apply_cut(&kernel, cut);
            let mut after = kernel.clone();
            if whole {
                // The last step was taken; it is not confirmed.
                assert!(bed.folder.waiting().expect("files").is_some(), "pair {seed}");
            }
            let taken = take_back(&bed.folder, &mut after);
            assert!(taken.is_ok(), "pair {seed}, cut {cut}: {taken:?}");
            assert_eq!(after.observe(), Ok(bed.old.clone()), "pair {seed}, cut {cut}");
            assert_eq!(bed.folder.waiting().expect("files"), None);
            let kept = bed.folder.confirmed().expect("files").expect("the first configuration");
            assert_eq!(kept.configuration, bed.first, "pair {seed}, cut {cut}");
            cuts += 1;
            if whole {
                break;
            }
        }
    }
    println!("{pairs} pairs, {cuts} cuts");
    assert!(cuts > 10 * pairs, "{cuts} cuts: the pairs differ in little");
}

/// A change that continues another one: the way back leads to the state before both.
#[test]
fn a_helper_that_ends_in_a_continued_change_leaves_the_way_back_to_the_first() {
    let (mut cuts, pairs) = (0, e2e::env_number("PLIMSOLL_HELPER_PAIRS", PAIRS) / 4);
    for seed in 0..pairs {
        let bed = Bed::new(seed);
        let third = generate(&mut SeededRandom::new(seed + 100));
        for cut in 0.. {
            let kernel = bed.kernel();
            let whole = bed.continue_cut(&kernel, &third, cut);
            let taken = take_back(&bed.folder, &mut kernel.clone());
            assert!(taken.is_ok(), "triple {seed}, cut {cut}: {taken:?}");
            assert_eq!(kernel.clone().observe(), Ok(bed.old.clone()), "triple {seed}, cut {cut}");
            let kept = bed.folder.confirmed().expect("files").expect("the first configuration");
            assert_eq!(kept.configuration, bed.first, "triple {seed}, cut {cut}");
            cuts += 1;
            if whole {
                break;
            }
        }
    }
    println!("{pairs} triples, {cuts} cuts");
    assert!(cuts > 5 * pairs, "{cuts} cuts: the configurations differ in little");
}

#[test]
fn a_continued_change_is_confirmed_as_one() {
    let bed = Bed::new(6);
    let (kernel, third) = (bed.kernel(), generate(&mut SeededRandom::new(106)));
    let mut keeper = bed.keeper(&kernel, "this boot");
    let first = keeper.apply(&wanted(&bed.second), LONG).expect("a change").0.expect("steps");
    let then = keeper.apply(&wanted(&third), LONG).expect("a change").0.expect("steps");
    assert!(then > first);
    assert!(matches!(keeper.confirm(first), Err(Refusal::Conflict(_))), "not a part of it");
    keeper.confirm(then).expect("a confirmation");
    assert_eq!(keeper.status().expect("status").configuration, third);
    // Removing all of it is as before both: the records are joined.
    let (change, _) = keeper.apply(&wanted(&Configuration::default()), LONG).expect("a change");
    keeper.confirm(change.expect("steps")).expect("a confirmation");
    let mut other = bed.keeper(&bed.kernel(), "this boot");
    other.start().expect("a start");
    let now = kernel.clone().observe().expect("a state");
    assert_eq!(
        configurations::made(&now),
        configurations::made(&bed.bare().observe().expect("one"))
    );
}

/// What is refused in a change that continues another one leaves that one waiting, as it was.
#[test]
fn a_refused_step_of_a_continued_change_leaves_the_one_before() {
    let bed = Bed::new(7);
    let (kernel, third) = (bed.kernel(), generate(&mut SeededRandom::new(107)));
    let mut keeper = bed.keeper(&kernel, "this boot");
    let first = keeper.apply(&wanted(&bed.second), LONG).expect("a change").0.expect("steps");
    let second = kernel.clone().observe();
    kernel.refuse_after(2);
    keeper.apply(&wanted(&third), LONG).expect_err("refused");
    assert_eq!(kernel.clone().observe(), second);
    let waiting = keeper.status().expect("status").waiting.expect("the one before");
    assert_eq!(waiting.change, first);
    keeper.take_back(first).expect("the way back");
    assert_eq!(kernel.clone().observe(), Ok(bed.old.clone()));
}

#[test]
fn a_guard_that_ends_at_any_step_is_continued_by_the_next_helper() {
    for seed in 0..e2e::env_number("PLIMSOLL_HELPER_PAIRS", PAIRS) / 8 {
        let bed = Bed::new(seed);
        for cut in 0.. {
            let kernel = bed.kernel();
            assert!(bed.apply_cut(&kernel, usize::MAX));
            let whole = kernel.cut_after(cut, |kernel| {
                take_back(&bed.folder, kernel).expect("the way back");
            });
            let mut keeper = bed.keeper(&kernel, "this boot");
            keeper.start().unwrap_or_else(|e| panic!("pair {seed}, guard {cut}: {e}"));
            assert_eq!(kernel.clone().observe(), Ok(bed.old.clone()), "pair {seed}, guard {cut}");
            if whole {
                break;
            }
        }
    }
}

#[test]
fn a_confirmed_change_stays() {
    let bed = Bed::new(1);
    let kernel = bed.kernel();
    let mut keeper = bed.keeper(&kernel, "this boot");
    let (change, steps) = keeper.apply(&wanted(&bed.second), LONG).expect("a change");
    let change = change.expect("it has steps");
    assert!(!steps.is_empty());
    let waiting = keeper.status().expect("status").waiting.expect("it waits");
    assert_eq!(waiting.change, change);
    assert!((1..=LONG).contains(&waiting.seconds_left), "{waiting:?}");
    // Only by its number.
    assert!(matches!(keeper.confirm(change + 1), Err(Refusal::Conflict(_))));
    keeper.confirm(change).expect("a confirmation");
    assert!(matches!(keeper.confirm(change), Err(Refusal::Conflict(_))));
    assert!(matches!(keeper.take_back(change), Err(Refusal::Conflict(_))));
    let new = kernel.clone().observe();
    assert_eq!(take_back(&bed.folder, &mut kernel.clone()).expect("nothing waits"), None);
    let mut next = bed.keeper(&kernel, "this boot");
    next.start().expect("a start");
    assert_eq!(kernel.clone().observe(), new);
    assert_eq!(next.status().expect("status").configuration, bed.second);
}

#[test]
fn after_a_boot_the_confirmed_configuration_is_made_again() {
    let bed = Bed::new(2);
    let kernel = bed.kernel();
    assert!(bed.apply_cut(&kernel, usize::MAX), "not confirmed");
    // The next boot: what the kernel had is gone.
    let bare = bed.bare();
    let mut keeper = bed.keeper(&bare, "next boot");
    keeper.start().expect("a start");
    let now = bare.clone().observe().expect("a state");
    assert_eq!(configurations::made(&now), configurations::made(&bed.old_alone));
    assert_eq!(keeper.status().expect("status").configuration, bed.first);
    assert_eq!(bed.folder.waiting().expect("files"), None);
    // Removing all of it brings back what the second boot had.
    let (change, _) = keeper.apply(&wanted(&Configuration::default()), LONG).expect("a change");
    keeper.confirm(change.expect("steps")).expect("a confirmation");
    assert_eq!(bare.clone().observe(), bed.bare().clone().observe());
}

#[test]
fn a_device_that_appears_after_the_boot_is_configured() {
    let (none, mut named) = (BTreeSet::new(), 0);
    for (seed, late) in (0..PAIRS).zip(["e0", "e1", "e2", "e3"].into_iter().cycle()) {
        let bed = Bed::new(seed);
        let bare = bed.bare();
        bare.unplug(late);
        let mut keeper = bed.keeper(&bare, "next boot");
        keeper.start().unwrap_or_else(|e| panic!("{seed}: {e}"));
        let without = bare.clone().observe();
        assert!(keeper.follow(&none).expect("a look"), "{seed}");
        assert_eq!(bare.clone().observe(), without, "{seed}: nothing has appeared");
        bare.plug(late);
        // Seen by this helper, or by the next one.
        match seed % 2 {
            0 => assert!(keeper.follow(&none).expect("a look"), "{seed}"),
            _ => bed.keeper(&bare, "next boot").start().expect("a start"),
        }
        let whole = |what: &str| {
            assert_eq!(bare.clone().observe().as_ref(), Ok(&bed.old_alone), "{seed}: {what}");
        };
        whole("it has appeared");
        // It is reset: it goes and comes back with another number.
        bare.unplug(late);
        bare.plug(late);
        assert!(keeper.follow(&BTreeSet::from([late.to_owned()])).expect("a look"), "{seed}");
        whole("it was reset");
        named += u32::from(bed.first.datalinks.contains_key(late));
    }
    assert!(named > 8, "{named} configurations have the device");
}

#[test]
fn what_has_failed_after_a_boot_is_tried_again() {
    let bed = Bed::new(2);
    let bare = bed.bare();
    bare.refuse_all(true);
    let mut keeper = bed.keeper(&bare, "next boot");
    keeper.start().expect_err("refused");
    keeper.follow(&BTreeSet::new()).expect_err("refused");
    assert!(keeper.status().expect("status").problem.is_some());
    bare.refuse_all(false);
    assert!(keeper.follow(&BTreeSet::new()).expect("a look"));
    let now = bare.clone().observe().expect("a state");
    assert_eq!(configurations::made(&now), configurations::made(&bed.old_alone));
    assert_eq!(keeper.status().expect("status").problem, None);
    // Not while a change waits, which has its own way back.
    keeper.apply(&wanted(&bed.second), LONG).expect("a change").0.expect("steps");
    assert!(!keeper.follow(&BTreeSet::new()).expect("a look"));
}

#[test]
fn what_has_failed_after_a_boot_is_continued_by_the_next_helper() {
    let bed = Bed::new(2);
    let bare = bed.bare();
    bare.refuse_all(true);
    bed.keeper(&bare, "next boot").start().expect_err("refused");
    let mut next = bed.keeper(&bare, "next boot");
    next.start().expect_err("refused again");
    assert!(next.status().expect("status").problem.is_some());
    bare.refuse_all(false);
    // Helpers that end at each step.
    let start = |kernel: &mut bed::Shared| {
        bed.keeper(kernel, "next boot").start().expect("a start");
    };
    let cuts = (0..).take_while(|steps| !bare.cut_after(*steps, start)).count();
    assert!(cuts > 0);
    let now = bare.clone().observe().expect("a state");
    assert_eq!(configurations::made(&now), configurations::made(&bed.old_alone));
}

#[test]
fn a_step_that_is_refused_brings_the_old_state_back() {
    let bed = Bed::new(3);
    let kernel = bed.kernel();
    kernel.refuse_after(2);
    let mut keeper = bed.keeper(&kernel, "this boot");
    let why = keeper.apply(&wanted(&bed.second), LONG).expect_err("refused").to_string();
    assert!(why.ends_with(bed::REFUSED), "{why}");
    assert_eq!(kernel.clone().observe(), Ok(bed.old.clone()));
    assert_eq!(keeper.status().expect("status").waiting, None);
    assert_eq!(bed.folder.waiting().expect("files"), None);
}

#[test]
fn a_change_of_nothing_needs_no_confirmation() {
    let bed = Bed::new(4);
    let kernel = bed.kernel();
    let mut keeper = bed.keeper(&kernel, "this boot");
    let done = keeper.apply(&wanted(&bed.first), LONG).expect("no steps");
    assert_eq!(done, (None, Vec::new()));
    let wrong = Proposal { successor: "10.9.9.9".parse().ok(), ..wanted(&bed.first) };
    assert!(keeper.apply(&wrong, 1).is_err(), "the time is too short");
}

/// A wrong configuration is refused by the helper too, not by the server alone.
#[test]
fn the_helper_checks_what_it_is_sent() {
    let mut random = SeededRandom::new(5);
    let bed = Bed::new(5);
    let mut configuration = generate(&mut random);
    let datalink = configuration.datalinks.values().next().expect("a datalink").clone();
    configuration.datalinks.insert("../../etc/x".to_owned(), datalink);
    let kernel = bed.kernel();
    let mut keeper: Keeper = bed.keeper(&kernel, "this boot");
    let refusal = keeper.apply(&wanted(&configuration), LONG).expect_err("a wrong name");
    let Reply::Wrong(list) = Reply::from(refusal) else { panic!("not by property") };
    assert!(list.iter().any(|wrong| wrong.property == "name"), "{list:?}");
    assert_eq!(kernel.clone().observe(), Ok(bed.old.clone()));
}
