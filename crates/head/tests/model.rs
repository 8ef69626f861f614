//! Histories of two to three heads with pauses, partitions, crashes, an etcd without quorum, lost
//! answers and clocks of different speed: never two owners that may write, never an older one after
//! a newer one, and each takeover ends. Each rule is needed: without it a history is found that
//! fails.

#[path = "model/etcd.rs"]
mod etcd;
#[path = "model/world.rs"]
mod world;

use std::time::Duration;

use base::random::{Random, SystemRandom};
use world::{Rules, STEP_MS, World};

/// Histories in all.
const HISTORIES: u64 = 10_000;
/// Steps with faults: 20 s.
const STEPS: u64 = 20_000 / STEP_MS;
/// Steps until all must be settled: 40 s, for a lock that is waited for, drains, and ranks.
const SETTLE: u64 = 40_000 / STEP_MS;

/// One history; how many takeovers of it were acknowledged, and how many claims it had.
fn history(seed: u64, rules: Rules) -> Result<(u64, u64), String> {
    let mut world = World::new(seed, rules);
    for _ in 0..STEPS {
        world.step(true)?;
    }
    world.heal();
    let mut settled = Err("no step".to_owned());
    for _ in 0..SETTLE {
        world.step(false)?;
        settled = world.settled();
        if settled.is_ok() {
            break;
        }
    }
    settled.map(|()| (world.acknowledged, world.takeovers))
}

/// Where histories begin: `SEED` if it is set, the same each time without it.
fn first_seed() -> u64 {
    match std::env::var("SEED").as_deref() {
        Ok("random") => SystemRandom.next_u64() >> 16,
        Ok(seed) => seed.parse().expect("SEED is a number"),
        Err(_) => 1,
    }
}

fn all(rules: Rules, count: u64) {
    let first = first_seed();
    let (mut acknowledged, mut claims) = (0, 0);
    for seed in first..first + count {
        match history(seed, rules) {
            Ok((a, c)) => (acknowledged, claims) = (acknowledged + a, claims + c),
            Err(why) => panic!("seed {seed}: {why}"),
        }
    }
    println!("{count} histories: {acknowledged} takeovers acknowledged, {claims} claims");
    assert!(acknowledged > count / 4 && claims > 2 * count, "the histories are too quiet");
}

#[test]
fn never_two_owners_with_locks_and_paused_machines() {
    all(Rules::fenced(), HISTORIES / 2);
}

#[test]
fn never_two_owners_by_leases_alone() {
    all(Rules::leases_alone(), HISTORIES / 2);
}

#[test]
fn each_rule_is_needed() {
    let late = Duration::from_millis(6000);
    let without = [
        (
            "the end at two thirds of the lease",
            Rules { fence_after: late, ..Rules::leases_alone() },
        ),
        ("the comparison of the claim", Rules { compare: false, ..Rules::leases_alone() }),
        ("the lock", Rules { lock: false, ..Rules::fenced() }),
        ("the number in the file", Rules { number: false, ..Rules::fenced() }),
    ];
    for (rule, rules) in without {
        let found =
            (1..=HISTORIES).find_map(|seed| history(seed, rules).err().map(|why| (seed, why)));
        let (seed, why) = found.unwrap_or_else(|| panic!("no history needs {rule}"));
        println!("without {rule}: seed {seed}: {why}");
        assert!(why.contains("owners at") || why.contains("writes as"), "{rule}: {why}");
    }
}
