//! Runs that were made up, disturbed and not, scattered and not.

use super::*;
use crate::report::tests::made_up;
use crate::verdict::stats::uniform;
use base::random::SeededRandom;

/// A run of which others used this share of the processors.
fn disturbed_by(share: f64) -> RunResult {
    let mut run = made_up();
    run.degraded.clear();
    let evidence = &mut run.steps[2].evidence;
    evidence.cores = 2.0;
    evidence.host_busy = Some(0.4 + share);
    evidence.server_cores = Some(0.8);
    run
}

/// Makes these runs one after the other; the result, and how many were made.
fn repeated(shares: &[f64], repeats: u32) -> (RunResult, usize) {
    let mut made = 0;
    let result = undisturbed(
        repeats,
        |_| true,
        || {
            made += 1;
            Ok::<_, ()>(disturbed_by(shares[made - 1]))
        },
    );
    (result.expect("runs that were made up"), made)
}

#[test]
fn a_disturbed_run_is_repeated_and_one_that_is_not_stays() {
    let (run, made) = repeated(&[0.1], 2);
    assert_eq!((run.disturbed, made), (None, 1));
    let (run, made) = repeated(&[0.3, 0.05], 2);
    let disturbed = run.disturbed.clone().expect("a mark");
    assert_eq!((disturbed.repeated, disturbed.still, made), (1, false, 2));
    assert!(disturbed.sentence() == "undisturbed after 1 repeat" && run.degraded.is_empty());
}

#[test]
fn one_that_stays_disturbed_is_degraded_and_the_least_disturbed_is_kept() {
    let (run, made) = repeated(&[0.5, 0.2, 0.3], 9);
    assert_eq!(made, 3, "the repeats are bounded");
    let disturbed = run.disturbed.clone().expect("a mark");
    assert!((disturbed.others - 0.2).abs() < 1e-9 && disturbed.still);
    assert_eq!(run.degraded, ["disturbed: other processes used 20 % of the CPU after 2 repeats"]);
    let (run, made) = repeated(&[0.5], 0);
    assert_eq!(made, 1);
    assert_eq!(run.degraded, ["disturbed: other processes used 50 % of the CPU"]);
}

#[test]
fn the_threshold_is_the_constant() {
    let just = |share: f64| repeated(&[share], 0).0.disturbed.is_some();
    assert!(just(DISTURBED + 0.001) && !just(DISTURBED - 0.001));
}

#[test]
fn what_was_not_seen_is_not_marked() {
    let run = undisturbed(2, |_| true, || Ok::<_, ()>(made_up())).expect("a run");
    assert_eq!(run.disturbed, None);
}

/// Figures of runs that vary uniformly by ± `by`.
fn scattered(seed: u64, by: f64) -> impl FnMut() -> Result<RunResult, ()> {
    let mut random = SeededRandom::new(seed);
    move || {
        let mut run = made_up();
        run.degraded.clear();
        run.steps[2].ops_s = 1000.0 * (1.0 + by * (2.0 * uniform(&mut random) - 1.0));
        Ok(run)
    }
}

#[test]
fn runs_continue_until_the_interval_is_narrow() {
    let rule = Until { to: 0.03, rounds: 60 };
    let mut kept = 0;
    let keep = |n: u32, _: &RunResult| {
        assert_eq!(n, kept);
        kept += 1;
        Ok(())
    };
    let run = until(rule, scattered(1, 0.03), keep).expect("runs");
    let over = run.over_runs.clone().expect("figures");
    let (low, high) = (over.low.expect("an end"), over.high.expect("an end"));
    assert!(over.reached && (high - low) / over.figure < 0.03 && low < 1000.0 && high > 1000.0);
    assert!(kept >= RUNS_MIN && over.figures.len() == kept as usize && kept < 60, "{kept}");
    assert!(run.degraded.is_empty());
    let nearest = (run.steps[2].ops_s - over.figure).abs();
    assert!(over.figures.iter().all(|f| (f - over.figure).abs() >= nearest));
}

#[test]
fn runs_in_which_operations_failed_are_a_reservation() {
    let (mut run, mut made) = (scattered(1, 0.03), 0);
    let first_fails = || {
        let mut run = run()?;
        if made == 0 {
            (run.steps[2].ops_s, run.steps[1].errors) = (5000.0, 3);
        }
        made += 1;
        Ok::<_, ()>(run)
    };
    let run = until(Until { to: 10.0, rounds: 60 }, first_fails, |_, _| Ok(())).expect("runs");
    assert_eq!(run.degraded, ["operations failed in 1 more of 6 runs"]);
}

#[test]
fn rounds_that_are_used_up_are_a_reservation() {
    let rule = Until { to: 0.01, rounds: 8 };
    let run = until(rule, scattered(2, 0.3), |_, _| Ok(())).expect("runs");
    let over = run.over_runs.clone().expect("figures");
    assert!(!over.reached && over.figures.len() == 8);
    assert!(run.degraded[0].ends_with("the interval is wider than 1.0 %"), "{:?}", run.degraded);
    let few = OverRuns::of(&[1.0; 5], rule);
    assert_eq!(few.low, None);
    let six = OverRuns::of(&[1.0; RUNS_MIN as usize], rule);
    assert!(six.reached, "RUNS_MIN is the least number with an interval");
}

#[test]
fn the_interval_holds_the_figure_as_often_as_it_says() {
    let rule = Until { to: 0.0, rounds: 10 };
    let holds = (0..200).filter(|seed| {
        let over = until(rule, scattered(100 + seed, 0.15), |_, _| Ok(()));
        let over = over.expect("runs").over_runs.expect("figures");
        over.low.is_some_and(|low| low <= 1000.0) && over.high.is_some_and(|high| high >= 1000.0)
    });
    let holds = holds.count();
    assert!(holds >= 184, "95 % of 200 are 190: {holds}");
}
