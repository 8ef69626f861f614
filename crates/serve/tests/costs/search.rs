//! A seeded search for the request that costs the server most.

use std::time::Duration;

use base::random::SeededRandom;

use super::clock;

/// Processor time that a request may cost: 250 ms, and four times that in a build for tests, which
/// is hardly optimised and may run on a slower machine. A cost without a limit is far above both.
pub const MOST: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1000 } else { 250 });

/// How often the worst one is tried again: what a measure has in addition to the request, such as
/// the first use of something, it has not each time.
const TRIES: usize = 3;

/// Candidates of the gate.
const CANDIDATES: usize = 5_000;

/// Bytes of a listing over FTP that may cost as much as a request: it is a stream, which the client
/// receives as it is read and ends at will.
const STREAMED: usize = 4 << 20;

/// What a request may cost; the description of a listing over FTP ends with its bytes.
fn most(protocol: &str, text: &str) -> Duration {
    let listed = text.strip_suffix(" bytes").filter(|_| protocol == "ftp");
    let bytes: usize = listed.and_then(|text| text.rsplit(' ').next()?.parse().ok()).unwrap_or(0);
    MOST * (1 + bytes / STREAMED) as u32
}

/// A number of the environment.
pub fn number(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}

/// The search in one protocol: `PLIMSOLL_COSTS_CANDIDATES` sets the number of candidates,
/// `PLIMSOLL_COSTS_SEED` the first seed.
pub struct Search {
    protocol: &'static str,
    seeds: std::ops::Range<u64>,
    all: Duration,
    /// The worst so far: cost, seed, the request in words.
    worst: Vec<(Duration, u64, String)>,
}

impl Search {
    pub fn new(protocol: &'static str) -> Self {
        Self::of(protocol, CANDIDATES)
    }

    /// With this number of candidates where the environment has none.
    fn of(protocol: &'static str, candidates: usize) -> Self {
        let count = number("PLIMSOLL_COSTS_CANDIDATES").unwrap_or(candidates) as u64;
        let first = number("PLIMSOLL_COSTS_SEED").unwrap_or(1) as u64;
        let seeds = first..first + count;
        Self { protocol, seeds, all: Duration::ZERO, worst: Vec::new() }
    }

    /// The seeds of the candidates.
    pub fn seeds(&self) -> std::ops::Range<u64> {
        self.seeds.clone()
    }

    /// What a candidate has cost.
    pub fn note(&mut self, seed: u64, cost: Duration, text: String) {
        self.all += cost;
        self.worst.push((cost, seed, text));
        if self.worst.len() > 64 {
            self.keep();
        }
    }

    fn keep(&mut self) {
        self.worst.sort_by_key(|one| std::cmp::Reverse(one.0));
        self.worst.truncate(5);
    }

    /// Those that cost too much, each as often as it is to be tried again.
    pub fn again(&mut self) -> Vec<u64> {
        self.keep();
        let over = self.worst.iter().filter(|one| one.0 > most(self.protocol, &one.2));
        over.flat_map(|one| [one.1; TRIES]).collect()
    }

    /// What one of them has cost now: the least counts, as far as it had the same result.
    pub fn note_again(&mut self, seed: u64, cost: Duration, text: &str) {
        if let Some(one) = self.worst.iter_mut().find(|one| one.1 == seed && one.2 == text) {
            one.0 = one.0.min(cost);
        }
    }

    /// The worst must not cost more than [`MOST`].
    pub fn end(self) {
        let Self { protocol, seeds, all, worst } = self;
        println!("{protocol}: {} candidates, {all:?} in all", seeds.end - seeds.start);
        for (cost, seed, text) in &worst {
            let end = text.char_indices().nth(200).map_or(text.len(), |(at, _)| at);
            println!("{protocol}: seed {seed} {cost:?} {}", &text[..end]);
        }
        for (cost, seed, text) in worst {
            assert!(cost <= most(protocol, &text), "{protocol}, seed {seed}: {cost:?} for {text}");
        }
    }
}

/// Asks all candidates of a protocol: `ask` sends the request that a seed makes, waits until it is
/// answered, and gives it in words.
pub fn worst(protocol: &'static str, ask: impl FnMut(&mut SeededRandom) -> String) {
    worst_of((protocol, CANDIDATES), ask);
}

/// The same of this number of candidates where the environment has none.
pub fn worst_of(
    (protocol, candidates): (&'static str, usize),
    mut ask: impl FnMut(&mut SeededRandom) -> String,
) {
    let mut search = Search::of(protocol, candidates);
    let mut ask = |seed| clock::of(|| ask(&mut SeededRandom::new(seed)));
    for seed in search.seeds() {
        let (cost, text) = ask(seed);
        search.note(seed, cost, text);
    }
    for seed in search.again() {
        let (cost, text) = ask(seed);
        search.note_again(seed, cost, &text);
    }
    search.end();
}
