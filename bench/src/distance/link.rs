//! Two network namespaces, and the link between them for a turn.

use std::io;
use std::process::Command;

use lab::bridge::device::NetworkNamespace;
use serde::{Deserialize, Serialize};

use super::leftovers;
use crate::programs::made;

/// State that a turn leaves behind must not affect the next: the kernel would remember round trips
/// and windows of an address.
const SETTINGS: &str = "net.ipv4.tcp_no_metrics_save=1";

/// Two networks without a connection; removed with the value.
pub struct Networks {
    /// The namespace in which a turn's program is started.
    pub near: String,
    /// The namespace of the other side.
    pub far: String,
}

impl Networks {
    /// Makes them.
    ///
    /// # Errors
    /// No root, or no `ip`.
    pub fn make() -> io::Result<Self> {
        let name = |end| leftovers::namespace(std::process::id(), end);
        let networks = Self { near: name("near"), far: name("far") };
        for namespace in [&networks.near, &networks.far] {
            made("ip", &["netns", "add", namespace])?;
            made("ip", &["-n", namespace, "link", "set", "lo", "up"])?;
            made("ip", &["netns", "exec", namespace, "sysctl", "-q", "-w", SETTINGS])?;
        }
        Ok(networks)
    }

    /// What starts a program in a namespace.
    pub fn within(namespace: &str) -> Vec<String> {
        ["ip", "netns", "exec", namespace].map(str::to_owned).to_vec()
    }

    /// Both, in the form of the bridge's arguments.
    pub fn places(&self) -> [NetworkNamespace; 2] {
        [&self.near, &self.far].map(|name| NetworkNamespace::Named(name.clone()))
    }

    /// A setting of the kernel in the near namespace.
    pub fn setting(&self, name: &str) -> String {
        let said =
            Command::new("ip").args(["netns", "exec", &self.near, "sysctl", "-n", name]).output();
        said.map(|s| String::from_utf8_lossy(&s.stdout).trim().to_owned()).unwrap_or_default()
    }
}

impl Drop for Networks {
    fn drop(&mut self) {
        for namespace in [&self.near, &self.far] {
            let _ = Command::new("ip").args(["netns", "del", namespace]).status();
        }
    }
}

/// The link between the two: its distance, and its effect on packets.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Round trip in milliseconds.
    pub rtt_ms: f64,
    /// Plain, sealed, or losing packets.
    pub kind: Kind,
}

impl Point {
    /// The arguments of `plimsoll bridge run` for it, at this rate.
    pub fn options(&self, rate: &str) -> Vec<String> {
        let rtt = format!("{}ms", self.rtt_ms);
        let shape = ["--rate", rate, "--rtt", &rtt];
        shape.iter().chain(self.kind.options()).map(|word| (*word).to_owned()).collect()
    }
}

/// Effects of the link in addition to its latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// None.
    Plain,
    /// Everything that crosses it is sealed.
    Encrypted,
    /// One of a thousand packets is lost, in each direction.
    Loss,
}

impl Kind {
    /// All.
    pub const ALL: [Self; 3] = [Self::Plain, Self::Encrypted, Self::Loss];

    /// Its name in tables and options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Encrypted => "encrypted",
            Self::Loss => "loss",
        }
    }

    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Plain => &[],
            Self::Encrypted => &["--encrypt"],
            Self::Loss => &["--loss", "0.1%"],
        }
    }
}
