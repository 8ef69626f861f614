//! A run that other processes disturbed is repeated, a bounded number of times, and marked. A
//! figure that must be exact is measured by run after run, until its interval is narrow.
//!
//! What makes a run is a function, so that the rules are tested without any.

pub mod over;

use crate::ab::{DISTURBED, REPEATS};
use crate::limit;
use crate::record::RunResult;
pub use over::{Disturbed, OverRuns, RUNS_MIN, Until};

/// Share of all cores that other processes used at the best step, if it was seen.
pub fn others(result: &RunResult) -> Option<f64> {
    limit::others(&result.best_step()?.evidence)
}

/// The line of progress about a repeat, for a run of which other processes had this share.
pub fn repeat_line(share: f64) -> String {
    format!("other processes used {:.0} % of the CPU: repeating it", share * 100.0)
}

/// Makes a run; while other processes disturb it, again, at most `repeats` times. `again` is asked
/// before each. Of runs that are all disturbed the least disturbed is kept. The result is marked.
///
/// # Errors
/// As `run`.
pub fn undisturbed<E>(
    repeats: u32,
    mut again: impl FnMut(f64) -> bool,
    mut run: impl FnMut() -> Result<RunResult, E>,
) -> Result<RunResult, E> {
    let mut best = run()?;
    let mut repeated = 0;
    while let Some(share) = others(&best).filter(|share| *share >= DISTURBED)
        && best.failed.is_none()
        && repeated < repeats.min(REPEATS)
        && again(share)
    {
        repeated += 1;
        let next = run()?;
        if next.failed.is_none() && others(&next).is_some_and(|found| found < share) {
            best = next;
        }
    }
    mark(&mut best, repeated);
    Ok(best)
}

/// Marks a result as disturbed, if it is.
fn mark(result: &mut RunResult, repeated: u32) {
    let Some(share) = others(result) else { return };
    let still = share >= DISTURBED;
    if still || repeated > 0 {
        let disturbed = Disturbed { others: share, repeated, still };
        if still {
            result.degraded.push(disturbed.sentence());
        }
        result.disturbed = Some(disturbed);
    }
}

/// Makes run after run until the interval of the figure is narrow enough, or the rounds are used
/// up. The result is the run with the figure nearest to the estimate, with the figures of all;
/// `keep` takes each run.
///
/// # Errors
/// As `run` and `keep`. A run that failed ends it and is the result.
pub fn until<E>(
    until: Until,
    mut run: impl FnMut() -> Result<RunResult, E>,
    mut keep: impl FnMut(u32, &RunResult) -> Result<(), E>,
) -> Result<RunResult, E> {
    let (mut runs, mut figures) = (Vec::new(), Vec::new());
    loop {
        let result = run()?;
        keep(runs.len() as u32, &result)?;
        if result.failed.is_some() {
            return Ok(result);
        }
        figures.push(result.best_step().map_or(0.0, |step| result.figure(step)));
        runs.push(result);
        let over = OverRuns::of(&figures, until);
        if over.ended() {
            return Ok(middle(runs, over));
        }
    }
}

fn middle(mut runs: Vec<RunResult>, over: OverRuns) -> RunResult {
    let away = |n: &usize| (over.figures.get(*n).copied().unwrap_or(0.0) - over.figure).abs();
    let nearest = (0..runs.len()).min_by(|a, b| away(a).total_cmp(&away(b))).unwrap_or(0);
    // What is wrong with the one that is kept, it states itself.
    let others = |is: fn(&RunResult) -> bool| {
        runs.iter().enumerate().filter(|(n, run)| *n != nearest && is(run)).count()
    };
    let still = |run: &RunResult| run.disturbed.as_ref().is_some_and(|disturbed| disturbed.still);
    let disturbed = others(still);
    let faulty = others(|run| !run.faulty().is_empty());
    let all = runs.len();
    let mut result = runs.swap_remove(nearest);
    if faulty > 0 {
        result.degraded.push(format!("operations failed in {faulty} more of {all} runs"));
    }
    if disturbed > 0 {
        result
            .degraded
            .push(format!("{disturbed} of {all} runs were disturbed by other processes"));
    }
    if !over.reached {
        let stream = result.job.workload.is_stream();
        result.degraded.push(over.sentence(|f| crate::record::figure_text(stream, f)));
    }
    result.over_runs = Some(over);
    result
}

#[cfg(test)]
mod tests;
