//! Delegations and callbacks over loopback, with the real codec: a conflict recalls from the
//! holder; a client that does not answer loses what it held; one that cannot be called is notified
//! and gets no delegations.

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
