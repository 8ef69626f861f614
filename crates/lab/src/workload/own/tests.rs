//! Each thread has its own files and places; read once, every block comes exactly once.

use super::*;
use std::collections::BTreeSet;

fn places(own: &mut Own, thread: u32, count: usize) -> Vec<(u32, u64)> {
    let next = |_| own.next(thread).map(|block| (block.file, block.number));
    (0..count).filter_map(next).collect()
}

#[test]
fn threads_have_files_and_places_of_their_own() {
    let mut own = Own::new(5, 2);
    own.begin(2, false);
    assert_eq!(places(&mut own, 0, 3), [(0, 0), (0, 1), (2, 0)]);
    assert_eq!(places(&mut own, 1, 5), [(1, 0), (1, 1), (3, 0), (3, 1), (1, 0)]);
    own.begin(2, false);
    assert_eq!(places(&mut own, 0, 4), [(2, 1), (4, 0), (4, 1), (0, 0)], "it goes on");
    own.begin(5, false);
    for thread in 0..5 {
        let expected = [(thread, 0), (thread, 1), (thread, 0)];
        assert_eq!(places(&mut own, thread, 3), expected, "each its own file");
    }
    assert_eq!(own.next(5), None, "there are five");
}

#[test]
fn read_once_every_block_comes_once_and_all_threads_work_to_the_end() {
    for (files, threads) in [(20, 1), (20, 20), (20, 3), (3, 8)] {
        let mut own = Own::new(files, 7);
        own.begin(threads, false);
        places(&mut own, 0, 3);
        own.begin(threads, true);
        let (mut seen, mut idle) = (BTreeSet::new(), 0);
        // The first thread is three times as fast as the others.
        for turn in 0.. {
            let thread = if turn % 3 > 0 { 0 } else { turn / 3 % threads };
            match own.next(thread) {
                Some(block) => {
                    assert!(seen.insert((block.file, block.number)), "{block:?} twice");
                    idle = 0;
                }
                None => idle += 1,
            }
            if idle > 3 * threads {
                break;
            }
        }
        assert_eq!(seen.len(), files as usize * 7, "{files} files, {threads} threads");
    }
}

#[test]
fn a_thread_helps_only_when_its_files_are_read() {
    let mut own = Own::new(2, 3);
    own.begin(2, true);
    assert!((0..3).all(|_| own.next(0).is_some_and(|block| !block.helps)));
    let helped = own.next(0);
    assert_eq!(helped, Some(Block { file: 1, number: 0, last: false, helps: true }));
    assert_eq!(own.next(1), Some(Block { file: 1, number: 1, last: false, helps: false }));
}
