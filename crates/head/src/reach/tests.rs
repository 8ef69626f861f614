//! A result changes after enough looks in a row, and not before.

use super::*;

fn failed() -> Result<(), String> {
    Err("no carrier".to_owned())
}

#[test]
fn some_looks_in_a_row_change_the_result() {
    let mut watch = Watch::default();
    for _ in 1..HEAD_REACH_FAILURES {
        assert!(!watch.enter(failed()));
    }
    // One that works in between: it counts from the start.
    assert!(!watch.enter(Ok(())));
    for _ in 1..HEAD_REACH_FAILURES {
        assert!(!watch.enter(failed()));
        assert_eq!(watch.cut(), None);
    }
    assert!(watch.enter(failed()));
    assert_eq!(watch.cut(), Some("no carrier"));
    assert!(!watch.enter(failed()), "nothing new");

    for _ in 1..HEAD_REACH_SUCCESSES {
        assert!(!watch.enter(Ok(())));
    }
    assert!(!watch.enter(failed()));
    for _ in 1..HEAD_REACH_SUCCESSES {
        assert!(!watch.enter(Ok(())));
        assert!(watch.cut().is_some());
    }
    assert!(watch.enter(Ok(())));
    assert_eq!(watch, Watch::default());
}
