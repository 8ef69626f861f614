//! One core's end of the measuring: a record on the path, the counting in idle turns.

use std::sync::Arc;

use base::clock::NS_PER_S;
use base::limits::{
    AGGREGATE_BATCH, AGGREGATE_DELAY_NS, AGGREGATE_SLICE, RECORDER_IDLE, SECOND_GRACE_NS,
};

use crate::hub::{CoreShared, Hub};
use crate::op::OpRecord;
use crate::second::Aggregate;

/// A clock that went back by more than this many seconds was set: the open seconds are discarded.
/// One that went back by less is waited for.
pub const CLOCK_SET_S: u64 = 5;

/// The only writer of a core's ring. Moves between threads, is never shared by two.
pub struct CoreProbe {
    hub: Arc<Hub>,
    core: usize,
    /// Position in the ring of the next record to aggregate.
    tail: u64,
    /// When records were last aggregated.
    last_ns: u64,
    /// When there were records to aggregate last.
    busy_ns: u64,
    /// When the newest open second may be closed.
    close_ns: u64,
    /// The second that is being counted, and the one before it.
    open: [Box<Aggregate>; 2],
    used: [bool; 2],
    /// All seconds before this one are with the hub.
    closed: u64,
    /// `Sync` would allow two writers.
    _not_sync: std::marker::PhantomData<std::cell::Cell<()>>,
}

impl Hub {
    /// The writing end of `core`, for the thread that serves it.
    ///
    /// # Panics
    /// When there is no such core or its writing end is in use: a mistake in the wiring.
    pub fn core(self: &Arc<Self>, core: usize) -> CoreProbe {
        assert!(self.cores[core].claim(), "core {core} has a writer already");
        CoreProbe::new(self.clone(), core)
    }
}

impl CoreProbe {
    fn new(hub: Arc<Hub>, core: usize) -> Self {
        let tail = hub.cores[core].ring.head();
        let open = [Box::new(Aggregate::new(0)), Box::new(Aggregate::new(0))];
        Self {
            hub,
            core,
            tail,
            last_ns: 0,
            busy_ns: 0,
            close_ns: 0,
            open,
            used: [false; 2],
            closed: 0,
            _not_sync: std::marker::PhantomData,
        }
    }

    fn shared(&self) -> &CoreShared {
        &self.hub.cores[self.core]
    }

    /// Which core this is.
    pub fn core(&self) -> usize {
        self.core
    }

    /// The hub that it reports to.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// Writes one finished operation down: 64 bytes into the ring. While collection is off, only
    /// the total of its protocol is counted.
    #[inline]
    pub fn finish(&mut self, record: &OpRecord) {
        if self.hub.collecting() {
            self.hub.cores[self.core].ring.push(record);
        } else {
            self.finish_off(record);
        }
    }

    #[cold]
    fn finish_off(&mut self, record: &OpRecord) {
        self.open_for(record.done_ns).add_off(record);
    }

    /// Aggregates what is in the ring, a bounded slice at a time, and hands finished seconds to the
    /// hub. To be called between batches and at least every 100 ms; returns whether more waits.
    /// `now_ns` is [`base::clock::stamp`]. Its CPU time is counted as Analytics' own.
    pub fn idle(&mut self, now_ns: u64) -> bool {
        let waiting = self.shared().ring.head() - self.tail;
        if now_ns < self.close_ns
            && !self.is_set_back(now_ns)
            && (waiting == 0
                || waiting < AGGREGATE_BATCH && now_ns < self.last_ns + AGGREGATE_DELAY_NS)
        {
            return false;
        }
        if waiting > 0 || self.busy_ns == 0 {
            self.busy_ns = now_ns;
        }
        let before = thread_cpu_ns();
        let more = self.aggregate(AGGREGATE_SLICE);
        self.last_ns = now_ns;
        if !more {
            self.close(now_ns);
            self.give_back(now_ns);
        }
        let own = thread_cpu_ns().saturating_sub(before);
        self.hub.gauges().own_cpu_ns.add(own);
        more
    }

    /// In how many ns the present second is to be closed: a core without operations need not call
    /// [`Self::idle`] before.
    pub fn rest_ns(&self, now_ns: u64) -> u64 {
        self.close_ns.saturating_sub(now_ns)
    }

    /// Whether the clock was set back: the present second would not be closed until it catches up.
    fn is_set_back(&self, now_ns: u64) -> bool {
        now_ns + (CLOCK_SET_S + 1) * NS_PER_S < self.close_ns
    }

    /// Gives the memory of the records back when none came for long; all are aggregated.
    fn give_back(&self, now_ns: u64) {
        let ring = &self.shared().ring;
        let rests = u128::from(now_ns.saturating_sub(self.busy_ns)) >= RECORDER_IDLE.as_nanos();
        if rests && ring.has_records() {
            ring.give_back(now_ns);
        }
    }

    fn aggregate(&mut self, slice: u64) -> bool {
        let hub = self.hub.clone();
        let ring = &hub.cores[self.core].ring;
        let (head, oldest) = (ring.head(), ring.oldest());
        let mut dropped = oldest.saturating_sub(self.tail);
        if dropped > 0 {
            hub.gauges().dropped.add(dropped);
        }
        self.tail = self.tail.max(oldest);
        let end = head.min(self.tail + slice);
        while self.tail < end {
            let record = ring.read_own(self.tail);
            let open = self.open_for(record.done_ns);
            open.dropped += std::mem::take(&mut dropped);
            open.add(&record);
            self.tail += 1;
        }
        self.shared().set_tail(self.tail);
        self.tail < head
    }

    /// The tables of the second that `done_ns` lies in.
    #[inline]
    fn open_for(&mut self, done_ns: u64) -> &mut Aggregate {
        let start = self.open[0].second * NS_PER_S;
        if self.used[0] && done_ns.wrapping_sub(start) < NS_PER_S {
            return &mut self.open[0];
        }
        self.open_other(done_ns / NS_PER_S)
    }

    #[cold]
    fn open_other(&mut self, second: u64) -> &mut Aggregate {
        let before_open = self.used[1] && second < self.open[1].second;
        if second < self.closed || before_open {
            self.hub.gauges().late.add(1);
        }
        let second = second.max(self.closed);
        if self.used[0] && second < self.open[0].second {
            if self.used[1] && self.open[1].second < second {
                self.publish(1);
            }
            if !self.used[1] {
                self.open[1].second = second;
                self.used[1] = true;
            }
            return &mut self.open[1];
        }
        if !self.used[0] || second > self.open[0].second {
            if self.used[0] {
                self.publish(1);
                self.open.swap(0, 1);
                self.used[1] = true;
            }
            self.open[0].second = second;
            self.used[0] = true;
            self.close_ns = self.close_ns.min((second + 1) * NS_PER_S + SECOND_GRACE_NS);
        }
        &mut self.open[0]
    }

    /// Hands over what is finished. The ring is drained: nothing older can come.
    fn close(&mut self, now_ns: u64) {
        let upto = now_ns.saturating_sub(SECOND_GRACE_NS) / NS_PER_S;
        let set_back = upto + CLOCK_SET_S < self.closed;
        if set_back {
            self.discard(now_ns);
        }
        for n in [1, 0] {
            if self.open[n].second < upto {
                self.publish(n);
            }
        }
        if set_back || upto > self.closed {
            self.closed = upto;
            self.shared().set_closed(upto);
        }
        self.close_ns = (self.closed + 1) * NS_PER_S + SECOND_GRACE_NS;
    }

    /// Drops the open seconds: their numbers come again, and would have their operations then.
    fn discard(&mut self, now_ns: u64) {
        for n in [1, 0] {
            if std::mem::take(&mut self.used[n]) {
                let lost = self.open[n].take(0).operations();
                self.hub.gauges().dropped.add(lost);
            }
        }
        self.hub.set_back(self.core, self.tail, now_ns);
    }

    fn publish(&mut self, n: usize) {
        if std::mem::take(&mut self.used[n]) {
            let finished = self.open[n].take(0);
            self.hub.gauges().folded.add(finished.folded);
            let lost = self.shared().publish(finished);
            self.hub.gauges().dropped.add(lost);
        }
    }
}

impl Drop for CoreProbe {
    /// What was not aggregated yet is, so that a drained server has counted everything.
    fn drop(&mut self) {
        while self.aggregate(AGGREGATE_SLICE) {}
        self.publish(1);
        self.publish(0);
        self.shared().release();
    }
}

/// CPU time of this thread in ns.
pub fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec into a local one.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * NS_PER_S + time.tv_nsec as u64
}

#[cfg(test)]
mod tests;
