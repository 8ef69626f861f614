//! Heads of a cluster. A resource (a directory with its state directory and addresses) is served by
//! one head at a time, as a process; when a head fails, another one takes its resources over.
//!
//! - [`machine`]: the state machine of membership and ownership; pure, with the time as argument.
//! - [`keys`]: the keys in etcd and their values. [`etcd`]: the client of etcd's JSON gateway.
//! - [`fence`]: what is done before a resource starts, so that its former owner cannot write.
//! - [`lease`]: the file by which the process of a resource follows the lease of its head.
//! - [`connections`]: the clients of a resource, for its next owner.
//! - [`mounts`]: what a file system must promise.
//! - [`reach`]: whether clients reach an address at this head.
//! - [`config`]: the configuration file. [`supervisor`]: the head as it runs.
//! - [`local`]: its local socket, both ends. [`takeover`]: what is recorded of a takeover.

pub mod config;
pub mod connections;
pub mod etcd;
pub mod fence;
mod file_lock;
pub mod keys;
pub mod lease;
pub mod limits;
pub mod local;
pub mod machine;
pub mod mounts;
pub mod reach;
pub mod supervisor;
pub mod takeover;
