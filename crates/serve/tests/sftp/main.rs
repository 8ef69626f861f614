//! The SFTP server over a channel in memory, through the real codec: requests, uploads, order,
//! hostile peers; and over SSH, with the programs of OpenSSH.

// The contract's own failures, passed on.
#![allow(clippy::result_large_err)]

mod client;
mod dsync_panics;
mod ends;
mod hostile;
mod openssh;
mod panics;
#[path = "../files/planted.rs"]
mod planted;
mod random;
mod requests;
#[path = "../files/scene.rs"]
mod scene;
#[path = "../nfs3/scripted.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod scripted;
mod transfer_log;
mod uploads;
