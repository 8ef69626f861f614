//! The server of a load that has no steps, as a program or a test of IOzone: two samples around it,
//! and the verdict on what limited.

use super::evidence;
use super::locate::view_of;
use super::server::{ServerSample, ServerView, Unseen};
use super::{AgentsError, RunOptions};
use crate::limit::{self, Evidence, Point, Verdict};
use crate::record::ServerInfo;
use crate::record::observed::{Observed, Payload};
use serde::{Deserialize, Serialize};

/// What the load was between the two samples.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    /// Threads, each with one call at a time.
    pub threads: f64,
    /// Length.
    pub seconds: f64,
    /// Calls to the target.
    pub operations: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Time of these calls, of all threads together.
    pub call_ns: u64,
    /// Time of all that the threads were asked to do, waits included.
    pub busy_ns: u64,
    /// Processor time of the load generator, seconds.
    pub cpu_s: f64,
}

/// The server during a load, and what limited it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Watched {
    /// The server as its machine shows it; `None` if it was not seen.
    #[serde(default)]
    pub observe: Option<Observed>,
    /// What limited.
    #[serde(default)]
    pub limit: Option<Verdict>,
}

/// Sees a server around a load.
pub struct Watch {
    view: Box<dyn ServerView>,
    info: ServerInfo,
    same_host: bool,
    first: Option<ServerSample>,
    last: Option<ServerSample>,
}

impl Watch {
    /// Of the server of a run.
    ///
    /// # Errors
    /// The agent that is to observe it cannot be reached, or refuses.
    pub fn of(options: &RunOptions) -> Result<Self, AgentsError> {
        Ok(Self::with(view_of(options)?))
    }

    /// Of no server.
    pub fn none() -> Self {
        Self::with(Box::new(Unseen::default()))
    }

    fn with(mut view: Box<dyn ServerView>) -> Self {
        let info = view.describe();
        let own = crate::proc::host_name();
        let same_host = info.machine.as_ref().is_some_and(|m| m["name"] == own.as_str());
        Self { view, info, same_host, first: None, last: None }
    }

    /// What is known of it.
    pub fn info(&self) -> ServerInfo {
        self.info.clone()
    }

    /// The load is on other machines.
    pub fn by_agents(&mut self, machines: &[serde_json::Value]) {
        let server = self.info.machine.as_ref().map(|machine| &machine["name"]);
        self.same_host = server.is_some_and(|name| machines.iter().any(|m| m["name"] == *name));
    }

    /// The load begins.
    pub fn begin(&mut self) {
        self.first = self.view.sample();
    }

    /// The load has ended.
    pub fn end(&mut self) {
        self.last = self.view.sample();
    }

    /// What was seen, and what limited.
    pub fn judge(&self, load: &Load) -> Watched {
        let mut e = evidence_of(load);
        e.same_host = self.same_host;
        let samples = self.first.as_ref().zip(self.last.as_ref());
        let observe = samples.and_then(|(first, last)| {
            evidence::server(first, last, &mut e);
            observed(first, last, load)
        });
        if let Some(observe) = &observe {
            evidence::observed(observe, &mut e);
        }
        let limit = (load.operations > 0).then(|| limit::judge(&e));
        Watched { observe, limit }
    }
}

fn observed(first: &ServerSample, last: &ServerSample, load: &Load) -> Option<Observed> {
    let payload = Payload {
        bytes_s: load.bytes_read.max(load.bytes_written) as f64 / load.seconds.max(1e-9),
        inward: load.bytes_written > load.bytes_read,
    };
    let started = crate::agent::clock::wall_at(first.at_ns);
    let mut found = Observed::between(first, last, payload, started)?;
    let costs = [first, last].map(|sample| sample.observed.as_ref().map_or(0, |o| o.cost_ns));
    found.cost = costs.iter().sum::<u64>() as f64 / 1e9;
    Some(found)
}

/// What the generator shows of a load.
fn evidence_of(load: &Load) -> Evidence {
    let seconds = load.seconds.max(1e-9);
    let thread_ns = load.threads * seconds * 1e9;
    let bytes = (load.bytes_read + load.bytes_written) as f64;
    let cores = load.cpu_s / seconds;
    let payload = match (load.bytes_read, load.bytes_written) {
        (0, 0) => None,
        (read, written) if read >= written => Some(limit::Direction::Read),
        _ => Some(limit::Direction::Write),
    };
    Evidence {
        cores: f64::from(crate::proc::cores()),
        generator_cores: cores,
        generator_busiest: (cores / load.threads.max(1.0)).min(1.0),
        little_deviation: (1.0 - load.busy_ns as f64 / thread_ns.max(1.0)).max(0.0),
        payload,
        // The number of threads is stated: there is no schedule that could have ended too early.
        levelled: true,
        point: Point {
            in_flight: load.threads,
            ops_s: load.operations as f64 / seconds,
            bytes_s: bytes / seconds,
            latency_ns: load.call_ns as f64 / load.operations.max(1) as f64,
        },
        ..Evidence::default()
    }
}

impl Watched {
    /// The limiter with its reasons, then the server, in sentences.
    pub fn sentences(&self, server: &ServerInfo) -> Vec<String> {
        let mut out = Vec::new();
        if let Some(limit) = &self.limit {
            let sure = limit.confidence * 100.0;
            let why = limit.why.join("; ");
            out.push(format!("limit: {} (confidence {sure:.0} %): {why}", limit.limiter.title()));
        }
        out.extend(self.observe.as_ref().map(|o| format!("{}: {}", o.role, o.sentence())));
        out.extend(server.unseen.iter().map(|why| format!("server not seen: {why}")));
        out
    }
}

#[cfg(test)]
mod tests;
