//! Exact tests of ranks: whether one of two things is larger, by how much, and how sure that is,
//! without an assumption on how the values are distributed.
//!
//! Pairs: the signed-rank test (Wilcoxon 1945) over the differences; independent groups: the
//! rank-sum test. The estimates are those of Hodges and Lehmann (1963): the median of the averages
//! of all pairs of differences, and of the differences of all pairs. Both treat ties as halves.

use super::stats::median;

/// An estimate of a difference with its interval and the probability of chance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// The difference.
    pub value: f64,
    /// Lower end of the interval; minus infinity where there are too few values for one.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Probability of such a difference, in either direction, if there is none.
    pub p: f64,
}

/// Of differences within pairs. `level` is the probability that the interval misses.
pub fn paired(differences: &[f64], level: f64) -> Option<Shift> {
    let n = differences.len();
    if n == 0 {
        return None;
    }
    // Averages of all pairs, each with itself included: as many above zero as the rank sum of the
    // positive differences.
    let averages = differences
        .iter()
        .enumerate()
        .flat_map(|(i, a)| differences.iter().skip(i).map(move |b| (a + b) / 2.0));
    Some(shift(averages.collect(), &signed_ranks(n), level))
}

/// Of two groups: how much larger `b` is than `a`.
pub fn grouped(a: &[f64], b: &[f64], level: f64) -> Option<Shift> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let differences = b.iter().flat_map(|b| a.iter().map(move |a| b - a));
    Some(shift(differences.collect(), &rank_sums(a.len(), b.len()), level))
}

/// From all `parts` of which the estimate is the median, and the distribution of how many are
/// above zero by chance.
fn shift(mut parts: Vec<f64>, chance: &[f64], level: f64) -> Shift {
    parts.sort_by(f64::total_cmp);
    let value = median(&parts);
    let above = parts.iter().filter(|p| **p > 0.0).count() as f64
        + parts.iter().filter(|p| **p == 0.0).count() as f64 / 2.0;
    let extreme = above.min(parts.len() as f64 - above).floor() as usize;
    let p = (2.0 * chance.iter().take(extreme + 1).sum::<f64>()).min(1.0);
    // As many parts may lie outside at either end as chance allows.
    let mut outside = 0.0;
    let skip = chance.iter().take_while(|c| {
        outside += **c;
        outside <= level / 2.0
    });
    let skip = skip.count();
    let end = |at: Option<usize>, none: f64| {
        if skip == 0 { none } else { at.and_then(|at| parts.get(at)).copied().unwrap_or(none) }
    };
    let low = end(skip.checked_sub(1), f64::NEG_INFINITY);
    let high = end(parts.len().checked_sub(skip), f64::INFINITY);
    Shift { value, low, high, p }
}

/// Probabilities of each rank sum of the positive ones among `n` signed ranks.
fn signed_ranks(n: usize) -> Vec<f64> {
    let mut chance = vec![1.0];
    for rank in 1..=n {
        let mut next = vec![0.0; chance.len() + rank];
        for (sum, p) in chance.iter().enumerate() {
            next[sum] += p / 2.0;
            next[sum + rank] += p / 2.0;
        }
        chance = next;
    }
    chance
}

/// Probabilities of each number of pairs in which the second of two groups is larger: the
/// coefficients of a Gaussian binomial.
fn rank_sums(a: usize, b: usize) -> Vec<f64> {
    let most = a * b;
    let mut ways = vec![0.0; most + 1];
    ways[0] = 1.0;
    for k in 1..=b {
        // Multiplied by 1 − q^(a + k), then divided by 1 − q^k; in this order it stays whole.
        for at in (a + k..=most).rev() {
            ways[at] -= ways[at - a - k];
        }
        for at in k..=most {
            ways[at] += ways[at - k];
        }
    }
    let all: f64 = ways.iter().sum();
    ways.iter().map(|w| w / all).collect()
}

/// Holm's correction (1979): for each p the one that holds after all of them were tested.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let (mut adjusted, mut least) = (vec![1.0; p.len()], 0.0f64);
    for (done, i) in order.iter().enumerate() {
        least = least.max((p.len() - done) as f64 * p[*i]).min(1.0);
        adjusted[*i] = least;
    }
    adjusted
}

/// The fewest pairs with which `rows` rows can differ at a level after Holm's correction.
pub fn pairs_min(rows: usize, level: f64) -> u32 {
    let most = level / rows.max(1) as f64;
    (1..64).find(|n| 0.5f64.powi(n - 1) <= most).unwrap_or(64).unsigned_abs()
}

#[cfg(test)]
mod tests;
