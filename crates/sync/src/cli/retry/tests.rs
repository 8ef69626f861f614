//! Which ends of a run are followed by another try, and how soon.

use std::io;

use super::*;

fn gone() -> SyncError {
    SyncError::Gone
}

fn seconds(next: Option<(Duration, u32)>) -> Option<(u64, u32)> {
    next.map(|(wait, left)| (wait.as_secs(), left))
}

#[test]
fn it_waits_longer_each_time_and_gives_up() {
    let mut again = Retry::new(8);
    let waits: Vec<_> = (0..9).map(|_| seconds(again.after(&gone(), false))).collect();
    let wanted = [(1, 7), (2, 6), (4, 5), (8, 4), (16, 3), (32, 2), (60, 1), (60, 0)].map(Some);
    assert_eq!(waits, [&wanted[..], &[None]].concat());
    assert_eq!(Retry::new(0).after(&gone(), true), None, "nobody has asked for it");
}

#[test]
fn transferred_data_restarts_the_count() {
    let mut again = Retry::new(2);
    assert_eq!(seconds(again.after(&gone(), false)), Some((1, 1)));
    assert_eq!(seconds(again.after(&gone(), false)), Some((2, 0)));
    assert_eq!(seconds(again.after(&gone(), true)), Some((1, 1)));
}

#[test]
fn what_is_wrong_from_the_beginning_is_not_tried_again() {
    let busy = || SyncError::Refused(format!("/copy: {}", SyncError::BUSY));
    let never = [
        || SyncError::Unreached(127),
        || SyncError::Refused("no such share".to_owned()),
        || SyncError::Version { theirs: 9, ours: 1 },
    ];
    let later: [&dyn Fn() -> SyncError; 3] =
        [&|| SyncError::Unreached(255), &|| SyncError::Silent, &busy];
    for why in later {
        assert_eq!(Retry::new(3).after(&why(), false), None, "{}", why());
        let mut again = Retry::new(3);
        again.after(&SyncError::Link(io::ErrorKind::BrokenPipe.into()), true).expect("a break");
        assert_eq!(seconds(again.after(&why(), false)), Some((2, 1)), "{}", why());
    }
    for why in never {
        let mut again = Retry::new(3);
        again.after(&gone(), true).expect("a break");
        assert_eq!(again.after(&why(), false), None, "{}", why());
    }
}

#[test]
fn the_sources_of_the_messages_use_these_words() {
    let busy = SyncError::Busy("/copy".to_owned()).to_string();
    assert!(busy.ends_with(SyncError::BUSY), "{busy}");
}
