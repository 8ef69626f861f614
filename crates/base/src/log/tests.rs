//! The log: what is kept, in which order, and how much.

use super::*;

#[test]
fn lines_are_kept_in_order_and_the_oldest_go() {
    // The log is the process's: other tests may tell something, but not as these services.
    let before = newest();
    crate::tell!("log-test", "{} of {}", 1, 2);
    keep("log-other", "something else");
    keep("log-test", "two");
    let texts = |lines: Vec<Line>| lines.into_iter().map(|line| line.text).collect::<Vec<_>>();
    assert_eq!(texts(since(before, Some("log-test"), 9)), ["1 of 2", "two"]);
    assert_eq!(texts(since(before, Some("log-test"), 1)), ["two"], "the newest");
    assert!(since(newest(), None, 9).is_empty());
    let long = "x".repeat(LOG_LINE_MAX + 1);
    for _ in 0..LOG_LINES_MAX {
        keep("log-test", &long);
    }
    let all = since(0, None, usize::MAX);
    assert_eq!(all.len(), LOG_LINES_MAX);
    assert!(all.windows(2).all(|pair| pair[0].number < pair[1].number));
    assert_eq!(all[9].text.len(), LOG_LINE_MAX);
}
