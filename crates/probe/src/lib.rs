//! What is measured, and the cheapest way to write it down.
//!
//! - [`op`]: one finished operation as a 64-byte record: who, what, which file, how big, how long.
//! - [`ring`]: each core's ring of records; it is the flight recorder and feeds the aggregates.
//! - [`names`]: small numbers for clients, users and shares, and the way back to their names.
//! - [`schema`]: the statistics declared in `schema/*.toml`: ids, sentences, units, breakdowns.
//!
//! The request path calls [`ring::CoreRing::push`] once per operation and nothing else.

pub mod op;
