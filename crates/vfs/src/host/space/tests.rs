//! Space of shares that are less than their file system.

use super::*;

const WHOLE: Space = Space {
    total_bytes: 1_000,
    free_bytes: 600,
    avail_bytes: 500,
    total_files: 7,
    free_files: 6,
    avail_files: 6,
};

fn part(used: u64, limit: Option<u64>) -> (u64, u64, u64) {
    let space = limited(WHOLE, Part { used, limit });
    assert_eq!((space.total_files, space.avail_files), (7, 6));
    (space.total_bytes, space.free_bytes, space.avail_bytes)
}

#[test]
fn a_limit_is_the_size_and_what_is_left_of_it_is_available() {
    assert_eq!(part(30, Some(100)), (100, 70, 70));
    assert_eq!(part(130, Some(100)), (100, 0, 0), "the limit was lowered");
    assert_eq!(part(0, Some(100)), (100, 100, 100));
}

#[test]
fn no_more_is_available_than_the_file_system_has() {
    assert_eq!(part(30, Some(900)), (900, 870, 500));
    assert_eq!(part(30, None), (530, 500, 500));
}
