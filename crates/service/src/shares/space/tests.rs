//! File systems that respond, and one that does not.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::*;

fn volume(bytes: u64) -> Volume {
    Volume { space: Space { total_bytes: bytes, ..Space::default() }, fsid: Some(bytes) }
}

fn query(name: &str, bytes: u64) -> (String, Query) {
    (name.to_owned(), Box::new(move || volume(bytes)))
}

/// One that waits for a message.
fn stuck(wait: Receiver<()>, asked: &Arc<AtomicUsize>) -> (String, Query) {
    let asked = Arc::clone(asked);
    let query = move || {
        asked.fetch_add(1, SeqCst);
        // The end of the sender is a message too.
        let _ = wait.recv();
        volume(5)
    };
    ("b".to_owned(), Box::new(query))
}

fn totals(spaces: &[Space]) -> Vec<u64> {
    spaces.iter().map(|space| space.total_bytes).collect()
}

#[test]
fn a_file_system_that_does_not_respond_delays_no_other_and_is_asked_once() {
    let (mut spaces, asked) = (Spaces::default(), Arc::default());
    let patient = Duration::from_mins(1);
    spaces.limit = patient;
    let all = |second| vec![query("a", 1), second, query("c", 3)];
    assert_eq!(totals(&spaces.of(all(query("b", 2)))), [1, 2, 3]);
    assert!(spaces.late().is_empty());
    assert_eq!((spaces.fsid("c"), spaces.fsid("d")), (Some(3), None));
    spaces.limit = STORAGE_LOOK_TIME_MAX;
    let (release, wait) = channel();
    assert_eq!(totals(&spaces.of(all(stuck(wait, &asked)))), [1, 2, 3], "the last value");
    assert!(spaces.late().contains(&"b".to_owned()));
    for _ in 0..3 {
        let (_ends, wait) = channel();
        assert_eq!(totals(&spaces.of(all(stuck(wait, &asked)))), [1, 2, 3]);
    }
    assert_eq!(asked.load(SeqCst), 1);
    drop(release);
    let until = Instant::now() + Duration::from_secs(60);
    while !spaces.late().is_empty() {
        assert!(Instant::now() < until, "it has responded");
        std::thread::yield_now();
    }
    spaces.limit = patient;
    assert_eq!(totals(&spaces.of(all(query("b", 9)))), [1, 9, 3]);
}
