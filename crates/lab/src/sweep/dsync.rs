//! A run of `plimsoll dsync`, which brings one large file to a share of the server beyond the link:
//! through OpenSSH's client (`ssh`), its data on as many additional streams as the point has
//! instances. Counted is what the destination has received, from one report of progress to another.

use super::diagnosis::{Diagnosis, TcpInfoByPorts};
use super::limiter::Tcp;
use super::plan::{At, Plan};
use super::server::Server;
use super::sockets::Probe;
use super::transport::{Carried, SweepError, Transport};
use crate::agent::clock::mono_ns;
use crate::bridge::scene::{self, Scene};
use crate::pattern::Content;
use base::limits::SWEEP_FILE_TIMES;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::Child;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct Dsync;

/// A process that ends with the value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// How far a run was.
struct Mark {
    /// Seconds since its beginning, by its own clock.
    seconds: f64,
    bytes: f64,
    ns: u64,
    seen: Option<TcpInfoByPorts>,
}

impl Transport for Dsync {
    fn carry(&self, plan: &Plan, at: &At, link: &Scene) -> Result<Carried, SweepError> {
        let server = Server::start(plan, at, link)?;
        let (warm_ns, measured_ns) = plan.times_ns(at);
        let seconds = (warm_ns + measured_ns) as f64 / 1e9;
        let bytes = (seconds * plan.link() * SWEEP_FILE_TIMES) as u64;
        let mut command = server.dsync(at.instances, bytes, &Content::new(plan.seed))?;
        let here = Diagnosis::open(&link.first)?;
        let rtt_s = Probe::new(plan, at, link)?.rtt_s();
        let mut run = Running(scene::spawn(&link.first, &mut command)?);
        let Some(out) = run.0.stdout.take() else { return Err(SweepError::Nothing) };
        let times = (warm_ns as f64 / 1e9, measured_ns as f64 / 1e9);
        let Some((begin, end)) = follow(out, times, || here.all()) else {
            return Err(SweepError::Server(server.why()));
        };
        let bytes_s = (end.bytes - begin.bytes) / (end.seconds - begin.seconds);
        Ok(Carried { bytes_s, rtt_s, tcp: streams(&begin, &end, at.instances) })
    }
}

/// The reports between which it counts, warm and so long; `None` when the run ends before.
fn follow(
    out: impl Read,
    (warm_s, measured_s): (f64, f64),
    look: impl Fn() -> Option<TcpInfoByPorts>,
) -> Option<(Mark, Mark)> {
    let (mut moved, mut begin) = (None, None::<Mark>);
    for line in BufReader::new(out).lines().map_while(Result::ok) {
        let said: Value = serde_json::from_str(&line).unwrap_or_default();
        let number = |name: &str| said[name].as_f64().unwrap_or(0.0);
        let (seconds, bytes) = (number("seconds"), number("bytes_received"));
        if said["event"] != "progress" || bytes == 0.0 {
            continue;
        }
        let moved = *moved.get_or_insert(seconds);
        let mark = || Mark { seconds, bytes, ns: mono_ns(), seen: look() };
        match begin.take() {
            Some(begin) if seconds - begin.seconds >= measured_s => return Some((begin, mark())),
            Some(earlier) => begin = Some(earlier),
            None if seconds - moved >= warm_s => begin = Some(mark()),
            None => {}
        }
    }
    None
}

/// TCP's accounting of those connections that carried the most.
fn streams(begin: &Mark, end: &Mark, most: u32) -> Option<Tcp> {
    let (before, after) = (begin.seen.as_ref()?, end.seen.as_ref()?);
    let carried = |ports: &(u16, u16)| {
        let (before, after) = (before.get(ports)?, after.get(ports)?);
        let bytes = after.acknowledged()?.saturating_sub(before.acknowledged()?);
        Some((bytes, Tcp::between(before, after, end.ns.saturating_sub(begin.ns))))
    };
    let mut all: Vec<_> = after.keys().filter_map(carried).collect();
    all.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    Tcp::sum(all.into_iter().take(most as usize).map(|(_, tcp)| tcp))
}

#[cfg(test)]
mod tests;
