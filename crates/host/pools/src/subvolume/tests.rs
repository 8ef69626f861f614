//! Names of subvolumes. The rest needs a pool (`tests/btrfs/keeper.rs`).

use super::*;

#[test]
fn names_stay_in_their_folder() {
    for good in ["a", "Projects 2026", "x.y"] {
        assert_eq!(check_name(good), Ok(()));
    }
    let long = "n".repeat(NAME_MAX + 1);
    for bad in ["", ".", "..", ".snapshots", "a/b", "/", "a\nb", "a\0b", &long] {
        assert!(check_name(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn names_that_do_not_fit_are_refused() {
    let mut slots = [0; 4];
    assert!(put(&mut slots, b"abc").is_ok());
    assert!(put(&mut slots, b"abcd").is_err());
}
