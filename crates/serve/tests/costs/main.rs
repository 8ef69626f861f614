//! What requests cost, in processor time of the server: the most expensive that a seeded search
//! finds for each protocol, what continues once a client has gone, and listings of large
//! directories.

// The contract's own failures, passed on.
#![allow(clippy::result_large_err)]

#[path = "../callbacks/scene.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod calls;
mod clock;
#[path = "../sftp/ends.rs"]
mod ends;
#[path = "../ftp/client.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod ftp;
mod ftp_commands;
mod http;
mod http2;
mod listings;
mod locks;
mod nfs;
mod nfs_state;
#[path = "../files/scene.rs"]
mod scene;
mod search;
mod sftp;
#[path = "../sftp/client.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod sftp_client;
#[path = "../http/stand.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod stand;
mod stops;
mod tree;
