//! Options of `serve`, right and wrong.

use std::path::Path;

use super::{served, user};

#[test]
fn users_in_both_forms() {
    assert_eq!(user("ann:secret:with:colons").unwrap().1, "secret:with:colons");
    let file = std::env::temp_dir().join(format!("plimsoll-plan-{}", std::process::id()));
    std::fs::write(&file, "from a file\nsecond line\n").unwrap();
    let read = user(&format!("ann:@{}", file.display())).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(read, ("ann".to_owned(), "from a file".to_owned()));
    for bad in ["ann", ":x", "ann:", "a\nb:x", "ann:@/nonexistent/file"] {
        assert!(user(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn a_wrong_user_does_not_show_the_password() {
    let failure = format!("{:?}", user("nocolonbutsecret").unwrap_err());
    assert!(!failure.contains("secret"), "{failure}");
}

#[test]
fn only_directories_are_served() {
    assert!(served(Path::new("/")).is_ok());
    assert!(served(Path::new("/nonexistent")).is_err());
    assert!(served(Path::new("/proc/self/status")).is_err());
    assert!(served(Path::new("/proc/self/status/x")).is_err());
}
