//! Lines from a file, a pipe or the command line, one after the other until the first error.

use super::CliError;
use super::shell::{Answer, Shell};
use super::words;

/// Why a script ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// Number of the line where the command begins, from 1.
    pub line: usize,
    /// What is wrong there.
    pub error: CliError,
}

/// Runs the lines of a script; `say` receives the output of each. With `echo` each command is
/// printed first, after `> `.
///
/// A command continues over several lines within quotes and after a backslash.
///
/// # Errors
/// The first error; or changes that are left uncommitted.
pub fn run(
    shell: &mut Shell,
    lines: impl Iterator<Item = String>,
    echo: bool,
    say: &mut dyn FnMut(&str),
) -> Result<(), Stopped> {
    let mut lines = lines.enumerate();
    let mut last = 0;
    while let Some((at, first)) = lines.next() {
        let mut command = first;
        last = at + 1;
        while words::split(&command).is_err() {
            let Some((_, more)) = lines.next() else { break };
            command = command + "\n" + &more;
        }
        if echo && !command.trim().is_empty() {
            say(&format!("> {}\n", shell.kept(&command)));
        }
        match shell.run(&command) {
            Ok(Answer::Text(text)) => say(&text),
            Ok(Answer::Leave) => return Ok(()),
            Err(error) => return Err(Stopped { line: at + 1, error }),
        }
    }
    match shell.lost() {
        None => Ok(()),
        Some(lost) => {
            let error = CliError::refused(lost, "end with `commit`, or with `abort`");
            Err(Stopped { line: last, error })
        }
    }
}
