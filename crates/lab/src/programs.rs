//! Programs in the language of Filebench on a target: each thread of the program is a thread here,
//! with a cursor and a worker of its own, so nothing is handed over between threads.
//!
//! - [`plan`]: what a target can carry out, which is checked before the start.
//! - [`worker`]: one thread's calls; [`null`], [`path`], [`remote`]: targets; `pieces`: what they
//!   read and write.
//! - [`control`]: what threads of one agent share: counters, tokens, the end.
//! - [`tally`]: counts and latencies of acts; [`sequence`]: a hash of the calls; [`set`]: files.
//! - [`drive`]: the threads.
//! - [`record`]: the result; [`run`]: reads a program, checks it, runs it; [`conduct`]: on agents.

pub mod conduct;
pub mod control;
pub mod drive;
pub mod null;
pub mod path;
mod pieces;
pub mod plan;
pub mod record;
pub mod remote;
pub mod run;
pub mod sequence;
pub mod set;
pub mod tally;
pub mod worker;
