//! The most expensive request of SMB that a seeded search finds, in processor time of the server,
//! and that nothing of it continues when its client has closed the connection.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod candidates;
mod clock;
#[path = "../files/scene.rs"]
mod scene;
mod world;

use std::time::Duration;

use base::random::SeededRandom;

use crate::candidates::Client;
use crate::world::World;

/// Processor time that a frame of requests may take: 250 ms, and six times that in a build for
/// tests, which is hardly optimised, checks its assertions, and may run on a slower machine. A cost
/// without a limit is far above both.
const COST_MAX: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1500 } else { 250 });
/// Candidates of the gate, a minute; `PLIMSOLL_COSTS_CANDIDATES` sets another number.
const CANDIDATES: u64 = 1_000;
/// How often one that is too expensive is tried again: what a machine does otherwise is not the
/// request's.
const TRIES: usize = 3;
/// The most expensive ones, which are reported and cut off.
const WORST: usize = 8;
/// Candidates of one connection: what they open is closed with it.
const PER_CONNECTION: u64 = 50;

/// A candidate: what it costs, and what makes it.
#[derive(Debug)]
struct Measured {
    cost: Duration,
    seed: u64,
    words: String,
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Asks one candidate on a connection of its own or an existing one.
fn measure(world: &World, client: &mut Client, seed: u64) -> Measured {
    let mut random = SeededRandom::new(seed);
    let candidate = client.candidate(world, &mut random);
    let (cost, ()) = clock::of(|| client.ask(&candidate));
    Measured { cost, seed, words: candidate.words }
}

fn keep_worst(worst: &mut Vec<Measured>, most: usize) {
    worst.sort_by_key(|one| std::cmp::Reverse(one.cost));
    worst.truncate(most);
}

#[test]
fn no_request_costs_much_and_none_continues_without_its_client() {
    let world = World::new();
    let count = number("PLIMSOLL_COSTS_CANDIDATES").unwrap_or(CANDIDATES);
    let first = number("PLIMSOLL_COSTS_SEED").unwrap_or(1);
    let (mut worst, mut all) = (Vec::new(), Duration::ZERO);
    let mut client = Client::new(&world);
    for seed in first..first + count {
        if (seed - first) % PER_CONNECTION == PER_CONNECTION - 1 {
            client = Client::new(&world);
        }
        let one = measure(&world, &mut client, seed);
        all += one.cost;
        worst.push(one);
        if worst.len() > 256 {
            keep_worst(&mut worst, WORST);
        }
    }
    keep_worst(&mut worst, WORST);
    println!("smb: {count} candidates from seed {first}, {all:?} in all");
    for one in &worst {
        println!("smb: seed {} {:?} {:.200}", one.seed, one.cost, one.words);
    }
    drop(client);
    for one in &worst {
        let mut cost = one.cost;
        for _ in 0..TRIES {
            if cost > COST_MAX {
                cost = cost.min(measure(&world, &mut Client::new(&world), one.seed).cost);
            }
        }
        assert!(cost <= COST_MAX, "smb, seed {}: {cost:?} for {}", one.seed, one.words);
        cut_off(&world, one);
    }
}

/// Sends a candidate and closes the connection: what the server computes from then on until it has
/// nothing to do.
fn cut_off(world: &World, one: &Measured) {
    let mut least = Duration::MAX;
    for _ in 0..TRIES {
        let mut client = Client::new(world);
        let candidate = client.candidate(world, &mut SeededRandom::new(one.seed));
        client.send(&candidate);
        let (cost, ()) = clock::of(|| {
            drop(client);
            world.wait_idle();
        });
        least = least.min(cost);
        if least <= COST_MAX {
            return;
        }
    }
    panic!("smb, seed {}: {least:?} after its client has gone: {}", one.seed, one.words);
}

#[test]
fn a_long_pattern_costs_little() {
    let world = World::new();
    let mut client = Client::new(&world);
    for pattern in ["*a".repeat(100) + "*b", "*a".repeat(250) + "b", "<*>".repeat(160)] {
        let candidate = client.pattern(&pattern);
        let (cost, ()) = clock::of(|| client.ask(&candidate));
        println!("smb: {pattern:.12} over {} long names: {cost:?}", world::LONG);
        assert!(cost <= COST_MAX / 2, "{pattern}: {cost:?}");
    }
}

/// What they may be answered with together is bounded, and no more is reserved: a compound that
/// reserved all of its client's memory would wait for itself.
#[test]
fn a_compound_of_large_searches_does_not_wait_for_memory() {
    let world = World::new();
    let mut client = Client::new(&world);
    let candidate = client.large_searches();
    client.ask(&candidate);
    assert_eq!(world.stalls(), 0);
}
