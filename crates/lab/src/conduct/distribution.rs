//! Latencies of a step: those that count, those of each window, those of each second; and the bytes
//! that TCP carried. Each window's histogram is read once.

use crate::agent::proto::Window;
use crate::client::Transport;
use crate::hist::{self, Hist};
use crate::record::SecondRecord;
use std::collections::BTreeMap;

/// Headers of a segment: Ethernet 14, IPv4 20, TCP with timestamps 32.
pub const SEGMENT_HEADERS: u64 = 66;

/// What the histograms of a step come to.
pub struct Distributions {
    /// Over the windows that count.
    pub counted: Hist,
    /// Of each window: (bucket of `base::buckets`, count).
    pub heat: Vec<Vec<(u16, u64)>>,
    /// Of each second from the start of the step on, warm-up included.
    pub seconds: Vec<SecondRecord>,
}

/// Adds up the histograms of all clients up to the end of `used`, windows of `window_s` seconds.
pub fn gather(parts: &[&[Window]], used: (usize, usize), window_s: f64) -> Distributions {
    let per_second = (1.0 / window_s.max(1e-3)).round().max(1.0) as usize;
    let (mut counted, mut heat, mut seconds) = (hist::new(), Vec::new(), Vec::new());
    let mut second = hist::new();
    for n in 0..used.1 {
        let mut buckets: BTreeMap<u16, u64> = BTreeMap::new();
        for window in parts.iter().filter_map(|windows| windows.get(n)) {
            // A histogram of our own agents that cannot be read would be an internal fault; its
            // operations are then missing from the distribution, and Little's law shows it.
            let Ok(part) = hist::from_text(&window.latency) else { continue };
            for (bucket, count) in hist::to_buckets(&part) {
                *buckets.entry(bucket).or_default() += count;
            }
            let _ = second.add(&part);
            if n >= used.0 {
                let _ = counted.add(&part);
            }
        }
        heat.push(buckets.into_iter().collect());
        let whole = (n + 1).is_multiple_of(per_second);
        if whole || n + 1 == used.1 {
            let first = n / per_second * per_second;
            seconds.push(SecondRecord {
                after_s: first as f64 * window_s,
                length_s: (n + 1 - first) as f64 * window_s,
                max_ns: second.max(),
                histogram: hist::to_text(&second),
            });
            second.reset();
        }
    }
    Distributions { counted, heat, seconds }
}

/// Bytes per second that the connections of all clients carried in the windows that count, both
/// ways, with headers; `None` unless TCP shows it for all of them.
pub fn transport_bytes(parts: &[&[Window]], used: (usize, usize), window_s: f64) -> Option<f64> {
    let bytes = |t: &Transport| {
        let segments = u64::from(t.segments_out) + u64::from(t.segments_in);
        t.bytes_in + t.bytes_out + SEGMENT_HEADERS * segments
    };
    // The counters of a window are those at its end: those of the first are the base.
    let (from, to) = (used.0.max(1), used.1);
    if to <= from || parts.is_empty() {
        return None;
    }
    let each = parts.iter().map(|windows| {
        let at = |n: usize| windows.get(n)?.transport.as_ref().filter(|t| t.bytes_in > 0);
        Some(bytes(at(to - 1)?).saturating_sub(bytes(at(from - 1)?)))
    });
    let all: u64 = each.sum::<Option<u64>>()?;
    Some(all as f64 / ((to - from) as f64 * window_s))
}

#[cfg(test)]
mod tests;
