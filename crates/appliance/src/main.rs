//! `plimsoll`: one program, its commands, and nothing else. Every command is a file below `cmd/`.

mod cli;
mod cmd;
mod out;
mod sys;
mod tree;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        Command::Lab(args) => return ::lab::cli::run(args, &cmd::lab::find),
        Command::Bridge(args) => return cmd::bridge::run(args),
        Command::Demo(args) => match cmd::demo::run(&args) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Dsync(args) => match cmd::dsync::run(&args) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Serve(args) => cmd::serve::run(&args),
        Command::Cli(args) => return cmd::cli::run(&args),
        Command::Analytics(args) => cmd::analytics::run(&args),
        Command::Nfs(args) => cmd::nfs::run(&args),
        Command::Http(args) => cmd::http::run(&args),
        Command::SftpServer(args) => cmd::sftp_server::run(&args),
        Command::Inspect(args) => cmd::inspect::run(&args),
        Command::Doctor(args) => match cmd::doctor::run(&args) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
