//! `plimsoll lab …` without the rest of the program, for trying the lab on its own:
//! `cargo run -p lab --example lab -- run iops-4k --target null:`. It knows `bridge …` as well,
//! which a sweep starts.

use clap::Parser;
use lab::bridge::cli::{self, BridgeArgs};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "plimsoll bridge")]
struct Bridge {
    #[command(flatten)]
    args: BridgeArgs,
}

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    if words.first().is_some_and(|word| word == "bridge") {
        return cli::run(Bridge::parse_from(words).args, &std::env::temp_dir());
    }
    lab::cli::main(words)
}
