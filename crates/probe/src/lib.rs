//! What is measured, and the cheapest way to record it.
//!
//! - [`op`]: one finished operation as a 64-byte record: client, user, operation, file, size,
//!   latency.
//! - [`phases`]: where the time of an operation went.
//! - [`ring`]: each core's ring of records; it is the flight recorder and feeds the aggregates.
//! - [`core`]: one core's end of it: [`core::CoreProbe::finish`] on the path, `idle` off it.
//! - [`cell`]: operations and bytes, counted together.
//! - [`second`]: what a core has counted in one second, bounded whatever the load.
//! - [`hub`]: where the cores meet the collector; one per process.
//! - [`names`]: small numbers for clients, users and shares, and the names that they stand for.
//! - [`labels`]: the protocols' own names for operations and status numbers.
//! - [`gauge`]: the server's own levels and counters, each with its limit.
//! - [`sample`]: what is read once a second instead: the machine's own counters.
//! - [`schema`]: the statistics declared in `schema/*.toml`: ids, sentences, units, breakdowns.
//! - [`stat`]: the grammar of statistic ids, `nfs3.ops[op=read][latency]`.
//!
//! The request path calls [`core::CoreProbe::finish`] once per operation and nothing else.

pub mod cell;
pub mod core;
mod files;
pub mod gauge;
pub mod hub;
pub mod labels;
pub mod names;
pub mod op;
pub mod phases;
pub mod ring;
pub mod sample;
pub mod schema;
pub mod second;
pub mod stat;
