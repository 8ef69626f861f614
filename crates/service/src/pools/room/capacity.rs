//! Statistics of pools: their space and that of the shares on them, and what scrubs read, as
//! `schema/capacity.toml` and `schema/pool.toml` declare them. The thread of pools reads the state;
//! the collector, which waits for nothing, takes what was read last.

use std::collections::BTreeMap;
use std::sync::Arc;

use host_pools::btrfs::Scrubbed;
use host_pools::request::PoolStatus;
use parking_lot::Mutex;
use probe::sample::{Sample, Sampler};

use super::PoolRoom;

/// What scrubs of a pool have done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Amount {
    bytes: u64,
    errors: u64,
}

/// The state that was read last.
#[derive(Default)]
pub(super) struct Read {
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    pools: Vec<PoolStatus>,
    /// By the name of the pool, since the sample before: sums over an interval are exact however
    /// many readings a second has.
    scrubbed: BTreeMap<String, Amount>,
}

fn errors(scrubbed: &Scrubbed) -> u64 {
    scrubbed.wrong.saturating_add(scrubbed.read_errors)
}

/// What is not mounted has no space.
fn is_mounted(pool: &PoolStatus) -> bool {
    pool.capacity > 0
}

impl Read {
    /// Enters a state that was read now. Whether a pool is mounted that was not in the one before.
    #[must_use]
    pub(super) fn enter(&self, pools: Vec<PoolStatus>) -> bool {
        let mut last = self.last.lock();
        let Last { pools: known, scrubbed } = &mut *last;
        let was_mounted =
            |pool: &PoolStatus| known.iter().any(|one| one.uuid == pool.uuid && is_mounted(one));
        let is_new = pools.iter().any(|pool| is_mounted(pool) && !was_mounted(pool));
        for pool in &pools {
            // What was done before the first reading is in no second.
            let Some(before) = known.iter().find(|one| one.uuid == pool.uuid) else { continue };
            let since = |of: fn(&Scrubbed) -> u64| {
                let (now, before) = (of(&pool.scrubbed), of(&before.scrubbed));
                // A helper that was started again counts from zero.
                now.checked_sub(before).unwrap_or(now)
            };
            let sum = scrubbed.entry(pool.name.clone()).or_default();
            sum.bytes = sum.bytes.saturating_add(since(|one| one.bytes));
            sum.errors = sum.errors.saturating_add(since(errors));
        }
        last.pools = pools;
        is_new
    }

    fn sample(&self) -> Vec<Sample> {
        let mut last = self.last.lock();
        let scrubbed = std::mem::take(&mut last.scrubbed);
        let pools: Vec<&PoolStatus> = last.pools.iter().filter(|one| is_mounted(one)).collect();
        if pools.is_empty() { Vec::new() } else { samples(&pools, &scrubbed) }
    }
}

/// Samples the pools.
pub struct PoolSampler(pub Arc<PoolRoom>);

impl Sampler for PoolSampler {
    fn sample(&mut self, _now_ns: u64) -> Vec<Sample> {
        self.0.read.sample()
    }
}

/// Space of a pool by its use: all of it.
fn uses(pool: &PoolStatus) -> [(&'static str, u64); 4] {
    let snapshots = pool.used_snapshots.unwrap_or(0).min(pool.used_data);
    [
        ("data", pool.used_data - snapshots),
        ("snapshots", snapshots),
        ("metadata", pool.used.saturating_sub(pool.used_data)),
        ("free", pool.available),
    ]
}

fn percent(used: u64, available: u64) -> f64 {
    let all = used.saturating_add(available);
    if all == 0 { 0.0 } else { used as f64 * 100.0 / all as f64 }
}

fn samples(pools: &[&PoolStatus], scrubbed: &BTreeMap<String, Amount>) -> Vec<Sample> {
    let plain = |name: &str, value: f64| (name.to_owned(), String::new(), value);
    let bytes = pools.iter().flat_map(|pool| {
        let uses = uses(pool).into_iter();
        uses.map(move |(way, bytes)| (pool.name.clone(), way.to_owned(), bytes as f64))
    });
    let used = pools.iter().map(|pool| plain(&pool.name, pool.used as f64));
    let shares = pools.iter().flat_map(|pool| {
        let usage = pool.usage.iter();
        usage.map(move |one| (pool.name.clone(), one.share.clone(), one.used as f64))
    });
    let amounts = |of: fn(&Amount) -> u64| {
        let rows = scrubbed.iter().map(move |(name, amount)| plain(name, of(amount) as f64));
        rows.filter(|(.., value)| *value > 0.0).collect()
    };
    let all = |of: fn(&PoolStatus) -> u64| pools.iter().map(|pool| of(pool)).sum::<u64>();
    let percents = pools.iter().map(|pool| plain(&pool.name, percent(pool.used, pool.available)));
    let percents = Sample {
        stat: "capacity.percent",
        dimensions: ["pool", ""],
        // Of all pools together: percents have no sum.
        total: percent(all(|pool| pool.used), all(|pool| pool.available)),
        rows: percents.collect(),
    };
    vec![
        summed("capacity.bytes", ["pool", "use"], bytes.collect()),
        summed("capacity.used", ["pool", ""], used.collect()),
        percents,
        summed("capacity.shares", ["pool", "share"], shares.collect()),
        summed("pool.scrub", ["pool", ""], amounts(|amount| amount.bytes)),
        summed("pool.scrub_errors", ["pool", ""], amounts(|amount| amount.errors)),
    ]
}

fn summed(
    stat: &'static str,
    dimensions: [&'static str; 2],
    rows: Vec<(String, String, f64)>,
) -> Sample {
    let total = rows.iter().map(|(.., value)| value).sum();
    Sample { stat, dimensions, total, rows }
}

#[cfg(test)]
mod tests;
