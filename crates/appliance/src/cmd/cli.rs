//! `plimsoll cli`: the context shell on a terminal, or its lines from a script. They are
//! interpreted in `control::cli`; this module has only their input and output.

mod history;
pub mod outside;
mod terminal;

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use base::limits::CLI_SCRIPT_MAX;
use control::cli::{CliError, Shell, script};

use crate::cli::CliArgs;
use crate::out::{self, Failure, OrFailure};
use crate::sys;

use outside::User;

/// Runs the command.
///
/// # Errors
/// No server, or the lines cannot be read; errors of a line are printed already.
pub fn run(args: &CliArgs) -> Result<ExitCode, Failure> {
    let client = super::server(&args.server)?;
    let stdin = args.lines.is_empty() && args.file.as_deref().is_none_or(|p| p == Path::new("-"));
    let asks = stdin && args.file.is_none() && std::io::stdin().is_terminal();
    let at = client.at();
    let shell = Shell::open(Box::new(client), Box::new(User { asks }), args.json);
    let shell = shell.map_err(|e| failed("open the shell", &e))?;
    if asks {
        return terminal::run(shell, &at);
    }
    match &args.file {
        Some(path) if !stdin => {
            let file = File::open(path);
            let file = file.or_failure(&format!("read {}", path.display()))?;
            from_reader(shell, BufReader::new(file), args)
        }
        _ if stdin => from_reader(shell, std::io::stdin().lock(), args),
        _ => {
            // Other users of this machine can read the command line.
            let secret = |line: &&String| line.lines().any(|line| shell.has_secret(line));
            args.lines.iter().filter(secret).for_each(|line| sys::hide_argument(line));
            script(shell, args.lines.iter().flat_map(|line| line.lines()).map(str::to_owned), args)
        }
    }
}

/// Lines as they come, so that a program at the other end of a pipe can read the output of one line
/// before it sends the next.
fn from_reader(shell: Shell, reader: impl BufRead, args: &CliArgs) -> Result<ExitCode, Failure> {
    let (mut wrong, mut length) = (None, 0);
    let lines = reader.take(CLI_SCRIPT_MAX as u64 + 1).lines().map_while(|line| {
        let line = line.map_err(|e| wrong = Some(e)).ok()?;
        length += line.len() + 1;
        if length > CLI_SCRIPT_MAX {
            let why = format!("it is longer than {CLI_SCRIPT_MAX} bytes");
            wrong = Some(std::io::Error::new(ErrorKind::InvalidData, why));
            return None;
        }
        Some(line)
    });
    let code = script(shell, lines, args)?;
    match wrong {
        None => Ok(code),
        Some(error) => Err(Failure::of("read the script", &error)),
    }
}

fn script(
    mut shell: Shell,
    lines: impl Iterator<Item = String>,
    args: &CliArgs,
) -> Result<ExitCode, Failure> {
    let mut unwritten = None;
    // A reader that has seen enough (`| head`) does not end what the script is there to do.
    let mut say = |text: &str| {
        if let Err(failure) = out::offer(text) {
            unwritten.get_or_insert(failure);
        }
    };
    let done = script::run(&mut shell, lines, args.echo, &mut say);
    if let Some(failure) = unwritten {
        return Err(failure);
    }
    match done {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(stopped) => {
            let what = if args.lines.is_empty() { "line" } else { "command" };
            failed(&format!("run {what} {}", stopped.line), &stopped.error).print();
            Ok(ExitCode::from(stopped.error.exit_code()))
        }
    }
}

fn failed(tried: &str, error: &CliError) -> Failure {
    Failure::new(tried, &error.to_string(), error.hint())
}
