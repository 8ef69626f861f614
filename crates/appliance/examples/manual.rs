//! Writes the manual pages and the completions for shells, from the declarations of the command
//! line: `cargo run -p plimsoll --example manual -- DIR` makes `DIR/man1` and `DIR/completions`.
//!
//! A program of its own, so that what only packages need is not in the one that is shipped.

#[path = "../src/cli.rs"]
#[allow(dead_code, reason = "only the declarations are used here")]
mod cli;

use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

/// Shells with completions in the package.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Fish, Shell::Zsh];

fn main() -> ExitCode {
    let Some(dir) = std::env::args_os().nth(1) else {
        eprintln!("usage: manual DIR");
        return ExitCode::from(2);
    };
    match write(Path::new(&dir)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("manual: cannot write to {}: {e}", Path::new(&dir).display());
            ExitCode::FAILURE
        }
    }
}

/// Writes them all below `dir`.
///
/// # Errors
/// The error of the system.
pub fn write(dir: &Path) -> std::io::Result<()> {
    let (pages, completions) = (dir.join("man1"), dir.join("completions"));
    std::fs::create_dir_all(&pages)?;
    std::fs::create_dir_all(&completions)?;
    clap_mangen::generate_to(cli::Cli::command(), &pages)?;
    for shell in SHELLS {
        clap_complete::generate_to(shell, &mut cli::Cli::command(), "plimsoll", &completions)?;
    }
    Ok(())
}
