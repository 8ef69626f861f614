//! The window of command numbers (RFC 7143 §4.2.2.1): the only thing that holds an initiator back.

use wire::iscsi::Serial;

/// The window of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    expected: Serial,
    size: u32,
    /// Commands that were taken and have not ended, immediate ones apart.
    open: u32,
}

/// What to do with a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Take it.
    Take,
    /// Be silent: it is outside of the window, or was there before (§4.2.2.1).
    Ignore,
}

impl Window {
    /// A window of `size` commands, of which the first has this number.
    pub const fn new(first: Serial, size: u32) -> Self {
        Self { expected: first, size, open: 0 }
    }

    /// The number that is expected next (ExpCmdSN).
    pub const fn expected(&self) -> Serial {
        self.expected
    }

    /// The last number that is taken (MaxCmdSN); before the expected one if none is. It never goes
    /// back: a command that is taken moves the start, and its end gives its place back.
    pub const fn last(&self) -> Serial {
        self.expected.plus(self.size.saturating_sub(self.open)).minus(1)
    }

    /// A command that is not immediate has come. Commands of one connection come in order, so that
    /// one beyond the expected has no way to become due.
    pub fn judge(&mut self, number: Serial) -> Verdict {
        if number != self.expected || self.open >= self.size {
            return Verdict::Ignore;
        }
        self.expected = self.expected.next();
        self.open += 1;
        Verdict::Take
    }

    /// A command that was taken has ended.
    pub fn end(&mut self) {
        self.open = self.open.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests;
