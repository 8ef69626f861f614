//! Gaps of a resource, named by head.

use head::takeover::{Cause, Takeover};

use super::*;

fn state(at: u64) -> ResourceStatus {
    let last = Takeover {
        from: "left".to_owned(),
        to: "right".to_owned(),
        cause: Cause::HeadLost,
        at,
        ..Takeover::default()
    };
    let owner = Some("right".to_owned());
    ResourceStatus { owner, last: Some(last), ..ResourceStatus::default() }
}

#[test]
fn a_gap_of_a_takeover_is_of_the_former_owner() {
    let gap = Gap::of("accounts", Some(&state(107)), (103, 107));
    assert_eq!((gap.head.as_str(), gap.why.as_str()), ("left", "taken over by right"));
    let gap = Gap::of("accounts", Some(&state(300)), (103, 107));
    assert_eq!((gap.head.as_str(), gap.why.as_str()), ("right", ""));
    let gap = Gap::of("accounts", None, (103, 107));
    assert_eq!((gap.head.as_str(), gap.why.as_str()), ("", ""));
    assert!(
        gap.sentence(&LocalClock::of_machine()).starts_with("accounts: no data from any head, ")
    );
}

#[test]
fn the_question_has_all_rows_of_each_server() {
    let question = Question { stat: "nfs.ops[client]", from: 1, to: 9, step: Some(2) };
    let path = question.path();
    assert!(path.ends_with("&from=1&to=9&step=2&top=1000"), "{path}");
}
