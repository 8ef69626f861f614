//! What a window, a distance and a rate allow. Bytes, seconds, bytes per second.

/// The source's link as one instance sees it, bytes per second: what 689 MB/s at 512 MB and 0.2 s
/// leave for it, and what its file system levelled at.
pub const SOURCE_RATE: f64 = 0.94e9;
/// What the source's link carried with four instances, bytes per second.
pub const SOURCE_LINK: f64 = 0.98e9;

/// One instance that sends `block` bytes and waits until they are acknowledged: the block's own
/// time at `rate`, and a round trip.
pub fn stop_and_wait(block: f64, rtt_s: f64, rate: f64) -> f64 {
    block / (block / rate + rtt_s)
}

/// Several of which each would carry `one` alone, over a link that carries `link`.
pub fn instances(n: u32, one: f64, link: f64) -> f64 {
    link.min(f64::from(n) * one)
}

/// One connection that keeps up to `window` bytes unacknowledged, and sends at `rate` at most.
pub fn window(window: f64, rtt_s: f64, rate: f64) -> f64 {
    match rtt_s > 0.0 {
        true => rate.min(window / rtt_s),
        false => rate,
    }
}

/// By how much a figure is off, in percent of what was predicted.
pub fn deviation_percent(measured: f64, predicted: f64) -> f64 {
    match predicted > 0.0 {
        true => (measured / predicted - 1.0) * 100.0,
        false => 0.0,
    }
}

#[cfg(test)]
mod tests;
