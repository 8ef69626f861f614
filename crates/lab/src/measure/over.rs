//! What is known of a figure over several runs, and of what disturbed a run.

use crate::ab::INTERVAL_MISSES;
use crate::verdict::ranks::paired;
use serde::{Deserialize, Serialize};

/// Fewest runs of which an interval is taken: with fewer, an exact one of 95 % does not exist.
pub const RUNS_MIN: u32 = 6;

/// How other processes disturbed a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Disturbed {
    /// Share of all cores of the server's machine that other processes used at the best step.
    pub others: f64,
    /// How often the run was repeated for that.
    pub repeated: u32,
    /// Whether this run is still disturbed, from [`crate::ab::DISTURBED`] on.
    pub still: bool,
}

/// When run after run ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Until {
    /// The interval is narrower than this share of the figure.
    pub to: f64,
    /// Most runs.
    pub rounds: u32,
}

/// A figure over several runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OverRuns {
    /// Of each run, in order.
    pub figures: Vec<f64>,
    /// Estimate of Hodges and Lehmann.
    pub figure: f64,
    /// Lower end of its 95 % interval; `None` with too few runs.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// When it was to end.
    pub until: Until,
    /// Whether the interval is as narrow as wanted.
    pub reached: bool,
}

impl Disturbed {
    /// In a sentence.
    pub fn sentence(&self) -> String {
        let (percent, n) = (self.others * 100.0, self.repeated);
        let times = if n == 1 { "1 repeat".to_owned() } else { format!("{n} repeats") };
        match (self.still, n) {
            (true, 0) => format!("disturbed: other processes used {percent:.0} % of the CPU"),
            (true, _) => {
                format!("disturbed: other processes used {percent:.0} % of the CPU after {times}")
            }
            (false, _) => format!("undisturbed after {times}"),
        }
    }
}

impl OverRuns {
    /// Of these figures.
    pub fn of(figures: &[f64], until: Until) -> Self {
        let logs: Vec<f64> = figures.iter().map(|f| f.ln()).filter(|f| f.is_finite()).collect();
        let shift = paired(&logs, INTERVAL_MISSES);
        let figure = shift.map_or(0.0, |s| s.value.exp());
        let known = shift.filter(|s| s.low.is_finite() && s.high.is_finite());
        let (low, high) = (known.map(|s| s.low.exp()), known.map(|s| s.high.exp()));
        let width = low.zip(high).map(|(low, high)| (high - low) / figure);
        let reached = width.is_some_and(|width| width < until.to);
        Self { figures: figures.to_vec(), figure, low, high, until, reached }
    }

    /// Whether no further run is to be made.
    pub fn ended(&self) -> bool {
        self.reached || self.figures.len() as u32 >= self.until.rounds
    }

    /// In a sentence; `text` writes a figure with its unit.
    pub fn sentence(&self, text: impl Fn(f64) -> String) -> String {
        let (n, to) = (self.figures.len(), self.until.to * 100.0);
        let Some((low, high)) = self.low.zip(self.high) else {
            return format!("{n} runs: fewer than the {RUNS_MIN} that a 95 % interval takes");
        };
        let of = format!("{} ({} to {}, 95 %)", text(self.figure), text(low), text(high));
        match self.reached {
            true => format!("over {n} runs: {of}"),
            false => format!("over {n} runs: {of}: the interval is wider than {to:.1} %"),
        }
    }
}
