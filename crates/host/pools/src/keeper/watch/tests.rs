//! Counters of the kernel as a device has them, and states that are read after they are requested.

use base::clock::{Clock, NS_PER_S, SystemClock};

use super::{LOOK_NS, Look, flights};

#[test]
fn requests_in_flight_and_completed() {
    let old = "57 0 2160 0 1098 0 25208 60 3 60 60";
    assert_eq!(flights(old), Some((3, 1_155)));
    // With discards and flushes.
    assert_eq!(flights(&format!("{old} 5 0 40 1 7 2\n")), Some((3, 1_167)));
    assert_eq!(flights(""), None);
    assert_eq!(flights("1 2 3"), None);
}

#[test]
fn a_reading_that_began_before_its_request_is_no_answer_to_it() {
    let (look, now) = (Look::default(), SystemClock.monotonic_ns());
    let (first, begins) = look.request(now);
    assert!(begins);
    // Two requests while it runs: one reading more answers both.
    let (second, begins) = look.request(now);
    assert!(!begins);
    assert_eq!(look.request(now), (second, false));
    assert!(second > first);
    assert!(look.end(Some("before"), now), "the next one begins");
    let deadline = SystemClock.monotonic_ns() + LOOK_NS;
    assert_eq!(look.wait(first, deadline, || false), Some("before"));
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| look.wait(second, deadline, || false));
        assert!(!look.end(Some("after"), SystemClock.monotonic_ns()), "none is requested");
        assert_eq!(waits.join().expect("ended"), Some("after"));
    });
    // None runs: the caller begins the next one.
    assert!(look.request(now).1);
}

#[test]
fn a_state_is_waited_for_until_its_disk_is_silent_or_its_time_is_over() {
    let (look, now) = (Look::default(), SystemClock.monotonic_ns());
    let (first, _) = look.request(now);
    look.end(Some("last"), now);
    let (second, _) = look.request(SystemClock.monotonic_ns());
    assert!(second > first);
    // A deadline that no test reaches.
    let far = u64::MAX - NS_PER_S;
    assert_eq!(look.wait(second, far, || true), Some("last"));
    // One that is over.
    assert_eq!(look.wait(second, now, || false), Some("last"));
}
