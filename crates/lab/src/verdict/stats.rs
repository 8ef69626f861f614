//! Statistics that several verdicts share: quantiles, medians, a straight line with its errors,
//! and random numbers of a seed.

use base::random::{Random, SeededRandom};

/// Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];
/// The same for the normal distribution.
pub const NORMAL: f64 = 1.960;

/// Two-sided 95 % quantile of Student's t; infinite without a degree of freedom.
pub fn student(degrees: usize) -> f64 {
    match degrees {
        0 => f64::INFINITY,
        n => STUDENT.get(n - 1).copied().unwrap_or(NORMAL + 2.4 / n as f64),
    }
}

/// The median; 0 of no values.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// A quantile by linear interpolation between order statistics; 0 of no values.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let at = share.clamp(0.0, 1.0) * last as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

/// A number from 0 (included) to 1 (excluded).
pub fn uniform(random: &mut SeededRandom) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// A least-squares line y = `intercept` + `slope`·x.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// y at x = 0.
    pub intercept: f64,
    /// Change of y for 1 of x.
    pub slope: f64,
    /// Points.
    pub points: usize,
    /// Standard deviation of the residuals, with `points` − 2 degrees of freedom.
    pub residual: f64,
    /// Mean of x.
    pub x_mean: f64,
    /// Sum of squared deviations of x.
    pub x_spread: f64,
}

impl Line {
    /// The line through points; `None` with fewer than three, or without two values of x.
    pub fn fit(points: &[(f64, f64)]) -> Option<Self> {
        let n = points.len() as f64;
        if points.len() < 3 {
            return None;
        }
        let x_mean = points.iter().map(|p| p.0).sum::<f64>() / n;
        let y_mean = points.iter().map(|p| p.1).sum::<f64>() / n;
        let x_spread = points.iter().map(|p| (p.0 - x_mean).powi(2)).sum::<f64>();
        if x_spread <= f64::EPSILON * x_mean * x_mean * n {
            return None;
        }
        let xy = points.iter().map(|p| (p.0 - x_mean) * (p.1 - y_mean)).sum::<f64>();
        let slope = xy / x_spread;
        let intercept = y_mean - slope * x_mean;
        let rest = points.iter().map(|p| (p.1 - intercept - slope * p.0).powi(2)).sum::<f64>();
        let residual = (rest / (n - 2.0)).sqrt();
        Some(Self { intercept, slope, points: points.len(), residual, x_mean, x_spread })
    }

    /// Standard error of the slope.
    pub fn slope_error(&self) -> f64 {
        self.residual / self.x_spread.sqrt()
    }

    /// Standard error of the intercept.
    pub fn intercept_error(&self) -> f64 {
        let mean = self.x_mean * self.x_mean / self.x_spread;
        self.residual * (1.0 / self.points as f64 + mean).sqrt()
    }

    /// The x at which the line reaches `y`, with the half width of its 95 % interval (inverse
    /// prediction).
    pub fn reaches(&self, y: f64) -> (f64, f64) {
        let x = (y - self.intercept) / self.slope;
        let away = (x - self.x_mean).powi(2) / self.x_spread;
        let error = self.residual / self.slope.abs() * (1.0 / self.points as f64 + away).sqrt();
        (x, student(self.points.saturating_sub(2)) * error)
    }
}

#[cfg(test)]
mod tests;
