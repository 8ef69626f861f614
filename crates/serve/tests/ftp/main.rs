//! FTP through the real codec: a service in this process, and a client that sends the given
//! commands.

// The contract's own failures, passed on.
#![allow(clippy::result_large_err)]

mod client;
mod cut;
mod hostile;
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
mod sessions;
mod slow;
mod tls;
mod transfer_log;
mod transfers;
