//! Moves, copies, renames, replacements and removals at random, over WebDAV, SFTP, FTP, NFSv3 and
//! NFSv4, within and across shares that overlap, with symbolic and hard links. After each operation
//! the tree on disk is that of a model: nothing that was not named changes or disappears, and what
//! is refused changes nothing.
//!
//! `PLIMSOLL_MODEL_SEQUENCES` is how many sequences of operations there are, each from a seed of
//! its own, `PLIMSOLL_MODEL_SEED` the first of those.

// The contract's own failures, passed on.
#![allow(clippy::result_large_err)]

#[path = "../sftp/ends.rs"]
mod ends;
#[path = "../ftp/client.rs"]
#[allow(dead_code, reason = "the tests of FTP use the rest")]
mod ftp;
mod kinds;
mod locks;
#[path = "../nfs3/client.rs"]
#[allow(dead_code, reason = "the tests of NFSv3 use the rest")]
mod nfs;
mod nfs_calls;
mod op;
#[path = "../files/scene.rs"]
mod scene;
mod sftp;
#[path = "../http/stand.rs"]
#[allow(dead_code, reason = "the tests of HTTP use the rest")]
mod stand;
mod tree;
mod world;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use base::random::SeededRandom;

use op::Op;
use tree::Tree;
use world::World;

/// Sequences in the gate.
const SEQUENCES: u64 = 300;
/// Operations of one.
const OPERATIONS: usize = 20;
/// How long something may be removed behind an answer.
const PATIENCE: Duration = Duration::from_secs(60);

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
}

/// Waits until the tree on disk is what `expected` makes of it; the tree.
fn settle(world: &World, expected: impl Fn(&Tree) -> Tree) -> Result<Tree, String> {
    let until = Instant::now() + PATIENCE;
    loop {
        let now = world.read();
        let (wanted, got) = (expected(&now).facts(), now.facts());
        if wanted == got {
            return Ok(now);
        }
        if Instant::now() > until {
            return Err(tree::difference(&wanted, &got));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// How often each kind of operation was done and refused.
#[derive(Default)]
struct Tally(BTreeMap<String, (u64, u64)>);

fn sequence(world: &mut World, seed: u64, tally: &mut Tally) {
    let mut random = SeededRandom::new(seed);
    world.plant(&mut random);
    let mut before = world.read();
    let mut said = Vec::new();
    for _ in 0..OPERATIONS {
        let Some(op) = Op::random(&mut random, &before) else { continue };
        let done = world.perform(&op);
        said.push(format!("{op:?}: {}", if done { "done" } else { "refused" }));
        let counts = tally.0.entry(op.kind()).or_default();
        if done {
            counts.0 += 1;
        } else {
            counts.1 += 1;
        }
        let settled =
            settle(world, |now| if done { op.apply(&before, now) } else { before.clone() });
        before = settled.unwrap_or_else(|difference| {
            panic!("PLIMSOLL_MODEL_SEED={seed}\n{}\n{difference}", said.join("\n"))
        });
    }
}

#[test]
fn nothing_but_what_is_named_changes() {
    let sequences = setting("PLIMSOLL_MODEL_SEQUENCES", SEQUENCES);
    let first = setting("PLIMSOLL_MODEL_SEED", 1);
    println!("PLIMSOLL_MODEL_SEED={first} PLIMSOLL_MODEL_SEQUENCES={sequences}");
    let mut world = World::new();
    let mut tally = Tally::default();
    for seed in first..first + sequences {
        sequence(&mut world, seed, &mut tally);
    }
    for (kind, (done, refused)) in &tally.0 {
        println!("{kind}: {done} done, {refused} refused");
        // Otherwise nothing is shown of it.
        assert!(*done > 0 || sequences < SEQUENCES, "{kind} was never done");
    }
}
