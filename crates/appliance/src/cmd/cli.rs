//! `plimsoll cli`: the context shell on a terminal, or its lines from a script. What they mean is
//! in `control::cli`; here is only where they come from and where what they say goes.

mod history;
mod outside;
mod terminal;

use std::io::{IsTerminal, Read};
use std::process::ExitCode;

use base::limits::CLI_SCRIPT_MAX;
use control::cli::{CliError, Shell, script};

use crate::cli::CliArgs;
use crate::out::{self, Failure};

use outside::User;

/// Runs the command.
pub fn run(args: &CliArgs) -> ExitCode {
    match try_run(args) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

fn try_run(args: &CliArgs) -> Result<ExitCode, Failure> {
    let client = super::server(&args.server)?;
    let from_terminal = std::io::stdin().is_terminal();
    let asks = from_terminal && args.file.is_none() && args.lines.is_empty();
    let script = match (args.lines.as_slice(), &args.file) {
        ([], None) if asks => None,
        ([], None) => Some(read("-")?),
        ([], Some(path)) => Some(read(&path.to_string_lossy())?),
        (lines, _) => Some(lines.join("\n")),
    };
    let at = client.at();
    let shell = Shell::open(Box::new(client), Box::new(User { asks }), args.json);
    let shell = shell.map_err(|e| failed("open the shell", &e))?;
    match script {
        None => terminal::run(shell, &at),
        Some(text) => lines(shell, &text, args),
    }
}

fn lines(mut shell: Shell, text: &str, args: &CliArgs) -> Result<ExitCode, Failure> {
    let mut unwritten = None;
    let mut say = |text: &str| {
        if let Err(failure) = out::print(text) {
            unwritten.get_or_insert(failure);
        }
    };
    let done = script::run(&mut shell, text.lines(), args.echo, &mut say);
    if let Some(failure) = unwritten {
        return Err(failure);
    }
    match done {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(stopped) => {
            let what = if args.lines.is_empty() { "line" } else { "-c" };
            let tried = format!("do {what} {}", stopped.line);
            failed(&tried, &stopped.error).tell();
            Ok(ExitCode::from(stopped.error.exit_code()))
        }
    }
}

fn failed(tried: &str, error: &CliError) -> Failure {
    Failure::new(tried, &error.to_string(), error.hint())
}

/// A script: a file, or standard input for `-`.
fn read(path: &str) -> Result<String, Failure> {
    let limit = CLI_SCRIPT_MAX as u64;
    let mut text = String::new();
    let read = match path {
        "-" => std::io::stdin().lock().take(limit + 1).read_to_string(&mut text),
        path => std::fs::File::open(path).and_then(|f| f.take(limit + 1).read_to_string(&mut text)),
    };
    match read {
        Ok(n) if n > CLI_SCRIPT_MAX => {
            let why = format!("it is longer than {CLI_SCRIPT_MAX} bytes");
            Err(Failure::new(&format!("read {path}"), &why, "divide it"))
        }
        Ok(_) => Ok(text),
        Err(e) => Err(Failure::of(&format!("read {path}"), &e)),
    }
}
