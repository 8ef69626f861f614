//! Numbers of CREATEs, and of channels.

use super::*;

#[test]
fn a_lock_is_known_again_until_another_one_of_its_index() {
    let locks = LockSequences::default();
    for index in [1, 64] {
        assert!(!locks.is_done((index, 0)), "the first one, of number 0");
        locks.set_done((index, 0));
        assert!(locks.is_done((index, 0)));
        assert!(!locks.is_done((index, 5)), "the next one");
        assert!(!locks.is_done((index, 0)), "forgotten, whether the next one succeeds or not");
        locks.set_done((index, 15));
    }
    assert!(locks.is_done((1, 15)), "each index has its own");
    assert!(!locks.is_done((2, 15)));
    for index in [0, 65, u32::MAX >> 4] {
        locks.set_done((index, 1));
        assert!(!locks.is_done((index, 1)), "{index} is never remembered");
    }
    assert_eq!(locks.of.borrow().len(), LOCK_SEQUENCES);
}

#[test]
fn a_create_is_known_by_client_and_number_while_its_open_is_there() {
    let all = Arc::new(Replays::default());
    let one = all.begin([1; 16], [7; 16]).expect("new");
    assert_eq!(all.begin([1; 16], [7; 16]).err(), Some(Created::Pending));
    one.set(Created::Open(5, 6));
    assert_eq!(all.begin([1; 16], [7; 16]).err(), Some(Created::Open(5, 6)));
    assert!(all.begin([2; 16], [7; 16]).is_ok(), "another client's");
    one.set(Created::Parked(9));
    assert_eq!(all.begin([1; 16], [7; 16]).err(), Some(Created::Parked(9)));
    drop(one);
    assert!(all.begin([1; 16], [7; 16]).is_ok());
    assert!(all.of().is_empty());
}

#[test]
fn changes_of_an_old_channel_are_refused() {
    let sequence = Sequence::new(3);
    assert_eq!(sequence.begin(4, false, true), Ok(true));
    assert_eq!(sequence.begin(3, false, true), Err(NotAvailable));
    assert_eq!(sequence.begin(3, false, false), Ok(false), "a look harms nothing");
    assert!(sequence.is(4));
    let wraps = Sequence::new(u16::MAX);
    assert_eq!(wraps.begin(0, false, true), Ok(true));
    assert_eq!(wraps.begin(u16::MAX, false, true), Err(NotAvailable));
    assert_eq!(wraps.begin(0x7fff, false, true), Ok(true));
    assert_eq!(Sequence::new(0).begin(0x8000, false, true), Err(NotAvailable));
}

#[test]
fn a_repeated_request_waits_for_the_end_of_earlier_ones() {
    let sequence = Sequence::new(0);
    assert_eq!(sequence.begin(0, false, true), Ok(true));
    assert_eq!(sequence.begin(1, false, true), Ok(true), "a new request need not wait");
    assert_eq!(sequence.begin(1, true, true), Err(NotAvailable));
    sequence.end(0);
    assert_eq!(sequence.begin(1, true, true), Ok(true));
    sequence.end(1);
    sequence.end(1);
    assert_eq!((sequence.requests.get(), sequence.earlier.get()), (0, 0));
}

#[test]
fn a_create_of_a_lost_connection_is_refused_while_its_file_is_waited_for() {
    let (all, lost) = (Arc::new(Replays::default()), LostCreates::default());
    let file = FileKey { fsid: 1, fileid: 2, generation: 3 };
    let key = ([1; 16], [2; 16]);
    lost.add(all.begin(key.0, key.1).expect("the first"), file);
    assert_eq!(all.begin(key.0, key.1).err(), Some(Created::Pending));
    assert!(lost.take(key, |waited| waited == file).is_none(), "it is waited for");
    assert!(lost.take(([9; 16], [2; 16]), |_| false).is_none(), "another client's");
    let number = lost.take(key, |_| false).expect("free");
    assert!(lost.take(key, |_| false).is_none(), "once");
    drop(number);
    assert!(all.begin(key.0, key.1).is_ok());
}

#[test]
fn the_oldest_of_too_many_lost_creates_is_forgotten() {
    let (all, lost) = (Arc::new(Replays::default()), LostCreates::default());
    let file = FileKey { fsid: 1, fileid: 2, generation: 3 };
    let guid = |number: usize| [number as u8; 16];
    for number in 0..=SMB_LOST_CREATES_MAX {
        lost.add(all.begin([1; 16], guid(number)).expect("new"), file);
    }
    assert!(lost.take(([1; 16], guid(0)), |_| false).is_none());
    assert!(all.begin([1; 16], guid(0)).is_ok(), "it is a new one");
    assert!(lost.take(([1; 16], guid(1)), |_| false).is_some());
}
