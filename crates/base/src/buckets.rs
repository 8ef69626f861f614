//! Log-linear buckets: four to each power of two, so that a range is at most 25 % wide.
//!
//! One scale serves latency (nanoseconds), size and offset (bytes); the recorder, the store, heat
//! maps and the load reports all use it, so their figures can be laid side by side.

/// Linear steps within each power of two.
pub const STEPS: u32 = 4;

/// How many buckets there are: values 0..4 have one each, then four to each power of two.
pub const COUNT: usize = 4 + (62 * STEPS as usize);

/// The bucket that `value` falls into; below [`COUNT`].
#[inline]
pub const fn index(value: u64) -> usize {
    if value < 4 {
        return value as usize;
    }
    let power = 63 - value.leading_zeros();
    let step = (value >> (power - 2)) & 3;
    (4 + (power - 2) * STEPS) as usize + step as usize
}

/// The smallest value of bucket `index`.
pub const fn low(index: usize) -> u64 {
    if index < 4 {
        return index as u64;
    }
    let power = (index as u32 - 4) / STEPS + 2;
    let step = (index as u64 - 4) % STEPS as u64;
    (4 + step) << (power - 2)
}

/// The smallest value above bucket `index`.
pub const fn high(index: usize) -> u64 {
    if index + 1 >= COUNT { u64::MAX } else { low(index + 1) }
}

/// The value below which `quantile` (0..=1) of the counted values lie, taken at the middle of the
/// bucket that it falls into. `None` when nothing was counted.
pub fn quantile(counts: &[u64], quantile: f64) -> Option<u64> {
    let total: u64 = counts.iter().sum();
    if total == 0 {
        return None;
    }
    let rank = (quantile.clamp(0.0, 1.0) * total as f64).ceil().max(1.0) as u64;
    let mut seen = 0;
    for (index, count) in counts.iter().enumerate() {
        seen += count;
        if seen >= rank {
            let (lo, hi) = (low(index), high(index));
            return Some(lo + (hi - lo) / 2);
        }
    }
    None
}

#[cfg(test)]
mod tests;
