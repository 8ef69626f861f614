//! The runs of which leftovers are removed.

use super::*;

#[test]
fn what_the_dead_left_goes_and_what_others_have_stays() {
    let scratch = std::env::temp_dir().join(format!("bench-leftovers-{}", std::process::id()));
    let mut gone = Command::new("true").spawn().expect("a process");
    let dead = gone.id();
    gone.wait().expect("its end");
    let own = std::process::id();
    for name in [format!("{FOLDER}{dead}/from"), format!("{FOLDER}{own}"), "other.1".to_owned()] {
        fs::create_dir_all(scratch.join(name)).expect("a folder");
    }
    fs::write(scratch.join(format!("{FOLDER}{dead}/from/large")), "content").expect("a file");
    assert!(left(&scratch).is_superset(&[dead, own].into()));
    sweep(&scratch);
    assert!(!folder(&scratch, dead).exists(), "its process is no more");
    assert!(folder(&scratch, own).exists(), "that is us");
    assert!(scratch.join("other.1").exists(), "that is none");
    fs::remove_dir_all(&scratch).expect("taking it away");
}

#[test]
fn names_have_the_number_of_their_run() {
    assert_eq!(namespace(12, "near"), "plimsoll-bench-12-near");
    assert_eq!(folder(Path::new("/x"), 12), Path::new("/x/bench-distance.12"));
    assert!(ended().is_ok());
    assert!(bridges(&[namespace(u32::MAX, "near")]).is_empty());
}
