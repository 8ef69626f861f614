//! What a link does to packets: delay, rate, queue, loss and the rest, and how people say it.

use std::time::Duration;

use base::limits::{
    BRIDGE_DELAY_MAX, BRIDGE_LATE_MIN, BRIDGE_LATE_OF_RTT, BRIDGE_QUEUE_MIN, BRIDGE_QUEUE_RTT_MIN,
    BRIDGE_RATE_MAX, BRIDGE_RATE_MIN,
};
use base::node::parse_bytes;
use serde::Serialize;

/// How the delay of packets varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Spread {
    /// Every value up to the jitter, either way, as likely as any other.
    #[default]
    Uniform,
    /// The normal distribution, with the jitter as its standard deviation.
    Normal,
}

/// One direction of a link. The default lets everything pass at once.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Shape {
    /// Time on the way, one way, in nanoseconds.
    pub delay_ns: u64,
    /// By how much that varies, in nanoseconds.
    pub jitter_ns: u64,
    /// How it varies.
    pub spread: Spread,
    /// Bits per second of IP packets with [`Shape::overhead`]; none is no limit.
    pub rate: Option<u64>,
    /// Bytes that each packet takes on the line in addition to its own: 38 is Ethernet.
    pub overhead: u32,
    /// Bytes that may wait for the line; none is chosen by rate and round trip.
    pub queue: Option<u64>,
    /// Share of packets that are lost, 0 to 1.
    pub loss: f64,
    /// Packets that are lost in a row, on average; up to 1 is by chance alone.
    pub burst: f64,
    /// Share of packets that are held back so that later ones overtake them.
    pub reorder: f64,
    /// For how long those are held back, in nanoseconds.
    pub reorder_by_ns: u64,
    /// Share of packets that arrive twice.
    pub duplicate: f64,
    /// Share of packets in which a bit is turned.
    pub corrupt: f64,
}

/// Why a link cannot be like that; a sentence for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ShapeError(String);

fn wrong<T>(text: impl Into<String>) -> Result<T, ShapeError> {
    Err(ShapeError(text.into()))
}

/// The default delay of a packet that is held back.
const REORDER_BY_NS: u64 = 1_000_000;

impl Shape {
    /// Bytes that may wait for the line: as set, or what a round trip of `rtt_ns` holds, so that
    /// one TCP stream can fill the link.
    pub fn queue_bytes(&self, rtt_ns: u64) -> u64 {
        let Some(rate) = self.rate else { return u64::MAX };
        let rtt_ns = rtt_ns.max(nanos(BRIDGE_QUEUE_RTT_MIN));
        let held = u128::from(rate) * u128::from(rtt_ns) / 8_000_000_000;
        let auto = u64::try_from(held).unwrap_or(u64::MAX).max(BRIDGE_QUEUE_MIN);
        self.queue.unwrap_or(auto)
    }

    /// Changes one property, as `delay` to `50ms`.
    fn set(&mut self, name: &str, value: &str) -> Result<(), ShapeError> {
        match name {
            "delay" => self.delay_ns = delay(value)?,
            "rtt" => self.delay_ns = delay(value)? / 2,
            "jitter" => (self.jitter_ns, self.spread) = jitter(value)?,
            "rate" => self.rate = rate(value)?,
            "overhead" => match bytes(value)? {
                n @ 0..=1000 => self.overhead = n as u32,
                _ => return wrong("the overhead is 0 to 1000 bytes per packet"),
            },
            "queue" if value == "auto" => self.queue = None,
            "queue" => self.queue = Some(bytes(value)?.max(1)),
            "loss" => self.loss = share(value)?,
            "burst" => self.burst = burst(value)?,
            "reorder" => {
                self.reorder = share(value)?;
                if self.reorder_by_ns == 0 {
                    self.reorder_by_ns = REORDER_BY_NS;
                }
            }
            "reorder-by" => self.reorder_by_ns = delay(value)?,
            "duplicate" => self.duplicate = share(value)?,
            "corrupt" => self.corrupt = share(value)?,
            _ => return wrong(format!("unknown link property {name:?}; properties are {NAMES}")),
        }
        Ok(())
    }

    /// What must fit together.
    fn check(&self) -> Result<(), ShapeError> {
        // Of the packets after one that arrives, this share begins a burst; it cannot exceed 1.
        let good = 1.0 - self.loss;
        if self.burst > 1.0 && self.loss > 0.0 && self.loss / self.burst > good {
            return wrong("this loss rate needs longer bursts: increase burst");
        }
        if self.spread == Spread::Uniform && self.jitter_ns > self.delay_ns {
            return wrong("the jitter must not exceed the delay");
        }
        Ok(())
    }
}

/// Names of the properties, for people.
pub const NAMES: &str = "delay, rtt, jitter, rate, overhead, queue, loss, burst, reorder, \
                         reorder-by, duplicate and corrupt";

/// Both directions: from the first end to the second, and back.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Shapes {
    /// From the first end to the second.
    pub forth: Shape,
    /// From the second end to the first.
    pub back: Shape,
}

impl Shapes {
    /// Makes changes such as `delay=50ms` (both directions) or `back.loss=1%`: all of them or none.
    ///
    /// # Errors
    /// The first that cannot be made.
    pub fn change<T: AsRef<str>>(&mut self, changes: &[T]) -> Result<(), ShapeError> {
        let mut new = self.clone();
        for change in changes {
            let change = change.as_ref();
            let Some((name, value)) = change.split_once('=') else {
                return wrong(format!(
                    "{change:?} is not a change: use NAME=VALUE, for example delay=50ms"
                ));
            };
            let (name, value) = (name.trim(), value.trim());
            let with_name = |e: ShapeError| ShapeError(format!("{name}: {e}"));
            match name.split_once('.') {
                None => {
                    new.forth.set(name, value).map_err(with_name)?;
                    new.back.set(name, value).map_err(with_name)?;
                }
                Some(("forth", name)) => new.forth.set(name, value).map_err(with_name)?,
                Some(("back", name)) => new.back.set(name, value).map_err(with_name)?,
                Some(_) => return wrong(format!("{name:?}: the direction must be forth or back")),
            }
        }
        // Only all of them together need to fit.
        new.forth.check()?;
        new.back.check()?;
        *self = new;
        Ok(())
    }

    /// The round-trip time, in nanoseconds.
    pub fn rtt_ns(&self) -> u64 {
        self.forth.delay_ns + self.back.delay_ns
    }

    /// Lateness that does not count against a run, in nanoseconds.
    pub fn tolerance_ns(&self) -> u64 {
        nanos(BRIDGE_LATE_MIN).max((self.rtt_ns() as f64 * BRIDGE_LATE_OF_RTT) as u64)
    }
}

/// A time in nanoseconds, as everything here counts it.
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A number and what stands after it.
fn number(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let value = digits.parse::<f64>().ok().filter(|v| v.is_finite())?;
    Some((value, unit.trim()))
}

/// Nanoseconds of a time such as `50ms`, `1.5s`, `200us`; `0` needs no unit.
///
/// # Errors
/// What is no time.
pub fn time(text: &str) -> Result<u64, ShapeError> {
    let scale = match number(text) {
        Some((0.0, "")) => return Ok(0),
        Some((value, "ns")) => Some(value),
        Some((value, "us" | "µs")) => Some(value * 1e3),
        Some((value, "ms")) => Some(value * 1e6),
        Some((value, "s")) => Some(value * 1e9),
        Some((value, "m" | "min")) => Some(value * 60e9),
        Some((value, "h")) => Some(value * 3600e9),
        _ => None,
    };
    // Up to a year is exact enough as a float and fits by far.
    match scale {
        Some(ns) if ns < 3.2e16 => Ok(ns.round() as u64),
        _ => wrong(format!(
            "{text:?} is not a time: use a number with us, ms or s, for example 50ms"
        )),
    }
}

fn delay(text: &str) -> Result<u64, ShapeError> {
    match time(text)? {
        ns if ns <= nanos(BRIDGE_DELAY_MAX) => Ok(ns),
        _ => wrong(format!("the maximum is {} s", BRIDGE_DELAY_MAX.as_secs())),
    }
}

fn jitter(text: &str) -> Result<(u64, Spread), ShapeError> {
    match text.split_once(',') {
        None => Ok((delay(text)?, Spread::Uniform)),
        Some((time, "uniform")) => Ok((delay(time)?, Spread::Uniform)),
        Some((time, "normal")) => Ok((delay(time)?, Spread::Normal)),
        Some(_) => wrong("the jitter distribution is uniform or normal, for example 5ms,normal"),
    }
}

/// Bits per second of `1Gbit`, `500 kbit/s`, `none`: powers of ten, as lines are sold.
fn rate(text: &str) -> Result<Option<u64>, ShapeError> {
    if text == "none" {
        return Ok(None);
    }
    let lower = text.to_ascii_lowercase();
    let word = lower.strip_suffix("/s").unwrap_or(&lower);
    let scaled = match number(word) {
        Some((value, "bit" | "bps")) => Some(value),
        Some((value, "kbit" | "kbps")) => Some(value * 1e3),
        Some((value, "mbit" | "mbps")) => Some(value * 1e6),
        Some((value, "gbit" | "gbps")) => Some(value * 1e9),
        _ => None,
    };
    let Some(bits) = scaled else {
        return wrong(format!(
            "{text:?} is not a rate: use a number with kbit, Mbit or Gbit, or none"
        ));
    };
    match bits.round() as u64 {
        bits @ BRIDGE_RATE_MIN..=BRIDGE_RATE_MAX => Ok(Some(bits)),
        _ => wrong("the rate is 1 kbit/s to 100 Gbit/s"),
    }
}

fn bytes(text: &str) -> Result<u64, ShapeError> {
    match parse_bytes(text).and_then(|n| u64::try_from(n).ok()) {
        Some(n) => Ok(n),
        None => {
            wrong(format!("{text:?} is not a size: expected bytes, or a number with K, M or G"))
        }
    }
}

fn share(text: &str) -> Result<f64, ShapeError> {
    let value = match number(text) {
        Some((percent, "%")) => percent / 100.0,
        Some((value, "")) => value,
        _ => 2.0,
    };
    if (0.0..=1.0).contains(&value) {
        return Ok(value);
    }
    wrong(format!("{text:?} is not a fraction: use 0.1% or 0.001"))
}

fn burst(text: &str) -> Result<f64, ShapeError> {
    match number(text) {
        Some((packets, "")) if (0.0..=10_000.0).contains(&packets) => Ok(packets),
        _ => wrong(format!("{text:?} is not a number of packets")),
    }
}

#[cfg(test)]
mod tests;
