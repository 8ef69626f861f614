//! The server as it runs: services and their life cycle, the shares that they serve, and what the
//! administration sees of both.
//!
//! - [`instance`]: the state machine of a service (start, drain, restart, certificates), and the
//!   trait that a protocol implements to be one. [`node`]: its node in the tree.
//! - [`services`]: the list of all services. [`parts`]: what they are made of.
//! - [`nfs`], [`files`] and [`iscsi`]: the services. [`luns`]: logical units. [`sign_in`]:
//!   sign-ins, counted for each.
//! - [`shares`]: directories that are served, changed while clients work.
//! - [`running`]: everything that runs, put together and measured; [`administration`]: its
//!   branches of the tree, and its alerts.
//! - [`cache_drops`]: runs that drop cached data of shares and units.
//! - [`hardware`]: what the machine is made of. [`problems`]: what is wrong with it.
//! - [`guard`]: the table of opens, for runs of replication.
//! - [`fabric`]: the InfiniBand fabric. [`network`]: the network.
//! - [`cluster`]: heads and resources, if a head has started the server.
//! - [`lab`]: jobs and runs of the laboratory in the tree. [`comparison`]: its targets on a share.
//! - [`server_id`]: by what clients recognise the server.
//! - [`tls`], [`certificates`], [`reach`], [`names`], [`users`]: ports,
//!   certificates, URLs, names; `values`: settings of a node.

pub mod administration;
pub mod cache_drops;
pub mod certificates;
pub mod cluster;
pub mod comparison;
#[cfg(feature = "test-services")]
pub mod echo;
pub mod fabric;
pub mod files;
pub mod guard;
pub mod hardware;
pub mod instance;
pub mod iscsi;
pub mod lab;
pub mod luns;
pub mod names;
pub mod network;
pub mod nfs;
pub mod node;
pub mod parts;
pub mod pools;
pub mod problems;
pub mod reach;
pub mod running;
pub mod server_id;
pub mod services;
pub mod shares;
pub mod sign_in;
pub mod tls;
pub mod tree;
pub mod users;
mod values;

pub use base::failure;

#[cfg(test)]
mod tests;
