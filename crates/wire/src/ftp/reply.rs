//! Replies: a code and a text, in one line or several (RFC 959 §4.2).

use base::limits::{FTP_REPLY_LINE_MAX, FTP_REPLY_LINES_MAX};

use super::{Malformed, line};

/// Puts a reply of one line behind `out`.
pub fn single(out: &mut Vec<u8>, code: u16, text: &[u8]) {
    put(out, code, b' ', text);
}

/// A reply of several lines while it is written: the lines between the first and the last begin
/// with a space, so that none can be taken for the last (RFC 2389 §2, RFC 3659 §7.2).
pub struct Multi<'a> {
    out: &'a mut Vec<u8>,
    code: u16,
}

impl<'a> Multi<'a> {
    /// Puts the first line.
    pub fn begin(out: &'a mut Vec<u8>, code: u16, text: &[u8]) -> Self {
        put(out, code, b'-', text);
        Self { out, code }
    }

    /// Puts another.
    pub fn line(&mut self, text: &[u8]) {
        self.out.push(b' ');
        line::escape(text, self.out);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Puts the last.
    pub fn end(self, text: &[u8]) {
        put(self.out, self.code, b' ', text);
    }
}

fn put(out: &mut Vec<u8>, code: u16, separator: u8, text: &[u8]) {
    out.extend_from_slice(format!("{code:03}").as_bytes());
    out.push(separator);
    line::escape(text, out);
    out.extend_from_slice(b"\r\n");
}

/// A path in a reply: in quotes, those in it doubled (RFC 959, appendix II).
pub fn quoted(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len() + 2);
    out.push(b'"');
    for byte in path {
        if *byte == b'"' {
            out.push(b'"');
        }
        out.push(*byte);
    }
    out.push(b'"');
    out
}

/// The path at the beginning of a text as [`quoted`] wrote it.
pub fn unquoted(text: &[u8]) -> Option<Vec<u8>> {
    let mut rest = text.strip_prefix(b"\"")?;
    let mut out = Vec::new();
    loop {
        match rest {
            [b'"', b'"', after @ ..] => {
                out.push(b'"');
                rest = after;
            }
            [b'"', ..] => return Some(out),
            [byte, after @ ..] => {
                out.push(*byte);
                rest = after;
            }
            [] => return None,
        }
    }
}

/// A reply as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Its code.
    pub code: u16,
    /// Its lines without code and end; those between the first and the last without one space
    /// before them.
    pub lines: Vec<Vec<u8>>,
}

impl Reply {
    /// Puts it behind `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let Some((last, before)) = self.lines.split_last() else {
            return single(out, self.code, b"");
        };
        let Some((first, between)) = before.split_first() else {
            return single(out, self.code, last);
        };
        let mut multi = Multi::begin(out, self.code, first);
        between.iter().for_each(|line| multi.line(line));
        multi.end(last);
    }
}

/// The reply at the beginning of `input`, and how many bytes it takes; `None` when more must come.
///
/// # Errors
/// It is none, or longer than any.
pub fn decode(input: &[u8]) -> Result<Option<(Reply, usize)>, Malformed> {
    let mut taken = 0;
    let mut reply: Option<Reply> = None;
    for raw in input.split_inclusive(|b| *b == b'\n') {
        if raw.len() > FTP_REPLY_LINE_MAX {
            return Err(Malformed::TooLong);
        }
        let Some(body) = raw.strip_suffix(b"\n") else { break };
        taken += raw.len();
        let body = line::unescape(body.strip_suffix(b"\r").unwrap_or(body));
        if body.contains(&0) {
            return Err(Malformed::Byte);
        }
        let head = code(&body);
        let text = |from: usize| body.get(from..).unwrap_or_default().to_vec();
        match &mut reply {
            None => {
                let (code, more) = head.ok_or(Malformed::Code)?;
                let first = Reply { code, lines: vec![text(4)] };
                if !more {
                    return Ok(Some((first, taken)));
                }
                reply = Some(first);
            }
            Some(reply) if reply.lines.len() >= FTP_REPLY_LINES_MAX => {
                return Err(Malformed::TooLong);
            }
            Some(reply) if head == Some((reply.code, false)) => {
                reply.lines.push(text(4));
                let code = reply.code;
                return Ok(Some((Reply { code, lines: std::mem::take(&mut reply.lines) }, taken)));
            }
            Some(reply) => reply.lines.push(body.strip_prefix(b" ").unwrap_or(&body).to_vec()),
        }
    }
    Ok(None)
}

/// The code of a line, and whether more lines follow.
fn code(line: &[u8]) -> Option<(u16, bool)> {
    let (digits, rest) = line.split_at_checked(3)?;
    let code = digits.iter().try_fold(0u16, |sum, digit| {
        digit.is_ascii_digit().then(|| sum * 10 + u16::from(digit - b'0'))
    })?;
    match rest.first() {
        Some(b'-') => Some((code, true)),
        Some(b' ') | None => Some((code, false)),
        Some(_) => None,
    }
}
