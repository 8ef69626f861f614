//! Synthetic targets that vary between runs: no false alarms, slower ones found, disturbed rounds
//! repeated and marked.

use super::*;
use crate::verdict::stats::uniform;
use base::random::SeededRandom;

const ROWS: usize = 6;
const PAIRS: u64 = 20;

fn jobs(rows: usize) -> Vec<String> {
    (0..rows).map(|row| format!("job-{row}")).collect()
}

/// Runs a session over synthetic targets: each run reaches its figure times something uniform
/// within ±`noise`; B's factor for each row is given.
fn session(seed: u64, rule: Rule, noise: f64, factors: &[f64]) -> Session {
    let mut random = SeededRandom::new(seed);
    let mut session = Session::new(&jobs(factors.len()), rule);
    while let Some(run) = session.next_run() {
        let factor = if run.side == Side::B { factors[run.row] } else { 1.0 };
        let varied = 1.0 + noise * (2.0 * uniform(&mut random) - 1.0);
        let base = 10_000.0 * (run.row + 1) as f64;
        session.record(Sample { figure: base * factor * varied, others: 0.0 });
    }
    session
}

#[test]
fn the_order_is_a_b_b_a() {
    let mut session = Session::new(&jobs(1), Rule { rounds: 4, ..Rule::default() });
    let mut order = String::new();
    while let Some(run) = session.next_run() {
        order += if run.side == Side::A { "A" } else { "B" };
        session.record(Sample { figure: 1.0 + order.len() as f64 / 10.0, others: 0.0 });
    }
    assert_eq!(order, "ABBAABBA");
    // The runs of a pair are those of one round, whatever their order.
    let pairs = &session.rows()[0].pairs;
    assert!(pairs[0].a.figure < pairs[0].b.figure && pairs[1].a.figure > pairs[1].b.figure);
}

#[test]
fn rounds_alternate_between_rows() {
    let mut session = Session::new(&jobs(2), Rule { rounds: 2, ..Rule::default() });
    let mut order = Vec::new();
    while let Some(run) = session.next_run() {
        order.push((run.row, run.round));
        session.record(Sample { figure: 1.0, others: 0.0 });
    }
    let expected = [(0, 0), (0, 0), (1, 0), (1, 0), (0, 1), (0, 1), (1, 1), (1, 1)];
    assert_eq!(order, expected);
}

#[test]
fn of_20_pairs_of_one_build_at_most_2_differ() {
    let differ = (0..PAIRS).filter(|seed| {
        let outcome = session(*seed, Rule::default(), 0.15, &[1.0; ROWS]).outcome();
        outcome.rows.iter().any(RowOutcome::differs)
    });
    let differ = differ.count();
    assert!(differ <= 2, "{differ} of {PAIRS}");
}

/// The same over many more seeds: the rate of false alarms is the declared one.
#[test]
fn false_alarms_are_as_rare_as_declared() {
    let differ = (1000..1500).filter(|seed| {
        let outcome = session(*seed, Rule::default(), 0.15, &[1.0; ROWS]).outcome();
        outcome.rows.iter().any(RowOutcome::differs)
    });
    let share = differ.count() as f64 / 500.0;
    assert!(share <= 2.0 * LEVEL, "{share}");
}

#[test]
fn a_build_that_is_20_percent_slower_is_found_in_19_of_20() {
    let (mut found, mut others) = (0, Vec::new());
    for seed in 0..PAIRS {
        let slow = seed as usize % ROWS;
        let mut factors = [1.0; ROWS];
        factors[slow] = 0.8;
        let session = session(seed, Rule::default(), 0.15, &factors);
        assert!(session.rows().iter().all(|row| row.pairs.len() <= 12));
        let outcome = session.outcome();
        found += u64::from(outcome.rows[slow].difference == Difference::Worse);
        let named = outcome.rows.iter().enumerate().filter(|(i, row)| *i != slow && row.differs());
        others.extend(named.map(|(i, row)| format!("seed {seed}, row {i}: {}", row.sentence())));
    }
    assert!(found >= 19, "{found} of {PAIRS}");
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn a_comparison_ends_when_the_interval_is_narrow() {
    let rule = Rule { to: 0.03, rounds: 40 };
    let quiet = session(1, rule, 0.01, &[1.0]);
    let rounds = quiet.rows()[0].pairs.len();
    assert!((7..20).contains(&rounds), "{rounds}");
    let outcome = quiet.outcome();
    let row = &outcome.rows[0];
    assert!(row.high.unwrap() - row.low.unwrap() < 0.03, "{row:?}");
    let Difference::NoneLargerThan(most) = row.difference else { panic!("{row:?}") };
    assert!(most < 0.03 && row.sentence().starts_with("no difference larger than "), "{row:?}");
    // Twice as wide takes fewer.
    let wide = session(1, Rule { to: 0.5, rounds: 40 }, 0.01, &[1.0]);
    assert_eq!(wide.rows()[0].pairs.len(), 7);
    let noisy = session(1, rule, 0.15, &[1.0]);
    assert_eq!(noisy.rows()[0].pairs.len(), 40);
}

#[test]
fn too_few_rounds_decide_nothing() {
    let outcome = session(1, Rule { to: 0.03, rounds: 3 }, 0.01, &[0.5, 1.0]).outcome();
    assert_eq!(outcome.rows[0].difference, Difference::TooFew { needed: 8 });
    assert!(outcome.rows[0].sentence().contains("undecided after 3 rounds: 8"));
}

#[test]
fn a_disturbed_round_is_repeated_and_one_that_stays_so_is_marked() {
    let run = |disturbed: &dyn Fn(u32, u32) -> f64| {
        let mut session = Session::new(&jobs(2), Rule { to: 0.0, rounds: 8 });
        let mut runs = 0;
        while let Some(run) = session.next_run() {
            let others = if run.row == 0 { disturbed(run.round, run.attempt) } else { 0.0 };
            session.record(Sample { figure: 100.0 + f64::from(runs % 3), others });
            runs += 1;
        }
        (session.outcome(), runs)
    };
    let (quiet, runs) = run(&|_, _| 0.14);
    assert!(!quiet.is_degraded() && quiet.rows[0].repeated == 0 && runs == 32);
    // Disturbed once: the round is run again, both runs of it.
    let (once, runs) = run(&|round, attempt| if round == 3 && attempt == 0 { 0.4 } else { 0.0 });
    assert!(!once.is_degraded() && once.rows[0].repeated == 1 && runs == 34, "{once:?}");
    assert!(once.rows[0].sentence().contains("1 rounds repeated"), "{}", once.rows[0].sentence());
    // To the last: it counts, and the row is marked; the other row is not.
    let (stays, runs) = run(&|round, _| if round == 3 { 0.16 } else { 0.0 });
    assert!(stays.is_degraded() && runs == 32 + 4, "{stays:?}");
    assert_eq!(stays.rows[0].disturbed, Some(0.16));
    assert_eq!(stays.rows[1].disturbed, None);
    assert!(stays.rows[0].sentence().contains("other processes used 16 %"));
}
