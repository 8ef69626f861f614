//! What is not as listed is an error, in both directions.

use super::*;

const LIST: &str = r#"
[[case]]
run = "4.1"
names = ["DELEG2", "DELEG24"]
outcome = "failed"
why = "wants a delegation for writing"
"#;

fn wrong(results: &str) -> String {
    compare(LIST, results, None).expect("a comparison")
}

#[test]
fn what_is_as_listed_is_right() {
    assert_eq!(wrong("4.1 DELEG2 failed no\n4.1 DELEG24 failed\n4.1 EID1 passed\n"), "");
}

#[test]
fn a_listed_case_that_passes_is_an_error() {
    let wrong = wrong("4.1 DELEG2 passed\n4.1 DELEG24 failed\n");
    assert_eq!(wrong.trim(), "4.1 DELEG2: passed, expected failed");
}

#[test]
fn a_failure_that_is_not_listed_is_an_error_with_its_message() {
    let wrong = wrong("4.1 DELEG2 failed\n4.1 DELEG24 failed\n4.1 EID1 failed got NFS4ERR_IO\n");
    assert_eq!(wrong.trim(), "4.1 EID1: failed, expected passed  got NFS4ERR_IO");
}

#[test]
fn a_case_that_is_skipped_did_not_fail_as_listed() {
    assert!(wrong("4.1 DELEG2 skipped\n4.1 DELEG24 failed\n").contains("expected failed"));
}

#[test]
fn a_listed_case_must_exist_in_a_run_that_was_made() {
    assert!(wrong("4.1 DELEG2 failed\n").contains("DELEG24: listed, but"));
    assert_eq!(wrong("4.0 RD1 passed\n"), "");
}

#[test]
fn nothing_and_nonsense_are_no_results() {
    for results in ["", "4.1 EID1 perhaps\n", "4.1 EID1 passed\n4.1 EID1 failed\n"] {
        assert!(compare(LIST, results, None).is_err(), "{results:?}");
    }
    assert!(
        compare(&LIST.replace("wants a delegation for writing", ""), "4.1 A passed", None).is_err()
    );
}

const PEERS: &str = r#"
[[case]]
run = "lock"
names = ["a", "b", "c"]
outcome = "failed"
why = "none of the three is there yet"

[[peer]]
run = "lock"
passed = 2
failed = 0
skipped = 0

[[peer]]
run = "read"
passed = 1
failed = 1
skipped = 0
"#;

#[test]
fn another_server_may_not_be_far_ahead() {
    let wrong = |results: &str| compare(PEERS, results, None).expect("a comparison");
    let lock = "lock a failed\nlock b failed\nlock c failed\n";
    let found = wrong(lock);
    assert!(found.contains("lock: 0 passed, of 2"), "{found}");
    // One below in a run is permitted, if it is made up for.
    let found = wrong(&format!("{lock}lock d passed\n"));
    assert_eq!(found.trim(), "in all: 1 passed, 2 elsewhere");
    let found =
        wrong(&format!("{lock}lock d passed\nread a passed\nread b passed\nread c passed\n"));
    assert_eq!(found, "");
}

#[test]
fn a_run_that_is_further_below_has_a_reason() {
    let more = "below = 2\nwhy = \"none of the three is there yet\"\n";
    let list = PEERS.replacen("skipped = 0\n", &format!("skipped = 0\n{more}"), 1);
    let wrong = |list: &str, results: &str| compare(list, results, None);
    let lock = "lock a failed\nlock b failed\nlock c failed\n";
    let read = "read a passed\nread b passed\nread c passed\n";
    assert_eq!(wrong(&list, &format!("{lock}{read}")), Ok(String::new()));
    let found = wrong(&list, &format!("{lock}lock d passed\n{read}")).expect("a comparison");
    assert_eq!(found.trim(), "lock: 1 passed, of 2: it is less below");
    for without in ["below = 2\n", "why = \"none\"\n", "below = 1\nwhy = \"none\"\n"] {
        let list = list.replace(more, without);
        assert!(wrong(&list, lock).is_err(), "{without}");
    }
}

#[test]
fn what_another_server_does_not_skip_is_not_skipped() {
    let results = "lock a failed\nlock b failed\nlock c failed\nlock d passed\nlock e passed\n\
                   lock f passed\nlock g skipped\n";
    let found = compare(PEERS, results, None).expect("a comparison");
    assert!(found.contains("lock: 1 skipped, 0 elsewhere"), "{found}");
}

#[test]
fn results_of_another_server_replace_its_listed_figures() {
    let ours = "lock a failed\nlock b failed\nlock c failed\nlock d passed\nlock e skipped\n";
    let theirs = |passed: &str| {
        let all = format!("lock a failed\nlock d passed\n{passed}");
        compare(PEERS, ours, Some(&all)).expect("a comparison")
    };
    let found = theirs("lock e skipped\n");
    assert!(!found.contains("elsewhere"), "{found}");
    let found = theirs("lock e failed\n");
    assert!(found.contains("lock e: skipped, run elsewhere"), "{found}");
    let found = theirs("lock e skipped\nlock b passed\nlock c passed\n");
    assert!(found.contains("lock: 1 passed, of 3 elsewhere"), "{found}");
}
