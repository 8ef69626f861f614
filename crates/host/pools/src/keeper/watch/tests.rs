//! Counters of the kernel as a device has them.

use super::flights;

#[test]
fn requests_in_flight_and_completed() {
    let old = "57 0 2160 0 1098 0 25208 60 3 60 60";
    assert_eq!(flights(old), Some((3, 1_155)));
    // With discards and flushes.
    assert_eq!(flights(&format!("{old} 5 0 40 1 7 2\n")), Some((3, 1_167)));
    assert_eq!(flights(""), None);
    assert_eq!(flights("1 2 3"), None);
}
