//! The server as the conductor sees it: its process and machine when they are here, its own
//! statistics when its socket is, and "unseen" otherwise.

pub mod api;
pub mod drop_cache;

use self::api::ServerApi;
use self::drop_cache::DataNode;
use super::counts::Counts;
use crate::client::Target;
pub use crate::observe::ServerSample;
use crate::observe::{Identity, LocalServer};
use crate::record::ServerInfo;
use crate::record::cold::{CacheDropped, DropReport};
use serde_json::Value;

/// A way to see the server.
pub trait ServerView {
    /// What it is.
    fn describe(&mut self) -> ServerInfo;
    /// Its counters now; `None` when they cannot be seen.
    fn sample(&mut self) -> Option<ServerSample>;
    /// Its statistics between two times of the wall clock, seconds since the epoch, by id.
    fn statistics(&mut self, _from: f64, _to: f64) -> serde_json::Map<String, Value> {
        serde_json::Map::new()
    }
    /// Takes its data out of the page cache, before a step that is to read from the disk.
    fn drop_cache(&mut self) -> DropReport {
        let failed = vec!["the server's host is not observed".to_owned()];
        DropReport { failed, ..DropReport::default() }
    }
    /// What it counted itself between two times of the wall clock, seconds since the epoch.
    fn counts(&mut self, _from: f64, _to: f64) -> Option<Counts> {
        None
    }
}

/// Nothing is seen.
#[derive(Debug, Default)]
pub struct Unseen {
    /// Why.
    pub why: Option<String>,
}

impl ServerView for Unseen {
    fn describe(&mut self) -> ServerInfo {
        let unseen = self.why.clone();
        ServerInfo { seen: "unseen".into(), unseen, ..Default::default() }
    }
    fn sample(&mut self) -> Option<ServerSample> {
        None
    }
}

impl ServerView for LocalServer {
    fn describe(&mut self) -> ServerInfo {
        let seen = if self.identity.pids.is_empty() { "machine" } else { "process" };
        info(&self.identity, seen)
    }

    fn sample(&mut self) -> Option<ServerSample> {
        Self::sample(self)
    }

    fn drop_cache(&mut self) -> DropReport {
        observed(Self::drop_cache(self))
    }
}

/// What an observer has done.
pub(super) fn observed(done: Result<CacheDropped, String>) -> DropReport {
    let mut report = DropReport::default();
    match done {
        Ok(dropped) => {
            report.failed.extend(dropped.pages.failed.clone());
            report.observer = Some(dropped);
        }
        Err(why) => report.failed.push(why),
    }
    report
}

/// What a record has of a server that is observed.
pub(super) fn info(of: &Identity, seen: &str) -> ServerInfo {
    ServerInfo {
        seen: seen.into(),
        unseen: of.missing.clone(),
        namespace: of.namespace.clone(),
        pid: of.pids.first().copied(),
        machine: Some(of.machine.clone()),
        status: None,
    }
}

/// How a server on this machine is seen that is asked itself, in records.
pub const SEEN_BY_API: &str = "api";
/// The same of a server on another machine.
pub const SEEN_BY_REMOTE_API: &str = "remote-api";

/// Statistics that belong into a record, whatever the protocol.
const STATISTICS: [&str; 3] = ["cpu.utilization[mode]", "nic.kilobytes[device]", "io.ops[disk]"];
/// The breakdowns of the protocol's operations.
const BREAKDOWNS: [&str; 3] = ["op", "client", "latency"];
/// A Plimsoll server that is asked itself (docs/protocols/api.md).
pub struct QueriedServer {
    api: ServerApi,
    /// How its machine is seen.
    machine: Box<dyn ServerView>,
    status: Option<Value>,
    /// Its process, as it reports it; `None` of one on another machine.
    pub pid: Option<u32>,
    /// Group of the protocol's statistics.
    protocol: &'static str,
    /// Where it has the data of the target.
    data: Option<DataNode>,
}

impl QueriedServer {
    /// Asks for its status.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn connect(api: ServerApi, protocol: &'static str) -> Result<Self, String> {
        let status = api.read("/api/v1/status")?;
        let pid = status["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        let pid = pid.filter(|_| api.is_local());
        let machine = Box::new(Unseen::default());
        Ok(Self { api, machine, status: Some(status), pid, protocol, data: None })
    }

    /// The same server, of which the data of a target is of interest.
    pub fn of_target(mut self, target: &Target) -> Self {
        let status = self.status.as_ref();
        self.data = status.and_then(|status| DataNode::find(&self.api, status, target));
        self
    }

    /// Where the server has the data of the target.
    pub fn data(&self) -> Option<&DataNode> {
        self.data.as_ref()
    }

    /// The same in a folder of the run.
    pub fn in_folder(mut self, name: &str) -> Self {
        self.data = self.data.map(|data| data.in_folder(name));
        self
    }

    /// The same server, of which the machine is seen so.
    pub fn with(self, machine: Box<dyn ServerView>) -> Self {
        Self { machine, ..self }
    }
}

impl ServerView for QueriedServer {
    fn describe(&mut self) -> ServerInfo {
        let machine = self.machine.describe();
        let pid = self.pid.or(machine.pid);
        let seen = if self.api.is_local() { SEEN_BY_API } else { SEEN_BY_REMOTE_API };
        ServerInfo { seen: seen.into(), pid, status: self.status.take(), ..machine }
    }

    fn sample(&mut self) -> Option<ServerSample> {
        self.machine.sample()
    }

    fn drop_cache(&mut self) -> DropReport {
        // The server first: what it has mapped nothing else can drop.
        let none = || "the server does not know the data of the target".to_owned();
        let server = self.data.as_ref().ok_or_else(none);
        let server = server.and_then(|data| data.drop_cache(&self.api));
        let mut report = self.machine.drop_cache();
        match server {
            Ok(done) => report.server = Some(done),
            Err(why) => report.failed.push(why),
        }
        report
    }

    fn counts(&mut self, from: f64, to: f64) -> Option<Counts> {
        let group = self.protocol;
        let path = format!("/api/v1/analytics/counts?group={group}&from={from:.6}&to={to:.6}");
        serde_json::from_value(self.api.get(&path)?).ok()
    }

    fn statistics(&mut self, from: f64, to: f64) -> serde_json::Map<String, Value> {
        // Whole seconds only: those at the edges belong to other steps as well.
        let (from, to) = (from.ceil() as i64, to.floor() as i64);
        let mut found = serde_json::Map::new();
        if to <= from {
            return found;
        }
        let operations = BREAKDOWNS.map(|by| format!("{}.ops[{by}]", self.protocol));
        for id in operations.into_iter().chain(STATISTICS.map(str::to_owned)) {
            let path = format!("/api/v1/analytics/data?stat={}&from={from}&to={to}", escape(&id));
            if let Some(data) = self.api.get(&path) {
                found.insert(id, data);
            }
        }
        found
    }
}

pub(crate) fn escape(text: &str) -> String {
    text.replace('[', "%5B").replace(']', "%5D").replace('=', "%3D")
}

/// Mean latency, ns, from a data object of a latency breakdown.
pub fn mean_latency(data: &Value) -> Option<f64> {
    let buckets = data["buckets"].as_array()?;
    let each = buckets.iter().filter_map(|b| {
        let (low, high) = (b["low"].as_f64()?, b["high"].as_f64()?);
        Some(((low + high) / 2.0, b["average"].as_f64()?))
    });
    let (sum, n) = each.fold((0.0, 0.0), |(sum, n), (mid, rate)| (sum + mid * rate, n + rate));
    (n > 0.0).then(|| sum / n)
}

#[cfg(test)]
mod tests;
