//! The device below a share, step by step: whether something caps it, and whether a cache warmed up
//! meanwhile.
//!
//! The busy time of a device shows nothing of a cap: it stands idle while requests are held back in
//! front of it. What shows is that it moves the same bytes however many operations are in flight,
//! while they take longer and longer.

use crate::limit::{Device, Point};
use base::units::bytes;

/// Rates of a device that differ by less than this are the same.
const FLAT: f64 = 1.10;
/// Operations in flight must grow by this between the first and the last step with that rate, ...
const MORE: f64 = 2.0;
/// ... and so must their latency by this.
const SLOWER: f64 = 1.5;
/// Share of the payload that comes from the device, or goes there, when the device matters.
const FROM_DEVICE: f64 = 0.50;
/// Share of the payload from the device at the first step from which a cache was cold ...
const COLD: f64 = 0.20;
/// ... and what is left of that share at the end when it has warmed up.
const WARM: f64 = 0.50;

/// A device that gives no more.
#[derive(Debug, Clone, PartialEq)]
pub struct Capped {
    /// Its name.
    pub name: String,
    /// Bytes per second that it gives.
    pub bytes_s: f64,
    /// For people.
    pub sentence: String,
}

/// Whether the device gave the same at the last steps although more and more was in flight.
pub fn capped(steps: &[(Point, &Device)]) -> Option<Capped> {
    let (last, device) = steps.last()?;
    let share = |(point, device): &(Point, &Device)| device.bytes_s / point.bytes_s.max(1.0);
    let (mut low, mut high) = (f64::INFINITY, 0.0f64);
    let flat = steps.iter().rev().take_while(|step| {
        (low, high) = (low.min(step.1.bytes_s), high.max(step.1.bytes_s));
        high <= FLAT * low && share(step) >= FROM_DEVICE
    });
    let flat: Vec<_> = flat.collect();
    let first = flat.last()?.0;
    if last.in_flight < MORE * first.in_flight || last.latency_ns < SLOWER * first.latency_ns {
        return None;
    }
    let rate = flat.iter().map(|step| step.1.bytes_s).sum::<f64>() / flat.len() as f64;
    let sentence = format!(
        "{} moved {}/s with {:.0} operations in flight and no more with {:.0}, {:.0} % of the \
         payload, although it was busy {:.0} % of the time",
        device.name,
        bytes(rate),
        first.in_flight,
        last.in_flight,
        share(&(*last, device)) * 100.0,
        device.busy * 100.0
    );
    Some(Capped { name: device.name.clone(), bytes_s: rate, sentence })
}

/// Whether less and less of the payload came from the device, in a sentence.
pub fn warmed(steps: &[(Point, &Device)]) -> Option<String> {
    let share = |(point, device): &(Point, &Device)| device.bytes_s / point.bytes_s.max(1.0);
    let (first, last) = (share(steps.first()?), share(steps.last()?));
    let name = &steps.first()?.1.name;
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
