//! What all commands say alike: failures with a way out, output that survives a closed pipe.

use std::error::Error;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use base::text::{UNRESERVED, percent, visible_lines};

/// Exit code: failed.
const FAILED: u8 = 1;
/// Exit code: done, but something is amiss.
pub const DEGRADED: u8 = 3;
/// Exit code: wrong usage.
const USAGE: u8 = 2;

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

    /// Tells the user.
    pub fn tell(&self) {
        let mut text = format!("plimsoll: cannot {}: {}\n", self.tried, self.failed);
        if !self.hint.is_empty() {
            text += &format!("  {}\n", self.hint);
        }
        let text = visible_lines(&text);
        // Without a standard error there is nobody to tell.
        let _ = std::io::stderr().write_all(text.as_bytes());
        base::log::keep(
            "server",
            base::log::Level::Error,
            text.trim_end().trim_start_matches("plimsoll: "),
        );
    }

    /// Tells the user, and is the exit code.
    pub fn report(self) -> ExitCode {
        self.tell();
        ExitCode::from(self.code)
    }
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

/// Writes to standard output, without what a terminal would not show as it is. A reader that has
/// seen enough (`| head`) is no failure.
pub fn print(text: &str) -> Result<(), Failure> {
    match offer(text)? {
        true => Ok(()),
        false => std::process::exit(0),
    }
}

/// Writes to standard output; whether anybody still reads there. For what has more to do than to
/// say something.
pub fn offer(text: &str) -> Result<bool, Failure> {
    let (mut out, text) = (std::io::stdout().lock(), visible_lines(text));
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Failure::of("write the output", &e)),
        written => Ok(written.is_ok()),
    }
}

/// Pretty JSON of anything, with a line end.
pub fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).map_or_else(|_| "null\n".into(), |text| text + "\n")
}

/// A word as a shell needs it.
pub fn shell_quote(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-:,=@+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A path segment of a URL (RFC 3986 §3.3): everything but unreserved characters is escaped.
pub fn url_encode(bytes: &[u8]) -> String {
    percent(bytes, UNRESERVED)
}

#[cfg(test)]
mod tests;
