//! Statistics of the past and the present: collected each second, kept on disk, queried by id.
//!
//! Data flows one way: `probe` (per core) → [`collect`] (each second) → [`store`] (on disk) and
//! [`bus`] (live subscribers) → [`query`].
//!
//! - [`model`]: a second as tables of rows with two keys each.
//! - [`names`]: numbers to names, with a [`names::Resolver`] for what other rooms know.
//! - [`collect`]: merges the cores' seconds with samples of the machine.
//! - [`store`]: append-only segments by second, minute and hour.
//! - [`query`]: a statistic id and an interval in, a graph out; from the store or the recorder.
//! - [`recorded`]: the datasets that are recorded in addition.
//! - [`alert`]: their conditions, and when they fire. [`node`]: worksheets and datasets.

pub mod alert;
pub mod bus;
pub mod collect;
pub mod model;
pub mod names;
pub mod node;
pub mod query;
pub mod recorded;
pub mod store;
