//! NFS over RDMA in addition to NFS over TCP: if there is a device, it serves the same programs.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use base::limits::{RDMA_IDLE_MIN, RDMA_REGISTERED_MAX};
use base::node::Value;
use probe::sample::Sample;
use serve::rpc::{RdmaConfig, RdmaStats};
use verbs::devices::{self, Device};
use verbs::{Account, Verbs, load};

/// The way to devices, and what is counted: the same over several starts.
pub struct Rdma {
    verbs: Arc<dyn Verbs>,
    stats: Arc<RdmaStats>,
    /// The values of the counters at the last report.
    reported: Mutex<[u64; COUNTERS]>,
}

/// Counters that are reported as rates.
const COUNTERS: usize = 6;

impl Default for Rdma {
    fn default() -> Self {
        let verbs = load::devices(Account::new(RDMA_REGISTERED_MAX));
        Self { verbs, stats: Arc::default(), reported: Mutex::default() }
    }
}

impl Rdma {
    /// How a service is to serve it.
    pub fn config(&self, at: SocketAddr) -> RdmaConfig {
        let (verbs, stats) = (Arc::clone(&self.verbs), Arc::clone(&self.stats));
        RdmaConfig { verbs, at, stats, idle_min: RDMA_IDLE_MIN }
    }

    /// Whether clients can use it: there is a device, and it is listened on.
    pub fn is_there(&self) -> bool {
        self.stats.is_listening()
    }

    /// Devices, connections, credits, and why none are taken.
    pub fn state(&self) -> Vec<(&'static str, Value)> {
        let level = |level: i64| Value::Integer(level.max(0));
        let mut state = vec![
            (
                "rdma_devices",
                Value::texts(devices::list().iter().map(device_line).collect::<Vec<_>>()),
            ),
            ("rdma_connections", level(self.stats.connections.load(Relaxed))),
            ("rdma_credits", level(self.stats.credits_in_use.load(Relaxed))),
        ];
        state.extend(self.stats.problem().map(|why| ("rdma_problem", Value::Text(why))));
        state
    }

    /// Levels and rates, once a second.
    pub fn samples(&self) -> Vec<Sample> {
        let (stats, account) = (&self.stats, self.verbs.account());
        let level = |level: i64| level.max(0) as f64;
        let count = |count: &AtomicU64| count.load(Relaxed);
        let now = [
            count(&stats.inline_bytes),
            count(&stats.read_bytes),
            count(&stats.write_bytes),
            account.registrations(),
            count(&stats.refused),
            count(&stats.failures),
        ];
        let before = std::mem::replace(
            &mut *self.reported.lock().unwrap_or_else(PoisonError::into_inner),
            now,
        );
        let new = |n: usize| {
            let (now, before) = (now.get(n), before.get(n));
            now.zip(before).map_or(0, |(now, before)| now.saturating_sub(*before)) as f64
        };
        let row = |way: &str, n: usize| (way.to_owned(), String::new(), new(n));
        let bytes = Sample {
            stat: "rdma.bytes",
            dimensions: ["transfer", ""],
            total: new(0) + new(1) + new(2),
            rows: vec![row("send", 0), row("read", 1), row("write", 2)],
        };
        vec![
            Sample::raw("rdma.connections", level(stats.connections.load(Relaxed))),
            Sample::raw("rdma.credits", level(stats.credits_in_use.load(Relaxed))),
            Sample::raw("rdma.registered", account.bytes() as f64),
            bytes,
            Sample::raw("rdma.registrations", new(3)),
            Sample::raw("rdma.refused", new(4)),
            Sample::raw("rdma.failures", new(5)),
        ]
    }
}

/// A device in a line.
fn device_line(device: &Device) -> String {
    let Device { name, driver, link_layer, iwarp, state } = device;
    let iwarp = if *iwarp { ", iWARP" } else { "" };
    format!("{name} ({driver}, {link_layer}{iwarp}, {state})")
}
