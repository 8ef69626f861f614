//! Which points are measured, and for how long.

pub use super::carrier::Carrier;
use super::model;
use crate::bridge::shape::{Shapes, nanos};
use base::limits::{
    LAB_ROUNDS_MAX, SWEEP_BLOCKS, SWEEP_CONNECTIONS_MAX, SWEEP_FLIGHT_MIN, SWEEP_MEASURED,
    SWEEP_POINTS_MAX, SWEEP_RTTS, SWEEP_WARM, SWEEP_WARM_BLOCKS, SWEEP_WARM_RTTS, SWEEP_WINDOW_MAX,
    SWEEP_WINDOW_MIN,
};
use serde::{Deserialize, Serialize};

/// Payload of a full packet, bytes.
const PAYLOAD: f64 = 1448.0;
/// What each packet has in addition: headers of IP and TCP, and timestamps.
const HEADERS: f64 = 52.0;
/// The source's buffers, bytes.
const SOURCE_BUFFERS: [u64; 5] = [64 << 10, 1 << 20, 16 << 20, 64 << 20, 512 << 20];
/// The source's round trips, milliseconds.
const SOURCE_RTTS_MS: [f64; 4] = [0.0, 2.0, 20.0, 200.0];

/// A sweep: every combination is a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Its title.
    pub title: String,
    /// What carries the data.
    pub carrier: Carrier,
    /// Round trips, milliseconds.
    pub rtt_ms: Vec<f64>,
    /// Windows, or blocks, of each connection, bytes.
    pub windows: Vec<u64>,
    /// How many connections at once.
    pub instances: Vec<u32>,
    /// Whether what crosses the link is sealed.
    pub encrypt: Vec<bool>,
    /// Congestion control, by the kernel's names.
    pub congestion: Vec<String>,
    /// The link's rate in bits per second of IP packets.
    pub rate: u64,
    /// Good samples of each point.
    pub repeats: u32,
    /// Seed of the order, and of what chance the link has.
    pub seed: u64,
    /// Bytes of this sweep for one byte of the figure of the source that is redrawn; 1 without one.
    pub scale: f64,
    /// Which figure of the source it is.
    pub figure: Option<u8>,
}

/// One combination.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct At {
    /// Round trip, milliseconds, as the link is set.
    pub rtt_ms: f64,
    /// Window or block of each connection, bytes.
    pub window: u64,
    /// Connections.
    pub instances: u32,
    /// Whether what crosses the link is sealed.
    pub encrypt: bool,
    /// Congestion control.
    pub congestion: String,
}

/// Why a plan is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(pub String);

impl Plan {
    /// A figure of the source, 5 to 7: one, two and four instances of stop and wait, everything
    /// scaled to the rate of this link, so that each point keeps its share of it.
    pub fn figure(figure: u8, rate: u64) -> Option<Self> {
        let instances = match figure {
            5 => 1,
            6 => 2,
            7 => 4,
            _ => return None,
        };
        let scale = payload_rate(rate) / model::SOURCE_RATE;
        let scaled = |bytes: &u64| (*bytes as f64 * scale).round() as u64;
        Some(Self {
            title: format!("Figure {figure}: stop-and-wait, {instances} in parallel"),
            carrier: Carrier::StopAndWait,
            rtt_ms: SOURCE_RTTS_MS.to_vec(),
            windows: SOURCE_BUFFERS.iter().map(scaled).collect(),
            instances: vec![instances],
            encrypt: vec![false, true],
            // Without loss its window doubles until it is no limit.
            congestion: vec!["reno".to_owned()],
            rate,
            repeats: 3,
            seed: 2011,
            scale,
            figure: Some(figure),
        })
    }

    /// Checks that it makes sense and ends some day.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    pub fn check(&self) -> Result<(), PlanError> {
        let wrong = |why: String| Err(PlanError(why));
        let points = self.points().len();
        if points == 0 || points > SWEEP_POINTS_MAX {
            return wrong(format!("a sweep has 1 to {SWEEP_POINTS_MAX} points, not {points}"));
        }
        if self.repeats == 0 || self.repeats > LAB_ROUNDS_MAX {
            return wrong("it needs 1 to 1000 repetitions".to_owned());
        }
        let fits = |n: &u64| (SWEEP_WINDOW_MIN..=SWEEP_WINDOW_MAX).contains(n);
        if let Some(n) = self.windows.iter().find(|n| !fits(n)) {
            let range = format!("{SWEEP_WINDOW_MIN} bytes to {} MiB", SWEEP_WINDOW_MAX >> 20);
            return wrong(format!("{n} bytes is not a valid window: {range}"));
        }
        let most = self.carrier.window_max().unwrap_or(SWEEP_WINDOW_MAX);
        if let Some(n) = self.windows.iter().find(|n| **n > most) {
            let (own, at_once) = (self.carrier.title(), most >> 10);
            return wrong(format!("{n} bytes exceed what {own} has in flight: {at_once} KiB"));
        }
        let most = SWEEP_CONNECTIONS_MAX;
        if self.instances.iter().any(|n| *n == 0 || *n > most) {
            return wrong(format!("use 1 to {most} parallel connections"));
        }
        let named = |name: &String| {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            !name.is_empty() && name.len() < 16 && name.chars().all(plain)
        };
        if let Some(name) = self.congestion.iter().find(|name| !named(name)) {
            return wrong(format!("{name:?} is not a congestion control algorithm"));
        }
        for rtt_ms in &self.rtt_ms {
            self.shapes(*rtt_ms)?;
        }
        Ok(())
    }

    /// What the link of a distance does, without its queue.
    fn shapes(&self, rtt_ms: f64) -> Result<Shapes, PlanError> {
        let changes = [format!("rtt={rtt_ms}ms"), format!("rate={}bit", self.rate)];
        let mut shapes = Shapes::default();
        shapes.change(&changes).map_err(|e| PlanError(e.to_string()))?;
        Ok(shapes)
    }

    /// All points, the nearest first.
    pub fn points(&self) -> Vec<At> {
        let mut points = Vec::new();
        for congestion in &self.congestion {
            for encrypt in &self.encrypt {
                for instances in &self.instances {
                    for rtt_ms in &self.rtt_ms {
                        points.extend(self.windows.iter().map(|window| At {
                            rtt_ms: *rtt_ms,
                            window: *window,
                            instances: *instances,
                            encrypt: *encrypt,
                            congestion: congestion.clone(),
                        }));
                    }
                }
            }
        }
        points
    }

    /// What the link carries of payload, bytes per second.
    pub fn link(&self) -> f64 {
        payload_rate(self.rate)
    }

    /// What the link carries of payload at a point, bytes per second: a block smaller than a packet
    /// is one all the same.
    pub fn carries(&self, at: &At) -> f64 {
        let block = at.window as f64;
        match self.carrier.waits() {
            true => {
                let on_the_line = block + (block / PAYLOAD).ceil() * HEADERS;
                self.rate as f64 / 8.0 * block / on_the_line
            }
            false => self.link(),
        }
    }

    /// What the model predicts for a point; `rtt_s` is the round trip of the idle link, seconds.
    pub fn predicted(&self, at: &At, rtt_s: f64) -> f64 {
        let (window, link) = (at.window as f64, self.carries(at));
        let one = match self.carrier.waits() {
            true => model::stop_and_wait(window, rtt_s, link),
            false => model::window(window, rtt_s, link),
        };
        model::instances(at.instances, one, link)
    }

    /// A window in the bytes of the figure of the source that is redrawn; itself without one.
    pub fn source_window(&self, bytes: u64) -> f64 {
        let window = bytes as f64 / self.scale;
        // Here they are whole bytes; the source's are powers of two.
        let power = window.log2().round().exp2();
        let near = self.figure.is_some() && model::deviation_percent(window, power).abs() < 1.0;
        if near { power } else { window.round() }
    }

    /// Bytes that a connection may have in flight so that TCP is not what limits stop and wait: the
    /// block, or twice what the link holds. For a stream its window.
    pub fn flight(&self, at: &At) -> u64 {
        let held = self.link() * at.rtt_ms / 1e3;
        match self.carrier.waits() {
            true => at.window.min(2 * held as u64 + SWEEP_FLIGHT_MIN),
            false => at.window,
        }
        .max(SWEEP_FLIGHT_MIN)
    }

    /// Bytes that may wait for the line: all that can be in flight, since the source's link lost
    /// nothing, and neither shall this one.
    pub fn queue(&self, at: &At) -> u64 {
        // For the headers of packets; sockets hold twice what they are set to.
        4 * self.flight(at) * u64::from(at.instances) + SWEEP_FLIGHT_MIN
    }

    /// How long a point is let run before it counts, and how long it counts, nanoseconds.
    pub fn times_ns(&self, at: &At) -> (u64, u64) {
        let rtt_s = at.rtt_ms / 1e3;
        let each = self.predicted(at, rtt_s) / f64::from(at.instances);
        let block_s = if self.carrier.waits() { at.window as f64 / each } else { 0.0 };
        let ns = |s: f64| (s * 1e9) as u64;
        let warm = ns((rtt_s * SWEEP_WARM_RTTS).max(block_s * SWEEP_WARM_BLOCKS));
        let measured = ns((rtt_s * SWEEP_RTTS).max(block_s * SWEEP_BLOCKS));
        (warm.max(nanos(SWEEP_WARM)), measured.max(nanos(SWEEP_MEASURED)))
    }
}

/// Payload bytes per second of a rate in bits per second of IP packets.
fn payload_rate(bits: u64) -> f64 {
    bits as f64 / 8.0 * PAYLOAD / (PAYLOAD + HEADERS)
}

#[cfg(test)]
mod tests;
