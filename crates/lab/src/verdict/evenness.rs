//! How evenly clients were served: least to mean, Jain's index, and the clients that stand out.

use super::stats::median;
use serde::{Deserialize, Serialize};

/// A client is uneven when its rate differs by this share from the median of the others, ...
pub const UNEVEN: f64 = 0.30;
/// ... and by this many times what is ordinary among them, ...
const TIMES_ORDINARY: f64 = 5.0;
/// ... or by this share, however much the others vary: two or three say little about that.
const UNEVEN_ANYWAY: f64 = 0.40;
/// What is ordinary at least: neighbouring clients of an even run differ by this share.
const ORDINARY_MIN: f64 = 0.05;
/// Median absolute deviation to standard deviation, of a normal distribution.
const DEVIATION: f64 = 1.4826;

/// What a client did in the counted time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ClientShare {
    /// Its number.
    pub number: u32,
    /// Operations, or bytes.
    pub done: f64,
    /// Address that it connects from, if it is bound to one.
    pub source: Option<String>,
    /// Interface that it leaves by, if that was observed.
    pub interface: Option<String>,
}

/// A client that stands out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Uneven {
    /// Its number.
    pub client: u32,
    /// Its rate ÷ the median of the others.
    pub to_others: f64,
    /// For people, with address and interface.
    pub sentence: String,
}

/// The evenness of a step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Evenness {
    /// Least ÷ mean; 1 when all did the same.
    pub min_over_mean: f64,
    /// Jain's index: (Σx)² ÷ (n·Σx²); 1 when all did the same, 1/n when one did everything.
    pub jain: f64,
    /// Clients that stand out: the slow ones; only where none is slow, the fast ones.
    pub uneven: Vec<Uneven>,
}

/// Judges clients of equal threads. `None` with fewer than two, or when nothing was done.
pub fn judge(clients: &[ClientShare]) -> Option<Evenness> {
    let n = clients.len() as f64;
    let sum = clients.iter().map(|c| c.done).sum::<f64>();
    if clients.len() < 2 || sum <= 0.0 {
        return None;
    }
    let least = clients.iter().map(|c| c.done).fold(f64::INFINITY, f64::min);
    let squares = clients.iter().map(|c| c.done * c.done).sum::<f64>();
    let all: Vec<(usize, f64)> =
        (0..clients.len()).filter_map(|i| Some((i, to_others(clients, i)?))).collect();
    let slow: Vec<_> = all.iter().filter(|(_, ratio)| *ratio < 1.0).collect();
    // With two clients, one that is fast and the other that is slow are the same finding.
    let fast: Vec<_> = all.iter().filter(|(_, ratio)| *ratio > 1.0 && clients.len() > 2).collect();
    let named = if slow.is_empty() { fast } else { slow };
    Some(Evenness {
        min_over_mean: least * n / sum,
        jain: sum * sum / (n * squares),
        uneven: named.into_iter().map(|(i, ratio)| uneven(&clients[*i], *ratio)).collect(),
    })
}

/// The rate of client `i` ÷ the median of the others, if it stands out among them.
fn to_others(clients: &[ClientShare], i: usize) -> Option<f64> {
    let others = clients.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, c)| c.done);
    let others: Vec<f64> = others.collect();
    let middle = median(&others);
    if middle <= 0.0 {
        return None;
    }
    let deviations: Vec<f64> = others.iter().map(|o| (o - middle).abs()).collect();
    let ordinary = (DEVIATION * median(&deviations) / middle).max(ORDINARY_MIN);
    let ratio = clients.get(i)?.done / middle;
    let away = (ratio - 1.0).abs();
    let enough = (TIMES_ORDINARY * ordinary).clamp(UNEVEN, UNEVEN_ANYWAY);
    (away >= enough).then_some(ratio)
}

fn uneven(client: &ClientShare, to_others: f64) -> Uneven {
    let from = client.source.as_ref().map_or(String::new(), |s| format!(" from {s}"));
    let by = client.interface.as_ref().map_or(String::new(), |i| format!(" over {i}"));
    let sentence = format!(
        "client {}{from}{by} reached {:.0} % of the others' median (uneven from {:.0} % on)",
        client.number,
        to_others * 100.0,
        if to_others < 1.0 { 100.0 * (1.0 - UNEVEN) } else { 100.0 * (1.0 + UNEVEN) },
    );
    Uneven { client: client.number, to_others, sentence }
}

#[cfg(test)]
mod tests;
