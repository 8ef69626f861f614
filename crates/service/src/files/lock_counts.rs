//! How many locks of WebDAV there are, for statistics.

use std::collections::BTreeMap;

use probe::sample::Sample;
use serve::http::dav::locks::Locks;
use serve::http::dav::state::Lock;

/// How many there are, by their clients and kinds.
pub fn level(locks: &Locks) -> Sample {
    let mut rows = BTreeMap::<(String, &str), f64>::new();
    for lock in locks.all() {
        *rows.entry((lock.client.clone(), scope(&lock))).or_default() += 1.0;
    }
    let total = rows.values().sum();
    let rows = rows.into_iter().map(|((client, kind), n)| (client, kind.to_owned(), n)).collect();
    Sample { stat: "http.locks", dimensions: ["client", "kind"], total, rows }
}

/// How much a lock shuts out.
pub fn scope(lock: &Lock) -> &'static str {
    if lock.exclusive { "exclusive" } else { "shared" }
}
