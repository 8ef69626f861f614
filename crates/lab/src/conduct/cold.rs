//! Steps that read from the disk: cached data is dropped before each, by the server itself and by
//! what observes it, and what then was resident and what the device read is kept for the judgement.

use super::counts::ClientTotals;
use super::server::{ServerSample, ServerView};
use crate::job::Job;
use crate::limit::OBSERVE;
use crate::record::Step;
use crate::record::cold::{ColdStep, DropReport};
use crate::verdict::cold::ColdEvidence;
use crate::workload::Kind;
use base::memory::page_size;

/// Least time from the middle of a step to its end, ns: at the middle, counters are read some
/// milliseconds after the clients' windows end.
const LATER_NS_MIN: u64 = 200_000_000;

/// A step that is about to begin.
pub struct Begun {
    dropped: DropReport,
    first: Option<ServerSample>,
}

/// A step that has ended.
pub struct Ended {
    begun: Begun,
    last: Option<ServerSample>,
}

impl Begun {
    /// Drops the server's cache, if the job requires it.
    pub fn of(job: &Job, view: &mut dyn ServerView) -> Option<Self> {
        job.cold.then(|| {
            let dropped = view.drop_cache();
            Self { dropped, first: view.sample() }
        })
    }

    /// After the step.
    pub fn end(self, view: &mut dyn ServerView) -> Ended {
        Ended { begun: self, last: view.sample() }
    }
}

impl Ended {
    /// The judgement of a step; `samples` were taken in it, from first to last.
    pub fn judge(
        self,
        job: &Job,
        step: &Step,
        totals: ClientTotals,
        samples: &[ServerSample],
    ) -> ColdStep {
        let Self { begun: Begun { dropped, first }, last } = self;
        let ends = first.as_ref().zip(last.as_ref());
        let set = u64::from(step.clients) * u64::from(job.files) * job.file_size;
        let device = ends.and_then(|(first, last)| read_between(first, last));
        let evidence = ColdEvidence {
            resident: resident(&dropped),
            share_device: dropped.observer.as_ref().and_then(|found| found.device.clone()),
            device,
            payload: totals.bytes,
            set: Some(set.div_ceil(page_size())),
            // What is read from start to end, once, cannot be warmed by what was read before.
            later: last
                .as_ref()
                .filter(|_| job.workload == Kind::RandRead)
                .and_then(|last| later(step, totals, samples, last)),
        };
        ColdStep::of(dropped, evidence, &format!("{OBSERVE} --share-path DIRECTORY"))
    }
}

/// Pages that stayed, and all: as the observer counted, else as the server reports.
fn resident(dropped: &DropReport) -> Option<(u64, u64)> {
    if let Some(found) = &dropped.observer {
        return Some((found.pages.after.resident, found.pages.after.all));
    }
    let report = dropped.server.as_ref()?;
    let whole = report["complete"] == true && report["uncounted"] == 0;
    let pages = |name: &str| Some(report[name].as_u64()? / page_size());
    whole.then(|| Some((pages("resident_after")?, pages("bytes")?))).flatten()
}

/// What the device below the share read between two samples.
fn read_between(first: &ServerSample, last: &ServerSample) -> Option<(String, u64)> {
    let device = |sample: &ServerSample| sample.observed.as_ref()?.devices.first().cloned();
    let (before, after) = (device(first)?, device(last)?);
    let same = before.name == after.name;
    same.then(|| (after.name, after.bytes[0].saturating_sub(before.bytes[0])))
}

/// The device and the clients after the moment at which half of the payload had been read.
fn later(
    step: &Step,
    totals: ClientTotals,
    samples: &[ServerSample],
    last: &ServerSample,
) -> Option<(u64, u64)> {
    let moment = |sample: &ServerSample| crate::agent::clock::wall_at(sample.at_ns);
    let read_at = |sample: &ServerSample| read_until(step, moment(sample));
    let half = totals.bytes / 2;
    // Windows hold no bytes of after their end, when some clients may still have read.
    let end = step.started + step.windows.len() as f64 * step.window_s;
    let within = samples.iter().filter(|sample| moment(sample) < end);
    let middle = within.min_by_key(|sample| read_at(sample).abs_diff(half))?;
    let before = read_at(middle);
    // A step with few samples has none near its middle.
    let too_short = last.at_ns.saturating_sub(middle.at_ns) < LATER_NS_MIN;
    if too_short || before < totals.bytes / 4 || before > totals.bytes / 4 * 3 {
        return None;
    }
    let (_, device) = read_between(middle, last)?;
    Some((device, totals.bytes.saturating_sub(before)))
}

/// Bytes that clients had read at a moment, from their windows.
fn read_until(step: &Step, moment: f64) -> u64 {
    let windows = (moment - step.started) / step.window_s.max(1e-9);
    let part = |(n, bytes): (usize, u64)| bytes as f64 * (windows - n as f64).clamp(0.0, 1.0);
    step.windows.iter().map(|window| window.bytes).enumerate().map(part).sum::<f64>() as u64
}

#[cfg(test)]
mod tests;
