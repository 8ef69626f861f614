//! Drift of throughput over a long run: the slope of a line through means of blocks of windows,
//! with its 95 % interval. Pure.
//!
//! Windows next to each other depend on each other; means of long blocks hardly do, so that the
//! interval of the slope is not narrower than it may be.

use crate::verdict::stats::{Line, student};
use base::units::time_ns;
use serde::{Deserialize, Serialize};

/// Blocks that the windows are put together in.
const BLOCKS: usize = 20;
/// Windows that a judgement requires.
const WINDOWS_MIN: usize = 6;

/// How throughput changed from begin to end.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Drift {
    /// Change over the run relative to the mean, percent.
    pub change_percent: f64,
    /// Half width of its 95 % interval, percent.
    pub interval_percent: f64,
    /// Time that was judged, seconds.
    pub seconds: f64,
    /// Whether the whole interval is beyond what counts as drift.
    pub drifts: bool,
    /// Whether the interval is too wide to exclude such a drift.
    pub open: bool,
    /// In words.
    pub sentence: String,
}

/// The drift of windows of `window_s` seconds; a change of `limit_percent` counts. `None` with too
/// few windows.
pub fn drift(rates: &[f64], window_s: f64, limit_percent: f64) -> Option<Drift> {
    if rates.len() < WINDOWS_MIN {
        return None;
    }
    let each = rates.len().div_ceil(BLOCKS);
    let whole = rates.chunks_exact(each);
    let mean = |block: &[f64]| block.iter().sum::<f64>() / block.len() as f64;
    let points: Vec<(f64, f64)> = whole
        .enumerate()
        .map(|(n, block)| ((n as f64 + 0.5) * each as f64 * window_s, mean(block)))
        .collect();
    let level = points.iter().map(|p| p.1).sum::<f64>() / points.len() as f64;
    let line = Line::fit(&points)?;
    if level <= 0.0 {
        return None;
    }
    let seconds = points.len() as f64 * each as f64 * window_s;
    let percent = |slope: f64| slope * seconds / level * 100.0;
    let change = percent(line.slope);
    let interval = percent(student(points.len() - 2) * line.slope_error());
    let drifts = change.abs() - interval >= limit_percent;
    let open = !drifts && change.abs() + interval >= limit_percent;
    let word = match (drifts, open, change < 0.0) {
        (true, _, true) => "throughput fell",
        (true, _, false) => "throughput rose",
        (false, true, _) => "whether throughput drifted is open: it changed",
        (false, false, _) => "throughput did not drift: it changed",
    };
    let sentence = format!(
        "{word} by {change:+.1} % ± {interval:.1} % in {}, a drift is {limit_percent} %",
        time_ns(seconds * 1e9)
    );
    Some(Drift {
        change_percent: change,
        interval_percent: interval,
        seconds,
        drifts,
        open,
        sentence,
    })
}

#[cfg(test)]
mod tests;
