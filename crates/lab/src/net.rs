//! Network profiles: uperf's, as they are written, run by the controller and its agents.
//!
//! - [`run`]: both ends through all transactions; [`judge`]: what both ends' counts come to.
//! - [`record`]: what is in `result.json`.
//! - [`built_in`]: profiles of this program.

pub mod built_in;
pub mod judge;
pub mod record;
pub mod run;
