//! The server as the conductor sees it: its process and machine when they are here, its own
//! statistics when its socket is, and "unseen" otherwise.

use crate::agent::clock;
use crate::proc::{self, MachineCounters, ProcessCpu};
use crate::record::ServerInfo;
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// Cumulative counters of the server at one moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServerSample {
    /// Controller's monotonic clock, ns.
    pub at_ns: u64,
    /// The process, if there is one.
    pub process: Option<ProcessCpu>,
    /// Its machine.
    pub machine: MachineCounters,
    /// Bytes per connection waiting at the server: to be sent, to be read; and how many
    /// connections.
    pub queues: Option<(f64, f64, u32)>,
}

/// A way to see the server.
pub trait ServerView {
    /// What it is.
    fn describe(&mut self) -> ServerInfo;
    /// Its counters now; `None` when they cannot be seen.
    fn sample(&mut self) -> Option<ServerSample>;
    /// Its statistics between two times of the wall clock, seconds since the epoch, by id.
    fn statistics(&mut self, from: f64, to: f64) -> serde_json::Map<String, Value>;
}

/// Nothing is seen.
pub struct Unseen;

impl ServerView for Unseen {
    fn describe(&mut self) -> ServerInfo {
        ServerInfo { seen: "unseen".into(), ..Default::default() }
    }
    fn sample(&mut self) -> Option<ServerSample> {
        None
    }
    fn statistics(&mut self, _from: f64, _to: f64) -> serde_json::Map<String, Value> {
        serde_json::Map::new()
    }
}

/// No server, but its machine: the target is a directory here, or nothing.
pub struct Machine;

impl ServerView for Machine {
    fn describe(&mut self) -> ServerInfo {
        let machine = Some(proc::machine());
        ServerInfo { seen: "machine".into(), machine, ..Default::default() }
    }
    fn sample(&mut self) -> Option<ServerSample> {
        let machine = proc::counters();
        Some(ServerSample { at_ns: clock::mono_ns(), machine, ..Default::default() })
    }
    fn statistics(&mut self, _from: f64, _to: f64) -> serde_json::Map<String, Value> {
        serde_json::Map::new()
    }
}

/// A process of this machine.
pub struct LocalProcess {
    /// Its number.
    pub pid: u32,
    /// Where it serves.
    pub port: Option<u16>,
}

impl ServerView for LocalProcess {
    fn describe(&mut self) -> ServerInfo {
        let machine = Some(proc::machine());
        ServerInfo { seen: "process".into(), pid: Some(self.pid), machine, status: None }
    }

    fn sample(&mut self) -> Option<ServerSample> {
        let queues = self.port.and_then(|port| proc::socket_queues(self.pid, port));
        Some(ServerSample {
            at_ns: clock::mono_ns(),
            process: Some(proc::process_cpu(self.pid)?),
            machine: proc::counters(),
            queues,
        })
    }

    fn statistics(&mut self, _from: f64, _to: f64) -> serde_json::Map<String, Value> {
        serde_json::Map::new()
    }
}

/// Statistics that belong into a record, whatever the protocol.
const STATISTICS: [&str; 3] = ["cpu.utilization[mode]", "nic.kilobytes[device]", "io.ops[disk]"];
/// The breakdowns of the protocol's operations.
const BREAKDOWNS: [&str; 3] = ["op", "client", "latency"];
/// Longest answer that is taken.
const ANSWER_MAX: u64 = 8 << 20;
/// How long the server may take over one question.
const PATIENCE: Duration = Duration::from_secs(3);

/// A server of ours, asked through its local socket (docs/protocols/api.md).
pub struct LocalApi {
    socket: PathBuf,
    process: Option<LocalProcess>,
    status: Option<Value>,
    /// Group of the protocol's statistics.
    protocol: &'static str,
}

impl LocalApi {
    /// Asks who is there. `None` when nobody answers.
    pub fn connect(socket: PathBuf, port: Option<u16>, protocol: &'static str) -> Option<Self> {
        let status = get(&socket, "/api/v1/status")?;
        let pid = status["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        let process = pid.map(|pid| LocalProcess { pid, port });
        Some(Self { socket, process, status: Some(status), protocol })
    }
}

impl ServerView for LocalApi {
    fn describe(&mut self) -> ServerInfo {
        let machine = Some(proc::machine());
        let pid = self.process.as_ref().map(|p| p.pid);
        ServerInfo { seen: "api".into(), pid, machine, status: self.status.take() }
    }

    fn sample(&mut self) -> Option<ServerSample> {
        self.process.as_mut()?.sample()
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
            if let Some(data) = get(&self.socket, &path) {
                found.insert(id, data);
            }
        }
        found
    }
}

fn escape(text: &str) -> String {
    text.replace('[', "%5B").replace(']', "%5D").replace('=', "%3D")
}

/// One GET over a local socket, HTTP/1.0 semantics: the answer ends with the connection.
fn get(socket: &PathBuf, path: &str) -> Option<Value> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: plimsoll\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.take(ANSWER_MAX).read_to_end(&mut answer).ok()?;
    body(&answer)
}

/// The JSON body of a successful answer, chunked or not (RFC 9112 §6 and §7.1).
fn body(answer: &[u8]) -> Option<Value> {
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n")?;
    let head = std::str::from_utf8(answer.get(..end)?).ok()?.to_ascii_lowercase();
    let rest = answer.get(end + 4..)?;
    if head.split_whitespace().nth(1)? != "200" {
        return None;
    }
    if !head.contains("transfer-encoding: chunked") {
        return serde_json::from_slice(rest).ok();
    }
    let (mut rest, mut whole) = (rest, Vec::new());
    loop {
        let line = rest.windows(2).position(|w| w == b"\r\n")?;
        let size =
            std::str::from_utf8(rest.get(..line)?).ok()?.split(';').next()?.trim().to_owned();
        let size = usize::from_str_radix(&size, 16).ok()?;
        if size == 0 {
            return serde_json::from_slice(&whole).ok();
        }
        whole.extend_from_slice(rest.get(line + 2..line.checked_add(2)?.checked_add(size)?)?);
        rest = rest.get(line + 2 + size + 2..)?;
    }
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
