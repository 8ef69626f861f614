//! The throughput mode of IOzone on any target with files: each child has a file of its own, all
//! begin together, and each test is a block of six lines.
//!
//! - [`flags`]: what its options state, and what is refused; [`children`]: one test by all
//!   children; [`record`]: the result and its text; [`run`]: all tests; [`over`]: two of them
//!   over the emulated link; [`conduct`]: on agents; `shuffle`: the order of random records.

pub mod children;
pub mod conduct;
pub mod flags;
pub mod over;
pub mod record;
pub mod run;
mod shuffle;
