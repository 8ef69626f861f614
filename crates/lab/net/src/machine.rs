//! A thread in a transaction: which act is next. Pure; the clock is handed in.

use crate::script::TransactionScript;

/// A thread in a transaction.
#[derive(Debug)]
pub struct Machine<'a> {
    script: &'a TransactionScript,
    begin_ns: u64,
    until_ns: Option<u64>,
    iteration: u64,
    act: usize,
    repeat: u64,
}

/// What is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// This act, for the `n`-th time.
    Act {
        /// Its index.
        act: usize,
        /// How often it was performed before.
        n: u64,
    },
    /// Nothing until this time, ns.
    Wait(u64),
    /// The transaction has ended for this thread.
    End,
}

impl<'a> Machine<'a> {
    /// At the begin of a transaction.
    pub fn new(script: &'a TransactionScript, begin_ns: u64) -> Self {
        let until_ns = script.duration_ns.map(|duration| begin_ns.saturating_add(duration));
        Self { script, begin_ns, until_ns, iteration: 0, act: 0, repeat: 0 }
    }

    /// When it ends by its duration, ns.
    pub fn until_ns(&self) -> Option<u64> {
        self.until_ns
    }

    /// What is next at this time; `stopped` ends it before the next act.
    pub fn next_act(&self, now_ns: u64, stopped: bool) -> Next {
        let over = match self.until_ns {
            Some(until_ns) => now_ns >= until_ns,
            None => self.iteration >= self.script.iterations,
        };
        if over || stopped || self.script.acts.is_empty() {
            return Next::End;
        }
        if let Some(rate) = self.script.rate.filter(|_| self.act == 0 && self.repeat == 0) {
            let after = u128::from(self.iteration) * 1_000_000_000 / u128::from(rate.max(1));
            let due_ns = self.begin_ns.saturating_add(after as u64);
            if now_ns < due_ns {
                return Next::Wait(self.until_ns.map_or(due_ns, |until_ns| due_ns.min(until_ns)));
            }
        }
        let count = self.script.acts.get(self.act).map_or(1, |act| act.count);
        let n = self.iteration.saturating_mul(count).saturating_add(self.repeat);
        Next::Act { act: self.act, n }
    }

    /// The act was performed.
    pub fn done(&mut self) {
        let count = self.script.acts.get(self.act).map_or(1, |act| act.count);
        self.repeat += 1;
        if self.repeat >= count {
            (self.repeat, self.act) = (0, self.act + 1);
        }
        if self.act >= self.script.acts.len() {
            (self.act, self.iteration) = (0, self.iteration + 1);
        }
    }
}

#[cfg(test)]
mod tests;
