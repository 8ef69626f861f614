//! Tests of the window of commands.

use wire::iscsi::Serial;

use super::{Verdict, Window};

#[test]
fn the_window_moves_and_never_back() {
    // It wraps, as numbers do.
    let first = Serial(u32::MAX - 1);
    let mut window = Window::new(first, 3);
    assert_eq!((window.expected(), window.last()), (first, Serial(0)));
    assert_eq!(window.judge(first.next()), Verdict::Ignore, "a gap");
    assert_eq!(window.judge(first), Verdict::Take);
    assert_eq!(window.judge(first), Verdict::Ignore, "again");
    assert_eq!((window.expected(), window.last()), (first.next(), Serial(0)));
    assert_eq!(window.judge(first.plus(1)), Verdict::Take);
    assert_eq!(window.judge(first.plus(2)), Verdict::Take);
    assert_eq!((window.expected(), window.last()), (Serial(1), Serial(0)), "closed");
    assert_eq!(window.judge(Serial(1)), Verdict::Ignore);
    window.end();
    assert_eq!(window.last(), Serial(1));
    assert_eq!(window.judge(Serial(1)), Verdict::Take);
    for _ in 0..10 {
        window.end();
    }
    assert_eq!(window.last(), Serial(4), "no more than its size");
}
