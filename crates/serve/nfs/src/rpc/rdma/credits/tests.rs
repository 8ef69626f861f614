//! Grants, and what is beyond them.

use super::*;

#[test]
fn what_is_granted_is_what_is_asked_for_within_what_is_posted() {
    for (posted, asked, granted) in
        [(128, 128, 128), (128, 1000, 128), (64, 128, 64), (128, 32, 32), (128, 0, 1)]
    {
        let mut credits = Credits::new(posted);
        credits.take(asked).expect("the first is taken");
        assert_eq!(credits.granted(), granted, "{posted} posted, {asked} asked");
    }
}

#[test]
fn more_than_was_granted_is_refused() {
    let mut credits = Credits::new(128);
    for _ in 0..4 {
        credits.take(4).expect("within the grant");
    }
    assert_eq!(credits.take(4), Err(Exceeded));
    credits.give();
    assert_eq!((credits.take(4), credits.in_use()), (Ok(()), 4));
}

#[test]
fn a_grant_holds_for_calls_that_are_on_their_way() {
    let mut credits = Credits::new(8);
    for _ in 0..8 {
        credits.take(8).expect("within the grant");
    }
    credits.give();
    credits.take(1).expect("it was granted");
    assert_eq!(credits.granted(), 8, "not less than there are");
}

#[test]
fn our_calls_wait_for_what_the_client_grants() {
    let mut back = BackCredits::default();
    assert!(back.take() && !back.take());
    back.give(2);
    assert!(back.take() && back.take() && !back.take());
    back.give(0);
    assert!(!back.take(), "one is still under way");
    back.give(1 << 30);
    assert!((0..RDMA_BACK_CREDITS).all(|_| back.take()) && !back.take());
}
