//! Lines with tabulators.

use super::{bytes, lines, properties};

#[test]
fn short_lines_are_skipped() {
    let text = "tank\t100\t20\nbroken\t1\n\nother\t1\t2\tmore\n";
    assert_eq!(lines::<3>(text), [["tank", "100", "20"], ["other", "1", "2"]]);
}

#[test]
fn properties_that_are_not_set_are_left_out() {
    let text =
        "tank\tused\t397312\ntank\tplimsoll:profile\t-\ntank/a@s\tused\t0\ntank\tquota\tnone\n";
    let all = properties(text);
    assert_eq!(bytes(&all["tank"], "used"), Some(397_312));
    assert_eq!(bytes(&all["tank"], "quota"), None);
    assert!(!all["tank"].contains_key("plimsoll:profile"));
    assert_eq!(bytes(&all["tank/a@s"], "used"), Some(0));
}
