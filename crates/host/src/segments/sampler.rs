//! Segments as statistics (`schema/tcp.toml`): the programs' counts, or the mean from the counters
//! of IP, and which of the two it is.

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv6Addr;
use std::sync::{Arc, OnceLock};

use base::buckets;
use probe::sample::{Sample, Sampler};

use super::fallback::Sent;
use super::{Count, Key, Observer, Tier, Unavailable, bpf};
use crate::Root;

/// Names of interfaces that are kept.
const NAMES_MAX: usize = 4096;
/// An interface that is gone.
const GONE: &str = "gone";

/// Programs, or why there are none; empty until they are loaded.
type Loaded = Arc<OnceLock<Result<Observer, Unavailable>>>;

/// Samples segments.
pub struct SegmentSampler {
    root: Root,
    loaded: Loaded,
    names: HashMap<u32, Interface>,
    last: Option<Reading>,
    /// Failures to read the counts are logged once.
    failed: bool,
}

/// An interface, by its name; what is on top of others counts nothing: segments are counted where
/// they leave.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Interface {
    name: String,
    is_upper: bool,
}

#[derive(Debug, Default)]
struct Reading {
    counts: HashMap<Key, Count>,
    duplicates: HashMap<Ipv6Addr, u64>,
    lost: [u64; 2],
    sent: Sent,
}

impl SegmentSampler {
    /// A sampler of the machine at `root`; programs are loaded when it begins.
    pub fn new(root: Root) -> Self {
        let (loaded, names) = (Arc::default(), HashMap::new());
        Self { root, loaded, names, last: None, failed: false }
    }

    /// Loads the programs on a thread of its own, which ends then: it takes longer than a reading.
    fn load(&self) {
        let (root, loaded) = (self.root.clone(), self.loaded.clone());
        let load = move || {
            let result = Observer::start(&root);
            match &result {
                Ok(_) => base::info!("segments", "TCP segments: {}", Tier::Programs),
                Err(why) => base::info!(
                    "segments",
                    "TCP segments: mean size only, from the counters of IP: {why}"
                ),
            }
            let _ = loaded.set(result);
        };
        if let Err(e) = std::thread::Builder::new().name("segments".into()).spawn(load) {
            base::warning!("segments", "TCP segments are not counted: {e}");
        }
    }

    fn read(&mut self) -> Reading {
        let sent = Sent::read(&self.root);
        let mut reading = Reading { sent, ..Reading::default() };
        let Some(Ok(observer)) = self.loaded.get() else { return reading };
        match (observer.counts(), observer.duplicates()) {
            (Ok(counts), Ok(duplicates)) => {
                reading.counts = counts;
                reading.duplicates = duplicates.into_iter().collect();
                reading.lost = observer.lost();
            }
            (Err(e), _) | (_, Err(e)) => {
                if !std::mem::replace(&mut self.failed, true) {
                    base::warning!("segments", "counts of TCP segments cannot be read: {e}");
                }
                // Nothing new, rather than everything since the start in the next second.
                if let Some(last) = &self.last {
                    reading.counts.clone_from(&last.counts);
                    reading.duplicates.clone_from(&last.duplicates);
                    reading.lost = last.lost;
                }
            }
        }
        self.learn_names(&reading);
        reading
    }

    /// Names of interfaces that are new.
    fn learn_names(&mut self, reading: &Reading) {
        for key in reading.counts.keys() {
            if self.names.contains_key(&key.interface) {
                continue;
            }
            if self.names.len() >= NAMES_MAX {
                self.names.clear();
            }
            let name = bpf::interface_name(key.interface).unwrap_or_else(|| GONE.to_owned());
            let links = self.root.list(&format!("sys/class/net/{name}"));
            let is_upper = links.iter().any(|link| link.starts_with("lower_"));
            self.names.insert(key.interface, Interface { name, is_upper });
        }
    }

    /// Takes what is old out of the maps when they fill.
    fn make_room(&self, reading: &mut Reading) {
        let Some(Ok(observer)) = self.loaded.get() else { return };
        let counts: Vec<(Key, Count)> = reading.counts.iter().map(|(k, c)| (*k, *c)).collect();
        let exists = |interface| bpf::interface_name(interface).is_some();
        if observer.make_room(&counts, exists) {
            reading.counts.retain(|key, _| exists(key.interface));
        }
        let known: Vec<(Ipv6Addr, u64)> =
            reading.duplicates.iter().map(|(a, n)| (*a, *n)).collect();
        if observer.forget_clients(&known) {
            reading.duplicates.clear();
        }
    }

    fn source(&self) -> Vec<Sample> {
        let text = match self.loaded.get() {
            None => return Vec::new(),
            Some(Ok(_)) => Tier::Programs.to_string(),
            Some(Err(why)) => format!("mean size only, from the counters of IP: {why}"),
        };
        let rows = vec![(text, String::new(), 1.0)];
        vec![Sample { stat: "tcp.segment_source", dimensions: ["tier", ""], total: 1.0, rows }]
    }

    /// What came between two readings is counted to the second of the later one, whenever that was
    /// read: sums over an interval are exact.
    fn rates(&self, last: &Reading, now: &Reading) -> Vec<Sample> {
        match self.loaded.get() {
            Some(Ok(_)) => {
                let mut new: BTreeMap<Key, Count> = BTreeMap::new();
                for (key, count) in &now.counts {
                    let upper = self.names.get(&key.interface).is_some_and(|i| i.is_upper);
                    let count = count.since(last.counts.get(key).copied().unwrap_or_default());
                    if !upper && count.segments > 0 {
                        new.insert(*key, count);
                    }
                }
                let lost = now.lost[0].saturating_sub(last.lost[0]);
                let name = |key: &Key| self.names.get(&key.interface).map_or(GONE, |i| &i.name);
                let mut samples = segments(&new, name, lost);
                samples.push(duplicates(last, now));
                samples
            }
            Some(Err(_)) => {
                let mean = now.sent.mean_since(last.sent);
                mean.map(|mean| Sample::raw("tcp.segment_mean", mean)).into_iter().collect()
            }
            None => Vec::new(),
        }
    }
}

impl Sampler for SegmentSampler {
    fn sample(&mut self, _now_ns: u64) -> Vec<Sample> {
        let mut now = self.read();
        let mut samples = self.source();
        if let Some(last) = &self.last {
            samples.extend(self.rates(last, &now));
        }
        self.make_room(&mut now);
        self.last = Some(now);
        samples
    }

    fn begin(&mut self, now_ns: u64) {
        self.load();
        self.sample(now_ns);
    }
}

/// What of a count is summed, and its means.
type Figure = fn(&Count) -> u64;
type Mean = fn(Count) -> Option<f64>;

/// Sums of counts by two names.
fn summed<'a>(
    new: &'a BTreeMap<Key, Count>,
    names: impl Fn(&'a Key) -> (String, String),
) -> BTreeMap<(String, String), Count> {
    let mut sums: BTreeMap<(String, String), Count> = BTreeMap::new();
    for (key, count) in new {
        let sum = sums.entry(names(key)).or_default();
        *sum = sum.plus(*count);
    }
    sums
}

/// All statistics of segments, of the new ones and of those that found no room.
fn segments<'a>(
    new: &'a BTreeMap<Key, Count>,
    name: impl Fn(&'a Key) -> &'a str,
    lost: u64,
) -> Vec<Sample> {
    let size = |key: &Key| buckets::low(usize::from(key.bucket)).to_string();
    let context = |key: &Key| key.context.name().to_owned();
    let device = |key: &'a Key| name(key).to_owned();
    let none = String::new;
    let all = new.values().fold(Count::default(), |all, one| all.plus(*one));
    let of = |figure: Figure, n: &Count| figure(n) as f64;
    let rate = |stat, dimensions, sums: BTreeMap<(String, String), Count>, figure, more: u64| {
        let rows = sums.into_iter().map(|((a, b), n)| (a, b, of(figure, &n))).collect();
        let total = of(figure, &all) + more as f64;
        Sample { stat, dimensions, total, rows }
    };
    let pieces: Figure = |n| n.segments;
    let bytes: Figure = |n| n.bytes;
    let by_context = || summed(new, |key| (context(key), none()));
    let by_device = || summed(new, |key| (device(key), none()));
    let both = || summed(new, |key| (device(key), context(key)));
    let sizes = summed(new, |key| (context(key), size(key)));
    let device_sizes = summed(new, |key| (device(key), size(key)));
    let mut samples = vec![
        rate("tcp.segments", ["context", "size"], sizes, pieces, lost),
        rate("tcp.segments", ["device", "size"], device_sizes, pieces, lost),
        rate("tcp.segments", ["device", "context"], both(), pieces, lost),
        rate("tcp.segment_bytes", ["device", "context"], both(), bytes, 0),
    ];
    let kinds: [Mean; 2] = [Count::mean, Count::mean_by_bytes];
    for (stat, figure) in ["tcp.segment_mean", "tcp.segment_mean_by_bytes"].into_iter().zip(kinds) {
        let Some(total) = figure(all) else { continue };
        for (dimension, sums) in [("context", by_context()), ("device", by_device())] {
            let rows =
                sums.into_iter().filter_map(|((a, b), n)| Some((a, b, figure(n)?))).collect();
            samples.push(Sample { stat, dimensions: [dimension, ""], total, rows });
        }
    }
    samples
}

fn duplicates(last: &Reading, now: &Reading) -> Sample {
    let mut rows = Vec::new();
    for (address, count) in &now.duplicates {
        let before = last.duplicates.get(address).copied().unwrap_or(0);
        let new = count.saturating_sub(before) as f64;
        if new > 0.0 {
            rows.push((address.to_canonical().to_string(), String::new(), new));
        }
    }
    let lost = now.lost[1].saturating_sub(last.lost[1]) as f64;
    let total = rows.iter().map(|(_, _, n)| n).sum::<f64>() + lost;
    Sample { stat: "tcp.duplicate_acks", dimensions: ["client", ""], total, rows }
}

#[cfg(test)]
mod tests;
