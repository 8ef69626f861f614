//! Counts of limits that were reached.

use super::{Limit, counts};

#[test]
fn a_limit_is_counted_under_its_name() {
    let of = |wanted: &str| counts().find(|(name, _)| *name == wanted).map(|(_, count)| count);
    let (first, last) = ("sign-ins waiting", "HTTP sessions");
    let before = (of(first).expect("a limit"), of(last).expect("a limit"));
    Limit::SignIns.count();
    Limit::HttpSessions.count();
    Limit::HttpSessions.count();
    assert_eq!((of(first), of(last)), (Some(before.0 + 1), Some(before.1 + 2)));
}
