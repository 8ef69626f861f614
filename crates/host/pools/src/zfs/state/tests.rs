//! States, tasks and results from outputs.

use super::{ended, state, task};
use crate::request::{Kind, Phase};
use crate::state::State;
use crate::zfs::{Pool, json, text};

fn pool(file: &str) -> Pool {
    let path = format!("{}/tests/zfs/{file}", env!("CARGO_MANIFEST_DIR"));
    let all = std::fs::read_to_string(path).expect("read");
    let body: Vec<&str> = all.lines().filter(|line| !line.starts_with('#')).collect();
    let body = body.join("\n");
    let mut pools = if file.ends_with(".json") {
        json::pools(body.as_bytes()).expect("parsed")
    } else {
        text::pools(&body)
    };
    pools.remove(0)
}

fn of(pool: &Pool) -> (State, String) {
    let (state, reason) = state(pool, |at| format!("number {at}"));
    (state, reason.unwrap_or_default())
}

#[test]
fn states_of_recorded_outputs() {
    for (file, expected, part) in [
        ("zfs-fuse-0.7-new.txt", State::Healthy, ""),
        ("zfs-fuse-0.7-offline.txt", State::Degraded, "disk number 1 is offline"),
        ("zfs-fuse-0.7-scrub-running.txt", State::Healthy, ""),
        ("openzfs-2.1-removed.txt", State::Degraded, "disk number 0 is missing: connect it"),
        ("openzfs-2.1-resilver.txt", State::Repairing, "gets the data"),
        ("openzfs-2.2-resilver.txt", State::Repairing, "gets the data"),
        ("openzfs-2.2-roles.txt", State::Degraded, "number 1 is faulted (too many errors)"),
        ("openzfs-2.3-fault.json", State::Degraded, "number 1 is faulted (external device fault)"),
        ("openzfs-2.3-resilver.json", State::Repairing, "number 2 is faulted"),
        ("openzfs-2.3-scrubbed.json", State::Healthy, ""),
    ] {
        let (state, reason) = of(&pool(file));
        assert_eq!(state, expected, "{file}");
        assert!(reason.contains(part) && reason.is_empty() == part.is_empty(), "{file}: {reason}");
    }
}

#[test]
fn a_pool_without_data_has_failed() {
    let mut one = pool("zfs-fuse-0.7-new.txt");
    for word in ["FAULTED", "UNAVAIL", "SUSPENDED", "anything"] {
        one.health = crate::zfs::Health::of(word);
        assert_eq!(of(&one).0, State::Failed, "{word}");
    }
}

#[test]
fn blocks_without_a_copy_and_a_lost_cache() {
    let mut one = pool("zfs-fuse-0.7-new.txt");
    one.leaves[3].health = crate::zfs::Health::Unavailable;
    let (state, reason) = of(&one);
    assert_eq!(state, State::Healthy);
    assert!(reason.contains("cache disk number 3 is missing"), "{reason}");
    one.errors = 2;
    assert!(of(&one).1.contains("2 files or blocks"));
    assert_eq!(of(&one).0, State::Degraded);
    one.leaves[2].health = crate::zfs::Health::Faulted;
    assert!(of(&one).1.contains("log disk number 2 is faulted"));
}

#[test]
fn tasks_have_their_progress() {
    let runs = task(&pool("openzfs-2.2-resilver.txt").scan, 1_737_441_885 + 100).expect("runs");
    assert_eq!((runs.kind, runs.phase, runs.thousandths), (Kind::Resilver, Phase::Resilver, 812));
    assert_eq!(runs.seconds_left, Some(26_475));
    let runs = task(&pool("openzfs-2.3-resilver.json").scan, 1_737_441_885 + 100).expect("runs");
    assert_eq!((runs.thousandths, runs.seconds_left), (250, Some(300)));
    let runs = task(&pool("zfs-fuse-0.7-scrub-running.txt").scan, 1_000).expect("runs");
    assert_eq!((runs.started_s, runs.thousandths, runs.seconds_left), (820, 425, Some(240)));
    assert_eq!(task(&pool("openzfs-2.3-scrubbed.json").scan, 0), None);
}

#[test]
fn results_are_sentences() {
    let one = ended(&pool("openzfs-2.3-scrubbed.json").scan).expect("ended");
    assert!(one.complete && one.kind == Kind::Scrub);
    assert_eq!(one.result, "960 KiB were repaired, 0 errors without a right copy.");
    let stopped = ended(&pool("zfs-0.8-three-pools.txt").scan).expect("ended");
    assert!(!stopped.complete);
    assert_eq!(ended(&pool("openzfs-2.2-resilver.txt").scan), None);
}
