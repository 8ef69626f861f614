//! NLM and NSM on the wire: the service on a tree in memory, scripted hosts that call it, and a
//! scripted port mapper, lock manager and status monitor that it calls back.

#[path = "../nfs3/client.rs"]
#[allow(dead_code, reason = "the other tests use the rest")]
mod client;
#[path = "../costs/clock.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod clock;
mod costs;
mod host;
mod server;

mod calls;
mod locks;
mod panics;
#[path = "../files/planted.rs"]
mod planted;
mod recovery;
mod rules;
#[path = "../costs/search.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod search;
