//! Marks are seen by other descriptors, end with their owner, and are no other locks.

use super::*;
use crate::random::{Random, SystemRandom};
use std::path::PathBuf;

struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn files_and_directories_are_marked_until_the_mark_ends() {
    let name = format!("plimsoll-claim-{:016x}", SystemRandom.next_u64());
    let scratch = Scratch(std::env::temp_dir().join(name));
    let file = scratch.0.join("file");
    std::fs::create_dir(&scratch.0).unwrap();
    std::fs::write(&file, "x").unwrap();
    for path in [&file, &scratch.0] {
        let other = File::open(path).unwrap();
        assert!(!is_marked(&other));
        let (mark, second) = (Mark::set(path).unwrap(), Mark::set(path).unwrap());
        assert!(is_marked(&other) && is_marked(&File::open(path).unwrap()));
        drop(mark);
        assert!(is_marked(&other));
        drop(second);
        assert!(!is_marked(&other));
    }
}

#[test]
fn a_lock_of_a_whole_file_is_no_mark() {
    let name = format!("plimsoll-claim-{:016x}", SystemRandom.next_u64());
    let scratch = Scratch(std::env::temp_dir().join(name));
    let path = scratch.0.join("file");
    std::fs::create_dir(&scratch.0).unwrap();
    let file = File::create_new(&path).unwrap();
    let mut whole = range(libc::F_WRLCK);
    (whole.l_start, whole.l_len) = (0, 0);
    // SAFETY: the descriptor is open, and `whole` outlives the call.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const whole) };
    assert_eq!(done, 0);
    assert!(!is_marked(&File::open(&path).unwrap()));
}
