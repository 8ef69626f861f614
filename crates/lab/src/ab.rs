//! Two builds or two targets compared so that a difference is not an accident: run after run in
//! the order A B B A, until the interval of the ratio is narrow enough or the rounds are used up.
//!
//! Runs of one build differ more than windows within a run, so the unit is the run. The two runs of
//! a round are neighbours in time; the ratio within a round is tested, by the exact test of
//! [`crate::verdict::ranks`]. With several rows, Holm's correction keeps the probability that any
//! row is named by chance below [`LEVEL`]. This module decides what is run next and what the
//! figures mean; it runs nothing.

mod outcome;
pub mod record;

pub use outcome::{Difference, Outcome, RowOutcome, outcome};

use crate::verdict::ranks::pairs_min;
use serde::{Deserialize, Serialize};

/// Probability that a comparison names any row although nothing differs: one in fifty.
pub const LEVEL: f64 = 0.02;
/// Probability that the interval of a ratio misses it.
pub const INTERVAL_MISSES: f64 = 0.05;
/// A run is disturbed when other processes used this share of all cores.
pub const DISTURBED: f64 = 0.15;
/// How often a disturbed round is repeated before it counts as it is.
pub const REPEATS: u32 = 2;

/// One of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The first.
    A,
    /// The second.
    B,
}

/// When a comparison ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// A row ends when the interval of its ratio is narrower than this, for example 0.03.
    pub to: f64,
    /// Most rounds.
    pub rounds: u32,
}

impl Default for Rule {
    fn default() -> Self {
        Self { to: 0.03, rounds: 12 }
    }
}

/// A run to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextRun {
    /// Number of the row.
    pub row: usize,
    /// Number of the round, from 0.
    pub round: u32,
    /// Which of the two.
    pub side: Side,
    /// 0, or how often the round is repeated because it was disturbed.
    pub attempt: u32,
}

/// A finished run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The figure: operations or bytes per second; larger is better.
    pub figure: f64,
    /// Share of all cores that other processes used; 0 if that was not observed.
    pub others: f64,
}

/// The two runs of a round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Of A.
    pub a: Sample,
    /// Of B.
    pub b: Sample,
}

/// A row of the comparison.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RowRuns {
    /// Its job.
    pub job: String,
    /// The rounds that count.
    pub pairs: Vec<Pair>,
    /// Rounds that were disturbed and repeated.
    pub repeated: u32,
}

/// A comparison as it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    rule: Rule,
    rows: Vec<RowRuns>,
    row: usize,
    first: Option<Sample>,
    attempt: u32,
}

impl Pair {
    /// Natural logarithm of B ÷ A.
    pub fn log_ratio(&self) -> f64 {
        (self.b.figure / self.a.figure).ln()
    }

    /// Largest share of others in either run.
    pub fn others(&self) -> f64 {
        self.a.others.max(self.b.others)
    }

    fn is_disturbed(&self) -> bool {
        self.others() >= DISTURBED
    }
}

impl Session {
    /// Of these jobs.
    pub fn new(jobs: &[String], rule: Rule) -> Self {
        let row = |job: &String| RowRuns { job: job.clone(), ..Default::default() };
        let rows = jobs.iter().map(row).collect();
        let mut session = Self { rule, rows, row: 0, first: None, attempt: 0 };
        session.advance(0);
        session
    }

    /// What is to be run; `None` at the end.
    pub fn next_run(&self) -> Option<NextRun> {
        let round = self.rows.get(self.row)?.pairs.len() as u32;
        // A B, then B A, and so on: what changes steadily over time cancels.
        let order = if round.is_multiple_of(2) { [Side::A, Side::B] } else { [Side::B, Side::A] };
        let side = order[usize::from(self.first.is_some())];
        Some(NextRun { row: self.row, round, side, attempt: self.attempt })
    }

    /// Takes the result of [`Session::next_run`].
    pub fn record(&mut self, sample: Sample) {
        let Some(run) = self.next_run() else { return };
        let Some(first) = self.first.take() else {
            self.first = Some(sample);
            return;
        };
        let pair = match run.side {
            Side::B => Pair { a: first, b: sample },
            Side::A => Pair { a: sample, b: first },
        };
        let Some(row) = self.rows.get_mut(run.row) else { return };
        if pair.is_disturbed() && self.attempt < REPEATS {
            row.repeated += 1;
            self.attempt += 1;
            return;
        }
        row.pairs.push(pair);
        self.attempt = 0;
        self.advance(run.row + 1);
    }

    /// Goes to the next row that has not ended, from `from` on, then from the first.
    fn advance(&mut self, from: usize) {
        let n = self.rows.len();
        let open = (from..from + n).map(|i| i % n.max(1)).find(|i| !self.ended(*i));
        self.row = open.unwrap_or(usize::MAX);
    }

    fn ended(&self, row: usize) -> bool {
        let Some(runs) = self.rows.get(row) else { return true };
        let rounds = runs.pairs.len() as u32;
        if rounds >= self.rule.rounds {
            return true;
        }
        let enough = rounds >= pairs_min(self.rows.len(), LEVEL);
        enough && outcome::width(&runs.pairs).is_some_and(|width| width < self.rule.to)
    }

    /// The rows so far.
    pub fn rows(&self) -> &[RowRuns] {
        &self.rows
    }

    /// What the figures say.
    pub fn outcome(&self) -> Outcome {
        outcome(&self.rows)
    }
}

#[cfg(test)]
mod tests;
