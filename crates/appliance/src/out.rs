//! What all commands say alike: output that survives a closed pipe, exit codes.

use std::io::{ErrorKind, Write};

use base::text::visible_lines;

pub use service::failure::{Failure, chain};
pub use service::reach::{shell_quote, url_encode};

/// Exit code: done, but something is amiss.
pub const DEGRADED: u8 = 3;

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
