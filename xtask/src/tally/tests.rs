//! Logs are added up, and a change in the list of skips is seen both ways.

use super::*;

const LOG: &str = "\
running 3 tests
test a ... ok
    test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 34 filtered out
test result: ok. 12 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out
SKIP uml: no user-mode-linux
    SKIP uml: no user-mode-linux
     Summary [  12.345s] 9 tests run: 5 passed (1 slow, 1 flaky), 2 failed, 1 timed out, 30 skipped
     Summary [   0.100s] 4 tests run: 4 passed, 0 skipped
# pass 7
# fail 2
\u{2139} pass 3
CHECK ok tidy
CHECK FAILED fmt
";

#[test]
fn sums_of_all_runners() {
    let tally = add_up(LOG);
    assert_eq!((tally.passed, tally.failed), (12 + 5 + 4 + 7 + 3 + 1, 1 + 2 + 1 + 2 + 1));
    assert_eq!(tally.skips.len(), 1);
}

#[test]
fn skips_are_compared_by_name_both_ways() {
    let skips = add_up(LOG).skips;
    assert_eq!(differences(&skips, "SKIP uml: another reason\n"), "");
    assert_eq!(differences(&skips, "MAY SKIP uml: no such right\n"), "");
    assert_eq!(differences(&BTreeSet::new(), "MAY SKIP uml: no such right\n"), "");
    assert_eq!(differences(&skips, "# none\n"), "new: SKIP uml: no user-mode-linux");
    assert_eq!(differences(&BTreeSet::new(), "SKIP uml: x\n"), "gone: SKIP uml");
}
