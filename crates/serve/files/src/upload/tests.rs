//! Recognition of abandoned temporary files.

use super::*;

const NOW: Time = Time { sec: 1_800_000_000, nsec: 0 };

fn ago(seconds: u64) -> Option<Time> {
    Some(Time { sec: NOW.sec - seconds as i64, nsec: 0 })
}

fn name(owner: &str, life: &str, number: u64) -> Vec<u8> {
    [PREFIX, format!("{owner}-{life}-{number}").as_bytes()].concat()
}

#[test]
fn those_of_this_server_are_left_when_no_upload_has_them() {
    let temporary = Temporary::new();
    assert!(!is_left(&temporary.name, ago(1_000_000), NOW), "it is under way");
    let number = temporary.number;
    let of_now = temporary.name.clone();
    assert_eq!(of_now, name(owner(), life(), number));
    drop(temporary);
    assert!(is_left(&of_now, ago(0), NOW));
    let before = name(owner(), "0123456789abcdef", number);
    assert!(is_left(&before, ago(0), NOW), "its process is gone: it had the number before");
}

#[test]
fn those_of_others_are_left_after_days() {
    let days = UPLOAD_FOREIGN_AGE.as_secs();
    let other = name("fedcba9876543210", life(), 1);
    // As servers of before have named them.
    let older = [PREFIX, b"0123456789abcdef-1"].concat();
    for name in [other, older, [PREFIX, b"x"].concat()] {
        assert!(is_left(&name, ago(days + 1), NOW));
        assert!(!is_left(&name, ago(days - 1), NOW));
        assert!(!is_left(&name, Some(Time { sec: NOW.sec + 60, nsec: 0 }), NOW));
        assert!(!is_left(&name, None, NOW), "nobody knows");
    }
    assert!(!is_left(b".plimsoll", ago(days + 1), NOW));
    assert!(!is_left(b"file", ago(days + 1), NOW));
}
