//! Files are read whole or not at all.

use control::cli::Outside;

use super::User;

#[test]
fn a_file_that_is_too_long_is_refused_and_not_cut() {
    let mut user = User { asks: false };
    assert_eq!(user.read("/dev/null"), Ok(String::new()));
    let why = user.read("/dev/zero").unwrap_err();
    assert!(why.contains("/dev/zero: it is longer than"), "{why}");
}
