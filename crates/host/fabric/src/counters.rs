//! The counters of the linked ports of a fabric, and what happened between two readings.
//!
//! Data is counted in words of 4 bytes. Counters of 64 bits are used where a node has them; those
//! of 32 bits may wrap between two readings. Counters of errors stop at their maximum.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::time::Duration;

use crate::attribute::{
    self, CLASS_PORT_INFO, Errors, ExtendedCounters, PORT_COUNTERS, PORT_COUNTERS_EXTENDED,
    PortCounters, PortInfo, port_select,
};
use crate::exchange::{Exchange, Query, QueryError, Work};
use crate::transport::{Target, Transport};
use crate::walk::{Fabric, PORTS_MAX, PortId};

/// Bytes of a word of data.
const WORD: u64 = 4;
/// Longest reading: as long as the interval between two.
pub const READING_MAX: Duration = Duration::from_secs(10);

/// The counters of a port at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reading {
    /// When, on the transport's clock.
    pub at: Duration,
    /// Words received and transmitted.
    pub words: [u64; 2],
    /// Packets received and transmitted.
    pub packets: [u64; 2],
    /// Whether both are of 64 bits.
    pub wide: bool,
    /// Errors.
    pub errors: Errors,
    /// Ticks in which data waited.
    pub wait: u32,
}

/// Sums of a port since it was first read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Bytes received and transmitted.
    pub bytes: [u64; 2],
    /// Packets received and transmitted.
    pub packets: [u64; 2],
    /// Errors since then.
    pub errors: [u64; attribute::ERRORS.len()],
    /// Ticks in which data waited.
    pub wait: u64,
}

/// What happened at a port in an interval, per second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    /// Bytes received and transmitted.
    pub bytes: [f64; 2],
    /// Packets received and transmitted.
    pub packets: [f64; 2],
    /// Errors.
    pub errors: [f64; attribute::ERRORS.len()],
    /// Ticks in which data waited.
    pub wait: f64,
}

/// A port that is or was counted.
#[derive(Debug, Clone, Default)]
pub struct Counted {
    /// The last reading.
    pub last: Option<Reading>,
    /// Why the last attempt to read it failed.
    pub lack: Option<QueryError>,
    /// Sums since the first reading.
    pub totals: Totals,
    /// The last interval; `None`: there were no two readings.
    pub rates: Option<Rates>,
    /// Errors in the last interval.
    pub errors: Errors,
}

/// The counters of all ports. Those of a port that is away are retained, so that it continues when
/// it is back.
#[derive(Debug, Clone, Default)]
pub struct Counters {
    /// By port.
    pub ports: BTreeMap<PortId, Counted>,
    /// Whether a node has counters of 64 bits; those without a reply are requested again.
    wide: BTreeMap<u64, bool>,
}

enum Tag {
    Class(u64),
    Narrow(PortId),
    Wide(PortId),
}

#[derive(Default)]
struct Pass {
    queue: VecDeque<(Tag, Query)>,
    class: BTreeMap<u64, bool>,
    narrow: BTreeMap<PortId, Result<PortCounters, QueryError>>,
    wide: BTreeMap<PortId, Result<ExtendedCounters, QueryError>>,
}

impl Pass {
    fn request(&mut self, tag: Tag, lid: u16, attribute: u16, port: u8) {
        let target = Target::Performance(lid);
        let data = port_select(port);
        self.queue.push_back((tag, Query { target, attribute, modifier: 0, data }));
    }
}

impl Work for Pass {
    type Tag = Tag;

    fn next(&mut self) -> Option<(Tag, Query)> {
        self.queue.pop_front()
    }

    fn end(&mut self, tag: Tag, result: Result<&[u8], QueryError>) {
        match tag {
            Tag::Class(guid) => {
                // A node that refuses has none; one that is silent is asked again.
                let wide = match result {
                    Ok(data) => attribute::has_extended(data),
                    Err(QueryError::Status(_)) => false,
                    Err(_) => return,
                };
                self.class.insert(guid, wide);
            }
            Tag::Narrow(id) => {
                self.narrow.insert(id, result.map(PortCounters::decode));
            }
            Tag::Wide(id) => {
                self.wide.insert(id, result.map(ExtendedCounters::decode));
            }
        }
    }
}

impl Counters {
    /// Reads the counters of all linked ports of a fabric that have a local identifier.
    ///
    /// # Errors
    /// The transport's.
    pub fn read<T: Transport>(
        &mut self,
        exchange: &mut Exchange<T>,
        fabric: &Fabric,
    ) -> io::Result<()> {
        let linked = fabric.ports.iter().filter(|(_, port)| port.is_linked());
        let linked: Vec<(PortId, u16)> =
            linked.filter_map(|(id, _)| Some((*id, fabric.lid(*id)?))).collect();
        let mut pass = Pass::default();
        let mut before = None;
        for ((guid, port), lid) in &linked {
            if !self.wide.contains_key(guid) && before != Some(*guid) {
                pass.request(Tag::Class(*guid), *lid, CLASS_PORT_INFO, *port);
            }
            before = Some(*guid);
        }
        exchange.run(&mut pass, READING_MAX)?;
        self.wide.append(&mut pass.class);
        self.wide.retain(|guid, _| fabric.nodes.contains_key(guid));
        for (id, lid) in &linked {
            pass.request(Tag::Narrow(*id), *lid, PORT_COUNTERS, id.1);
            if self.wide.get(&id.0) == Some(&true) {
                pass.request(Tag::Wide(*id), *lid, PORT_COUNTERS_EXTENDED, id.1);
            }
        }
        exchange.run(&mut pass, READING_MAX)?;
        let at = exchange.transport().now();
        self.ports.iter_mut().for_each(|(_, counted)| counted.rates = None);
        for (id, _) in linked {
            let info = fabric.ports.get(&id).and_then(|port| port.info());
            self.enter(id, info, reading(&mut pass, id, at));
        }
        Ok(())
    }

    fn enter(&mut self, id: PortId, info: Option<&PortInfo>, reading: Result<Reading, QueryError>) {
        if self.ports.len() >= PORTS_MAX && !self.ports.contains_key(&id) {
            return;
        }
        let counted = self.ports.entry(id).or_default();
        match reading {
            Ok(reading) => counted.enter(reading, info.map_or(0, PortInfo::bytes_per_second)),
            Err(lack) => counted.lack = Some(lack),
        }
    }
}

fn reading(pass: &mut Pass, id: PortId, at: Duration) -> Result<Reading, QueryError> {
    let narrow = pass.narrow.remove(&id).unwrap_or(Err(QueryError::Late))?;
    let PortCounters { errors, wait, .. } = narrow;
    Ok(match pass.wide.remove(&id).transpose()? {
        Some(ExtendedCounters { words, packets, .. }) => {
            Reading { at, words, packets, wide: true, errors, wait }
        }
        None => {
            let [words, packets] = [narrow.words, narrow.packets].map(|pair| pair.map(u64::from));
            Reading { at, words, packets, wide: false, errors, wait }
        }
    })
}

impl Counted {
    /// Enters a reading of a link that carries at most `bytes_per_second`.
    fn enter(&mut self, now: Reading, bytes_per_second: u64) {
        self.lack = None;
        let Some(last) = self.last.replace(now) else { return };
        let seconds = now.at.saturating_sub(last.at).as_secs_f64();
        if seconds <= 0.0 || last.wide != now.wide {
            return;
        }
        let words_max = (seconds.mul_add(1.25, 1.0) * bytes_per_second as f64 / WORD as f64) as u64;
        let mut rates = Rates::default();
        for way in 0..2 {
            let words = difference(last.words[way], now.words[way], now.wide, words_max);
            // A packet has at least 6 words.
            let packets = difference(last.packets[way], now.packets[way], now.wide, words_max);
            self.totals.bytes[way] = self.totals.bytes[way].saturating_add(words * WORD);
            self.totals.packets[way] = self.totals.packets[way].saturating_add(packets);
            rates.bytes[way] = (words * WORD) as f64 / seconds;
            rates.packets[way] = packets as f64 / seconds;
        }
        for (n, error) in now.errors.iter().enumerate() {
            // Lower than before: something else has set them to 0.
            let more = error.checked_sub(last.errors[n]).unwrap_or(*error);
            self.errors[n] = more;
            self.totals.errors[n] += u64::from(more);
            rates.errors[n] = f64::from(more) / seconds;
        }
        let wait = now.wait.checked_sub(last.wait).unwrap_or(now.wait);
        self.totals.wait += u64::from(wait);
        rates.wait = f64::from(wait) / seconds;
        self.rates = Some(rates);
    }
}

/// What a counter has counted between two readings. A narrow one that is lower than before has
/// wrapped if the link can have carried that much (`max`); otherwise it was set to 0.
fn difference(before: u64, after: u64, wide: bool, max: u64) -> u64 {
    if after >= before {
        return after - before;
    }
    let wrapped = (after + (1 << 32)).saturating_sub(before);
    if !wide && wrapped <= max { wrapped } else { after }
}

#[cfg(test)]
mod tests;
