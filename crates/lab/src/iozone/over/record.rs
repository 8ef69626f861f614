//! The result of IOzone over distance: every sample, and what is derived from them.

use super::OverPlan;
use crate::record::provenance::Provenance;
use crate::record::{RecordError, read_kind};
use crate::report::Table;
use crate::sweep::model::deviation_percent;
use crate::sweep::plan::{At, Plan};
use crate::transfer::stats::Middle;
use base::limits::SWEEP_OFF_PERCENT;
use base::units::bytes;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Version of the format.
pub const VERSION: u32 = 1;
/// Its kind, which distinguishes it from IOzone's tests on a target.
pub const KIND: &str = "iozone-over";
/// Children from which on writes are flat, as in the source.
const FLAT_FROM: u32 = 4;

/// Both tests at all points.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OverResult {
    /// Of [`KIND`] and [`VERSION`].
    #[serde(flatten)]
    pub provenance: Provenance,
    /// What was asked.
    pub plan: OverPlan,
    /// What the link carries of payload, bytes per second.
    pub link_bytes_s: f64,
    /// The points, in the order of the plan.
    pub points: Vec<OverPoint>,
    /// Where the figures are not as the model has them, in sentences.
    pub degraded: Vec<String>,
    /// Why it failed, if it did.
    pub failed: Option<String>,
}

/// A point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OverPoint {
    /// Round-trip time of the link, milliseconds.
    pub rtt_ms: f64,
    /// Children.
    pub threads: u32,
    /// Whether the link is encrypted.
    pub encrypt: bool,
    /// Samples over links that were in time.
    pub samples: Vec<OverSample>,
    /// Why other samples are condemned. Never a figure.
    pub spoiled: Vec<String>,
    /// Why the point was abandoned.
    pub failed: Option<String>,
    /// What follows from the samples; `None` without one.
    pub figures: Option<OverFigures>,
}

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OverSample {
    /// The round, from 0.
    pub round: u32,
    /// A round trip on the idle link, seconds.
    pub rtt_s: f64,
    /// Initial writers, all children together, bytes per second.
    pub write_bytes_s: f64,
    /// Readers, all children together, bytes per second.
    pub read_bytes_s: f64,
}

/// What follows from the samples of a point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OverFigures {
    /// Median round trip, seconds; the model has it.
    pub rtt_s: f64,
    /// What the model predicts, bytes per second.
    pub predicted: f64,
    /// Median of the writers, bytes per second.
    pub write_bytes_s: f64,
    /// Median of the readers, bytes per second.
    pub read_bytes_s: f64,
    /// Deviation of the writers, percent of the prediction.
    pub write_off_percent: f64,
    /// Deviation of the readers, percent of the prediction.
    pub read_off_percent: f64,
}

impl OverPoint {
    /// A point without samples.
    pub fn new(at: At) -> Self {
        Self {
            rtt_ms: at.rtt_ms,
            threads: at.instances,
            encrypt: at.encrypt,
            samples: Vec::new(),
            spoiled: Vec::new(),
            failed: None,
            figures: None,
        }
    }

    /// The same point of a sweep.
    pub fn at(&self, sweep: &Plan) -> At {
        At {
            rtt_ms: self.rtt_ms,
            window: sweep.windows.first().copied().unwrap_or(0),
            instances: self.threads,
            encrypt: self.encrypt,
            congestion: sweep.congestion.first().cloned().unwrap_or_default(),
        }
    }

    fn derive(&mut self, sweep: &Plan) {
        let median = |of: fn(&OverSample) -> f64| {
            let values: Vec<f64> = self.samples.iter().map(of).collect();
            Middle::of(&values).map(|middle| middle.median)
        };
        let (rtt, write, read) =
            (median(|s| s.rtt_s), median(|s| s.write_bytes_s), median(|s| s.read_bytes_s));
        let all = rtt.zip(write).zip(read);
        self.figures = all.map(|((rtt_s, write_bytes_s), read_bytes_s)| {
            let predicted = sweep.predicted(&self.at(sweep), rtt_s);
            OverFigures {
                rtt_s,
                predicted,
                write_bytes_s,
                read_bytes_s,
                write_off_percent: deviation_percent(write_bytes_s, predicted),
                read_off_percent: deviation_percent(read_bytes_s, predicted),
            }
        });
    }

    /// Its name: distance, children, encryption.
    pub fn name(&self) -> String {
        let encrypted = if self.encrypt { ", encrypted" } else { "" };
        format!("{} ms, {} children{encrypted}", self.rtt_ms, self.threads)
    }

    fn wrong(&self) -> Option<String> {
        let name = self.name();
        if let Some(why) = &self.failed {
            return Some(format!("{name} was abandoned: {why}"));
        }
        let Some(figures) = &self.figures else {
            let last = self.spoiled.last().map_or("not measured", String::as_str);
            return Some(format!("{name} has no valid sample: {last}"));
        };
        let off = figures.read_off_percent;
        is_off(off).then(|| format!("{name}: reads are {off:+.1} % off the model"))
    }
}

fn is_off(percent: f64) -> bool {
    percent.abs() > SWEEP_OFF_PERCENT
}

impl OverResult {
    /// Derives the figures from the samples, and what is wrong from the figures.
    pub fn derive(&mut self) {
        let sweep = self.plan.sweep();
        self.points.iter_mut().for_each(|point| point.derive(&sweep));
        let mut wrong: Vec<String> = self.points.iter().filter_map(OverPoint::wrong).collect();
        wrong.extend(self.not_flat());
        wrong.extend(self.encryption_shows());
        self.degraded = wrong;
    }

    /// Writes that are not flat from four children on, by distance and encryption.
    fn not_flat(&self) -> Vec<String> {
        let mut found = Vec::new();
        for encrypt in &self.plan.encrypt {
            for rtt_ms in &self.plan.rtt_ms {
                let row = self.points.iter().filter(|p| {
                    p.rtt_ms == *rtt_ms && p.encrypt == *encrypt && p.threads >= FLAT_FROM
                });
                let rates = row.filter_map(|p| Some((p, p.figures?.write_bytes_s)));
                let rates: Vec<(&OverPoint, f64)> = rates.collect();
                let values: Vec<f64> = rates.iter().map(|(_, rate)| *rate).collect();
                let Some(middle) = Middle::of(&values) else { continue };
                found.extend(rates.iter().filter_map(|(point, rate)| {
                    let off = deviation_percent(*rate, middle.median);
                    let name = point.name();
                    is_off(off).then(|| format!("{name}: writes are not flat, {off:+.1} %"))
                }));
            }
        }
        found
    }

    /// Points at which encryption changes a figure.
    fn encryption_shows(&self) -> Vec<String> {
        let plain = |point: &OverPoint| {
            let same = |p: &&OverPoint| {
                !p.encrypt && p.rtt_ms == point.rtt_ms && p.threads == point.threads
            };
            self.points.iter().find(same)?.figures
        };
        let encrypted = self.points.iter().filter(|point| point.encrypt);
        let both = encrypted.filter_map(|point| Some((point, point.figures?, plain(point)?)));
        let compared = both.flat_map(|(point, with, without)| {
            let of = [
                ("writes", with.write_bytes_s, without.write_bytes_s),
                ("reads", with.read_bytes_s, without.read_bytes_s),
            ];
            of.map(|(what, with, without)| (point, what, deviation_percent(with, without)))
        });
        let shows = compared.filter(|(_, _, off)| is_off(*off));
        shows
            .map(|(point, what, off)| {
                format!("{}: encryption changes {what} by {off:+.1} %", point.name())
            })
            .collect()
    }

    /// A line for each point.
    pub fn table(&self) -> Table {
        let line = |point: &OverPoint| {
            let some = |of: fn(&OverFigures) -> String| {
                let none = if point.failed.is_some() { "abandoned" } else { "spoiled" };
                point.figures.as_ref().map_or(none.to_owned(), of)
            };
            let rate = |rate: f64| format!("{}/s", bytes(rate));
            let percent = |off: f64| format!("{off:+.1} %");
            vec![
                format!("{} ms", point.rtt_ms),
                point.threads.to_string(),
                if point.encrypt { "on" } else { "off" }.to_owned(),
                some(|f| base::units::time_ns(f.rtt_s * 1e9)),
                point.figures.map_or_else(|| some(|_| String::new()), |f| rate(f.write_bytes_s)),
                point.figures.map_or_else(|| some(|_| String::new()), |f| rate(f.read_bytes_s)),
                point.figures.map_or_else(|| some(|_| String::new()), |f| rate(f.predicted)),
                point
                    .figures
                    .map_or_else(|| some(|_| String::new()), |f| percent(f.write_off_percent)),
                point
                    .figures
                    .map_or_else(|| some(|_| String::new()), |f| percent(f.read_off_percent)),
                point.spoiled.len().to_string(),
            ]
        };
        let heads = [
            "RTT",
            "children",
            "encryption",
            "RTT measured",
            "writes",
            "reads",
            "model",
            "writes off",
            "reads off",
            "condemned",
        ];
        let mut table = Table::new(heads, self.points.iter().map(line).collect());
        let number = |point: &OverPoint| {
            let of = |f: OverFigures| [f.rtt_s, f.write_bytes_s, f.read_bytes_s, f.predicted];
            let all = point.figures.map(of).map(|all| all.map(|n| n.to_string()));
            all.map(Vec::from).unwrap_or_else(|| vec![String::new(); 4])
        };
        table.raw(
            ["rtt_s", "write_bytes_s", "read_bytes_s", "predicted_bytes_s"],
            self.points.iter().map(number).collect(),
        );
        table
    }

    /// What was measured, in sentences.
    pub fn sentences(&self) -> Vec<String> {
        let plan = &self.plan;
        let mut out = vec![format!(
            "records of {} over NFSv3 on a link of {}bit/s, {}/s of payload; the model: children × \
             record ÷ (record ÷ rate + RTT), up to the link",
            bytes(plan.record as f64),
            base::units::count(plan.rate as f64),
            bytes(self.link_bytes_s)
        )];
        out.extend(self.degraded.iter().map(|what| format!("degraded: {what}")));
        out
    }

    /// As text.
    pub fn text(&self) -> String {
        let sentences = self.sentences().iter().map(|s| format!("{s}\n")).collect::<String>();
        format!("IOzone over distance\n\n{}\n{sentences}", self.table().text())
    }

    /// Reads the result in a file, or in `result.json` of a directory; `None` if that is another
    /// kind.
    ///
    /// # Errors
    /// It cannot be read, or is of a later version.
    pub fn read(path: &Path) -> Result<Option<Self>, RecordError> {
        read_kind(path, KIND, VERSION)
    }
}

#[cfg(test)]
mod tests;
