//! What is kept of a sweep: every sample, and what is derived from them.

use super::limiter::{self, Limiter, Tcp};
use super::model::deviation_percent;
use super::plan::{At, Plan};
use crate::record::{RecordError, read_kind, write_result};
use crate::transfer::stats::Middle;
use base::limits::SWEEP_OFF_PERCENT;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Version of the format; a reader takes this and lower.
pub const VERSION: u32 = 1;

/// A sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// What kind of result this is: `sweep`.
    pub kind: String,
    /// [`VERSION`].
    pub format: u32,
    /// Program and version that wrote this.
    pub program: String,
    /// Begin, seconds since the Unix epoch.
    pub started: f64,
    /// End, seconds since the Unix epoch.
    pub ended: f64,
    /// What was wanted.
    pub plan: Plan,
    /// What the link carries of payload, bytes per second.
    pub link_bytes_s: f64,
    /// The command that repeats it.
    pub command: Vec<String>,
    /// The machine.
    pub machine: serde_json::Value,
    /// The points, in the order of the plan.
    pub points: Vec<Point>,
    /// What is wrong with some of them, in sentences.
    pub degraded: Vec<String>,
}

/// A point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Which.
    pub at: At,
    /// What was measured over links that were good.
    pub samples: Vec<Sample>,
    /// Of what was measured over links that were not, why they were not. Never a figure.
    pub spoiled: Vec<String>,
    /// Why it was abandoned.
    pub failed: Option<String>,
    /// What comes of the samples; `None` without one.
    pub figures: Option<Figures>,
}

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The round, from 0.
    pub round: u32,
    /// Bytes per second, all connections together.
    pub bytes_s: f64,
    /// A round trip with nothing else in flight, seconds.
    pub rtt_s: f64,
    /// TCP's accounting; `None` if unseen.
    pub tcp: Option<Tcp>,
}

/// What comes of the samples of a point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Bytes per second.
    pub bytes_s: Middle,
    /// A round trip with nothing else in flight, seconds; an input of the model.
    pub rtt_s: f64,
    /// The throughput that the model predicts, bytes per second.
    pub predicted: f64,
    /// By how much the median is off, percent of what was predicted.
    pub off_percent: f64,
    /// What it is on the source's link, bytes per second; `None` when no figure is redrawn.
    pub source_bytes_s: Option<f64>,
    /// What limited it.
    pub limiter: Limiter,
}

impl Figures {
    /// Whether it is close to the prediction.
    pub fn is_near(&self) -> bool {
        self.off_percent.abs() <= SWEEP_OFF_PERCENT
    }
}

impl Point {
    /// One without samples.
    pub fn new(at: At) -> Self {
        Self { at, samples: Vec::new(), spoiled: Vec::new(), failed: None, figures: None }
    }

    /// Derives the figures.
    fn derive(&mut self, plan: &Plan) {
        let rates: Vec<f64> = self.samples.iter().map(|s| s.bytes_s).collect();
        let rtts: Vec<f64> = self.samples.iter().map(|s| s.rtt_s).collect();
        self.figures = Middle::of(&rates).zip(Middle::of(&rtts)).map(|(bytes_s, rtt)| {
            let predicted = plan.predicted(&self.at, rtt.median);
            // That of the sample in the middle.
            let far = |s: &Sample| (s.bytes_s - bytes_s.median).abs();
            let middle = self.samples.iter().min_by(|a, b| far(a).total_cmp(&far(b)));
            let tcp = middle.and_then(|sample| sample.tcp);
            let carries = plan.carries(&self.at);
            let source = plan.figure.map(|_| bytes_s.median / plan.scale);
            Figures {
                bytes_s,
                rtt_s: rtt.median,
                predicted,
                off_percent: deviation_percent(bytes_s.median, predicted),
                source_bytes_s: source,
                limiter: limiter::judge(plan.carrier, tcp.as_ref(), bytes_s.median, carries),
            }
        });
    }

    /// What is wrong with it, in a sentence.
    fn wrong(&self) -> Option<String> {
        let name = self.at.name();
        if let Some(why) = &self.failed {
            return Some(format!("{name} was abandoned: {why}"));
        }
        let Some(figures) = &self.figures else {
            let last = self.spoiled.last().map_or("not measured", String::as_str);
            return Some(format!("{name} is invalid because of the link: {last}"));
        };
        (!figures.is_near())
            .then(|| format!("{name} is {:+.1} % off the model", figures.off_percent))
    }
}

impl At {
    /// Its name for people.
    pub fn name(&self) -> String {
        let sealed = if self.encrypt { ", encrypted" } else { "" };
        let Self { rtt_ms, window, instances, congestion, .. } = self;
        let window = base::units::bytes(*window as f64);
        format!("{rtt_ms} ms, {window} × {instances}, {congestion}{sealed}")
    }
}

impl Sweep {
    /// Derives all figures from the samples, and what is wrong from the figures.
    pub fn derive(&mut self) {
        let plan = &self.plan;
        self.points.iter_mut().for_each(|point| point.derive(plan));
        self.degraded = self.points.iter().filter_map(Point::wrong).collect();
    }

    /// Writes `result.json` into `dir`, replacing an older one in one move.
    ///
    /// # Errors
    /// When the directory cannot be made or written.
    pub fn write(&self, dir: &Path) -> Result<(), RecordError> {
        write_result(self, "the sweep", dir)
    }

    /// Reads a sweep: a file, or a directory with `result.json` in it. `None` when that is the
    /// result of another kind of job.
    ///
    /// # Errors
    /// When it cannot be read or is of a later version.
    pub fn read(path: &Path) -> Result<Option<Self>, RecordError> {
        read_kind(path, "sweep", VERSION)
    }
}

#[cfg(test)]
pub(crate) mod tests;
