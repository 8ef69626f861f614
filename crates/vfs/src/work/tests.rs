//! The count falls to nothing, and ends what runs.

use super::*;

#[test]
fn no_more_is_taken_than_there_is() {
    let work = Work::new(10);
    assert_eq!(work.take(7), Ok(()));
    assert_eq!(work.take(4), Err(Status::Busy));
    assert_eq!((work.take(3), work.left()), (Ok(()), 0));
    assert_eq!(work.take(0), Ok(()));
    work.end();
    assert_eq!(work.take(0), Err(Status::Busy));
}
