//! One measured stretch of load: the lab's load client on many connections, and the CPU time that
//! the server and this process used meanwhile.

use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use lab::agent::clock::mono_ns;
use lab::agent::drive::Driver;
use lab::agent::proto::{Prepare, Start};
use lab::client::{self, Options, Target};
use lab::workload::{Kind, Shape};
use serde::{Deserialize, Serialize};

use crate::cpu;

/// What is measured, and how hard it is driven.
#[derive(Debug, Clone)]
pub struct Case {
    /// Name in the tables.
    pub name: String,
    /// The operations.
    pub kind: Kind,
    /// Bytes of each.
    pub block: u32,
    /// Bytes of each connection's file.
    pub file_size: u64,
    /// Connections.
    pub connections: u32,
    /// Operations in flight on each.
    pub depth: u32,
}

/// The results of a stretch of load.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Figure {
    /// Operations per second.
    pub ops_s: f64,
    /// Bytes of data per second.
    pub bytes_s: f64,
    /// CPU time of the server for each operation, µs.
    pub server_us_op: f64,
    /// CPU time of the server for each 10^9 bytes, s.
    pub server_s_gb: f64,
    /// CPU time of the load generator for each operation, µs.
    pub client_us_op: f64,
}

/// Connected and prepared clients, ready for any number of stretches.
pub struct Ready {
    drivers: Vec<Driver>,
    depth: u32,
}

/// Connects, and makes the files.
///
/// # Errors
/// When the target refuses.
pub fn ready(url: &str, case: &Case) -> io::Result<Ready> {
    let target = Target::parse(url).map_err(io::Error::other)?;
    let mut drivers = Vec::new();
    for client in 0..case.connections {
        // Data are not checked here: the C client that is compared does not do so either.
        let options = Options { bind: None, seed: 1, check_one_in: 0, slots: case.depth };
        let shape = Shape {
            kind: case.kind,
            block: case.block,
            files: 1,
            file_size: case.file_size.max(u64::from(case.block)),
            own_files: false,
        };
        let wanted = Prepare {
            target: url.to_owned(),
            client,
            bind: None,
            shape,
            seed: 1,
            check_one_in: 0,
            slots: case.depth,
        };
        let open = client::open(&target, &options).map_err(io::Error::other)?;
        drivers.push(Driver::prepare(open, &wanted).map_err(io::Error::other)?);
    }
    Ok(Ready { drivers, depth: case.depth })
}

impl Ready {
    /// Drives all connections for `time`, and measures the CPU time of the process `server`.
    ///
    /// # Errors
    /// When a connection is lost or any operation fails: such a figure would be invalid.
    pub fn run(&mut self, server: u32, time: Duration) -> io::Result<Figure> {
        self.run_by(&|| cpu::of(server), time)
    }

    /// As [`Ready::run`]; `used` returns the CPU time of the server so far, in seconds.
    ///
    /// # Errors
    /// The same.
    pub fn run_by(
        &mut self,
        used: &dyn Fn() -> io::Result<f64>,
        time: Duration,
    ) -> io::Result<Figure> {
        let barrier = Arc::new(Barrier::new(self.drivers.len() + 1));
        let begin = mono_ns();
        let until_ns = begin + time.as_nanos() as u64;
        let start = Start {
            step: 0,
            threads: self.depth,
            at_ns: begin,
            until_ns,
            window_ns: 3_600_000_000_000,
            open: None,
            ops_max: None,
        };
        let (server_before, own_before) = (used()?, cpu::own()?);
        let ends: Vec<_> = std::thread::scope(|scope| {
            let workers: Vec<_> = self
                .drivers
                .iter_mut()
                .map(|driver| {
                    let (barrier, start) = (Arc::clone(&barrier), start.clone());
                    scope.spawn(move || {
                        barrier.wait();
                        driver.step(&start, &AtomicU64::new(until_ns), &mut |_| {})
                    })
                })
                .collect();
            barrier.wait();
            workers.into_iter().map(|worker| worker.join()).collect()
        });
        let wall = (mono_ns() - begin) as f64 / 1e9;
        let server = used()? - server_before;
        let own = cpu::own()? - own_before;
        let (mut ops, mut bytes) = (0u64, 0u64);
        for end in ends {
            let end = end.map_err(|_| io::Error::other("a driver panicked"))?;
            let end = end.map_err(io::Error::other)?;
            if end.errors > 0 {
                return Err(io::Error::other(format!("{} operations failed", end.errors)));
            }
            (ops, bytes) = (ops + end.ops, bytes + end.bytes);
        }
        let per = |cpu: f64, n: u64, scale: f64| cpu * scale / n.max(1) as f64;
        Ok(Figure {
            ops_s: ops as f64 / wall,
            bytes_s: bytes as f64 / wall,
            server_us_op: per(server, ops, 1e6),
            server_s_gb: per(server, bytes, 1e9),
            client_us_op: per(own, ops, 1e6),
        })
    }

    /// Removes the files.
    pub fn clean(mut self) {
        for driver in &mut self.drivers {
            let _ = driver.clean();
        }
    }
}
