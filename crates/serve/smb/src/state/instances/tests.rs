//! Opens of applications: which ones another client ends, and what is left of them.

use super::*;

fn opened() -> Opened {
    let file = FileKey { fsid: 1, fileid: 2, generation: 0 };
    Opened { instance: [7; 16], share: 3, file }
}

#[test]
fn opens_of_other_clients_are_found_where_they_are() {
    let all = Arc::new(Instances::default());
    let first = all.add(opened(), ([1; 16], None));
    first.set(Created::Open(5, 6));
    assert_eq!(all.others(&opened(), [1; 16], None), Ok(Vec::new()), "its own");
    assert_eq!(all.others(&opened(), [2; 16], None), Ok(vec![Created::Open(5, 6)]));
    for other in [
        Opened { instance: [8; 16], ..opened() },
        Opened { share: 4, ..opened() },
        Opened { file: FileKey { fileid: 3, ..opened().file }, ..opened() },
    ] {
        assert_eq!(all.others(&other, [2; 16], None), Ok(Vec::new()), "{other:?}");
    }
    first.set(Created::Parked(9));
    assert_eq!(all.others(&opened(), [2; 16], None), Ok(vec![Created::Parked(9)]));
    let place = first.handle();
    drop(first);
    place.set(Created::Open(1, 1));
    assert_eq!(all.others(&opened(), [2; 16], None), Ok(Vec::new()));
    assert!(all.inner().of.is_empty());
}

#[test]
fn a_version_is_followed_by_higher_ones_only() {
    let all = Arc::new(Instances::default());
    let _first = all.add(opened(), ([1; 16], Some((2, 5))));
    for version in [None, Some((1, 9)), Some((2, 4)), Some((2, 5))] {
        assert_eq!(all.others(&opened(), [2; 16], version), Err(IsOutdated), "{version:?}");
        assert!(all.others(&opened(), [1; 16], version).is_ok(), "the same client");
    }
    for version in [(2, 6), (3, 0)] {
        assert!(all.others(&opened(), [2; 16], Some(version)).is_ok(), "{version:?}");
    }
}

#[test]
fn what_a_session_is_to_close_is_forgotten_with_the_open() {
    let all = Arc::new(Instances::default());
    let (one, other) = (all.add(opened(), ([1; 16], None)), all.add(opened(), ([1; 16], None)));
    one.set(Created::Open(5, 6));
    other.set(Created::Open(5, 7));
    all.close(&opened(), (5, 6));
    all.close(&opened(), (5, 6));
    all.close(&opened(), (5, 7));
    assert!(all.is_closing());
    assert!(all.take_closing(4).is_empty(), "another session's");
    drop(one);
    assert_eq!(all.take_closing(5), [7]);
    assert!(!all.is_closing());
    all.close(&opened(), (5, 7));
    other.set(Created::Parked(1));
    assert!(!all.is_closing(), "it is not there any more");
    all.close(&opened(), (5, 7));
    assert!(!all.is_closing());
}
