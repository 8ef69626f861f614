//! Medians, and how sure a mean of pairs is.

/// The middle of the values; the mean of the two middle ones when their number is even.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// Mean and half the width of its 95 % interval (Student's t; at least 10 values).
pub fn mean_95(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    // t(0.975) falls from 2.26 (9 degrees of freedom) to 2.05 (29); the larger is the safe side.
    let t = if values.len() >= 30 { 2.05 } else { 2.26 };
    (mean, t * (variance / n).sqrt())
}
