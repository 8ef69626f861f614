//! SMB against the real server in this process, over shares in memory.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../files/planted.rs"]
mod planted;
#[path = "../files/scene.rs"]
mod scene;

mod ends;
mod panics;
mod running;
