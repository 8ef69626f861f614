//! Standard output and standard error of commands: both survive a closed pipe.

use std::io::{ErrorKind, Write};

use crate::failure::Failure;
use crate::text::visible_lines;

/// Writes to standard output, without what a terminal would not show as it is. A reader that has
/// seen enough (`| head`) is no failure.
///
/// # Errors
/// It cannot be written.
pub fn print(text: &str) -> Result<(), Failure> {
    match offer(text)? {
        true => Ok(()),
        false => std::process::exit(0),
    }
}

/// Writes to standard output; returns whether it is still being read. For commands that do more
/// than print.
///
/// # Errors
/// It cannot be written.
pub fn offer(text: &str) -> Result<bool, Failure> {
    let (mut out, text) = (std::io::stdout().lock(), visible_lines(text));
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Failure::of("write the output", &e)),
        written => Ok(written.is_ok()),
    }
}

/// Writes a line to standard error. A reader that has gone (`2>&1 | head`) does not end the work
/// that is reported.
pub fn note(text: &str) {
    let _gone = writeln!(std::io::stderr().lock(), "{text}");
}
