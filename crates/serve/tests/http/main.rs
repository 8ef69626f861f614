//! HTTP through real sockets, over shares in memory: both versions, files up and down, signing in,
//! listings, and what must not get through.

// The contract's own failures, passed on.
#![allow(clippy::result_large_err)]

mod archives;
mod arrivals;
mod clients;
mod files;
mod framing;
mod http2;
mod listings;
mod panics;
#[path = "../files/planted.rs"]
mod planted;
#[path = "../files/scene.rs"]
mod scene;
#[path = "../nfs3/scripted.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod scripted;
mod sent;
mod sign_in;
mod slow;
mod stand;
mod transfer_log;
mod uploads;
