//! What is concluded from the steps of a run.

use super::*;
use crate::report::tests::made_up;

/// A run that was made up, concluded after this change of it.
fn concluded(change: impl FnOnce(&mut RunResult)) -> RunResult {
    let no_client = Source::Local { clients: 0, command: Vec::new() };
    let mut agents = Agents::gather(&no_client, false).expect("agents");
    let mut result = made_up();
    result.degraded.clear();
    change(&mut result);
    conclude(&result.job.clone(), &mut agents, &mut result);
    result
}

#[test]
fn operations_that_failed_degrade_a_run() {
    let whole = concluded(|_| {});
    assert!(!whole.degraded.iter().any(|why| why.contains("failed")), "{:?}", whole.degraded);
    assert_eq!(whole.incomparable(), None);
    let full = concluded(|result| {
        let step = &mut result.steps[1];
        (step.errors, step.first_error) = (7, Some("WRITE: the server returned 28".to_owned()));
    });
    let sentence = "step 2: 7 operations failed: WRITE: the server returned 28";
    assert_eq!(full.degraded.first().map(String::as_str), Some(sentence));
    assert_eq!((full.failed.as_ref(), full.incomparable().as_deref()), (None, Some(sentence)));
}

#[test]
fn a_client_with_fewer_threads_is_not_called_uneven() {
    let client = |(client, ops)| ClientStep { client, ops, ..Default::default() };
    let by_client = (0..).zip([1000, 1000, 100]).map(client).collect();
    let mut step = Step { by_client, ..Step::default() };
    let uneven = evenness(&step).expect("clients of equal threads").uneven;
    assert_eq!(uneven.iter().map(|uneven| uneven.client).collect::<Vec<_>>(), [2]);
    step.last_threads = Some(1);
    assert_eq!(evenness(&step), None);
}
