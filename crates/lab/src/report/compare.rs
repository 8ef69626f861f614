//! Two results side by side.

use crate::record::{RunResult, figure_text};
use serde::Serialize;

/// What differs between two runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Name of the job, of the first run.
    pub job: String,
    /// Settings that differ: name, first, second.
    pub differences: Vec<(String, String, String)>,
    /// The figures: first, second.
    pub figures: (f64, f64),
    /// For people.
    pub figures_text: (String, String),
    /// Second ÷ first.
    pub ratio: f64,
    /// Relative standard error of that ratio, from the spread of the windows that count.
    pub ratio_error: f64,
    /// Whether the ratio differs from 1 by more than two such errors.
    pub significant: bool,
    /// 99th percentile of latency, ns.
    pub p99_ns: (u64, u64),
    /// Limiters.
    pub limiters: (String, String),
}

/// Compares `b` with `a`.
pub fn compare(a: &RunResult, b: &RunResult) -> Comparison {
    let figure = |r: &RunResult| r.best_step().map_or(0.0, |s| r.figure(s));
    let figures = (figure(a), figure(b));
    let ratio = if figures.0 > 0.0 { figures.1 / figures.0 } else { 0.0 };
    let ratio_error = (error(a).powi(2) + error(b).powi(2)).sqrt();
    let text = |r: &RunResult| figure_text(r.job.workload.is_stream(), figure(r));
    let p99 = |r: &RunResult| r.best_step().map_or(0, |s| s.latency.p99);
    let limiter =
        |r: &RunResult| r.limit.as_ref().map_or("not found", |v| v.limiter.title()).to_owned();
    Comparison {
        job: a.job.name.clone(),
        differences: differences(a, b),
        figures,
        figures_text: (text(a), text(b)),
        ratio,
        ratio_error,
        significant: (ratio - 1.0).abs() > 2.0 * ratio_error * ratio.max(f64::MIN_POSITIVE),
        p99_ns: (p99(a), p99(b)),
        limiters: (limiter(a), limiter(b)),
    }
}

/// Relative standard error of a run's figure. Neighbouring windows resemble each other, so this
/// is a lower bound.
fn error(run: &RunResult) -> f64 {
    let Some(step) = run.best_step() else { return 0.0 };
    let windows = step.windows.get(step.used.0..step.used.1).unwrap_or_default();
    let stream = run.job.workload.is_stream();
    let rates: Vec<f64> =
        windows.iter().map(|w| if stream { w.bytes } else { w.ops } as f64).collect();
    let n = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / n.max(1.0);
    if n < 2.0 || mean <= 0.0 {
        return 0.0;
    }
    let variance = rates.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (variance / n).sqrt() / mean
}

fn differences(a: &RunResult, b: &RunResult) -> Vec<(String, String, String)> {
    let value = |r: &RunResult| serde_json::to_value(&r.job).unwrap_or_default();
    let (va, vb) = (value(a), value(b));
    let mut found = vec![("target".to_owned(), a.target.clone(), b.target.clone())];
    for (key, value) in va.as_object().into_iter().flatten() {
        found.push((key.clone(), value.to_string(), vb[key].to_string()));
    }
    found.retain(|d| d.1 != d.2);
    found
}

impl Comparison {
    /// As text.
    pub fn text(&self) -> String {
        let mut out = format!("{}\n", self.job);
        for (key, a, b) in &self.differences {
            out += &format!("  {key}: {a} | {b}\n");
        }
        let time = |ns: u64| base::units::time_ns(ns as f64);
        out += &format!("  value    {:>14} | {:>14}\n", self.figures_text.0, self.figures_text.1);
        out += &format!("  p99      {:>14} | {:>14}\n", time(self.p99_ns.0), time(self.p99_ns.1));
        out += &format!("  limiter  {} | {}\n", self.limiters.0, self.limiters.1);
        let sure = if self.significant { "beyond" } else { "within" };
        out += &format!(
            "  ratio    {:.3} ± {:.3}: {sure} two standard errors of the windows\n",
            self.ratio,
            self.ratio_error * self.ratio,
        );
        out
    }
}
