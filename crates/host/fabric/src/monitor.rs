//! A fabric, walked and counted at an interval, as a report.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use crate::counters::Counters;
use crate::exchange::{Exchange, Ignored};
use crate::problem::{Problem, problems};
use crate::transport::Transport;
use crate::walk::{Fabric, PortId, local, walk};

/// Interval between two readings.
pub const INTERVAL: Duration = Duration::from_secs(10);
/// Longest name of a node that its description gives.
const NAME_MAX: usize = 48;
/// A pass takes at most this part of the time, so that a large fabric is not walked without end.
const PART: u32 = 5;

/// What is known of a fabric after a pass.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Nodes, ports and links.
    pub fabric: Fabric,
    /// Counters.
    pub counters: Counters,
    /// Names of nodes by GUID.
    pub names: BTreeMap<u64, String>,
    /// What is wrong.
    pub problems: Vec<Problem>,
    /// Replies that were ignored since the start.
    pub ignored: Ignored,
    /// How long the walk took.
    pub walk: Duration,
    /// How long reading the counters took.
    pub reading: Duration,
}

impl Report {
    /// The name of a port.
    pub fn port_name(&self, (guid, port): PortId) -> String {
        match self.names.get(&guid) {
            Some(node) => format!("{node}:{port}"),
            None => format!("{guid:016x}:{port}"),
        }
    }

    /// Until the next pass.
    pub fn pause(&self) -> Duration {
        INTERVAL.max((self.walk + self.reading) * PART)
    }
}

/// Watches a fabric from one port of this machine.
pub struct Monitor<T> {
    exchange: Exchange<T>,
    counters: Counters,
}

impl<T: Transport> Monitor<T> {
    /// Over this transport.
    pub fn new(transport: T) -> Self {
        Self { exchange: Exchange::new(transport), counters: Counters::default() }
    }

    /// The transport.
    pub fn transport(&mut self) -> &mut T {
        self.exchange.transport()
    }

    /// Walks the fabric and reads its counters.
    ///
    /// # Errors
    /// The transport's.
    pub fn pass(&mut self) -> io::Result<Report> {
        let began = self.exchange.transport().now();
        let fabric = walk(&mut self.exchange)?;
        let walked = self.exchange.transport().now();
        self.counters.read(&mut self.exchange, &fabric)?;
        let read = self.exchange.transport().now();
        let mut report = Report {
            names: names(&fabric),
            fabric,
            counters: self.counters.clone(),
            problems: Vec::new(),
            ignored: self.exchange.ignored(),
            walk: walked.saturating_sub(began),
            reading: read.saturating_sub(walked),
        };
        let Report { fabric, counters, .. } = &report;
        report.problems = problems(fabric, counters, |id| report.port_name(id));
        Ok(report)
    }
}

impl<T: Transport> Monitor<T> {
    /// Brings what this machine's own port knows up to date: its P_Keys and the subnet manager.
    /// Nothing else of the report changes.
    ///
    /// # Errors
    /// The transport's.
    pub fn look(&mut self, report: &mut Report) -> io::Result<()> {
        let now = local(&mut self.exchange)?;
        report.fabric.pkeys = now.pkeys;
        report.fabric.manager = now.manager;
        let Report { fabric, counters, .. } = &*report;
        report.problems = problems(fabric, counters, |id| report.port_name(id));
        Ok(())
    }
}

/// The name of each node: its description, if no other node has the same, else its GUID.
fn names(fabric: &Fabric) -> BTreeMap<u64, String> {
    let named = |description: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let plain = description.chars().map(|c| if is_plain(c) { c } else { '_' });
        let name: String = plain.take(NAME_MAX).collect();
        name.starts_with(|c: char| c.is_ascii_alphanumeric()).then_some(name)
    };
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for name in fabric.nodes.values().filter_map(|node| named(&node.description)) {
        *count.entry(name).or_default() += 1;
    }
    let name = |(guid, node): (&u64, &crate::walk::Node)| {
        let name = named(&node.description).filter(|name| count.get(name) == Some(&1));
        (*guid, name.unwrap_or_else(|| format!("{guid:016x}")))
    };
    fabric.nodes.iter().map(name).collect()
}

#[cfg(test)]
mod tests;
