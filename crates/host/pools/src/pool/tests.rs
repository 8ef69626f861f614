//! A comparison that could not be made is not one that found nothing.

use std::io;
use std::path::PathBuf;

use super::{is_unreadable, parts};

#[test]
fn only_what_is_on_a_part_makes_it_unreadable() {
    for code in [libc::EINVAL, libc::EIO, libc::EUCLEAN] {
        assert!(is_unreadable(&io::Error::from_raw_os_error(code)), "{code}");
    }
    let others = [libc::ENOENT, libc::EBUSY, libc::EEXIST, libc::ENOMEM, libc::EPERM, libc::ENXIO];
    for code in others {
        assert!(!is_unreadable(&io::Error::from_raw_os_error(code)), "{code}");
    }
}

#[test]
fn parts_without_a_device_in_common_are_all_compared() {
    let paths =
        |count: usize| (0..count).map(|at| PathBuf::from(at.to_string())).collect::<Vec<_>>();
    let of = |count| parts(&paths(count)).len();
    assert_eq!([of(1), of(2), of(3), of(4), of(5)], [0, 2, 3, 6, 0]);
    for part in parts(&paths(4)) {
        let is_rest = |other: &Vec<PathBuf>| other.iter().all(|path| !part.contains(path));
        assert!(parts(&paths(4)).iter().any(is_rest), "{part:?} has no other part");
    }
}
