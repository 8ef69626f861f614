//! Medians and their intervals, from order statistics: no assumption on how the values are
//! distributed, which for throughput is unknown.

use serde::{Deserialize, Serialize};

/// How sure an interval is to hold the median.
pub const COVERAGE: f64 = 0.95;

/// A median and the interval around it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Middle {
    /// The median.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// The probability that the interval holds the true median; below [`COVERAGE`] there were too
    /// few values.
    pub coverage: f64,
    /// How many values there were.
    pub values: usize,
}

impl Middle {
    /// Of some values; `None` of none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let (below, above) = (sorted.get(n.checked_sub(1)? / 2)?, sorted.get(n / 2)?);
        // The narrowest pair of order statistics, equally far from both ends, that is sure enough.
        let outermost = coverage(n, 0);
        let inward = (1..n / 2).take_while(|out| coverage(n, *out) >= COVERAGE).last();
        let out = inward.unwrap_or(0);
        let coverage = if out == 0 { outermost } else { coverage(n, out) };
        let (low, high) = (*sorted.get(out)?, *sorted.get(n - 1 - out)?);
        Some(Self { median: (below + above) / 2.0, low, high, coverage, values: n })
    }

    /// Whether the interval is as sure as it should be.
    pub fn is_sure(&self) -> bool {
        self.coverage >= COVERAGE
    }
}

/// The probability that the median of a population lies between the values number `out` from the
/// bottom and from the top of a sample of `n`: the number of values below it is binomial with ½.
pub fn coverage(n: usize, out: usize) -> f64 {
    if n == 0 {
        return 0.0;
    }
    let (mut choose, mut tail) = (0.5f64.powi(n as i32), 0.0);
    for k in 0..=out.min(n) {
        tail += choose;
        choose *= (n - k.min(n)) as f64 / (k + 1) as f64;
    }
    (1.0 - 2.0 * tail).max(0.0)
}
