//! Tests of tasks that are aborted.

use std::sync::Arc;

use vfs::lun::reservations::Port;

use super::{Mark, Verdict};

fn mark() -> Arc<Mark> {
    Mark::new(Port { name: "iqn.a".to_owned(), isid: [0; 6] }, 1, &Arc::default())
}

#[test]
fn what_has_not_begun_never_does() {
    let task = mark();
    assert!(!task.is_over());
    assert!(task.judge(Verdict::TaskAborted), "no further effect");
    assert!(task.is_over() && !task.begin());
    assert!(task.judge(Verdict::Silent));
    assert_eq!(task.verdict(), Some(Verdict::TaskAborted), "the first verdict holds");
}

#[test]
fn what_runs_is_over_when_it_ends() {
    let task = mark();
    assert!(task.begin());
    assert!(!task.judge(Verdict::Silent) && !task.is_over());
    task.end();
    assert!(task.is_over());
    assert_eq!(task.verdict(), Some(Verdict::Silent));
    let task = mark();
    assert!(task.begin());
    task.end();
    assert!(task.judge(Verdict::Silent), "it has ended");
    assert_eq!(task.verdict(), None, "and is answered");
}
