//! Latency histograms that travel and add up: HdrHistogram V2, in base64 inside JSON.
//!
//! Three significant digits from 1 µs' thousandth to one hour; a worse value counts as one hour
//! rather than being lost. Percentiles are only ever taken after the last merge.

use base::base64;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

/// Largest latency that is distinguished, in nanoseconds: one hour.
pub const MAX_NS: u64 = 3_600_000_000_000;

/// A histogram of nanoseconds.
pub type Hist = Histogram<u64>;

/// Why a histogram could not be read.
#[derive(Debug, thiserror::Error)]
pub enum HistError {
    /// Not base64.
    #[error("histogram is not base64")]
    Base64,
    /// Not HdrHistogram V2.
    #[error("histogram is not in HdrHistogram V2 format: {0}")]
    Format(String),
}

/// An empty histogram.
pub fn new() -> Hist {
    // The bounds are constants that the constructor accepts.
    Histogram::new_with_bounds(1, MAX_NS, 3).unwrap_or_else(|_| unreachable!())
}

/// As base64 of the V2 format.
pub fn to_text(hist: &Hist) -> String {
    let mut bytes = Vec::new();
    // Writing to memory cannot fail; an empty text would be refused by the reader.
    let _ = V2Serializer::new().serialize(hist, &mut bytes);
    base64::encode(&bytes)
}

/// From base64 of the V2 format.
///
/// # Errors
/// When the text is not what [`to_text`] makes.
pub fn from_text(text: &str) -> Result<Hist, HistError> {
    let letters = text.trim_end_matches('=').as_bytes();
    let bytes = base64::decode(letters).ok_or(HistError::Base64)?;
    let read: Hist = Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|e| HistError::Format(e.to_string()))?;
    let mut own = new();
    own.add(&read).map_err(|e| HistError::Format(e.to_string()))?;
    Ok(own)
}

/// Counts per bucket of [`base::buckets`], only those that are not zero: `(bucket, count)`.
pub fn to_buckets(hist: &Hist) -> Vec<(u16, u64)> {
    let mut out: Vec<(u16, u64)> = Vec::new();
    for step in hist.iter_recorded() {
        let bucket = base::buckets::index(step.value_iterated_to()) as u16;
        match out.last_mut() {
            Some(last) if last.0 == bucket => last.1 += step.count_at_value(),
            _ => out.push((bucket, step.count_at_value())),
        }
    }
    out
}

#[cfg(test)]
mod tests;
