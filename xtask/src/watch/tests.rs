//! Tests that hang are ended, by what they do and not by how long they take.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::*;

const LIMITS: Limits = Limits { idle: Duration::from_secs(10), busy: Duration::from_secs(60) };
const SECOND: Duration = Duration::from_secs(1);

/// A sample of one process: hundredths of a second used, milliseconds waited.
fn sample(used: u64, waited_ms: u64) -> Sample {
    Sample {
        used: BTreeMap::from([(7, used)]),
        waited: BTreeMap::from([(7, waited_ms * 1_000_000)]),
    }
}

#[test]
fn a_test_that_waits_for_a_processor_is_not_ended_and_one_that_sleeps_is() {
    let mut starved = Test::default();
    for second in 1..1000 {
        // A hundredth of a processor, and the rest of the time it waits for one.
        let hang = starved.observe(sample(second, second * 900), SECOND, LIMITS);
        assert_eq!(hang, None, "after {second} s");
    }
    let mut asleep = Test::default();
    for second in 1..10 {
        assert_eq!(asleep.observe(sample(second, second), SECOND, LIMITS), None);
    }
    let hang = asleep.observe(sample(10, 10), SECOND, LIMITS);
    assert_eq!(hang, Some(Hang::Idle(Duration::from_secs(10))));
}

#[test]
fn progress_starts_the_time_again_and_a_loop_ends_by_its_processor_time() {
    let mut test = Test::default();
    for second in 1..=9 {
        assert_eq!(test.observe(sample(0, 0), SECOND, LIMITS), None, "after {second} s");
    }
    assert_eq!(test.observe(sample(50, 0), SECOND, LIMITS), None);
    assert_eq!(test.idle, Duration::ZERO);
    for second in 1..60 {
        let used = 50 + second * 100;
        assert_eq!(test.observe(sample(used, 0), SECOND, LIMITS), None, "after {second} s");
    }
    let hang = test.observe(sample(50 + 6000, 0), SECOND, LIMITS);
    assert_eq!(hang, Some(Hang::Busy(Duration::from_millis(60_500))));
}

#[test]
fn a_parent_is_ended_before_its_children() {
    let folder =
        std::env::temp_dir().join(format!("plimsoll-test-watch-order-{}-0", std::process::id()));
    // Numbers are used again, so that a child can have a smaller one than its parent.
    for (pid, parent) in [(1, 0), (50, 1), (20, 50), (70, 50), (10, 70), (30, 1)] {
        let process = folder.join(pid.to_string());
        std::fs::create_dir_all(&process).unwrap();
        let stat = format!("{pid} (sh) S {parent} 7 7 0 -1 4 1 2 3 4 10 20 30 40 20 0 1 0 5 6\n");
        std::fs::write(process.join("stat"), stat).unwrap();
    }
    let order = in_order(&Processes::read(&folder), 50);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(order, [50, 20, 70, 10]);
}

/// A runner that starts one process as nextest starts a test, and reports how it ended.
fn runner(name: &str, command: &str) -> (PathBuf, PathBuf) {
    let folder =
        std::env::temp_dir().join(format!("plimsoll-test-watch-{name}-{}-0", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (script, result) = (folder.join("cargo-nextest"), folder.join("result"));
    let text = format!(
        "#!/bin/bash\nbash -c '{command}' hangs::{name} --exact\necho $? >{}\n",
        result.display()
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    (script, result)
}

/// Runs it under the watch; how its process ended.
fn watched(name: &str, command: &str, limits: [&str; 4]) -> String {
    let (script, result) = runner(name, command);
    let script = script.to_str().unwrap();
    let args: Vec<&str> = limits.into_iter().chain([script]).collect();
    assert_eq!(run(&args), Ok(0));
    let ended = std::fs::read_to_string(&result).unwrap();
    std::fs::remove_dir_all(result.parent().unwrap()).unwrap();
    ended.trim().to_owned()
}

#[test]
fn processes_that_wait_and_that_compute_without_end_are_ended() {
    let wait = watched("waits", "sleep 100000; true", ["--idle", "1", "--busy", "1000"]);
    assert_eq!(wait, "137");
    let spin = watched("computes", "while :; do :; done", ["--idle", "1000", "--busy", "1"]);
    assert_eq!(spin, "137");
    let ends = watched("ends", "exit 3", ["--idle", "1000", "--busy", "1000"]);
    assert_eq!(ends, "3");
}
