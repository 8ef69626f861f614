//! From the evidence of all steps to one conclusion: the limiter by the rules of [`crate::limit`],
//! what a device or a cache adds, the demands with the next limit, and how throughput scales.

use super::demand::{self, Demands, Resource};
use super::device::{self, Capped};
use super::usl::{self, Scaling};
use crate::limit::{self, Device, Evidence, Limiter, OBSERVE, Point, Verdict};
use serde::{Deserialize, Serialize};

/// A thread of the server is a limit of its own when it is busier than its host by this factor.
const OWN_THREAD: f64 = 1.25;

/// A step of a run.
#[derive(Debug, Clone, Copy)]
pub struct StepEvidence<'a> {
    /// Clients that took part.
    pub clients: u32,
    /// What was measured; its point is the step's.
    pub evidence: &'a Evidence,
}

/// What a run shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conclusion {
    /// What limits.
    pub verdict: Verdict,
    /// What an operation takes of each resource, and the next limit.
    pub demands: Demands,
    /// How throughput scales with operations in flight.
    pub scaling: Scaling,
}

/// Concludes from the judged step, which has the curve, and all steps in order.
pub fn conclude(judged: &Evidence, steps: &[StepEvidence<'_>], seed: u64) -> Conclusion {
    let mut verdict = limit::judge(judged);
    let devices: Vec<(Point, &Device)> = steps
        .iter()
        .filter_map(|s| Some((s.evidence.point, s.evidence.device.as_ref()?)))
        .collect();
    let payload = judged.payload;
    let at_cap = judged.device.as_ref().and_then(|d| device::at_cap(judged.point, d));
    let flat = || device::capped(&devices, payload).filter(|_| devices.len() == steps.len());
    let capped = at_cap.or_else(flat);
    if let Some(capped) = capped.as_ref().filter(|_| leaves_room(&verdict, judged)) {
        verdict.limiter = Limiter::Disk;
        verdict.confidence = verdict.confidence.max(0.7);
        // By its busy time alone it had been ruled out.
        verdict.ruled_out.retain(|sentence| !sentence.starts_with("disk: "));
        verdict.why = vec![capped.sentence.clone()];
        if let Some(busy) = judged.host_busy {
            verdict.why.push(format!("the CPU was {:.0} % busy", busy * 100.0));
        }
    }
    verdict.marks.extend(device::warmed(&devices, payload));
    let ops_s: Vec<f64> = steps.iter().map(|s| s.evidence.point.ops_s).collect();
    let demands = demand::judge(&ops_s, &resources(judged, steps, capped.as_ref()));
    verdict.marks.extend(demands.inconsistent.iter().cloned());
    let points = steps.iter().map(|s| (s.evidence.point.in_flight, s.evidence.point.ops_s));
    let scaling = usl::scaling(&points.collect::<Vec<_>>(), "ops/s", seed);
    Conclusion { verdict, demands, scaling }
}

/// Whether the rules found nothing that is full: a device may then be what limits. What cannot be
/// seen may be full.
fn leaves_room(verdict: &Verdict, judged: &Evidence) -> bool {
    let none = [Limiter::Latency, Limiter::Unknown, Limiter::NotReached];
    judged.host_busy.is_some() && none.contains(&verdict.limiter)
}

/// The resources of a run, seen or not.
fn resources(
    judged: &Evidence,
    steps: &[StepEvidence<'_>],
    capped: Option<&Capped>,
) -> Vec<Resource> {
    let resource = |name: String, capacity: f64, busy: Vec<f64>| Resource {
        name,
        capacity,
        busy,
        users: Vec::new(),
        observe: OBSERVE.to_owned(),
    };
    let mut cpu = resource(
        "CPU of the server's host".into(),
        judged.cores,
        at_all(steps, |e| e.host_busy.map(|busy| busy * e.cores)),
    );
    let server = at_all(steps, |e| e.server_cores);
    if judged.same_host && !server.is_empty() {
        cpu.users = vec![
            ("server".into(), server.clone()),
            ("load generator".into(), at_all(steps, |e| Some(e.generator_cores))),
        ];
    }
    let mut found = vec![cpu];
    if let Some(quota) = judged.server_quota_cores {
        found.push(resource("CPU quota of the server".into(), quota, server));
    }
    let clients = steps.iter().map(|s| s.clients).max().unwrap_or(0);
    let driving = steps.iter().map(|s| s.evidence.generator_busiest * f64::from(s.clients));
    found.push(resource("load generator".into(), f64::from(clients), driving.collect()));
    if let Some((_, share)) = &judged.server_hot_thread
        && *share >= OWN_THREAD * judged.host_busy.unwrap_or(1.0)
    {
        let busy = at_all(steps, |e| e.server_hot_thread.as_ref().map(|t| t.1));
        found.push(resource("busiest thread of the server".into(), 1.0, busy));
    }
    if let Some((name, _, Some(_))) = &judged.link {
        let share = |e: &Evidence| match &e.link {
            Some((n, rate, Some(most))) if n == name => Some(rate / most.max(1.0)),
            _ => None,
        };
        found.push(resource(format!("link {name}"), 1.0, at_all(steps, share)));
    }
    found.extend(disk(judged, capped, steps).map(|(name, busy)| resource(name, 1.0, busy)));
    found.extend(judged.unseen.iter().map(|(name, command)| Resource {
        observe: command.clone(),
        ..resource(name.clone(), 1.0, Vec::new())
    }));
    found
}

/// A figure at all steps; empty if it was not seen at one of them.
fn at_all(steps: &[StepEvidence<'_>], pick: impl Fn(&Evidence) -> Option<f64>) -> Vec<f64> {
    let values: Option<Vec<f64>> = steps.iter().map(|s| pick(s.evidence)).collect();
    values.unwrap_or_default()
}

/// The disk: by its cap if it has one, else by its busy time.
fn disk(
    judged: &Evidence,
    capped: Option<&Capped>,
    steps: &[StepEvidence<'_>],
) -> Option<(String, Vec<f64>)> {
    if let Some(capped) = capped {
        let share = |e: &Evidence| Some(capped.of(e.device.as_ref()?) / capped.rate);
        return Some((format!("disk {}", capped.name), at_all(steps, share)));
    }
    if let Some(device) = &judged.device {
        let busy = at_all(steps, |e| Some(e.device.as_ref()?.busy));
        return Some((format!("disk {}", device.name), busy));
    }
    let (name, ..) = judged.disk.as_ref()?;
    let busy = at_all(steps, |e| e.disk.as_ref().filter(|d| d.0 == *name).map(|d| d.1));
    // The busiest disk of another step is another one: no line goes through both.
    (!busy.is_empty()).then(|| (format!("disk {name}"), busy))
}

impl Conclusion {
    /// What comes after the verdict, in sentences.
    pub fn sentences(&self) -> Vec<String> {
        let mut out = self.demands.sentences();
        out.push(self.scaling.sentence.clone());
        out
    }
}
