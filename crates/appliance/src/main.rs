//! `plimsoll`: one program, its commands, and nothing else. Every command is a file below `cmd/`.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod cli;
mod cmd;
mod out;
mod sys;
mod tree;

use std::process::ExitCode;

use control::state::registry;

use cli::Command;

fn main() -> ExitCode {
    let cli = cli::parsed();
    let done = match cli.command {
        Command::Lab(args) => {
            // Other users of this machine can read the command line.
            ::lab::cli::secret_words().iter().for_each(|word| sys::hide_argument(word));
            return ::lab::cli::run(*args, &cmd::lab::find);
        }
        // The directory of its sockets is passed from here; it is the one of the servers.
        Command::Bridge(args) => return ::lab::bridge::cli::run(args, &registry::default_dir()),
        Command::Demo(args) => cmd::demo::run(&args),
        Command::Dsync(args) => ::sync::cli::run(&args),
        Command::Cli(args) => cmd::cli::run(&args),
        Command::Doctor(args) => cmd::doctor::run(&args),
        Command::Host(args) => cmd::host::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Head(args) => cmd::head::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Serve(args) => cmd::serve::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Analytics(args) => cmd::analytics::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Nfs(args) => cmd::nfs::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Http(args) => cmd::http::run(&args).map(|()| ExitCode::SUCCESS),
        Command::SftpServer(args) => cmd::sftp_server::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Inspect(args) => cmd::inspect::run(&args).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(out::Failure::report)
}
