//! Windows by given times.

use super::{Tally, Windows, whole};
use crate::count::Sums;
use crate::limits::WINDOWS_MAX;

#[test]
fn each_thread_counts_in_the_window_of_its_own_clock() {
    let windows = Windows::new();
    for bytes in [10, 1_000] {
        let mut tally = Tally::new(100, 10);
        for now_ns in [100, 109, 110, 135] {
            let sums = tally.at(now_ns, &windows);
            sums.sent += bytes;
            sums.calls += 1;
        }
        tally.at(139, &windows).received += bytes;
        assert_eq!(tally.latest_ns(), 139);
        tally.flush(&windows);
    }
    let sums = |sent, received, calls| Sums { sent, received, calls };
    let all = [sums(2_020, 0, 4), sums(1_010, 0, 2), sums(0, 0, 0), sums(1_010, 1_010, 2)];
    assert_eq!(windows.first(4), all);
    assert_eq!((whole(100, 139, 10), whole(100, 140, 10), whole(100, 90, 10)), (3, 4, 0));
    windows.clear();
    assert_eq!(windows.first(4), [Sums::default(); 4]);
}

#[test]
fn what_is_later_than_the_last_window_is_left_out() {
    let windows = Windows::new();
    let mut tally = Tally::new(0, 1);
    for now_ns in [WINDOWS_MAX as u64 - 1, WINDOWS_MAX as u64, u64::MAX] {
        tally.at(now_ns, &windows).calls += 1;
    }
    tally.flush(&windows);
    let all = windows.first(u64::MAX);
    assert_eq!(all.len(), WINDOWS_MAX);
    assert_eq!(all.iter().map(|sums| sums.calls).sum::<u64>(), 1);
    assert_eq!(all[WINDOWS_MAX - 1].calls, 1);
}
