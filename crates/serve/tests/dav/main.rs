//! WebDAV over shares in memory, method by method, without a connection: the rules of RFC 4918, and
//! the behaviour of known clients.

// The contract's own failures, passed on.
#![allow(clippy::result_large_err)]

mod aliases;
mod clients;
mod collections;
mod locks;
#[path = "../files/planted.rs"]
mod planted;
mod properties;
mod replacements;
#[path = "../files/scene.rs"]
mod scene;
#[path = "../nfs3/scripted.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod scripted;
mod site;
mod trees;
