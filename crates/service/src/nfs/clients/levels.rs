//! What clients hold, as levels: read once a second on the collector's thread.
//!
//! The number of clients costs next to nothing. The state of each client requires a scan of the
//! whole table of locks; a scan that takes long is repeated less often, and the last figures are
//! shown meanwhile.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use base::clock::monotonic_ns;
use base::limits::STATE_TALLY_COST;
use probe::sample::{Sample, Sampler};
use vfs::locks::{ClientKey, Protocol, Tally};

use crate::nfs::{Nfs, Online};

/// By client address.
type ByClient = BTreeMap<String, Tally>;

/// Reads the state of NFS clients.
pub struct Levels {
    nfs: Arc<Nfs>,
    /// Recalls that were reported.
    recalls: u64,
    /// What clients of NFSv4 hold, and what hosts of NFSv3 hold.
    held: [ByClient; 2],
    /// When the table may be looked through again, on the keeper's clock.
    next_ns: u64,
}

impl Levels {
    /// The levels of the clients of this service.
    pub fn new(nfs: &Arc<Nfs>) -> Self {
        Self { nfs: nfs.clone(), recalls: 0, held: Default::default(), next_ns: 0 }
    }

    fn look(&mut self) {
        let begun = monotonic_ns();
        if begun < self.next_ns {
            return;
        }
        let up = self.nfs.online();
        let hosts = up.iter().flat_map(|up| up.nlm.hosts());
        let hosts: HashMap<u64, IpAddr> = hosts.map(|host| (host.id, host.address)).collect();
        let mut held = <[ByClient; 2]>::default();
        for (key, tally) in self.nfs.locks().tally() {
            let (held, address) = match key.protocol {
                Protocol::Nfs4 => (&mut held[0], up.as_ref().and_then(|up| latest(up, key))),
                Protocol::Nlm => (&mut held[1], hosts.get(&key.id).copied()),
                _ => continue,
            };
            let who = address.map_or_else(String::new, |address| address.to_string());
            add(held.entry(who).or_default(), tally);
        }
        self.held = held;
        let ended = monotonic_ns();
        self.next_ns = ended + ended.saturating_sub(begun) * u64::from(STATE_TALLY_COST);
    }
}

/// Recalls since those that were `reported`. Events, each reported once: the time between two
/// readings is never quite a second, and next to nothing when the collector was late.
fn recalled(reported: &mut u64, now: u64) -> Sample {
    let before = std::mem::replace(reported, now);
    Sample::raw("nfs4.recalls", now.saturating_sub(before) as f64)
}

impl Sampler for Levels {
    fn sample(&mut self, _now_ns: u64) -> Vec<Sample> {
        let up = self.nfs.online();
        let counts = up.map_or_else(Default::default, |up| up.clients.client_counts());
        let states = [("active", counts.active), ("courtesy", counts.courtesy)];
        let rows = states.map(|(state, n)| (state.to_owned(), String::new(), n as u64));
        let mut samples = vec![
            sample("nfs4.clients", ["state", ""], rows.into_iter()),
            Sample::raw("nfs4.sessions", counts.sessions as f64),
        ];
        self.look();
        let [nfs4, nlm] = &self.held;
        samples.extend([
            locks("nfs4.locks", nfs4),
            by_client("nfs4.opens", nfs4, |tally| tally.opens),
            by_client("nfs4.waiting", nfs4, |tally| tally.waiting),
            by_client("nfs4.delegations", nfs4, |tally| tally.leases),
            locks("nlm.locks", nlm),
            by_client("nlm.shares", nlm, |tally| tally.opens),
            by_client("nlm.waiting", nlm, |tally| tally.waiting),
        ]);
        samples.push(recalled(&mut self.recalls, self.nfs.locks().counts().recalls));
        samples
    }

    fn begin(&mut self, _now_ns: u64) {}
}

/// The latest address of a client of NFSv4, if it still exists.
fn latest(up: &Online, key: ClientKey) -> Option<IpAddr> {
    up.clients.client(key.id)?.addresses.first().copied()
}

fn by_client(stat: &'static str, held: &ByClient, of: fn(&Tally) -> u64) -> Sample {
    let rows = held.iter().map(|(who, tally)| (who.clone(), String::new(), of(tally)));
    sample(stat, ["client", ""], rows)
}

fn locks(stat: &'static str, held: &ByClient) -> Sample {
    let rows = held.iter().flat_map(|(who, tally)| {
        let kinds = [("read", tally.read_locks), ("write", tally.write_locks)];
        kinds.map(|(kind, n)| (who.clone(), kind.to_owned(), n))
    });
    sample(stat, ["client", "kind"], rows)
}

/// Several clients may be behind one address.
fn add(sum: &mut Tally, more: Tally) {
    sum.opens += more.opens;
    sum.read_locks += more.read_locks;
    sum.write_locks += more.write_locks;
    sum.waiting += more.waiting;
    sum.leases += more.leases;
}

/// A level with its rows, but for those that are nothing.
fn sample(
    stat: &'static str,
    dimensions: [&'static str; 2],
    rows: impl Iterator<Item = (String, String, u64)>,
) -> Sample {
    let rows: Vec<_> = rows.filter(|row| row.2 > 0).map(|(a, b, n)| (a, b, n as f64)).collect();
    let total = rows.iter().map(|row| row.2).sum();
    Sample { stat, dimensions, total, rows }
}

#[cfg(test)]
mod tests;
