//! Lines of the control connection (RFC 959 §5.3.1; RFC 854 for what Telnet puts between them).

use std::borrow::Cow;

use base::limits::FTP_LINE_MAX;

use super::Malformed;

/// "Interpret as command": what follows is Telnet's (RFC 854); doubled, it is a byte of data.
const IAC: u8 = 255;
/// The lowest command of Telnet; below it 255 was meant as data by a client that does not double.
const TELNET_MIN: u8 = 240;
/// WILL, WONT, DO and DONT have an option behind them.
const OPTIONS: std::ops::RangeInclusive<u8> = 251..=254;

/// Cuts what came into lines. It holds what came and is not cut yet: less than a line and what was
/// received with its end.
#[derive(Debug, Default)]
pub struct Lines {
    held: Vec<u8>,
    start: usize,
    /// Up to here there is no end of a line.
    scanned: usize,
    /// The rest of a line that was too long is dropped.
    skipping: bool,
}

impl Lines {
    /// Nothing came yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes what came. Ask [`Lines::cut`] until it has none before more is taken: so no more
    /// than a line and one receive is ever held.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.held.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        self.held.extend_from_slice(bytes);
    }

    /// Whether something is held that is not cut.
    pub fn holds(&self) -> bool {
        self.start < self.held.len()
    }

    /// The next line without its end, with what was Telnet's taken out.
    ///
    /// # Errors
    /// [`Malformed::TooLong`], once for each such line; the next line can be asked for.
    pub fn cut(&mut self) -> Option<Result<Vec<u8>, Malformed>> {
        loop {
            let fresh = self.held.get(self.scanned..).unwrap_or_default();
            let Some(at) = fresh.iter().position(|b| *b == b'\n') else {
                return self.without_end();
            };
            let line = self.held.get(self.start..self.scanned + at).unwrap_or_default();
            let too_long = line.len() > FTP_LINE_MAX;
            let line = unescape(line.strip_suffix(b"\r").unwrap_or(line)).into_owned();
            self.start = self.scanned + at + 1;
            self.scanned = self.start;
            if !self.holds() {
                self.clear();
            }
            match (std::mem::take(&mut self.skipping), too_long) {
                (true, _) => {}
                (false, true) => return Some(Err(Malformed::TooLong)),
                (false, false) => return Some(Ok(line)),
            }
        }
    }

    fn without_end(&mut self) -> Option<Result<Vec<u8>, Malformed>> {
        self.scanned = self.held.len();
        if self.held.len() - self.start <= FTP_LINE_MAX {
            return None;
        }
        self.clear();
        (!std::mem::replace(&mut self.skipping, true)).then_some(Err(Malformed::TooLong))
    }

    fn clear(&mut self) {
        self.held.clear();
        (self.start, self.scanned) = (0, 0);
    }
}

/// Takes out what is Telnet's: commands (Interrupt Process and Data Mark come before ABOR),
/// options; 255 doubled is 255, and a carriage return of a name comes with a NUL behind it (RFC
/// 3659 §2.2).
pub fn unescape(line: &[u8]) -> Cow<'_, [u8]> {
    if !line.iter().any(|b| matches!(b, &IAC | b'\r')) {
        return Cow::Borrowed(line);
    }
    let mut out = Vec::with_capacity(line.len());
    let mut rest = line;
    while let [first, after @ ..] = rest {
        rest = match (*first, after) {
            (b'\r', [0, after @ ..]) => {
                out.push(b'\r');
                after
            }
            (IAC, [IAC, after @ ..]) => {
                out.push(IAC);
                after
            }
            (IAC, [what, after @ ..]) if OPTIONS.contains(what) => {
                after.split_first().map_or(&[][..], |(_, after)| after)
            }
            (IAC, [what, after @ ..]) if *what >= TELNET_MIN => after,
            (byte, after) => {
                out.push(byte);
                after
            }
        };
    }
    Cow::Owned(out)
}

/// Puts `text` behind `out` so that [`unescape`] gives it back. A line feed, which no line can have
/// in it, becomes a question mark.
pub fn escape(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match *byte {
            IAC => out.extend_from_slice(&[IAC, IAC]),
            b'\r' => out.extend_from_slice(b"\r\0"),
            b'\n' | 0 => out.push(b'?'),
            byte => out.push(byte),
        }
    }
}
