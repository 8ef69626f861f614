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
    compare(LIST, results).expect("a comparison")
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
        assert!(compare(LIST, results).is_err(), "{results:?}");
    }
    assert!(compare(&LIST.replace("wants a delegation for writing", ""), "4.1 A passed").is_err());
}
