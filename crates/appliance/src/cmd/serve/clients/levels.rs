//! What clients hold, as levels: read once a second on the collector's thread.
//!
//! How many there are costs next to nothing. Who holds how much means a look through the whole
//! table of locks; one that takes long is taken less often, and the last figures stand meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::clock::NS_PER_S;
use base::limits::STATE_TALLY_COST;
use probe::sample::{Sample, Sampler};
use serve::nfs4::Stateful;
use vfs::locks::{ClientKey, Protocol, Tally};

/// Reads the state of NFSv4 clients.
pub struct Levels {
    nfs4: Arc<Stateful>,
    /// Recalls so far, and when they were read.
    recalls: Option<(u64, u64)>,
    /// By client address.
    held: BTreeMap<String, Tally>,
    /// When the table may be looked through again, on the keeper's clock.
    next_ns: u64,
}

impl Levels {
    /// The levels of these clients.
    pub fn new(nfs4: Arc<Stateful>) -> Self {
        Self { nfs4, recalls: None, held: BTreeMap::new(), next_ns: 0 }
    }

    fn look(&mut self) {
        let begun = self.nfs4.clock.monotonic_ns();
        if begun < self.next_ns {
            return;
        }
        self.held.clear();
        for (key, tally) in self.nfs4.state.locks.tally() {
            if key.protocol == Protocol::Nfs4 {
                add(self.held.entry(self.address(key)).or_default(), tally);
            }
        }
        let ended = self.nfs4.clock.monotonic_ns();
        self.next_ns = ended + ended.saturating_sub(begun) * u64::from(STATE_TALLY_COST);
    }

    /// Where a client spoke from last; nothing if it is gone.
    fn address(&self, key: ClientKey) -> String {
        let latest = self.nfs4.client(key.id).and_then(|c| c.addresses.first().copied());
        latest.map_or_else(String::new, |address| address.to_string())
    }

    fn by_client(&self, stat: &'static str, of: fn(&Tally) -> u64) -> Sample {
        let rows = self.held.iter().map(|(who, tally)| (who.clone(), String::new(), of(tally)));
        sample(stat, ["client", ""], rows)
    }

    fn recalls(&mut self, now_ns: u64) -> Option<Sample> {
        let recalls = self.nfs4.state.locks.counts().recalls;
        let (before, then_ns) = self.recalls.replace((recalls, now_ns))?;
        let seconds = now_ns.saturating_sub(then_ns) as f64 / NS_PER_S as f64;
        let rate = recalls.saturating_sub(before) as f64 / seconds;
        (seconds > 0.0).then(|| Sample::raw("nfs4.recalls", rate))
    }
}

impl Sampler for Levels {
    fn sample(&mut self, now_ns: u64) -> Vec<Sample> {
        let counts = self.nfs4.client_counts();
        let states = [("active", counts.active), ("courtesy", counts.courtesy)];
        let rows = states.map(|(state, n)| (state.to_owned(), String::new(), n as u64));
        let mut samples = vec![
            sample("nfs4.clients", ["state", ""], rows.into_iter()),
            Sample::raw("nfs4.sessions", counts.sessions as f64),
        ];
        self.look();
        let locks = self.held.iter().flat_map(|(who, tally)| {
            let kinds = [("read", tally.read_locks), ("write", tally.write_locks)];
            kinds.map(|(kind, n)| (who.clone(), kind.to_owned(), n))
        });
        samples.push(sample("nfs4.locks", ["client", "kind"], locks));
        samples.push(self.by_client("nfs4.opens", |tally| tally.opens));
        samples.push(self.by_client("nfs4.waiting", |tally| tally.waiting));
        samples.push(self.by_client("nfs4.delegations", |tally| tally.leases));
        samples.extend(self.recalls(now_ns));
        samples
    }
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
