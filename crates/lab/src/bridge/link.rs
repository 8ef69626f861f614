//! One direction of an emulated link, without a clock or a device: it computes for each packet when
//! it arrives, or why it does not.
//!
//! A packet waits for the line (a bounded queue, the last one is dropped), takes the line for as
//! long as its bits need, may be lost there, and is then in flight for the delay. All randomness is
//! taken from one source, in the same order for the same packets: the same seed gives the same run.

use base::clock::NS_PER_S;
use base::random::Random;

use super::shape::{Shape, Spread};

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketOutcome {
    /// Lost on the line.
    Lost,
    /// There was no room for it before the line.
    QueueFull,
    /// It arrives.
    Arrives(Arrival),
}

/// How a packet arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When, in nanoseconds of the clock that was handed in.
    pub due_ns: u64,
    /// Whether it is held back, and not kept in order.
    pub held: bool,
    /// Whether it arrives twice.
    pub twice: bool,
    /// Where a bit of it is turned, if one is: random, to be taken modulo its bits.
    pub flip: Option<u64>,
}

/// One direction of a link.
#[derive(Debug)]
pub struct Link<R> {
    shape: Shape,
    rtt_ns: u64,
    random: R,
    /// When the line has sent all that was accepted, and what the division left over, in parts of
    /// a nanosecond as small as the rate makes them.
    free_ns: u64,
    left: u64,
    /// When the last packet that is kept in order arrives.
    last_due_ns: u64,
    /// In a burst of losses.
    bad: bool,
}

impl<R: Random> Link<R> {
    /// A link of this shape with a round trip of `rtt_ns`; all randomness is taken from `random`.
    pub fn new(shape: Shape, rtt_ns: u64, random: R) -> Self {
        Self { shape, rtt_ns, random, free_ns: 0, left: 0, last_due_ns: 0, bad: false }
    }

    /// Changes the shape, for packets that come from now on. What waits for the line takes the new
    /// rate's time there, but arrives when it was scheduled to.
    pub fn change(&mut self, shape: Shape, rtt_ns: u64, now_ns: u64) {
        let waiting = self.waiting(now_ns);
        (self.shape, self.rtt_ns, self.left) = (shape, rtt_ns, 0);
        self.free_ns = now_ns;
        // Without a rate nothing waits.
        if self.shape.rate.is_some() {
            self.take_line(now_ns, waiting);
        }
    }

    /// Bytes that wait for the line or are on it.
    pub fn waiting(&self, now_ns: u64) -> u64 {
        let Some(rate) = self.shape.rate else { return 0 };
        let ns = u128::from(self.free_ns.saturating_sub(now_ns));
        u64::try_from(ns * u128::from(rate) / (8 * u128::from(NS_PER_S))).unwrap_or(u64::MAX)
    }

    /// What becomes of a packet of `bytes` bytes that comes now. `now_ns` never goes back.
    pub fn offer(&mut self, now_ns: u64, bytes: u64) -> PacketOutcome {
        let sent_ns = match self.shape.rate {
            None => now_ns,
            Some(_) => {
                let size = bytes + u64::from(self.shape.overhead);
                let most = self.shape.queue_bytes(self.rtt_ns);
                // One packet fits into any queue: that it is larger is no reason to lose all.
                let waiting = self.waiting(now_ns);
                if waiting > 0 && waiting + size > most {
                    return PacketOutcome::QueueFull;
                }
                self.take_line(now_ns, size);
                self.free_ns
            }
        };
        if self.loses() {
            return PacketOutcome::Lost;
        }
        let on_time_ns = sent_ns.saturating_add(self.way_ns());
        let held = self.happens(self.shape.reorder);
        let due_ns = if held {
            on_time_ns + self.shape.reorder_by_ns
        } else {
            self.last_due_ns = self.last_due_ns.max(on_time_ns);
            self.last_due_ns
        };
        let twice = self.happens(self.shape.duplicate);
        let flip = self.happens(self.shape.corrupt).then(|| self.random.next_u64());
        PacketOutcome::Arrives(Arrival { due_ns, held, twice, flip })
    }

    /// The line is taken by `bytes` more.
    fn take_line(&mut self, now_ns: u64, bytes: u64) {
        let Some(rate) = self.shape.rate else { return };
        if self.free_ns < now_ns {
            (self.free_ns, self.left) = (now_ns, 0);
        }
        let parts = u128::from(bytes) * 8 * u128::from(NS_PER_S) + u128::from(self.left);
        let (ns, left) = (parts / u128::from(rate), parts % u128::from(rate));
        self.free_ns = self.free_ns.saturating_add(u64::try_from(ns).unwrap_or(u64::MAX));
        // Below the rate, so it fits.
        self.left = left as u64;
    }

    /// The time that this packet is in flight.
    fn way_ns(&mut self) -> u64 {
        let (delay, jitter) = (self.shape.delay_ns, self.shape.jitter_ns);
        if jitter == 0 {
            return delay;
        }
        let by = match self.shape.spread {
            Spread::Uniform => self.random.below(2 * jitter + 1) as i64 - jitter as i64,
            Spread::Normal => (self.normal() * jitter as f64) as i64,
        };
        delay.saturating_add_signed(by)
    }

    /// A number of the standard normal distribution, as the sum of twelve even ones: exact sums of
    /// integers, so that every machine gets the same.
    fn normal(&mut self) -> f64 {
        let mut sum = 0_i64;
        for _ in 0..3 {
            let word = self.random.next_u64();
            sum += (0..4).map(|lane| (word >> (16 * lane) & 0xffff) as i64).sum::<i64>();
        }
        (sum - 6 * 0xffff) as f64 / 65_536.0
    }

    /// Whether a packet is lost: by chance, or by Gilbert's model of a line that is good or bad,
    /// with all that comes lost while it is bad.
    fn loses(&mut self) -> bool {
        let (loss, burst) = (self.shape.loss, self.shape.burst);
        if burst <= 1.0 {
            self.bad = false;
            return self.happens(loss);
        }
        let changes = match (loss, self.bad) {
            (_, true) => 1.0 / burst,
            // So that the share of bad times is the loss.
            (loss, false) if loss < 1.0 => loss / (burst * (1.0 - loss)),
            _ => 1.0,
        };
        if loss == 0.0 {
            self.bad = false;
        } else if self.happens(changes) {
            self.bad = !self.bad;
        }
        self.bad
    }

    /// Whether what has this probability happens. What cannot happen takes nothing from the
    /// source, so that a link without it runs as before there was such a thing.
    fn happens(&mut self, probability: f64) -> bool {
        if probability <= 0.0 {
            return false;
        }
        // 2^64 times 1 is beyond a u64, which the conversion takes for its largest.
        let below = (probability * 18_446_744_073_709_551_616.0) as u64;
        probability >= 1.0 || self.random.next_u64() < below
    }
}

#[cfg(test)]
mod tests;
