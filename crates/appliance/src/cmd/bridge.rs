//! `plimsoll bridge`: the emulated link is the lab's; where its sockets are is told here, beside
//! those of servers.

use std::process::ExitCode;

use ::lab::bridge::cli::{self, BridgeArgs};
use control::state::registry;

/// Runs the command.
pub fn run(args: BridgeArgs) -> ExitCode {
    cli::run(args, &registry::default_dir())
}
