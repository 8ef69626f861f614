//! What is kept of sums on their way, and for how long.

use super::*;

fn sums(count: usize) -> Vec<Sum> {
    (0..count).map(|n| Sum { weak: n as u32, strong: [n as u8; 16] }).collect()
}

#[test]
fn they_are_there_as_they_come() {
    let mut coming = Coming::default();
    assert!(coming.expect(7, 5));
    assert!(!coming.expect(7, 5), "two of one number");
    assert!(coming.from(7, 0).is_none());
    assert!(matches!(coming.add(7, sums(3)), Some(Ok(()))));
    assert_eq!(coming.from(7, 1).map(|some| some.len()), Some(2));
    assert!(coming.from(7, 3).is_none() && coming.all(7).is_none());
    assert!(matches!(coming.add(7, sums(2)), Some(Ok(()))));
    assert_eq!(coming.all(7).map(|all| all.len()), Some(5));
    coming.end(7);
    assert!(coming.add(7, sums(1)).is_none(), "of a number that nobody has");
}

#[test]
fn what_comes_after_its_end_is_dropped() {
    let mut coming = Coming::default();
    assert!(coming.expect(1, 4));
    assert!(matches!(coming.add(1, sums(1)), Some(Ok(()))));
    coming.end(1);
    assert!(matches!(coming.add(1, sums(2)), Some(Ok(()))));
    assert!(coming.from(1, 0).is_none());
    assert!(matches!(coming.add(1, sums(1)), Some(Ok(()))));
    assert!(coming.add(1, sums(1)).is_none(), "all have come, and nothing is kept");
}

#[test]
fn more_than_were_announced_are_refused() {
    let mut coming = Coming::default();
    assert!(coming.expect(1, 4));
    assert!(matches!(coming.add(1, sums(5)), Some(Err(SyncError::Broken(_)))));
}

#[test]
fn pending_items_without_a_receiver_are_counted() {
    let mut coming = Coming::default();
    for id in 0..3 {
        assert!(coming.expect(id, 2));
        coming.end(id);
    }
    assert_eq!(coming.ended(), 3);
    assert!(matches!(coming.add(1, sums(2)), Some(Ok(()))));
    assert_eq!(coming.ended(), 2);
}
