//! The steady-state test of a step and the plateau rule of a staircase. Pure.

use crate::job::{Plateau, Steady};
use crate::record::{Steadiness, SteadyVerdict};

/// Tests the last `rule.windows` of `rates`, after SNIA's Performance Test Specification: the
/// spread and the slope of the fitted line, both relative to the mean.
pub fn test(rates: &[f64], rule: &Steady) -> Steadiness {
    let wanted = (rule.windows as usize).max(2);
    let last = rates.get(rates.len().saturating_sub(wanted)..).unwrap_or_default();
    let mean = last.iter().sum::<f64>() / last.len().max(1) as f64;
    let windows = last.len() as u32;
    if last.len() < 2 || mean <= 0.0 {
        return Steadiness { windows, ..Default::default() };
    }
    let (min, max) = last.iter().fold((f64::MAX, f64::MIN), |(l, h), r| (l.min(*r), h.max(*r)));
    let range_percent = (max - min) / mean * 100.0;
    let slope_percent = slope(last) * (last.len() - 1) as f64 / mean * 100.0;
    let verdict = if last.len() < wanted {
        SteadyVerdict::NotReached
    } else if slope_percent.abs() > rule.slope_percent {
        SteadyVerdict::Drifting
    } else if range_percent > rule.range_percent {
        SteadyVerdict::Oscillating
    } else {
        SteadyVerdict::Steady
    };
    Steadiness { verdict, range_percent, slope_percent, windows }
}

/// Slope of the least-squares line through equally spaced values, per step.
fn slope(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let (mid, mean) = ((n - 1.0) / 2.0, values.iter().sum::<f64>() / n);
    let pairs = values.iter().enumerate().map(|(x, y)| (x as f64 - mid, y - mean));
    let (xy, xx) = pairs.fold((0.0, 0.0), |(xy, xx), (x, y)| (xy + x * y, xx + x * x));
    if xx > 0.0 { xy / xx } else { 0.0 }
}

/// Whether the staircase has levelled: of the figures so far, the last `rule.steps` gained less
/// than `rule.gain_percent` over the best before them.
pub fn levelled(figures: &[f64], rule: &Plateau) -> bool {
    let flat = rule.steps.max(1) as usize;
    if figures.len() < (rule.min_steps as usize).max(flat + 1) {
        return false;
    }
    let (before, last) = figures.split_at(figures.len() - flat);
    let mut best = before.iter().copied().fold(0.0, f64::max);
    last.iter().all(|figure| {
        let gained = *figure >= best * (1.0 + rule.gain_percent / 100.0);
        best = best.max(*figure);
        !gained
    })
}

#[cfg(test)]
mod tests;
