//! Echo (RFC 862) over TCP with a sign-in before it, for the test service: a first line
//! `USER PASSWORD`, which is answered `OK` or `NO`; then whatever comes is sent back, line by line.
//! `docs/protocols/echo.md`.

use base::limits::ECHO_LINE_MAX;
use thiserror::Error;

/// What is done with a line. The numbers are those of `schema/test-services/echo.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// The first line, with a name and a password.
    SignIn = 0,
    /// A line that is sent back.
    Echo = 1,
}

/// The result. The numbers are those of `schema/test-services/echo.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Status {
    /// It was done.
    Ok = 0,
    /// Name or password is wrong, or there were too many wrong ones.
    Refused = 1,
    /// The line is invalid.
    Malformed = 2,
    /// The server failed.
    Fault = 3,
}

/// Why a line is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Malformed {
    /// It is longer than [`ECHO_LINE_MAX`] bytes.
    #[error("a line of more than {ECHO_LINE_MAX} bytes")]
    TooLong,
    /// It is not a name, a space and a password.
    #[error("no name and password")]
    SignIn,
}

/// The first line of what came, with its end (LF, or CR LF); `None` if it is not whole. What it
/// has in front of the end is [`text`].
///
/// # Errors
/// [`Malformed::TooLong`]
pub fn cut(bytes: &[u8]) -> Result<Option<&[u8]>, Malformed> {
    // A line and its end; looking no further keeps the worst input cheap.
    let within = bytes.get(..ECHO_LINE_MAX + 2).unwrap_or(bytes);
    let line = within.iter().position(|b| *b == b'\n').and_then(|end| within.get(..=end));
    match line {
        Some(line) if text(line).len() > ECHO_LINE_MAX => Err(Malformed::TooLong),
        None if bytes.len() > ECHO_LINE_MAX + 1 => Err(Malformed::TooLong),
        line => Ok(line),
    }
}

/// A line without its end.
pub fn text(line: &[u8]) -> &[u8] {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    text.strip_suffix(b"\r").unwrap_or(text)
}

/// The first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignIn<'a> {
    /// The name, without a space.
    pub user: &'a str,
    /// The password.
    pub password: &'a str,
}

impl<'a> SignIn<'a> {
    /// Reads a line without its end.
    ///
    /// # Errors
    /// [`Malformed::SignIn`]
    pub fn decode(text: &'a [u8]) -> Result<Self, Malformed> {
        let text = std::str::from_utf8(text).map_err(|_| Malformed::SignIn)?;
        let (user, password) = text.split_once(' ').ok_or(Malformed::SignIn)?;
        if user.is_empty() { Err(Malformed::SignIn) } else { Ok(Self { user, password }) }
    }

    /// Puts the line behind `out`, with its end.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.user.as_bytes());
        out.push(b' ');
        out.extend_from_slice(self.password.as_bytes());
        out.extend_from_slice(END);
    }
}

/// The end of a line that is sent.
const END: &[u8] = b"\r\n";

/// The answer to the first line, with its end.
pub fn answer(signed_in: bool) -> &'static [u8] {
    if signed_in { b"OK\r\n" } else { b"NO\r\n" }
}

#[cfg(test)]
mod tests;
