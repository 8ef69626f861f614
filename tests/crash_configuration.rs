//! Power cuts at seeded moments while the configuration of a real server changes. The state of the
//! server lies on a file system that forgets what was not flushed. What is left is one of the
//! committed configurations, never older than what was acknowledged, with its secrets and its audit
//! log, and a server starts from it. Leaving out any one flush must be noticed.

#[path = "crash_configuration/left.rs"]
mod left;
#[path = "crash_configuration/run.rs"]
mod run;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use base::random::{Random, SeededRandom};
use e2e::skip;
use sim::forget::{self, Choose};

use left::Left;
use run::RunPlan;

/// Moments at which the power goes.
const CUTS: usize = 200;
/// On average, one of this number of file system calls is such a moment.
const CALLS_PER_CUT: u64 = 25;
/// Most changes until [`CUTS`] moments are reached.
const CHANGES_MAX: usize = 400;
/// Number of cuts after which a server is started from what is left.
const STARTS: usize = 10;
/// Changes within which the loss of a flush must be noticed.
const CHANGES_TO_NOTICE: usize = 16;

#[test]
fn a_cut_at_any_moment_leaves_a_committed_configuration() {
    if let Err(why) = forget::available() {
        skip!("crash-configuration", "{why}");
    }
    let cuts = Arc::new(AtomicUsize::new(0));
    let (mut random, kept) = (SeededRandom::new(1), cuts.clone());
    let choose: Choose = Box::new(move |_, _| {
        let now = kept.load(SeqCst) < CUTS && random.below(CALLS_PER_CUT) == 0;
        kept.fetch_add(usize::from(now), SeqCst);
        now
    });
    let enough = move |changes| cuts.load(SeqCst) == CUTS || changes == CHANGES_MAX;
    let (run, images) = run::run(
        "crash-configuration",
        RunPlan { seed: 1, choose, from_start: false, enough: Box::new(enough), skip_flush: None },
    );
    println!("{} cuts in {} revisions", images.len(), run.revisions.len());
    assert_eq!(images.len(), CUTS);
    for (at, image) in images.iter().enumerate() {
        let left = Left::new(image);
        assert_eq!(left.fault(&run), None);
        if at % (CUTS / STARTS) == 0 {
            assert_eq!(left.fault_of_a_server(&run), None);
        }
    }
}

/// Every flush of the configuration, by the name that `PLIMSOLL_TEST_SKIP_FLUSH` takes.
const FLUSHES: [&str; 7] = [
    "revision",
    "revision-name",
    "configuration-folder",
    "secrets",
    "secrets-name",
    "audit",
    "audit-name",
];

/// What was noticed without a flush.
fn noticed(site: &'static str) -> Option<String> {
    let (run, images) = run::run(
        "crash-configuration-flush",
        RunPlan {
            seed: 2,
            // Only a flush brings anything to disk: the moment before the next is the hardest.
            choose: Box::new(|_, flush| flush),
            from_start: true,
            enough: Box::new(|changes| changes == CHANGES_TO_NOTICE),
            skip_flush: Some(site),
        },
    );
    images.iter().find_map(|image| Left::new(image).fault(&run))
}

#[test]
fn leaving_out_any_one_flush_is_noticed() {
    if let Err(why) = forget::available() {
        skip!("crash-configuration-each-flush", "{why}");
    }
    let mut unnoticed = Vec::new();
    for site in FLUSHES {
        match noticed(site) {
            Some(what) => println!("without {site}: {what}"),
            None => unnoticed.push(site),
        }
    }
    assert!(unnoticed.is_empty(), "nobody noticed that these flushes were left out: {unnoticed:?}");
}
