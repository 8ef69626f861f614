//! The tests of delegations and callbacks with clients that speak RDMA: those of 4.1 are called
//! back over the connection that they have made, those of 4.0 over TCP.

// The contract's own failures, passed on.
#![allow(clippy::result_large_err)]

mod crossing;
#[path = "../callbacks/gone.rs"]
mod gone;
mod limits;
#[path = "../callbacks/panics.rs"]
mod panics;
#[path = "../files/planted.rs"]
mod planted;
#[path = "../callbacks/pool.rs"]
mod pool;
#[path = "../callbacks/recalls.rs"]
mod recalls;
#[path = "../callbacks/scene.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod scene;
#[path = "../nfs3/scripted.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod scripted;
#[path = "../callbacks/writers.rs"]
mod writers;
