//! The tests of the NFSv3 and NFSv4 service with clients that speak RDMA, and those of RDMA alone.
//! What is about bytes of a stream, or TLS, is in the program `nfs3` only.

// The contract's own failures, passed on.
#![allow(clippy::result_large_err)]

#[path = "../nfs3/budgets.rs"]
mod budgets;
mod chunks;
#[path = "../nfs3/client.rs"]
mod client;
#[path = "../nfs3/compounds.rs"]
mod compounds;
mod credits;
mod crossing;
mod drain;
#[path = "../nfs3/exclusive.rs"]
mod exclusive;
#[path = "../nfs3/exports.rs"]
mod exports;
#[path = "../nfs3/gone.rs"]
mod gone;
mod headers;
#[path = "../nfs3/panics.rs"]
mod panics;
#[path = "../nfs3/peers.rs"]
mod peers;
#[path = "../nfs3/pipeline.rs"]
mod pipeline;
#[path = "../files/planted.rs"]
mod planted;
#[path = "../nfs3/procedures.rs"]
mod procedures;
#[path = "../nfs3/replay.rs"]
mod replay;
#[path = "../nfs3/scripted.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod scripted;
#[path = "../nfs3/server.rs"]
mod server;
#[path = "../nfs3/turns.rs"]
mod turns;
