//! Delegations and callbacks over loopback, with the real codec: a conflict calls the holder back,
//! who does not answer loses what it held, who cannot be called is told and gets nothing.

// The contract's own failures, passed on.
#![allow(clippy::result_large_err)]

mod gone;
mod panics;
#[path = "../files/planted.rs"]
mod planted;
mod pool;
mod recalls;
mod scene;
#[path = "../nfs3/scripted.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod scripted;
mod writers;
