//! Several senders at once that each send a block, and nothing more until all of it is
//! acknowledged.
//!
//! They begin one after the other, a block's time apart. Those that begin together stay together,
//! all wait at the same time, and the link is idle meanwhile.

use super::limiter::Tcp;
use super::plan::{At, Plan};
use super::transport::SweepError;
use crate::agent::clock::{mono_ns, sleep_until};
use base::limits::SWEEP_BLOCKS;
use base::tcp_info::TcpInfo;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// One of them.
pub trait BlockTransfer: Send {
    /// Sends a block and waits for its acknowledgement, or requests a block and waits for its data.
    ///
    /// # Errors
    /// The connection is gone.
    fn block(&mut self) -> Result<(), SweepError>;
    /// TCP statistics of the sending end, if available.
    fn info(&self) -> Option<TcpInfo>;
    /// Nothing more will be sent.
    fn end(&mut self) {}
}

/// What all together carried.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sum {
    /// Bytes per second.
    pub bytes_s: f64,
    /// TCP's accounting.
    pub tcp: Option<Tcp>,
}

/// What all share.
struct Common {
    block: u64,
    /// Time of a block on the link.
    block_ns: u64,
    /// Time in which each has its turn once.
    cycle_ns: u64,
    warm_ns: u64,
    measured_ns: u64,
    instances: u32,
    /// All are warm.
    warm: Barrier,
    /// Those with time left: the others continue meanwhile, so that the load stays the same for
    /// all.
    left: AtomicU32,
    failed: AtomicBool,
}

/// Lets all carry blocks of the point's window at once; `rtt_s` is a round trip in seconds.
///
/// # Errors
/// What one of them failed with.
pub fn run<T: BlockTransfer>(
    plan: &Plan,
    at: &At,
    rtt_s: f64,
    all: Vec<T>,
) -> Result<Sum, SweepError> {
    let common = Common::new(plan, at, rtt_s, all.len());
    let done = std::thread::scope(|scope| {
        let common = &common;
        let work = all.into_iter().zip(0..);
        let work = work.map(|(one, number)| scope.spawn(move || common.carry(one, number)));
        let work: Vec<_> = work.collect();
        let joined =
            work.into_iter().map(|thread| thread.join().unwrap_or(Err(SweepError::Nothing)));
        joined.collect::<Vec<_>>()
    });
    let done = done.into_iter().collect::<Result<Vec<Sum>, SweepError>>()?;
    let bytes_s = done.iter().map(|done| done.bytes_s).sum();
    Ok(Sum { bytes_s, tcp: Tcp::sum(done.into_iter().map(|done| done.tcp)) })
}

impl Common {
    fn new(plan: &Plan, at: &At, rtt_s: f64, all: usize) -> Self {
        let (warm_ns, measured_ns) = plan.times_ns(at);
        let ns = |bytes: f64, rate: f64| (bytes / rate * 1e9) as u64;
        let cycle = at.window as f64 * f64::from(at.instances);
        let instances = u32::try_from(all).unwrap_or(u32::MAX);
        Self {
            block: at.window,
            block_ns: ns(at.window as f64, plan.carries(at)),
            cycle_ns: ns(cycle, plan.predicted(at, rtt_s)),
            warm_ns,
            measured_ns,
            instances,
            warm: Barrier::new(all),
            left: AtomicU32::new(instances),
            failed: AtomicBool::new(false),
        }
    }

    /// One of them, from its first block until all have ended.
    fn carry(&self, mut one: impl BlockTransfer, number: u32) -> Result<Sum, SweepError> {
        let warmed = self.until(&mut one, mono_ns() + self.warm_ns);
        self.failed.fetch_or(warmed.is_err(), Ordering::SeqCst);
        self.warm.wait();
        let mut done = warmed.and_then(|_| self.measure(&mut one, number));
        self.failed.fetch_or(done.is_err(), Ordering::SeqCst);
        self.left.fetch_sub(1, Ordering::SeqCst);
        while done.is_ok() && self.left.load(Ordering::SeqCst) > 0 && !self.is_failed() {
            if let Err(error) = one.block() {
                done = Err(error);
            }
        }
        one.end();
        done
    }

    fn measure(&self, one: &mut impl BlockTransfer, number: u32) -> Result<Sum, SweepError> {
        let base = mono_ns();
        sleep_until(base + self.block_ns * u64::from(number));
        // Until all have begun, and each has had its turn.
        let begun = base + self.block_ns * u64::from(self.instances) + self.cycle_ns;
        self.until(one, begun)?;
        let (before, begin_ns) = (one.info(), mono_ns());
        let mut blocks = self.until(one, begin_ns + self.measured_ns)?;
        while (blocks as f64) < SWEEP_BLOCKS && !self.is_failed() {
            one.block()?;
            blocks += 1;
        }
        let (ns, after) = (mono_ns() - begin_ns, one.info());
        let tcp = before.zip(after).and_then(|(before, after)| Tcp::between(&before, &after, ns));
        let bytes = blocks * self.block;
        Ok(Sum { bytes_s: bytes as f64 / (ns as f64 / 1e9), tcp })
    }

    /// Blocks one after the other until it is that late; how many, one at least.
    fn until(&self, one: &mut impl BlockTransfer, end_ns: u64) -> Result<u64, SweepError> {
        let mut blocks = 0;
        while blocks == 0 || (mono_ns() < end_ns && !self.is_failed()) {
            one.block()?;
            blocks += 1;
        }
        Ok(blocks)
    }

    fn is_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests;
