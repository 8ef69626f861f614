//! Whether clients reach the address of a resource at this head, from single looks at its link and
//! its probes: one that fails proves nothing.

use crate::limits::{HEAD_REACH_FAILURES, HEAD_REACH_SUCCESSES};

/// What was found so far.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Watch {
    cut: Option<String>,
    /// Looks in a row with another result.
    others: u32,
}

impl Watch {
    /// Why clients do not reach it, if they do not.
    pub fn cut(&self) -> Option<&str> {
        self.cut.as_deref()
    }

    /// Enters a look; whether it has changed the result.
    pub fn enter(&mut self, look: Result<(), String>) -> bool {
        let (differs, enough) = match self.cut {
            None => (look.is_err(), HEAD_REACH_FAILURES),
            Some(_) => (look.is_ok(), HEAD_REACH_SUCCESSES),
        };
        self.others = if differs { self.others + 1 } else { 0 };
        let changes = self.others >= enough;
        if changes {
            (self.cut, self.others) = (look.err(), 0);
        }
        changes
    }
}

#[cfg(test)]
mod tests;
