//! Busy seconds per operation of each resource, and from them the limiter and the *next* one.
//!
//! Of a resource that is in use for u seconds of each second at x operations per second, the line
//! u = idle + D·x through all steps gives the demand D: load of others is in the intercept and
//! drops out. The resource is used up at (capacity − idle) ÷ D operations per second. The least of
//! these bounds limits, the second least is the next limit (operational analysis, Denning and
//! Buzen 1978). A resource that was not observed has no bound and limits nothing.

use super::stats::{Line, student};
use base::units::{count, time_ns};
use serde::{Deserialize, Serialize};

/// A bound counts as reached from this share of it on.
pub const REACHED: f64 = 0.90;
/// Measured throughput above the bound by more than this contradicts it.
const ABOVE: f64 = 1.05;
/// Bounds that are closer than this are not separable, ...
const CLOSE: f64 = 1.05;
/// ... and neither are those with overlapping intervals that are closer than this.
const NEAR: f64 = 1.25;
/// A demand is constant when the line leaves less than this of the capacity unexplained.
const CONSTANT: f64 = 0.10;

/// A resource at all steps of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Resource {
    /// Its name, for example `CPU of the server`.
    pub name: String,
    /// Busy seconds that it has in each second: cores, or 1 for a device or a link.
    pub capacity: f64,
    /// Busy seconds per second at each step; empty if it was not observed.
    pub busy: Vec<f64>,
    /// Users of the same capacity, with their own busy seconds: server and generator on one host.
    pub users: Vec<(String, Vec<f64>)>,
    /// Command that observes it.
    pub observe: String,
}

/// What an operation takes of a resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Demand {
    /// The resource.
    pub name: String,
    /// Busy seconds per operation.
    pub seconds: f64,
    /// Half width of its 95 % interval.
    pub seconds_error: f64,
    /// Busy seconds per second without any operation.
    pub idle: f64,
    /// Of `seconds`, the part of each user.
    pub users: Vec<(String, f64)>,
    /// Operations per second at which it is used up.
    pub bound: f64,
    /// Lower end of the 95 % interval.
    pub bound_low: f64,
    /// Upper end.
    pub bound_high: f64,
    /// Whether operations at all steps took the same.
    pub constant: bool,
    /// For people.
    pub sentence: String,
}

/// The limit after the one that was reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Next {
    /// The resource.
    pub name: String,
    /// Its bound ÷ that of the limiter (÷ the measured throughput if no resource limits).
    pub factor: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What limits, as far as demands show it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Binding {
    /// One resource is used up.
    Resource(String),
    /// Several are used up at the same throughput.
    NotSeparable(Vec<String>),
    /// Everything was observed, nothing is used up.
    Nothing,
    /// What was observed is not used up, and something was not observed.
    #[default]
    Unknown,
}

/// The demands of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Demands {
    /// Least bound first.
    pub demands: Vec<Demand>,
    /// What limits.
    pub binding: Binding,
    /// What would limit next.
    pub next: Option<Next>,
    /// Resources that allow less than was measured, as sentences: their bound is void.
    pub inconsistent: Vec<String>,
    /// Resources without a demand, as sentences.
    pub without: Vec<String>,
    /// Resources that were not observed: name, command that observes it.
    pub unseen: Vec<(String, String)>,
}

/// Judges resources by throughput at each step, operations per second.
pub fn judge(ops_s: &[f64], resources: &[Resource]) -> Demands {
    let measured = ops_s.iter().copied().fold(0.0, f64::max);
    let mut found = Demands::default();
    for resource in resources {
        if resource.busy.len() != ops_s.len() || ops_s.is_empty() {
            found.unseen.push((resource.name.clone(), resource.observe.clone()));
            continue;
        }
        match demand(ops_s, resource) {
            Err(why) => found.without.push(why),
            Ok(d) if measured > ABOVE * d.bound_high.min(ABOVE * d.bound) => {
                found.inconsistent.push(format!(
                    "{}: {} ops/s were measured, but its demand allows {} at most: its capacity or \
                     its use is not what was observed",
                    d.name,
                    count(measured),
                    count(d.bound)
                ));
            }
            Ok(d) => found.demands.push(d),
        }
    }
    found.demands.sort_by(|a, b| a.bound.total_cmp(&b.bound));
    let reached = found.demands.first().is_some_and(|d| measured >= REACHED * d.bound);
    let limiting = if reached { inseparable(&found.demands) } else { 0 };
    let names = || found.demands.iter().take(limiting).map(|d| d.name.clone());
    found.binding = match limiting {
        0 if found.unseen.is_empty() && found.inconsistent.is_empty() => Binding::Nothing,
        0 => Binding::Unknown,
        1 => Binding::Resource(names().collect()),
        _ => Binding::NotSeparable(names().collect()),
    };
    found.next = next(&found.demands, limiting, measured);
    found
}

/// The demand of one resource, or why there is none.
fn demand(ops_s: &[f64], resource: &Resource) -> Result<Demand, String> {
    let name = &resource.name;
    let points: Vec<(f64, f64)> = ops_s.iter().copied().zip(resource.busy.clone()).collect();
    let Some(line) = Line::fit(&points) else {
        return Err(format!("{name}: fewer than three steps with different throughput"));
    };
    let t = student(line.points - 2);
    let slope_error = t * line.slope_error();
    let constant = line.residual <= CONSTANT * resource.capacity;
    if constant && line.slope <= slope_error {
        return Err(format!("{name}: its use does not grow with the throughput"));
    }
    // A negative intercept is an error of the line, and so is one that could be.
    let through = line.intercept - t * line.intercept_error() <= 0.0;
    let idle = if through || !constant { 0.0 } else { line.intercept };
    let (seconds, seconds_error, bound, half) = if !constant {
        varying(&points, resource.capacity)
    } else if idle > 0.0 {
        let (bound, half) = line.reaches(resource.capacity);
        (line.slope, slope_error, bound, half)
    } else {
        let (seconds, error) = through_zero(&points);
        let bound = resource.capacity / seconds;
        (seconds, error, bound, bound * error / seconds)
    };
    if !(bound.is_finite() && bound > 0.0) {
        return Err(format!("{name}: its use does not grow with the throughput"));
    }
    let users = resource.users.iter().filter_map(|(user, busy)| {
        let own: Vec<(f64, f64)> = ops_s.iter().copied().zip(busy.clone()).collect();
        Some((user.clone(), Line::fit(&own)?.slope.max(0.0)))
    });
    let mut demand = Demand {
        name: name.clone(),
        seconds,
        seconds_error,
        idle,
        users: users.collect(),
        bound,
        bound_low: (bound - half).max(0.0),
        bound_high: bound + half,
        constant,
        sentence: String::new(),
    };
    demand.sentence = demand.describe(resource.capacity);
    Ok(demand)
}

/// A line through zero: slope and half of its 95 % interval.
fn through_zero(points: &[(f64, f64)]) -> (f64, f64) {
    let xx = points.iter().map(|p| p.0 * p.0).sum::<f64>();
    let slope = points.iter().map(|p| p.0 * p.1).sum::<f64>() / xx;
    let rest = points.iter().map(|p| (p.1 - slope * p.0).powi(2)).sum::<f64>();
    let degrees = points.len().saturating_sub(1);
    (slope, student(degrees) * (rest / degrees.max(1) as f64 / xx).sqrt())
}

/// Operations do not take the same at all steps: that of the best step counts, and the interval
/// holds all of them.
fn varying(points: &[(f64, f64)], capacity: f64) -> (f64, f64, f64, f64) {
    let best = points.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default();
    let each = points.iter().filter(|p| p.0 > 0.0).map(|p| p.1 / p.0);
    let seconds = best.1 / best.0;
    let far = each.map(|s| (s - seconds).abs()).fold(0.0, f64::max);
    let bound = capacity / seconds;
    (seconds, far, bound, bound * far / seconds)
}

impl Demand {
    fn describe(&self, capacity: f64) -> String {
        let each = time_ns(self.seconds * 1e9);
        let error = time_ns(self.seconds_error * 1e9);
        let mut out = format!("{}: {each} ± {error} per operation", self.name);
        if !self.users.is_empty() {
            let users: Vec<String> =
                self.users.iter().map(|(user, s)| format!("{user} {}", time_ns(s * 1e9))).collect();
            out += &format!(" ({})", users.join(", "));
        }
        out += &format!(" of {capacity:.2} busy seconds per second");
        if self.idle > 0.0 {
            out += &format!(", {:.2} of which are used without load", self.idle);
        }
        let (low, high) = (count(self.bound_low), count(self.bound_high));
        out += &format!(": at most {} ops/s ({low} to {high})", count(self.bound));
        if !self.constant {
            out += "; operations did not take the same at all steps";
        }
        out
    }

    /// Relative half width of the bound's interval.
    fn relative(&self) -> f64 {
        (self.bound_high - self.bound) / self.bound
    }
}

/// How many of the least bounds are not separable from the first.
fn inseparable(demands: &[Demand]) -> usize {
    let Some(first) = demands.first() else { return 0 };
    let close = |d: &&Demand| {
        let ratio = d.bound / first.bound;
        ratio <= CLOSE || ratio <= NEAR && d.bound_low <= first.bound_high
    };
    demands.iter().take_while(close).count()
}

fn next(demands: &[Demand], limiting: usize, measured: f64) -> Option<Next> {
    let next = demands.get(limiting)?;
    let (base, base_error) = match demands.first().filter(|_| limiting > 0) {
        Some(limiter) => (limiter.bound, limiter.relative()),
        None => (measured, 0.0),
    };
    let factor = next.bound / base;
    let error = next.relative().hypot(base_error);
    let low = (factor * (1.0 - error)).max(0.0);
    Some(Next { name: next.name.clone(), factor, low, high: factor * (1.0 + error) })
}

impl Demands {
    /// All of it in sentences.
    pub fn sentences(&self) -> Vec<String> {
        let mut out: Vec<String> = self.demands.iter().map(|d| d.sentence.clone()).collect();
        if let Binding::NotSeparable(names) = &self.binding {
            out.push(format!(
                "not separable: {} are used up at the same throughput",
                names.join(" and ")
            ));
        }
        if let Some(next) = &self.next {
            out.push(format!(
                "next limit: {}, at {:.1} times the throughput ({:.1} to {:.1})",
                next.name, next.factor, next.low, next.high
            ));
        }
        out.extend(self.inconsistent.iter().chain(&self.without).cloned());
        out.extend(
            self.unseen
                .iter()
                .map(|(name, command)| format!("not observed: {name}; `{command}` shows it")),
        );
        out
    }
}

#[cfg(test)]
mod tests;
