//! The interface of a running server for people and programs: the HTTP API, signing in, the
//! local socket, the embedded browser interface, and the state directory below it all.
//!
//! This room knows nothing of protocols. What it shows comes in through [`appliance::Appliance`]
//! and `analytics::query::Engine`; nothing on the request path ever waits for it.
//!
//! - [`state`]: files that outlive the process; users, keys, the lock, the run-time registry.
//! - [`access`], [`accounts`]: permissions and roles; users and API tokens.
//! - [`sessions`]: users that are signed in, a pure state machine.
//! - [`answer`]: what the rest of the program answers to the API, and why it does not.
//! - [`api`]: the router, as `docs/protocols/api.md` describes it.
//! - [`certificates`]: what TLS shows, where it comes from, and its renewal.
//! - [`listen`]: the same router over HTTPS and over the local socket, on a thread of its own.
//! - [`dav`]: locks of WebDAV, as the API shows them.
//! - [`nfs`]: the state of NFS clients, as the API shows it.
//! - [`alerts`]: watches statistics and sends notifications. [`analytics_room`]: saved worksheets,
//!   and how long statistics are kept.
//! - [`transfers`]: the log of transfers. [`replication`]: runs of `dsync` as actions with a
//!   schedule and a history.
//! - [`client`]: the other side, for the command line.
//! - [`cli`]: the context shell, on top of it.

pub mod access;
pub mod accounts;
pub mod alerts;
pub mod analytics_room;
pub mod answer;
pub mod api;
pub mod appliance;
pub mod certificates;
pub mod cli;
pub mod client;
pub mod dav;
pub mod lab;
pub mod listen;
pub mod nfs;
pub mod replication;
pub mod sessions;
pub mod state;
pub mod transfers;
pub mod tree;
mod zone;
