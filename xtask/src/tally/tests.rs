//! Logs are added up, and a change in the list of skips is seen both ways.

use super::*;

const LOG: &str = "\
running 3 tests
test a ... ok
test result: ok. 12 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out
SKIP uml: no user-mode-linux
    SKIP uml: no user-mode-linux
# pass 7
# fail 2
\u{2139} pass 3
CHECK ok tidy
CHECK FAILED fmt
";

#[test]
fn sums_of_all_runners() {
    let tally = add_up(LOG);
    assert_eq!((tally.passed, tally.failed), (12 + 7 + 3 + 1, 1 + 2 + 1));
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
