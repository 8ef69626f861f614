//! What is answered to a command.

use std::borrow::Cow;

use wire::ftp::reply::{self, Multi};

/// A reply: a code, a text, and perhaps lines after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) text: Cow<'static, [u8]>,
    /// The lines, and the text of the last one.
    pub(super) more: Option<(Vec<Vec<u8>>, &'static str)>,
}

/// What a handler gives: either is a reply.
pub(super) type Outcome = Result<Answer, Answer>;

impl Answer {
    pub(super) const fn of(code: u16, text: &'static str) -> Self {
        Self { code, text: Cow::Borrowed(text.as_bytes()), more: None }
    }

    pub(super) fn with(code: u16, text: impl Into<Vec<u8>>) -> Self {
        Self { code, text: Cow::Owned(text.into()), more: None }
    }

    pub(super) fn lines(code: u16, text: &'static str, lines: Vec<Vec<u8>>) -> Self {
        Self { more: Some((lines, "End.")), ..Self::of(code, text) }
    }

    /// Appends it to `out` in its wire format.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match &self.more {
            None => reply::single(out, self.code, &self.text),
            Some((lines, last)) => {
                let mut multi = Multi::begin(out, self.code, &self.text);
                lines.iter().for_each(|line| multi.line(line));
                multi.end(last.as_bytes());
            }
        }
    }
}
