//! The power goes at any moment of a run of changes: what is there afterwards is one of the
//! committed configurations, never older than what was acknowledged, with its secrets.

use std::sync::Arc;

use base::clock::ManualClock;
use base::random::{Random, SeededRandom};
use serde_json::json;

use super::disk::{MemoryDisk, Op, left};
use super::{ROOT, commit, create, open, path, set};
use crate::tree::audit::AuditFilter;
use crate::tree::{Document, Tree};

const CUTS: u64 = 200;
const CHANGES: u64 = 60;

/// A run of changes: the disk's log, and for each acknowledged revision where in the log that was.
struct Run {
    log: Vec<Op>,
    /// By revision: the length of the log at its acknowledgement, and the configuration.
    acknowledged: Vec<(usize, Document)>,
}

fn run(seed: u64) -> Run {
    let disk = MemoryDisk::default();
    let tree = open(&disk);
    let mut random = SeededRandom::new(seed);
    let mut acknowledged = vec![(disk.log().len(), Document::clone(&tree.document()))];
    for round in 0..CHANGES {
        let name = format!("s{round}");
        let changes = match random.below(4) {
            0 => json!([set("/services/nfs", "lease", 1 + random.below(3_600))]),
            1 => json!([create("/shares/default", &name, json!({ "directory": "/srv" }))]),
            2 => json!([create("/users", &name, json!({ "password": "long enough" }))]),
            _ => json!([
                set("/shares/default", "rules", "10.0.0.0/8(rw,sync), *(ro)"),
                set("/services/nfs", "window", format!("{}K", 1 + random.below(999)))
            ]),
        };
        if commit(&tree, changes).unwrap().revision as usize == acknowledged.len() {
            acknowledged.push((disk.log().len(), Document::clone(&tree.document())));
        }
    }
    Run { log: disk.log(), acknowledged }
}

/// What is wrong with what was left, if anything is.
fn fault(run: &Run, cut: usize, random: &mut SeededRandom) -> Option<String> {
    let disk = left(&run.log, cut, random);
    let least = run.acknowledged.iter().filter(|(at, _)| *at <= cut).count() - 1;
    let tree = match Tree::open(Arc::new(disk), &ROOT, Arc::new(ManualClock::default())) {
        Ok(tree) => tree,
        Err(e) => return Some(format!("{e:?}")),
    };
    let current = tree.current();
    let number = current.revision.number as usize;
    if number < least {
        return Some(format!("revision {number}, and {least} was acknowledged"));
    }
    let Some((_, committed)) = run.acknowledged.get(number) else {
        return Some(format!("revision {number} was never committed"));
    };
    if *committed != *current.document {
        return Some(format!("revision {number} is not what was committed"));
    }
    for (at, _) in current.document.nodes().filter(|(at, _)| at.is_in(&path("/users"))) {
        if tree.secrets().get(&current.document, at, "password").is_none() {
            return Some(format!("{at} has lost its password"));
        }
    }
    let all = AuditFilter { limit: usize::MAX, ..AuditFilter::default() };
    let told: Vec<Option<u64>> =
        tree.audit().read(&all).unwrap().iter().map(|record| record.revision).collect();
    if let Some(untold) = (1..=least as u64).find(|number| !told.contains(&Some(*number))) {
        return Some(format!("the audit log has lost who made revision {untold}"));
    }
    // The next change must go through.
    let next = commit(
        &tree,
        json!([set("/services/nfs", "lease", 7), set("/shares/default", "read_only", true)]),
    );
    next.err().map(|problems| format!("{problems:?}"))
}

#[test]
fn a_cut_at_any_moment_leaves_a_committed_configuration() {
    let mut random = SeededRandom::new(1);
    for seed in 0..4 {
        let run = run(seed);
        assert!(run.acknowledged.len() > 30, "most changes change something");
        for _ in 0..CUTS {
            let cut = random.below(run.log.len() as u64 + 1) as usize;
            assert_eq!(fault(&run, cut, &mut random), None, "seed {seed}, cut at {cut}");
        }
    }
}

#[test]
fn every_flush_is_needed() {
    type OpFilter = fn(&Op) -> bool;
    let kinds: [(&str, OpFilter); 5] = [
        ("content of the audit log", |op| matches!(op, Op::Flush(n) if n.starts_with("audit"))),
        ("content of a revision", |op| matches!(op, Op::Flush(n) if n.starts_with("conf"))),
        ("name of a revision", |op| matches!(op, Op::FlushNames(n) if n.starts_with("conf"))),
        ("content of the secrets", |op| matches!(op, Op::Flush(n) if n.starts_with("secr"))),
        ("name of the secrets", |op| matches!(op, Op::FlushNames(n) if !n.starts_with("conf"))),
    ];
    for (what, is_it) in kinds {
        let mut run = run(5);
        // The log without them; acknowledgements move to where they are then.
        let before = run.log.clone();
        run.log.retain(|op| !is_it(op));
        for (at, _) in &mut run.acknowledged {
            *at -= before[..*at].iter().filter(|op| is_it(op)).count();
        }
        let mut random = SeededRandom::new(2);
        let found = (0..4 * CUTS).any(|_| {
            let cut = random.below(run.log.len() as u64 + 1) as usize;
            fault(&run, cut, &mut random).is_some()
        });
        assert!(found, "nothing was lost without the flush of the {what}");
    }
}
