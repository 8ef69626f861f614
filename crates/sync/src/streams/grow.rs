//! How many streams there should be: as many as bring something. It starts with one, or with a few
//! over a distance, where all connections begin slowly, measures the rate over some round trips,
//! and has twice as many as long as the rate has grown by a fraction that is more than noise. So
//! there are as many as fill the link, whatever its delay, its loss and the windows of the machines
//! at its ends; where the disk or the processor is the limit, there are few.

use base::clock::NS_PER_S;
use base::limits::{
    DSYNC_FAR_NS, DSYNC_GROWTH_CALM, DSYNC_GROWTH_NS, DSYNC_GROWTH_PERCENT, DSYNC_GROWTH_TRIPS,
    DSYNC_STREAMS_FAR,
};

#[cfg(test)]
mod tests;

/// What was measured, and what follows.
#[derive(Debug)]
pub struct Growth {
    streams: usize,
    most: usize,
    period_ns: u64,
    /// When the period began, and how many bytes had been moved then.
    since: Option<(u64, u64)>,
    /// What a period's rate is held against, in bytes per second: the best since it grew last.
    best: u64,
    /// Periods since in which it did not grow, and the sum of their rates.
    calm: u64,
    sum: u64,
}

impl Growth {
    /// As many streams as a run begins with, at most so many, at a round trip of `rtt_ns`.
    pub fn new(most: usize, rtt_ns: u64) -> Self {
        let first = if rtt_ns >= DSYNC_FAR_NS { DSYNC_STREAMS_FAR } else { 1 };
        let period_ns = DSYNC_GROWTH_NS.max(rtt_ns.saturating_mul(DSYNC_GROWTH_TRIPS));
        Self { streams: first.min(most), most, period_ns, since: None, best: 0, calm: 0, sum: 0 }
    }

    /// How many there should be.
    pub fn streams(&self) -> usize {
        self.streams
    }

    /// How long a rate is measured, in nanoseconds.
    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// Takes how many bytes were moved until now; how many streams there should be.
    pub fn tick(&mut self, now_ns: u64, moved: u64) -> usize {
        let Some((then, before)) = self.since else {
            self.since = Some((now_ns, moved));
            return self.streams;
        };
        let (took, bytes) = (now_ns.saturating_sub(then), moved.saturating_sub(before));
        if took < self.period_ns {
            return self.streams;
        }
        self.since = Some((now_ns, moved));
        let rate = u128::from(bytes) * u128::from(NS_PER_S) / u128::from(took);
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        let grown = u128::from(self.best) * u128::from(100 + DSYNC_GROWTH_PERCENT) / 100;
        if rate == 0 {
            return self.streams;
        }
        if self.best == 0 && self.streams > 1 {
            // What those carry with which it has begun: more of them have to show more.
            self.best = rate;
        } else if u128::from(rate) >= grown {
            (self.best, self.calm, self.sum) = (rate, 0, 0);
            self.double();
        } else if self.calm < DSYNC_GROWTH_CALM {
            (self.calm, self.sum) = (self.calm + 1, self.sum.saturating_add(rate));
            if self.calm == DSYNC_GROWTH_CALM {
                // A burst, or a window before its first loss, was more than what lasts: twice as
                // many are tried once against that.
                self.best = self.sum / self.calm;
                self.double();
            }
        }
        self.streams
    }

    fn double(&mut self) {
        self.streams = (self.streams * 2).min(self.most);
    }
}
