//! The file of a lease, both sides.

use std::sync::mpsc;

use super::*;

fn path(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("plimsoll-lease-{name}-{}", std::process::id()))
}

#[test]
fn a_process_follows_its_lease_and_no_other_one() {
    let path = path("follow");
    let file = LeaseFile::create(&path).expect("a file");
    let follower = Follower::open(&path, 7).expect("the file");
    assert_eq!(follower.left(), None, "no lease yet");
    file.extend(7, now() + Duration::from_secs(60)).expect("written");
    let left = follower.left().expect("a valid lease");
    assert!(left <= Duration::from_secs(60) && left > Duration::from_secs(1), "{left:?}");
    file.extend(8, now() + Duration::from_secs(60)).expect("written");
    assert_eq!(follower.left(), None, "another lease");
    file.extend(7, now()).expect("written");
    assert_eq!(follower.left(), None, "it is over");
    std::fs::remove_file(path).expect("removed");
}

#[test]
fn the_end_comes_while_nothing_is_written() {
    let path = path("end");
    let file = LeaseFile::create(&path).expect("a file");
    let until = now() + Duration::from_millis(300);
    file.extend(7, until).expect("written");
    let (over, ended) = mpsc::channel();
    let follower = Follower::open(&path, 7).expect("the file");
    follower.start(move || over.send(now()).expect("a receiver")).expect("a thread");
    let when = ended.recv_timeout(Duration::from_secs(60)).expect("the end");
    assert!(when >= until, "not before: {when:?} {until:?}");
    std::fs::remove_file(path).expect("removed");
}

#[test]
fn a_head_that_starts_again_ends_the_processes_of_the_one_before() {
    let path = path("again");
    let old = LeaseFile::create(&path).expect("a file");
    old.extend(7, now() + Duration::from_secs(60)).expect("written");
    let follower = Follower::open(&path, 7).expect("the file");
    let new = LeaseFile::create(&path).expect("another file");
    new.extend(7, now() + Duration::from_secs(600)).expect("written");
    // It stays at the old one, which is not extended any more.
    assert!(follower.left().is_some_and(|left| left <= Duration::from_secs(60)));
    std::fs::remove_file(path).expect("removed");
}
