//! Why something was not done, for people: what was tried, what failed, and what to do.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use crate::log::{self, Level};
use crate::text::visible_lines;

/// Exit code: failed.
const FAILED: u8 = 1;
/// Exit code: wrong usage.
const USAGE: u8 = 2;
/// Exit code: done, but something is amiss.
pub const DEGRADED: u8 = 3;

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    tried: String,
    failed: String,
    hint: String,
}

impl Failure {
    /// A failure in words.
    pub fn new(tried: &str, failed: &str, hint: &str) -> Self {
        let (tried, failed, hint) = (tried.into(), failed.into(), hint.into());
        Self { code: FAILED, tried, failed, hint }
    }

    /// A failure that an error describes, with its sources.
    pub fn of(tried: &str, error: &dyn Error) -> Self {
        Self::new(tried, &chain(error), "")
    }

    /// The caller asked for what does not exist.
    pub fn usage(tried: &str, failed: &str, hint: &str) -> Self {
        Self { code: USAGE, ..Self::new(tried, failed, hint) }
    }

    /// The same with a way out.
    pub fn hint(self, hint: &str) -> Self {
        Self { hint: hint.into(), ..self }
    }

    /// What failed.
    pub fn why(&self) -> &str {
        &self.failed
    }

    /// What to do about it, or nothing.
    pub fn way_out(&self) -> &str {
        &self.hint
    }

    /// Prints it to standard error, and adds it to the log.
    pub fn print(&self) {
        let mut text = format!("plimsoll: cannot {}: {}\n", self.tried, self.failed);
        if !self.hint.is_empty() {
            text += &format!("  {}\n", self.hint);
        }
        let text = visible_lines(&text);
        // Without a standard error it is only in the log.
        let _ = std::io::stderr().write_all(text.as_bytes());
        let line = text.trim_end().trim_start_matches("plimsoll: ");
        log::keep("server", Level::Error, line);
    }

    /// Prints it, and returns the exit code.
    pub fn report(self) -> ExitCode {
        self.print();
        ExitCode::from(self.code)
    }
}

/// Makes the [`Failure`] of an error: `file.or_failure("read the script")?`.
pub trait OrFailure<T> {
    /// What was tried, as in [`Failure::new`].
    ///
    /// # Errors
    /// [`Failure::of`] the error.
    fn or_failure(self, tried: &str) -> Result<T, Failure>;
}

impl<T, E: Error> OrFailure<T> for Result<T, E> {
    fn or_failure(self, tried: &str) -> Result<T, Failure> {
        self.map_err(|e| Failure::of(tried, &e))
    }
}

/// Reads a text file of at most `most` bytes; `hint` names what to use instead of a longer one.
///
/// # Errors
/// It is longer, or cannot be read.
pub fn read_text(tried: &str, path: &Path, most: u64, hint: &str) -> Result<String, Failure> {
    let size = std::fs::metadata(path).or_failure(tried)?.len();
    if size > most {
        let failed = format!("it has {size} bytes; {most} are the most");
        return Err(Failure::new(tried, &failed, hint));
    }
    std::fs::read_to_string(path).or_failure(tried)
}

/// An error and its sources, joined by colons.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text += &format!(": {error}");
        source = error.source();
    }
    text
}
