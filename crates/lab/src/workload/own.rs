//! Places of threads that each go through files of their own: with T threads, thread n takes files
//! n, n + T, n + 2T, and so on.

/// Where one thread is.
#[derive(Debug, Clone, Copy, Default)]
struct Position {
    file: u32,
    block: u64,
    /// It has come through its files, and does not start again.
    ended: bool,
    /// File that it has written to the end and not committed.
    due: Option<u32>,
}

/// A block that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    /// Its file.
    pub file: u32,
    /// Number within the file.
    pub number: u64,
    /// Whether it is the last one of a file.
    pub last: bool,
    /// Whether it is one of another thread's file.
    pub helps: bool,
}

/// The places of all threads of a client.
#[derive(Debug, Clone)]
pub(super) struct Own {
    files: u32,
    blocks: u64,
    threads: u32,
    once: bool,
    places: Vec<Position>,
}

impl Own {
    /// For this number of files, each with this number of blocks.
    pub(super) fn new(files: u32, blocks: u64) -> Self {
        let (files, blocks) = (files.max(1), blocks.max(1));
        Self { files, blocks, threads: 0, once: false, places: Vec::new() }
    }

    /// A step with this number of threads begins. If each block is to be read once, all files are
    /// read from their start; else threads continue where they were, if they are as many.
    pub(super) fn begin(&mut self, threads: u32, once: bool) {
        if once || self.once || threads != self.threads {
            let place = |thread: u32| Position {
                file: thread % self.files,
                ended: once && thread >= self.files,
                ..Position::default()
            };
            self.places = (0..threads).map(place).collect();
        }
        (self.threads, self.once) = (threads.max(1), once);
    }

    /// The next block of a thread. One that has come through its files helps the thread with most
    /// left, so that the load stays the same to the end.
    pub(super) fn next(&mut self, thread: u32) -> Option<Block> {
        let ended = self.places.get(thread as usize)?.ended;
        let from = if ended { self.with_most_left()? } else { thread };
        let (files, blocks, threads, once) = (self.files, self.blocks, self.threads, self.once);
        let place = self.places.get_mut(from as usize)?;
        let (file, number) = (place.file, place.block);
        let last = number + 1 >= blocks;
        place.block = if last { 0 } else { number + 1 };
        if last {
            let next = file + threads;
            place.ended = once && next >= files;
            place.file = if next < files { next } else { from % files };
        }
        Some(Block { file, number, last, helps: from != thread })
    }

    fn with_most_left(&self) -> Option<u32> {
        let left = |place: &Position| {
            let later = self.files.saturating_sub(place.file + 1) / self.threads;
            u64::from(later) * self.blocks + self.blocks - place.block
        };
        let working = (0..).zip(&self.places).filter(|(_, place)| !place.ended);
        working.max_by_key(|(_, place)| left(place)).map(|(thread, _)| thread)
    }

    /// Notes that a thread has to commit this file next.
    pub(super) fn commit_next(&mut self, thread: u32, file: u32) {
        if let Some(place) = self.places.get_mut(thread as usize) {
            place.due = Some(file);
        }
    }

    /// The file that a thread has to commit.
    pub(super) fn due(&mut self, thread: u32) -> Option<u32> {
        self.places.get_mut(thread as usize)?.due.take()
    }

    /// A thread starts with this file again: what the server had of it was lost.
    pub(super) fn again(&mut self, thread: u32, file: u32) {
        if let Some(place) = self.places.get_mut(thread as usize) {
            (place.file, place.block, place.due) = (file, 0, None);
        }
    }
}

#[cfg(test)]
mod tests;
