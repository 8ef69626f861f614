//! The network of this machine, from device to interface: what it is now, what a configuration
//! makes of it, and the steps from one to the other.
//!
//! - [`configuration`]: what an administrator sets. [`check`]: what is wrong with it, by property.
//! - [`state`]: links, addresses, routes and names as a kernel has them. [`compile`]: the state
//!   that a configuration requires.
//! - [`plan`]: the steps from a state to another one; pure. [`step`]: the steps.
//! - [`dhcp`]: the leases on links by DHCP, which is no part of a state.
//! - [`backend`]: what observes and takes steps. [`linux`]: this machine. [`fake`]: a kernel in
//!   memory, for tests.
//! - [`resource_address`]: addresses of resources of a cluster, which are no part of a state
//!   either.
//!
//! The way back from a change is a plan too, from the state that is observed then to the old one.
//! A list of inverse steps would lose what the kernel removes without a request: the routes through
//! an address that was deleted, the VLANs of a link.

pub mod backend;
pub mod check;
pub mod cidr;
pub mod compile;
pub mod configuration;
pub mod dhcp;
pub mod fake;
pub mod linux;
mod netlink;
pub mod pkey;
pub mod plan;
pub mod resource_address;
pub mod state;
pub mod step;
