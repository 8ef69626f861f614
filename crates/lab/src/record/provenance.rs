//! What a result of a program, of IOzone's tests or of a comparison begins with.

use base::clock::wall_ns;
use serde::{Deserialize, Serialize};

/// Kind and format of a result, what made it, when, how, and where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// What it is of, which distinguishes it from a run of a job.
    pub kind: String,
    /// Version of the format of this kind.
    pub format: u32,
    /// Program and version that wrote this.
    pub program: String,
    /// Begin, seconds since the Unix epoch.
    pub started: f64,
    /// End, seconds since the Unix epoch.
    pub ended: f64,
    /// The command that repeats it.
    pub command: Vec<String>,
    /// The machine that it ran on.
    pub machine: serde_json::Value,
}

/// Seconds since the Unix epoch.
pub fn now() -> f64 {
    wall_ns() as f64 / 1e9
}

impl Provenance {
    /// Of a result of which the measurement began at `started` and ends now.
    pub fn new(kind: &str, format: u32, started: f64, command: Vec<String>) -> Self {
        Self {
            kind: kind.to_owned(),
            format,
            program: concat!("plimsoll ", env!("CARGO_PKG_VERSION")).to_owned(),
            started,
            ended: now(),
            command,
            machine: crate::proc::machine(),
        }
    }
}
