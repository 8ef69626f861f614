//! Standard output of the commands of the laboratory. A reader that has seen enough (`| head`) does
//! not end a run, nor change its exit status.

use std::error::Error;

use base::out::offer;

/// Writes a text.
///
/// # Errors
/// It cannot be written, and something reads there.
pub(crate) fn print_text(text: &str) -> Result<(), Box<dyn Error>> {
    offer(text).map(drop).map_err(|failure| failure.why().into())
}

/// Writes a line.
///
/// # Errors
/// As [`print_text`].
pub(crate) fn print_line(line: &str) -> Result<(), Box<dyn Error>> {
    print_text(&format!("{line}\n"))
}
