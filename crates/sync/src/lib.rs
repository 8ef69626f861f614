//! Room `sync`: makes one tree of files the same as another, on this machine or over a link.
//!
//! There are always two sides. The [`source`] walks its tree and lists it, directory by directory,
//! and sends the requested content. The [`destination`] walks its own tree in parallel, decides
//! what it needs, writes that to temporary files and renames them when they are complete. Between
//! them are the messages of `wire::dsync` over a [`link`]; each side knows its own tree only, by
//! what a [`tree`] can do.
//!
//! *Layout*
//! - [`tree`]: what a tree can do, and the file system of this machine as one.
//! - [`rules`]: what is carried and what is not.
//! - [`delta`]: finding in a file what the other side has of it.
//! - [`index`]: what is kept from one run to the next.
//! - [`guard`] has the queries of a run to the server that shares its directory.
//! - [`events`]: what a run reports while it is in progress.
//! - [`stop`]: how its threads learn that it has to end.
//! - [`link`]: frames over a pair of byte streams.
//! - [`lends`]: what a source lends to a destination of the same process.
//! - [`load`]: what limits a run. [`memory`]: what it may hold.
//! - [`streams`]: streams for data in addition to the one for control.
//! - [`source`], [`destination`]: the two sides.
//! - [`run`]: both together, in this process or one of them elsewhere.
//! - [`cli`]: the command.

pub mod cli;
pub mod delta;
pub mod destination;
mod digest;
pub mod error;
pub mod events;
pub mod guard;
pub mod index;
pub mod lends;
pub mod link;
pub mod load;
pub mod memory;
mod owners;
mod pack;
pub mod rules;
pub mod run;
pub mod source;
pub mod stop;
pub mod streams;
pub mod tree;

pub use error::{SyncError, Why};
pub use wire::dsync::{About, Counts, Note, Options, Role};
