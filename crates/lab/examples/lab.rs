//! `plimsoll lab …` without the rest of the program, for trying the lab on its own:
//! `cargo run -p lab --example lab -- run iops-4k --target null:`.

use std::process::ExitCode;

fn main() -> ExitCode {
    lab::cli::main(std::env::args_os().skip(1))
}
