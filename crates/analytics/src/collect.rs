//! Each second: the cores' counts, the machine's samples and the server's gauges become one frame,
//! which goes to the store and to live subscribers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use base::buckets;
use base::clock::{self, Clock, NS_PER_S, SystemClock};
use base::limits::{COLLECT_AFTER_NS, COLLECT_WAIT_NS};
use probe::core::{CLOCK_SET_S, thread_cpu_ns};
use probe::hub::Hub;
use probe::op::Protocol;
use probe::sample::{Sample, Sampler};
use probe::schema::{Kind, schema};
use probe::second::CoreSecond;

use crate::model::{Frame, Key, Rows, Table, of_sample, rows_max};
use crate::names::{Dimension, Names};
use crate::query::Engine;

mod operations;

/// How often the collector looks whether the cores are done, once a second is over.
const POLL: Duration = Duration::from_millis(20);

/// Makes frames; the pure part of the collector.
pub struct Assembler {
    hub: Arc<Hub>,
    names: Arc<Names>,
    /// The gauges' readings of the second before, for rates.
    last: Vec<(u64, u64)>,
}

impl Assembler {
    /// An assembler for what `hub` measures.
    pub fn new(hub: Arc<Hub>, names: Arc<Names>) -> Self {
        Self { hub, names, last: Vec::new() }
    }

    /// The frame of `second` from all cores' counts (of any seconds: what is not of this one is
    /// counted as dropped) and from samples.
    pub fn frame(&mut self, second: u64, cores: &[CoreSecond], samples: &[Sample]) -> Frame {
        self.names.refresh();
        let mut frame = Frame { time: second, span: 1, covered: 1, ..Frame::default() };
        let (now, stale): (Vec<&CoreSecond>, Vec<&CoreSecond>) =
            cores.iter().partition(|c| c.second == second);
        let lost: u64 = stale.iter().map(|second| second.operations()).sum();
        self.hub.gauges().dropped.add(lost);
        frame.dropped = lost + now.iter().map(|c| c.dropped).sum::<u64>();
        frame.tables = operations::tables(&now, &self.names);
        frame.tables.extend(samples.iter().map(|sample| self.sample_table(sample)));
        frame.tables.extend(self.gauges());
        frame.tables.iter_mut().for_each(|table| table.trim(rows_max(table)));
        // It stays in memory for minutes.
        frame.tables.shrink_to_fit();
        frame
    }

    fn gauges(&mut self) -> Vec<Table> {
        self.hub.gauges().waiting.set(self.hub.waiting());
        self.hub.gauges().waiting.set_limit(self.hub.waiting_max());
        let mut tables = Vec::new();
        let mut readings = Vec::new();
        for (n, (id, gauge)) in self.hub.gauges().iter().enumerate() {
            let value = gauge.get();
            readings.push((n as u64, value));
            let (group, metric) = id.split_once('.').unwrap_or((id, ""));
            let kind = schema().statistic(group, metric).map(|s| s.kind);
            // Counters began at nothing with this process, as this did: what came before its first
            // reading belongs to that.
            let before = self.last.get(n).map_or(0, |(_, before)| *before);
            let shown = match kind {
                Some(Kind::Gauge) => value,
                _ => value.saturating_sub(before),
            };
            tables.push(self.sample_table(&Sample { stat: id, ..Sample::raw("", shown as f64) }));
        }
        self.last = readings;
        tables
    }
}

/// The bucket that an element of a range falls into.
fn bucket(number: &str) -> Key {
    let bucket = number.parse().ok().and_then(|n| u8::try_from(buckets::index(n)).ok());
    bucket.map_or(Key::Other, Key::Bucket)
}

/// Whether the elements of a sample's dimension are clients, by address.
const CLIENT: &str = "client";

impl Assembler {
    fn sample_table(&self, sample: &Sample) -> Table {
        let key = |dimension: &str, name: &str| match name.parse() {
            _ if name.is_empty() => Key::Other,
            _ if schema().is_range(dimension) => bucket(name),
            // With the label that it has among operations.
            Ok(address) if dimension == CLIENT => {
                let number = u64::from(self.hub.clients().intern(address));
                // Clients have the same names in all protocols.
                self.names.key(Protocol::ALL[0], Dimension::Client, Some(number))
            }
            _ => Key::Name(self.names.plain(name)),
        };
        let [first, second] = sample.dimensions;
        let mut rows = Rows::default();
        for (a, b, value) in &sample.rows {
            rows.add(key(first, a), key(second, b), of_sample(*value));
        }
        let dimensions = sample.dimensions.map(|id| self.names.text(id));
        let stat = self.names.text(sample.stat);
        let mut table = Table::from_rows(stat, dimensions, rows, [0; 2]);
        table.total = of_sample(sample.total);
        table
    }
}

/// The running collector; [`Collector::stop`] ends it.
pub struct Collector {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Collector {
    /// Starts collecting into `engine`, on a thread of its own.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(engine: Arc<Engine>, samplers: Vec<Box<dyn Sampler>>) -> std::io::Result<Self> {
        Self::start_with(engine, samplers, Arc::new(SystemClock))
    }

    /// As [`Self::start`], with the seconds of `clock`.
    fn start_with(
        engine: Arc<Engine>,
        samplers: Vec<Box<dyn Sampler>>,
        clock: Arc<dyn Clock>,
    ) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let run = Run {
            assembler: Assembler::new(engine.hub().clone(), engine.names().clone()),
            samplers,
            stop: stop.clone(),
            engine,
            clock,
        };
        let thread = std::thread::Builder::new().name("collector".into()).spawn(|| run.run())?;
        Ok(Self { stop, thread })
    }

    /// Ends it after the seconds that the cores have finished; closes the store.
    pub fn stop(self) {
        self.stop.store(true, Ordering::Release);
        self.thread.thread().unpark();
        // Its panic was reported by the hook; there is nothing left to stop.
        drop(self.thread.join());
    }
}

struct Run {
    engine: Arc<Engine>,
    assembler: Assembler,
    samplers: Vec<Box<dyn Sampler>>,
    stop: Arc<AtomicBool>,
    clock: Arc<dyn Clock>,
}

/// Why a wait for a second has ended.
enum Waited {
    /// All cores have closed it.
    Closed,
    /// One has not in good time.
    TooLong,
    /// The clock was set back: it is another second now.
    SetBack,
    /// The collector is to end.
    Stopped,
}

impl Run {
    fn run(mut self) {
        let mut second = self.present();
        // So that the first frame has rates. The gauges are not read here: what a counter has by
        // now would be in no frame.
        let now = self.clock.wall_ns();
        self.samplers.iter_mut().for_each(|s| s.begin(now));
        while !self.stop.load(Ordering::Acquire) {
            match self.wait_for(second) {
                Waited::Closed => {}
                Waited::TooLong => self.engine.hub().gauges().missed_seconds.add(1),
                Waited::SetBack => {
                    second = self.set_back(second);
                    continue;
                }
                Waited::Stopped => break,
            }
            self.collect(second);
            second = next(second, self.present());
        }
        // The rest of what the cores have finished, up to the present second.
        while second <= self.present() {
            self.collect(second);
            second += 1;
        }
        self.engine.close();
    }

    /// Seconds since the epoch.
    fn present(&self) -> u64 {
        self.clock.wall_ns() / NS_PER_S
    }

    /// Waits until the cores have closed `second`.
    fn wait_for(&self, second: u64) -> Waited {
        let end = (second + 1) * NS_PER_S;
        loop {
            let now = self.clock.wall_ns();
            if self.stop.load(Ordering::Acquire) {
                return Waited::Stopped;
            }
            if is_set_back(second, now / NS_PER_S) {
                return Waited::SetBack;
            }
            if now >= end + COLLECT_AFTER_NS && self.engine.hub().closed() > second {
                return Waited::Closed;
            }
            // Not by the clock alone: of a collector that was late, no core may be missing.
            if now > end + COLLECT_WAIT_NS {
                return Waited::TooLong;
            }
            let early = Duration::from_nanos((end + COLLECT_AFTER_NS).saturating_sub(now));
            std::thread::park_timeout(early.max(POLL));
        }
    }

    /// Follows a clock that was set back while `second` was waited for; returns the present second.
    fn set_back(&self, second: u64) -> u64 {
        // Cores see the time of their stamps.
        clock::discipline();
        let present = self.present();
        base::warning!("analytics", "the clock was set back by {} s", second - present.min(second));
        // Their numbers come again, and belong to other operations then.
        let lost = self.engine.hub().take_before(u64::MAX);
        let lost: u64 = lost.iter().map(|second| second.operations()).sum();
        self.engine.hub().gauges().dropped.add(lost);
        present
    }

    fn collect(&mut self, second: u64) {
        let before = thread_cpu_ns();
        clock::discipline();
        let cores = self.engine.hub().take_before(second + 1);
        let samples = self.samples();
        let frame = self.assembler.frame(second, &cores, &samples);
        self.engine.push(frame);
        self.engine.hub().prepare();
        let own = thread_cpu_ns().saturating_sub(before);
        self.engine.hub().gauges().own_cpu_ns.add(own);
    }

    fn samples(&mut self) -> Vec<Sample> {
        let now = self.clock.wall_ns();
        self.samplers.iter_mut().flat_map(|s| s.sample(now)).collect()
    }
}

/// Seconds that the collector makes up for; beyond, the clock was set or the machine slept.
const BEHIND_MAX: u64 = 10;

/// The second after `second`; the present one when the clock was set or the machine slept.
fn next(second: u64, now: u64) -> u64 {
    let next = second + 1;
    if now > next + BEHIND_MAX || is_set_back(next, now) { now } else { next }
}

/// Whether the clock is so far before `second` that it was set: as cores see it. Less is waited
/// for, so that no second comes twice.
fn is_set_back(second: u64, now: u64) -> bool {
    now + CLOCK_SET_S < second
}

#[cfg(test)]
mod tests;
