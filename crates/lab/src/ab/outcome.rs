//! What the rounds of a comparison say, row by row.

use super::{DISTURBED, INTERVAL_MISSES, LEVEL, Pair, RowRuns};
use crate::verdict::ranks::{holm, paired, pairs_min};
use serde::{Deserialize, Serialize};

/// Whether B differs from A.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Difference {
    /// B is faster.
    Better,
    /// B is slower.
    Worse,
    /// None that is larger than this share.
    NoneLargerThan(f64),
    /// Fewer rounds than a difference takes.
    TooFew {
        /// Rounds that it takes.
        needed: u32,
    },
}

/// One row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RowOutcome {
    /// Its job.
    pub job: String,
    /// Rounds that count.
    pub rounds: u32,
    /// B ÷ A: the median of the ratio; 0 without a round that has one.
    pub ratio: f64,
    /// Lower end of its 95 % interval; `None` with too few rounds.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Probability of such a ratio by chance.
    pub p: f64,
    /// The same after Holm's correction for the number of rows.
    pub p_corrected: f64,
    /// What that means.
    pub difference: Difference,
    /// Rounds that were repeated because others used the machine.
    pub repeated: u32,
    /// Largest share of all cores that others used in a round that was disturbed to the last.
    pub disturbed: Option<f64>,
}

/// A comparison of all rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// In the order of the jobs.
    pub rows: Vec<RowOutcome>,
}

/// Width of the interval of the ratio; `None` with too few rounds for one.
pub(super) fn width(pairs: &[Pair]) -> Option<f64> {
    let shift = paired(&logs(pairs), INTERVAL_MISSES)?;
    let width = shift.high.exp() - shift.low.exp();
    width.is_finite().then_some(width)
}

fn logs(pairs: &[Pair]) -> Vec<f64> {
    pairs.iter().map(Pair::log_ratio).filter(|log| log.is_finite()).collect()
}

/// Judges all rows together.
pub fn outcome(rows: &[RowRuns]) -> Outcome {
    let needed = pairs_min(rows.len(), LEVEL);
    let shifts: Vec<_> =
        rows.iter().map(|row| paired(&logs(&row.pairs), INTERVAL_MISSES)).collect();
    let p: Vec<f64> = shifts.iter().map(|s| s.map_or(1.0, |s| s.p)).collect();
    let judged = rows.iter().zip(shifts).zip(p.iter().zip(holm(&p)));
    let rows = judged.map(|((row, shift), (p, p_corrected))| {
        let rounds = logs(&row.pairs).len() as u32;
        let ratio = shift.map_or(0.0, |s| s.value.exp());
        let (low, high) = shift.map_or((0.0, f64::INFINITY), |s| (s.low.exp(), s.high.exp()));
        let difference = match p_corrected <= LEVEL {
            _ if rounds < needed => Difference::TooFew { needed },
            true if ratio > 1.0 => Difference::Better,
            true => Difference::Worse,
            false => Difference::NoneLargerThan((high - 1.0).max(1.0 - low)),
        };
        let disturbed = row.pairs.iter().map(Pair::others).filter(|o| *o >= DISTURBED);
        RowOutcome {
            job: row.job.clone(),
            rounds,
            ratio,
            low: (low > 0.0).then_some(low),
            high: high.is_finite().then_some(high),
            p: *p,
            p_corrected,
            difference,
            repeated: row.repeated,
            disturbed: disturbed.reduce(f64::max),
        }
    });
    Outcome { rows: rows.collect() }
}

impl RowOutcome {
    /// Whether B differs from A.
    pub fn differs(&self) -> bool {
        matches!(self.difference, Difference::Better | Difference::Worse)
    }

    /// For people.
    pub fn sentence(&self) -> String {
        let percent = |ratio: f64| format!("{:+.1} %", (ratio - 1.0) * 100.0);
        let interval = match (self.low, self.high) {
            (Some(low), Some(high)) => format!(" ({} to {})", percent(low), percent(high)),
            _ => String::new(),
        };
        let ratio = percent(self.ratio);
        let corrected = format!("p {:.4} after Holm's correction", self.p_corrected);
        let mut out = match self.difference {
            Difference::Better => format!("B is faster: {ratio}{interval}, {corrected}"),
            Difference::Worse => format!("B is slower: {ratio}{interval}, {corrected}"),
            Difference::NoneLargerThan(most) => format!(
                "no difference larger than {:.1} %: {ratio}{interval}, {corrected}",
                most * 100.0
            ),
            Difference::TooFew { needed } => {
                format!("undecided after {} rounds: {needed} are the minimum", self.rounds)
            }
        };
        if let Some(share) = self.disturbed {
            out += &format!(
                "; other processes used {:.0} % of the processors in spite of repeats",
                share * 100.0
            );
        } else if self.repeated > 0 {
            out += &format!("; {} rounds repeated, other processes were active", self.repeated);
        }
        out
    }
}

impl Outcome {
    /// Whether a row stayed disturbed: the result has a reservation, exit code 3.
    pub fn is_degraded(&self) -> bool {
        self.rows.iter().any(|row| row.disturbed.is_some())
    }
}
