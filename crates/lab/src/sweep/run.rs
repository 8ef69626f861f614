//! The rounds of a sweep: every point once, in another order each time, so that whatever drifts
//! drifts under all of them alike.

use super::carriers;
use super::link;
use super::plan::{At, Plan};
use super::record::{Point, Sample, Sweep, VERSION};
use super::transport::{Carried, SweepError};
use crate::agent::with_sources;
use crate::proc;
use crate::transfer::run::order;
use base::limits::SWEEP_ATTEMPTS;

/// Progress reports: the sweep so far, the point that is done, and how many are.
pub type Progress<'a> = &'a mut dyn FnMut(&Sweep, usize, u32);

/// Measures all points. Needs root. What fails at a point is in the result.
pub fn run(plan: &Plan, command: Vec<String>, progress: Progress<'_>) -> Sweep {
    let mut sweep = Sweep {
        kind: "sweep".into(),
        format: VERSION,
        program: concat!("plimsoll ", env!("CARGO_PKG_VERSION")).into(),
        started: base::clock::wall_ns() as f64 / 1e9,
        ended: 0.0,
        plan: plan.clone(),
        link_bytes_s: plan.link(),
        command,
        machine: proc::machine(),
        points: plan.points().into_iter().map(Point::new).collect(),
        degraded: Vec::new(),
    };
    let mut done = 0;
    for round in 0..plan.repeats {
        for number in order(sweep.points.len(), plan.seed, round) {
            let Some(point) = sweep.points.get_mut(number) else { continue };
            if point.failed.is_none() {
                sample(plan, point, round);
            }
            done += 1;
            sweep.ended = base::clock::wall_ns() as f64 / 1e9;
            sweep.derive();
            progress(&sweep, number, done);
        }
    }
    sweep
}

/// One more sample of a point: measured again, some times, when the link was late.
fn sample(plan: &Plan, point: &mut Point, round: u32) {
    for _ in 0..SWEEP_ATTEMPTS {
        match measure(plan, &point.at) {
            Ok((Carried { bytes_s, rtt_s, tcp }, why)) if why.is_empty() => {
                point.samples.push(Sample { round, bytes_s, rtt_s, tcp });
                return;
            }
            Ok((_, why)) => point.spoiled.push(why.join("; ")),
            Err(error) => {
                point.failed = Some(with_sources(&error));
                return;
            }
        }
    }
}

/// What was carried over a link of its own, and why that is invalid, if it is.
fn measure(plan: &Plan, at: &At) -> Result<(Carried, Vec<String>), SweepError> {
    let link = link::start(plan, at)?;
    let carried = carriers::of(plan.carrier).carry(plan, at, &link)?;
    Ok((carried, link.end()?.why))
}
