//! Which numbers of frames were there: a window behind the highest (as RFC 6479 has it for IPsec).

use base::limits::BRIDGE_REPLAY_WINDOW;

const WORDS: usize = (BRIDGE_REPLAY_WINDOW / 64) as usize;

/// The numbers of the window.
#[derive(Debug)]
pub struct Replay {
    /// One above the highest number taken.
    end: u64,
    /// A bit for each number of the window, at its place modulo the window.
    seen: [u64; WORDS],
}

impl Default for Replay {
    fn default() -> Self {
        Self { end: 0, seen: [0; WORDS] }
    }
}

fn place(number: u64) -> (usize, u64) {
    let at = number % BRIDGE_REPLAY_WINDOW;
    ((at / 64) as usize, 1 << (at % 64))
}

impl Replay {
    /// Whether this number was surely not there.
    pub fn is_new(&self, number: u64) -> bool {
        // The last number has no successor, and is never sent.
        if number >= self.end {
            return number < u64::MAX;
        }
        let (word, bit) = place(number);
        let seen = self.seen.get(word).is_none_or(|word| word & bit != 0);
        self.end - number <= BRIDGE_REPLAY_WINDOW && !seen
    }

    /// One above the highest number taken.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Notes a number that is new and was authentic.
    pub fn take(&mut self, number: u64) {
        if number >= self.end {
            // The places of those skipped are those of numbers that fall out of the window.
            let first = self.end.max((number + 1).saturating_sub(BRIDGE_REPLAY_WINDOW));
            for skipped in first..=number {
                self.mark(skipped, false);
            }
            self.end = number + 1;
        }
        self.mark(number, true);
    }

    fn mark(&mut self, number: u64, on: bool) {
        let (word, bit) = place(number);
        if let Some(word) = self.seen.get_mut(word) {
            *word = if on { *word | bit } else { *word & !bit };
        }
    }
}
