//! A fake disk that counts its queries over days, with a given clock.

use super::*;

#[test]
fn at_most_one_query_an_hour() {
    let mut schedule = Schedule::default();
    let mut queries = Vec::new();
    for now in (1_000_000..1_000_000 + 86_400).step_by(7) {
        if schedule.take("a", now) {
            queries.push(now);
        }
    }
    assert_eq!(queries.len(), 24);
    assert!(queries.windows(2).all(|pair| pair[1] - pair[0] >= INTERVAL_S));
    // Another disk has its own.
    assert!(schedule.take("b", 1_000_001));
    // It survives being written and read.
    let text = serde_json::to_string(&schedule).expect("JSON");
    let mut again: Schedule = serde_json::from_str(&text).expect("the same");
    assert!(!again.take("b", 1_000_001 + INTERVAL_S - 1));
    assert!(again.take("b", 1_000_001 + INTERVAL_S));
}

#[test]
fn a_clock_that_is_set_back() {
    let mut schedule = Schedule::default();
    assert!(schedule.take("a", 2_000_000_000));
    assert!(!schedule.take("a", 1_000));
    assert!(!schedule.take("a", 1_000 + INTERVAL_S - 1));
    assert!(schedule.take("a", 1_000 + INTERVAL_S));
}
