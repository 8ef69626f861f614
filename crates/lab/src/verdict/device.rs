//! The device below a share, step by step: whether something caps it, and whether a cache warmed up
//! meanwhile.
//!
//! The busy time of a device shows nothing of a cap: it stands idle while requests are held back in
//! front of it. What shows is that it moves the same bytes however many operations are in flight,
//! while they take longer and longer.

use crate::limit::{Device, Direction, Point};
use base::units::{bytes, count};
use host::observe::device::{Cap, Capped as CapOf};

/// Rates of a device that differ by less than this are the same.
const FLAT: f64 = 1.10;
/// Operations in flight must grow by this between the first and the last step with that rate, ...
const MORE: f64 = 2.0;
/// ... and so must their latency by this.
const SLOWER: f64 = 1.5;
/// Share of the payload that comes from the device, or goes there, when the device matters.
const FROM_DEVICE: f64 = 0.50;
/// Share of a cap from which the device is at it: the kernel lets through what was asked for in
/// slices of time, so that the mean is a little below.
const AT_CAP: f64 = 0.90;
/// Share of the payload from the device at the first step from which a cache was cold ...
const COLD: f64 = 0.20;
/// ... and what is left of that share at the end when it has warmed up.
const WARM: f64 = 0.50;

/// A device that gives no more.
#[derive(Debug, Clone, PartialEq)]
pub struct Capped {
    /// Its name.
    pub name: String,
    /// What it gives per second.
    pub rate: f64,
    /// What that is.
    pub of: Rate,
    /// For people.
    pub sentence: String,
}

/// A figure of a device that can be at its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// Bytes read and written.
    Bytes,
    /// Operations.
    Operations,
    /// What a control group caps.
    Cap(CapOf),
}

impl Rate {
    fn value(self, device: &Device) -> f64 {
        let one = |n: usize| device.by_direction.map_or((0.0, 0.0), |both| both[n]);
        match self {
            Self::Bytes => device.bytes_s,
            Self::Operations => device.ops_s,
            Self::Cap(CapOf::ReadBytes) => one(0).0,
            Self::Cap(CapOf::WriteBytes) => one(1).0,
            Self::Cap(CapOf::Reads) => one(0).1,
            Self::Cap(CapOf::Writes) => one(1).1,
        }
    }

    fn text(self, value: f64) -> String {
        match self {
            Self::Bytes => format!("{}/s", bytes(value)),
            Self::Cap(CapOf::ReadBytes) => format!("{}/s of reads", bytes(value)),
            Self::Cap(CapOf::WriteBytes) => format!("{}/s of writes", bytes(value)),
            Self::Operations => format!("{} operations/s", count(value)),
            Self::Cap(CapOf::Reads) => format!("{} reads/s", count(value)),
            Self::Cap(CapOf::Writes) => format!("{} writes/s", count(value)),
        }
    }
}

impl Capped {
    /// The figure of a device that is at its limit here.
    pub fn of(&self, device: &Device) -> f64 {
        self.of.value(device)
    }
}

/// Share of the payload that the device moved in this direction, or in both.
fn share(point: &Point, device: &Device, of: Option<Direction>) -> f64 {
    let one = |n: usize| device.by_direction.map_or(device.bytes_s, |both| both[n].0);
    let bytes = match of {
        None => device.bytes_s,
        Some(Direction::Read) => one(0),
        Some(Direction::Write) => one(1),
    };
    bytes / point.bytes_s.max(1.0)
}

/// What a cap is on.
fn direction(cap: CapOf) -> Direction {
    match cap {
        CapOf::ReadBytes | CapOf::Reads => Direction::Read,
        CapOf::WriteBytes | CapOf::Writes => Direction::Write,
    }
}

/// Whether the device gave as much as a control group lets it. What is written may be read first:
/// a cap on reads is one on writes, too, if the device reads that much.
pub fn at_cap(point: Point, device: &Device) -> Option<Capped> {
    let matters = |cap: &&Cap| share(&point, device, Some(direction(cap.of))) >= FROM_DEVICE;
    device.caps.iter().filter(matters).find_map(|cap| {
        let of = Rate::Cap(cap.of);
        let rate = of.value(device);
        let used = rate / cap.most.max(1) as f64;
        let sentence = format!(
            "{} gave {}, {:.0} % of the {}",
            device.name,
            of.text(rate),
            used * 100.0,
            described(cap)
        );
        let capped = Capped { name: device.name.clone(), rate: cap.most as f64, of, sentence };
        (used >= AT_CAP).then_some(capped)
    })
}

fn described(cap: &Cap) -> String {
    let most = Rate::Cap(cap.of).text(cap.most as f64);
    format!("{most} that the control group {} allows on {}", cap.group, cap.device)
}

/// Whether the device gave the same at the last steps although more and more was in flight.
pub fn capped(steps: &[(Point, &Device)], payload: Option<Direction>) -> Option<Capped> {
    [Rate::Bytes, Rate::Operations].into_iter().find_map(|of| flat(steps, of, payload))
}

fn flat(steps: &[(Point, &Device)], of: Rate, payload: Option<Direction>) -> Option<Capped> {
    let (last, device) = steps.last()?;
    let (mut low, mut high) = (f64::INFINITY, 0.0f64);
    let flat = steps.iter().rev().take_while(|(point, device)| {
        let rate = of.value(device);
        (low, high) = (low.min(rate), high.max(rate));
        high <= FLAT * low && share(point, device, payload) >= FROM_DEVICE
    });
    let flat: Vec<_> = flat.collect();
    let first = flat.last()?.0;
    if last.in_flight < MORE * first.in_flight || last.latency_ns < SLOWER * first.latency_ns {
        return None;
    }
    let rate = flat.iter().map(|step| of.value(step.1)).sum::<f64>() / flat.len() as f64;
    let mut sentence = format!(
        "{} moved {} with {:.0} operations in flight and no more with {:.0}, {:.0} % of the \
         payload, although it was busy {:.0} % of the time",
        device.name,
        of.text(rate),
        first.in_flight,
        last.in_flight,
        share(last, device, payload) * 100.0,
        device.busy * 100.0
    );
    let (what, each) = match payload {
        Some(Direction::Write) => ("write", device.write_latency_ns),
        _ => ("read", device.read_latency_ns),
    };
    if let Some(each) = each {
        sentence += &format!("; a {what} took {} there", base::units::time_ns(each));
    }
    for cap in &device.caps {
        sentence += &format!("; it may give at most {}", described(cap));
    }
    Some(Capped { name: device.name.clone(), rate, of, sentence })
}

/// Whether less and less of the payload came from the device, in a sentence. What is written goes
/// to the device sooner or later; a cache that warms up saves reads alone.
pub fn warmed(steps: &[(Point, &Device)], payload: Option<Direction>) -> Option<String> {
    payload.filter(|payload| *payload == Direction::Read)?;
    // Of a step that ended before its first window there is no payload to compare with.
    let mut read = steps.iter().filter(|(point, _)| point.bytes_s > 0.0);
    let (first, last) = (read.next()?, read.next_back()?);
    let name = &first.1.name;
    let (first, last) = (share(&first.0, first.1, payload), share(&last.0, last.1, payload));
    (first >= COLD && last <= WARM * first).then(|| {
        format!(
            "the cache warmed up: {:.0} % of the payload came from {name} at the first step, \
             {:.0} % at the last",
            first * 100.0,
            last * 100.0
        )
    })
}

#[cfg(test)]
mod tests;
