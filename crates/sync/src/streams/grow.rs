//! How many streams there should be: as many as bring something. It starts with one, or with a few
//! over a distance, where all connections begin slowly. Once the rate no longer rises with the same
//! number of streams, it has twice as many, as long as the time before that has brought a fraction
//! that is more than noise, and no queue stands before the link. So there are as many as fill the
//! link, whatever its delay, its loss and the windows of the machines at its ends; where the link
//! is full, or the disk or the processor is the limit, there are few.

use base::clock::NS_PER_S;
use base::limits::{
    DSYNC_FAR_NS, DSYNC_GROWTH_CALM, DSYNC_GROWTH_NS, DSYNC_GROWTH_PERCENT, DSYNC_GROWTH_TRIPS,
    DSYNC_STREAM_EACH_NS, DSYNC_STREAMS_FAR,
};

#[cfg(test)]
mod tests;

/// What was measured, and what follows.
#[derive(Debug)]
pub struct Growth {
    streams: usize,
    most: usize,
    period_ns: u64,
    /// When the period began, and how many bytes had arrived by then.
    since: Option<(u64, u64)>,
    /// What half as many streams have carried, in bytes per second; 0 for the first ones.
    fewer: u64,
    /// The most that these have carried in a period.
    best: u64,
    /// Periods since in which the rate did not rise, and the sum of their rates.
    calm: u64,
    sum: u64,
    /// The most that these have carried while a queue stood before the link; 0 if none did.
    full: u64,
    /// Twice as many have brought nothing.
    enough: bool,
}

/// Whether a rate is more than another by a fraction that is no noise.
fn grown(rate: u64, than: u64) -> bool {
    u128::from(rate) * 100 >= u128::from(than) * u128::from(100 + DSYNC_GROWTH_PERCENT)
}

impl Growth {
    /// As many streams as a run begins with, at most `most`, at a round trip of `rtt_ns`.
    pub fn new(most: usize, rtt_ns: u64) -> Self {
        let far = usize::try_from(rtt_ns / DSYNC_STREAM_EACH_NS).unwrap_or(DSYNC_STREAMS_FAR);
        let first = if rtt_ns >= DSYNC_FAR_NS { far.min(DSYNC_STREAMS_FAR) } else { 1 };
        let period_ns = DSYNC_GROWTH_NS.max(rtt_ns.saturating_mul(DSYNC_GROWTH_TRIPS));
        Self {
            streams: first.min(most),
            most,
            period_ns,
            since: None,
            fewer: 0,
            best: 0,
            calm: 0,
            sum: 0,
            full: 0,
            enough: false,
        }
    }

    /// How many there should be.
    pub fn streams(&self) -> usize {
        self.streams
    }

    /// How long a rate is measured, in nanoseconds.
    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// Takes how many bytes have arrived until now, and whether a queue stands before the link; how
    /// many there should be.
    pub fn tick(&mut self, now_ns: u64, arrived: u64, queued: bool) -> usize {
        let Some((then, before)) = self.since else {
            self.since = Some((now_ns, arrived));
            return self.streams;
        };
        let (took, bytes) = (now_ns.saturating_sub(then), arrived.saturating_sub(before));
        if took < self.period_ns || self.enough {
            return self.streams;
        }
        self.since = Some((now_ns, arrived));
        let rate = u128::from(bytes) * u128::from(NS_PER_S) / u128::from(took);
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        if rate > 0 {
            self.weigh(rate, queued);
        }
        self.streams
    }

    fn weigh(&mut self, rate: u64, queued: bool) {
        if grown(rate, self.best) {
            // Windows still open.
            (self.best, self.calm, self.sum) = (rate, 0, 0);
            return;
        }
        (self.calm, self.sum) = (self.calm + 1, self.sum.saturating_add(rate));
        if self.calm < DSYNC_GROWTH_CALM {
            return;
        }
        let (lasts, best) = (self.sum / self.calm, self.best);
        (self.best, self.calm, self.sum) = (0, 0, 0);
        if queued {
            self.full = best;
        }
        // A queue that is gone for a moment is little evidence: BBR empties it every ten seconds to
        // measure the round-trip time, and carries little meanwhile.
        if queued || (self.full > 0 && !grown(self.full, best)) {
            return;
        }
        self.enough = !grown(lasts, self.fewer);
        if !self.enough {
            (self.fewer, self.full) = (lasts, 0);
            self.streams = (self.streams * 2).min(self.most);
        }
    }
}
