//! The NFSv3 service over loopback, with the real codec against a directory in memory.

// The contract's own failures, passed on.
#![allow(clippy::result_large_err)]

mod budgets;
mod client;
mod compounds;
mod exclusive;
mod exports;
mod gone;
mod hostile;
mod panics;
mod peers;
mod pipeline;
#[path = "../files/planted.rs"]
mod planted;
mod procedures;
mod replay;
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod scripted;
mod server;
mod tls;
mod turns;
mod unread;
