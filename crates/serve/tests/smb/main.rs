//! SMB against the real server in this process, over shares in memory.

#![allow(clippy::unwrap_used, clippy::expect_used)]
// The contract's own failures, passed on.
#![allow(clippy::result_large_err)]

#[path = "../files/planted.rs"]
mod planted;
#[path = "../files/scene.rs"]
mod scene;

mod allocations;
mod bounds;
mod durable;
mod ends;
#[cfg(debug_assertions)]
mod headers;
mod held;
mod instances;
mod leases;
mod links;
mod panics;
mod persistent;
mod reads;
mod renames;
mod running;
mod scans;
mod searches;
mod stays;
mod waits;
