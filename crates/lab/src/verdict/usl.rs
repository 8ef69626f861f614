//! The Universal Scalability Law (Gunther): X(N) = γ·N ÷ (1 + α·(N − 1) + β·N·(N − 1)).
//!
//! γ is what one client or thread reaches alone, α the share that is serialised (contention), β
//! what each pays for agreeing with each other (coherency). The fit is by least squares with
//! none of them below zero; intervals are bootstrapped over residuals. Nothing is extrapolated
//! beyond twice the largest measured N: there the law describes the fit, not the system.

use super::stats::{NORMAL, quantile, student};
use base::random::{Random, SeededRandom};
use base::units::count;
use serde::{Deserialize, Serialize};

/// Least number of different loads: one more than the law has parameters.
pub const LOADS_MIN: usize = 4;
/// Extrapolation ends at this multiple of the largest measured load.
pub const REACH: f64 = 2.0;
/// Samples of the bootstrap: the ends of a 95 % interval then vary by a few percent of its width.
const SAMPLES: usize = 400;
/// Coverage of the intervals.
const COVERAGE: f64 = 0.95;
/// Iterations of one fit; it converges in some ten.
const ITERATIONS: usize = 200;

/// γ, α and β.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Law {
    /// Throughput at N = 1.
    pub gamma: f64,
    /// Contention.
    pub alpha: f64,
    /// Coherency.
    pub beta: f64,
}

/// A value with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A fitted law.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// What was fitted.
    pub law: Law,
    /// γ with its interval.
    pub gamma: Estimate,
    /// α with its interval.
    pub alpha: Estimate,
    /// β with its interval.
    pub beta: Estimate,
    /// Largest measured load.
    pub load_max: f64,
    /// Largest measured throughput.
    pub throughput_max: f64,
    /// Share of the variance that the law explains.
    pub r_squared: f64,
    /// Laws fitted to bootstrap samples; every interval comes from them.
    #[serde(skip)]
    samples: Vec<Law>,
}

/// The highest point of the fitted curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Peak {
    /// Load at which it is.
    pub load: Estimate,
    /// Throughput there.
    pub throughput: Estimate,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum UslError {
    /// Too few loads.
    #[error("a fit requires {LOADS_MIN} different loads with throughput; there are {0}")]
    Loads(usize),
    /// The bootstrap is no part of a stored result.
    #[error("this fit was read from a result and has no intervals; fit it again")]
    NoSamples,
    /// The load is too far away.
    #[error(
        "not extrapolated to {load:.0}: measured up to {measured:.0}, and a fit says nothing \
         beyond twice that"
    )]
    Beyond {
        /// What was requested.
        load: f64,
        /// Largest measured load.
        measured: f64,
    },
    /// The throughput needs a load that is too far away.
    #[error(
        "{figure:.0} would take at least {load:.0}, if nothing slowed them down: measured up to \
         {measured:.0}, and a fit says nothing beyond twice that"
    )]
    OutOfReach {
        /// Throughput that was requested.
        figure: f64,
        /// The least load that could reach it.
        load: f64,
        /// Largest measured load.
        measured: f64,
    },
    /// The fitted curve never gets there.
    #[error("{figure:.0} is above the maximum of the fitted curve, {peak:.0}")]
    AbovePeak {
        /// Throughput that was requested.
        figure: f64,
        /// Highest point within reach.
        peak: f64,
    },
}

impl Law {
    fn denominator(&self, n: f64) -> f64 {
        1.0 + self.alpha * (n - 1.0) + self.beta * n * (n - 1.0)
    }

    /// Throughput at a load.
    pub fn at(&self, n: f64) -> f64 {
        self.gamma * n / self.denominator(n)
    }

    /// The load with the highest throughput; `None` where it grows for ever.
    pub fn peak(&self) -> Option<f64> {
        (self.beta > 0.0).then(|| ((1.0 - self.alpha).max(0.0) / self.beta).sqrt().max(1.0))
    }

    /// Throughput that no load exceeds: at the peak, or where contention alone leads to.
    pub fn ceiling(&self) -> Option<f64> {
        match self.peak() {
            Some(n) => Some(self.at(n)),
            None => (self.alpha > 0.0).then(|| self.gamma / self.alpha),
        }
    }

    fn error(&self, points: &[(f64, f64)]) -> f64 {
        let fits = points.iter().all(|p| self.denominator(p.0) > 0.0);
        let sum = points.iter().map(|p| (p.1 - self.at(p.0)).powi(2)).sum();
        if fits && self.gamma > 0.0 { sum } else { f64::INFINITY }
    }

    /// Derivatives of the throughput at `n`; those of a parameter that is not free are zero.
    fn gradient(&self, n: f64, free: [bool; 2]) -> [f64; 3] {
        let d = self.denominator(n);
        let common = -self.gamma * n * (n - 1.0) / (d * d);
        let alpha = if free[0] { common } else { 0.0 };
        let beta = if free[1] { common * n } else { 0.0 };
        [n / d, alpha, beta]
    }

    fn is_allowed(&self) -> bool {
        self.gamma > 0.0 && self.alpha >= 0.0 && self.beta >= 0.0
    }
}

/// Fits points (load, throughput).
///
/// # Errors
/// [`UslError::Loads`] with too few different loads.
pub fn fit(points: &[(f64, f64)], seed: u64) -> Result<Fit, UslError> {
    let usable = |p: &&(f64, f64)| p.0 >= 1.0 && p.1 > 0.0 && p.0.is_finite() && p.1.is_finite();
    let points: Vec<(f64, f64)> = points.iter().filter(usable).copied().collect();
    let mut loads: Vec<f64> = points.iter().map(|p| p.0).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    if loads.len() < LOADS_MIN {
        return Err(UslError::Loads(loads.len()));
    }
    let law = least_squares(&points);
    let samples = bootstrap(&points, &law, seed);
    let of = |value: f64, pick: fn(&Law) -> f64| Estimate::of(value, samples.iter().map(pick));
    let mean = points.iter().map(|p| p.1).sum::<f64>() / points.len() as f64;
    let spread = points.iter().map(|p| (p.1 - mean).powi(2)).sum::<f64>();
    Ok(Fit {
        law,
        gamma: of(law.gamma, |l| l.gamma),
        alpha: of(law.alpha, |l| l.alpha),
        beta: of(law.beta, |l| l.beta),
        load_max: loads.last().copied().unwrap_or_default(),
        throughput_max: points.iter().map(|p| p.1).fold(0.0, f64::max),
        r_squared: if spread > 0.0 { 1.0 - law.error(&points) / spread } else { 0.0 },
        samples,
    })
}

impl Estimate {
    fn of(value: f64, samples: impl Iterator<Item = f64>) -> Self {
        let samples: Vec<f64> = samples.collect();
        let outside = (1.0 - COVERAGE) / 2.0;
        let (low, high) = (quantile(&samples, outside), quantile(&samples, 1.0 - outside));
        Self { value, low: low.min(value), high: high.max(value) }
    }
}

impl Fit {
    /// Largest load for which there are answers.
    pub fn reach(&self) -> f64 {
        self.load_max * REACH
    }

    /// Throughput at a load.
    ///
    /// # Errors
    /// [`UslError::Beyond`] beyond twice the largest measured load.
    pub fn at(&self, load: f64) -> Result<Estimate, UslError> {
        if load > self.reach() {
            return Err(UslError::Beyond { load, measured: self.load_max });
        }
        self.sampled(self.law.at(load), |law| law.at(load))
    }

    /// The load that a throughput takes, rounded up.
    ///
    /// # Errors
    /// When that is beyond twice the largest measured load, or above the curve.
    pub fn load_for(&self, figure: f64) -> Result<f64, UslError> {
        // The curve rises up to its peak. Where that is too low, each client that adds as much as
        // the first still gives the least load.
        let least = figure / self.law.gamma;
        let far = self.law.peak().unwrap_or(least * 1e3);
        let load = if self.law.at(far) < figure { least } else { self.crossing(figure, far) };
        let load = (load - 1e-9).ceil();
        if load > self.reach() {
            return Err(UslError::OutOfReach { figure, load, measured: self.load_max });
        }
        if self.law.at(far) < figure {
            return Err(UslError::AbovePeak { figure, peak: self.law.at(far) });
        }
        Ok(load)
    }

    /// Where the curve, which rises up to `far`, reaches a throughput.
    fn crossing(&self, figure: f64, far: f64) -> f64 {
        let (mut low, mut high) = (0.0, far);
        for _ in 0..200 {
            let middle = (low + high) / 2.0;
            if self.law.at(middle) < figure { low = middle } else { high = middle }
        }
        high
    }

    /// The highest point.
    ///
    /// # Errors
    /// [`UslError::Beyond`] when the curve still rises at twice the largest measured load.
    pub fn peak(&self) -> Result<Peak, UslError> {
        let far = self.reach();
        let Some(load) = self.law.peak().filter(|n| *n <= far) else {
            let load = self.law.peak().unwrap_or(f64::INFINITY);
            return Err(UslError::Beyond { load, measured: self.load_max });
        };
        let at = |law: &Law| law.peak().unwrap_or(far).min(far);
        Ok(Peak {
            load: self.sampled(load, at)?,
            throughput: self.sampled(self.law.at(load), |law| law.at(at(law)))?,
        })
    }

    fn sampled(&self, value: f64, pick: impl Fn(&Law) -> f64) -> Result<Estimate, UslError> {
        if self.samples.is_empty() {
            return Err(UslError::NoSamples);
        }
        Ok(Estimate::of(value, self.samples.iter().map(pick)))
    }
}

/// The law with the least squared error of throughput among those without a negative parameter.
fn least_squares(points: &[(f64, f64)]) -> Law {
    let linear = linearised(points);
    let best = descend(points, linear, [true, true]);
    if best.is_allowed() {
        return best;
    }
    // Where a parameter would be negative, the best allowed law has it at zero.
    let free = [[true, false], [false, true], [false, false]];
    let fits = free.iter().map(|free| descend(points, linear, *free)).filter(Law::is_allowed);
    fits.min_by(|a, b| a.error(points).total_cmp(&b.error(points))).unwrap_or(linear)
}

/// A start: N ÷ X is linear in 1, N − 1 and N·(N − 1), weighted as the errors of X are.
fn linearised(points: &[(f64, f64)]) -> Law {
    let mut normal = Normal::default();
    for (n, x) in points {
        let weight = x * x / n;
        normal.add(&[weight, weight * (n - 1.0), weight * n * (n - 1.0)], weight * n / x);
    }
    match normal.solve(0.0) {
        Some([a, b, c]) if a > 0.0 => {
            Law { gamma: 1.0 / a, alpha: (b / a).max(0.0), beta: (c / a).max(0.0) }
        }
        _ => {
            let gamma = points.iter().map(|p| p.1 / p.0).fold(0.0, f64::max);
            Law { gamma, alpha: 0.01, beta: 1e-5 }
        }
    }
}

/// Levenberg and Marquardt over γ and the parameters that are `free`; the others are zero.
fn descend(points: &[(f64, f64)], start: Law, free: [bool; 2]) -> Law {
    let fix = |law: Law| Law {
        alpha: if free[0] { law.alpha } else { 0.0 },
        beta: if free[1] { law.beta } else { 0.0 },
        ..law
    };
    let mut law = fix(start);
    law.gamma = best_gamma(points, &law);
    let (mut error, mut damping) = (law.error(points), 1e-3);
    for _ in 0..ITERATIONS {
        let normal = Normal::at(points, &law, free);
        let Some([gamma, alpha, beta]) = normal.solve(damping) else { break };
        let next =
            fix(Law { gamma: law.gamma + gamma, alpha: law.alpha + alpha, beta: law.beta + beta });
        let next_error = next.error(points);
        if next_error < error {
            let gained = error - next_error;
            (law, error, damping) = (next, next_error, (damping / 10.0).max(1e-12));
            if gained <= 1e-14 * error {
                break;
            }
        } else {
            damping *= 10.0;
            if damping > 1e12 {
                break;
            }
        }
    }
    law
}

/// γ enters linearly: its best value for given α and β.
fn best_gamma(points: &[(f64, f64)], law: &Law) -> f64 {
    let shape = |n: f64| n / law.denominator(n);
    let xf = points.iter().map(|p| p.1 * shape(p.0)).sum::<f64>();
    xf / points.iter().map(|p| shape(p.0).powi(2)).sum::<f64>().max(f64::MIN_POSITIVE)
}

/// Fits to samples in which each point has the residual of any point, as a share of its value: what
/// disturbs a run takes a share of it. Residuals are smaller than errors by the degrees of freedom
/// that the fit took, and with few points their spread is itself uncertain: both factors are added.
fn bootstrap(points: &[(f64, f64)], law: &Law, seed: u64) -> Vec<Law> {
    let parameters = 1 + usize::from(law.alpha > 0.0) + usize::from(law.beta > 0.0);
    let degrees = points.len().saturating_sub(parameters).max(1);
    let factor = (points.len() as f64 / degrees as f64).sqrt() * student(degrees) / NORMAL;
    let mut residuals: Vec<f64> = points.iter().map(|p| p.1 / law.at(p.0) - 1.0).collect();
    let mean = residuals.iter().sum::<f64>() / residuals.len().max(1) as f64;
    residuals.iter_mut().for_each(|r| *r = (*r - mean) * factor);
    let mut random = SeededRandom::new(seed);
    let mut sample = || {
        let moved = points.iter().map(|p| {
            let residual = residuals[random.below(residuals.len() as u64) as usize];
            (p.0, law.at(p.0) * (1.0 + residual).max(0.01))
        });
        least_squares(&moved.collect::<Vec<_>>())
    };
    (0..SAMPLES).map(|_| sample()).collect()
}

/// The normal equations of a step of the fit.
#[derive(Default)]
struct Normal {
    matrix: [[f64; 3]; 3],
    right: [f64; 3],
}

impl Normal {
    fn add(&mut self, row: &[f64; 3], value: f64) {
        for (i, line) in self.matrix.iter_mut().enumerate() {
            for (cell, other) in line.iter_mut().zip(row) {
                *cell += row[i] * other;
            }
            self.right[i] += row[i] * value;
        }
    }

    /// Of the residuals at a law.
    fn at(points: &[(f64, f64)], law: &Law, free: [bool; 2]) -> Self {
        let mut normal = Self::default();
        for (n, x) in points {
            normal.add(&law.gradient(*n, free), x - law.at(*n));
        }
        normal
    }

    /// With each diagonal element larger by a share; one of a fixed parameter is 1.
    fn solve(&self, damping: f64) -> Option<[f64; 3]> {
        let mut matrix = self.matrix;
        for (i, row) in matrix.iter_mut().enumerate() {
            row[i] = if row[i] > 0.0 { row[i] * (1.0 + damping) } else { 1.0 };
        }
        solve(matrix, self.right)
    }
}

/// How a run scales: the fit and its maximum, or why there is none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Scaling {
    /// The fit.
    pub fit: Option<Fit>,
    /// Its maximum, if it lies within reach.
    pub peak: Option<Peak>,
    /// For people.
    pub sentence: String,
}

/// Fits the steps of a run, (in flight, throughput), and describes the result.
pub fn scaling(points: &[(f64, f64)], unit: &str, seed: u64) -> Scaling {
    let fit = match fit(points, seed) {
        Ok(fit) => fit,
        Err(why) => {
            return Scaling { sentence: format!("no scaling law: {why}"), ..Scaling::default() };
        }
    };
    let Law { gamma, alpha, beta } = fit.law;
    let law = format!(
        "scaling: {} {unit} alone, contention {:.2} %, coherency {:.4} % (R² {:.3})",
        count(gamma),
        alpha * 100.0,
        beta * 100.0,
        fit.r_squared
    );
    let peak = fit.peak().ok();
    let most = match &peak {
        Some(Peak { load, throughput }) => format!(
            "maximum {} {unit} ({} to {}) with {:.0} in flight ({:.0} to {:.0})",
            count(throughput.value),
            count(throughput.low),
            count(throughput.high),
            load.value,
            load.low,
            load.high
        ),
        None => format!("no maximum up to {:.0} in flight, twice what was measured", fit.reach()),
    };
    Scaling { fit: Some(fit), peak, sentence: format!("{law}; {most}") }
}

/// Solves three linear equations by elimination with pivots.
fn solve(mut a: [[f64; 3]; 3], mut b: [f64; 3]) -> Option<[f64; 3]> {
    for column in 0..3 {
        let pivot =
            (column..3).max_by(|i, j| a[*i][column].abs().total_cmp(&a[*j][column].abs()))?;
        if a[pivot][column].abs() < f64::MIN_POSITIVE {
            return None;
        }
        a.swap(column, pivot);
        b.swap(column, pivot);
        for row in column + 1..3 {
            let factor = a[row][column] / a[column][column];
            let pivot = a[column];
            for (cell, above) in a[row].iter_mut().zip(pivot).skip(column) {
                *cell -= factor * above;
            }
            b[row] -= factor * b[column];
        }
    }
    let mut x = [0.0; 3];
    for row in (0..3).rev() {
        let sum: f64 = (row + 1..3).map(|k| a[row][k] * x[k]).sum();
        x[row] = (b[row] - sum) / a[row][row];
    }
    x.iter().all(|v| v.is_finite()).then_some(x)
}

#[cfg(test)]
mod tests;
