//! Delegations and callbacks over loopback, with the real codec: a conflict calls the holder back,
//! who does not answer loses what it held, who cannot be called is told and gets nothing.

mod panics;
#[path = "../files/planted.rs"]
mod planted;
mod pool;
mod recalls;
mod scene;
