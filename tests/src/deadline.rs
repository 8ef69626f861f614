//! Deadlines of waits that do not end by wall time alone: on a machine with more to do than it has
//! processors, only the part of the time counts in which each runnable thread could have run.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

/// A limit for a wait that looks again and again.
#[derive(Debug)]
pub struct Deadline {
    left: Duration,
    last: Instant,
}

impl Deadline {
    /// `limit` from now.
    pub fn after(limit: Duration) -> Self {
        Self { left: limit, last: Instant::now() }
    }

    /// Whether the limit is used up; time counts since the call before.
    pub fn is_over(&mut self) -> bool {
        let now = Instant::now();
        let counted = share(now - self.last, runnable(), processors());
        self.last = now;
        self.left = self.left.saturating_sub(counted);
        self.left.is_zero()
    }
}

/// The part of `elapsed` that each of the runnable threads had a processor.
fn share(elapsed: Duration, runnable: u32, processors: u32) -> Duration {
    match runnable > processors {
        true => elapsed * processors / runnable,
        false => elapsed,
    }
}

fn processors() -> u32 {
    let number = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// How many threads of this machine run or could run.
fn runnable() -> u32 {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let of_all = load.split(' ').nth(3).and_then(|field| field.split('/').next());
    of_all.and_then(|number| number.parse().ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests;
