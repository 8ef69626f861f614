//! One turn: a new bridge, one program, and its figures.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use base::clock::{NS_PER_S, monotonic_ns};
use lab::bridge::scene::{self, Ended};
use serde::{Deserialize, Serialize};

use super::data::{Data, Job};
use super::far::Far;
use super::flow;
use super::link::{Networks, Point};
use super::peers::Peer;
use crate::group::Group;
use crate::room::ReservedPages;

/// Characters of a program's output that are shown.
const SAID_MAX: usize = 300;

/// The figures of a turn.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Figure {
    /// From the program's start to its end, seconds.
    pub seconds: f64,
    /// CPU time of the processes started at the near end, seconds.
    pub near_s: f64,
    /// CPU time of sshd and its child processes, seconds.
    pub far_s: f64,
    /// Bytes of whole IP packets on the line, both directions.
    pub line_bytes: [u64; 2],
    /// Bits per second of whole IP packets in the direction of the transfer, while they flow
    /// ([`flow::rate`]).
    #[serde(default)]
    pub flow: Option<f64>,
    /// How late 99 of 100 packets were at most, milliseconds, in the worse direction.
    pub late_p99_ms: f64,
    /// Share of the processor's time that the host gave to others meanwhile.
    pub stolen: f64,
    /// Why the bridge condemned it; empty when it is good.
    pub spoiled: Vec<String>,
}

/// What is the same in all turns.
pub struct Scene<'a> {
    /// Namespaces.
    pub networks: &'a Networks,
    /// The side that is connected to.
    pub far: &'a Far,
    /// The content.
    pub data: &'a Data,
    /// The program that includes the bridge.
    pub plimsoll: &'a Path,
    /// The link's rate, in the form of the bridge's argument.
    pub rate: &'a str,
    /// Time limit of a turn.
    pub most: Duration,
}

impl Scene<'_> {
    /// Runs a program for a job, and checks the result.
    ///
    /// # Errors
    /// The program failed, did not finish in time, or the destination is not what was sent; the
    /// bridge or the machine failed.
    pub fn turn(&self, point: &Point, peer: &Peer, job: Job) -> io::Result<Figure> {
        let done = self.carry(point, peer, job);
        if done.is_err() {
            // A partial result must not be the start of another turn.
            fs::remove_dir_all(self.data.to())?;
        }
        done
    }

    fn carry(&self, point: &Point, peer: &Peer, job: Job) -> io::Result<Figure> {
        self.data.prepare(job, peer.shape)?;
        let room = ReservedPages::hold_all()?;
        let command = peer.command(job, self.data, self.far)?;
        let mut words = Networks::within(&self.networks.near);
        words.extend(command);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (places, options) = (self.networks.places(), point.options(self.rate));
        // A new bridge for each turn, so that each turn has a separate verdict.
        let link = scene::Scene::between(self.plimsoll, places, &options);
        let link = link.map_err(io::Error::other)?;
        let room = room.release_gradually()?;
        let (far, host) = (self.far.group.cpu_at_rest()?, stolen());
        let log = self.data.base.join("log");
        let start = monotonic_ns();
        let mut group = Group::start(&words, &log, None)?;
        let (status, samples) = flow::watched(&link, || group.wait(self.most));
        let status = status?;
        let seconds = (monotonic_ns() - start) as f64 / NS_PER_S as f64;
        if status.is_none() {
            group.kill();
        }
        let near_s = group.cpu()?;
        let far_s = self.far.group.cpu_at_rest()? - far;
        let stolen = host.since(&self::stolen());
        let said = fs::read_to_string(&log).unwrap_or_default();
        let said: String = said.trim().chars().take(SAID_MAX).collect();
        let ended = link.end().map_err(io::Error::other)?;
        drop(room);
        match status {
            None => {
                let why = format!("not done after {seconds:.0} s");
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            Some(status) if !status.success() => {
                return Err(io::Error::other(format!("{status}: {said}")));
            }
            Some(_) => self.data.check(job, peer.shape)?,
        }
        let mut figure = of_link(ended);
        (figure.seconds, figure.near_s, figure.far_s) = (seconds, near_s, far_s);
        (figure.stolen, figure.flow) = (stolen, flow::rate(&samples));
        Ok(figure)
    }
}

/// The bridge's report of a turn.
fn of_link(ended: Ended) -> Figure {
    let ways = [&ended.status["forth"], &ended.status["back"]];
    let late = ways.map(|way| way["lateness"]["p99_ns"].as_f64().unwrap_or(f64::NAN) / 1e6);
    Figure {
        line_bytes: ways.map(|way| way["bytes_out"].as_u64().unwrap_or(0)),
        late_p99_ms: late[0].max(late[1]),
        spoiled: ended.why,
        ..Figure::default()
    }
}

/// Ticks of all cores.
pub struct Ticks {
    stolen: u64,
    all: u64,
}

impl Ticks {
    /// Share of stolen time between this and a later sample.
    pub fn since(&self, later: &Self) -> f64 {
        let all = later.all.saturating_sub(self.all).max(1);
        later.stolen.saturating_sub(self.stolen) as f64 / all as f64
    }
}

/// CPU time that the host has given to others so far.
pub fn stolen() -> Ticks {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = stat.lines().next().unwrap_or_default();
    // user nice system idle iowait irq softirq steal; guest is within user.
    let ticks: Vec<u64> =
        line.split_whitespace().skip(1).take(8).filter_map(|word| word.parse().ok()).collect();
    Ticks { stolen: ticks.get(7).copied().unwrap_or(0), all: ticks.iter().sum() }
}
