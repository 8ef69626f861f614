//! When a write is shown, and for how long a change time holds.

use super::*;

const CTIME: Time = Time { sec: 5, nsec: 6 };

fn shown(times: &Times, now_ns: u64) -> (u64, u64) {
    let mut facts = Facts { written: 100, changed: 200, ..Facts::default() };
    times.show(&mut facts, CTIME, now_ns);
    (facts.written, facts.changed)
}

#[test]
fn a_write_is_shown_later() {
    let mut times = Times::default();
    assert_eq!(shown(&times, 0), (100, 200));
    let until_ns = times.written(7, 1);
    assert_eq!(until_ns, 1 + WRITE_TIME_DELAY_NS);
    assert_eq!(shown(&times, until_ns - 1), (7, 200));
    // More writes do not put it off.
    assert_eq!(times.written(8, 2), until_ns);
    assert_eq!(shown(&times, until_ns), (100, 200));
    let again_ns = times.written(9, until_ns);
    assert_eq!(shown(&times, again_ns - 1), (9, 200));
    assert!(times.settle(again_ns - 1) && !times.settle(again_ns - 1));
    assert_eq!(shown(&times, again_ns - 1), (100, 200));
    let last_ns = times.written(9, again_ns);
    assert!(!times.settle(last_ns));
}

#[test]
fn a_change_time_holds_until_the_file_changes() {
    let mut times = Times::default();
    times.set_change(3, CTIME);
    assert_eq!(shown(&times, 0), (100, 3));
    times.set_change(3, Time { sec: 4, nsec: 0 });
    assert_eq!(shown(&times, 0), (100, 200));
}
