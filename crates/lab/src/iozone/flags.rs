//! Options of IOzone's throughput mode.

use lab_program::limits::IO_MAX;
use serde::{Deserialize, Serialize};

/// Children at most: each is a thread with a connection.
const CHILDREN_MAX: u32 = 1024;
/// Records between two reads of the stride test, as in IOzone.
pub const STRIDE: u64 = 17;

/// A test of all children.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// A new file from start to end.
    Write,
    /// The same file again.
    Rewrite,
    /// From start to end.
    Read,
    /// Once more.
    Reread,
    /// From end to start.
    Reverse,
    /// Each record once, a stride apart.
    Stride,
    /// Each record once, in a random order.
    RandomRead,
    /// Children with even numbers read at random, the others write.
    Mixed,
    /// Each record once, in a random order.
    RandomWrite,
}

/// A block of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Number of the test, as of `-i`.
    pub number: u8,
    /// What IOzone names its children there.
    pub title: &'static str,
    /// What they do.
    pub test: Test,
    /// Another block that does the same: over a protocol the calls are the same.
    pub same_as: Option<&'static str>,
    /// Left out with `-+n`.
    pub retest: bool,
}

const fn block(number: u8, title: &'static str, test: Test) -> Block {
    Block { number, title, test, same_as: None, retest: false }
}

const fn again(number: u8, title: &'static str, test: Test) -> Block {
    Block { retest: true, ..block(number, title, test) }
}

const fn same(number: u8, title: &'static str, test: Test, like: &'static str) -> Block {
    Block { same_as: Some(like), ..block(number, title, test) }
}

/// All blocks, in IOzone's order.
pub const BLOCKS: [Block; 13] = [
    block(0, "initial writers", Test::Write),
    again(0, "rewriters", Test::Rewrite),
    block(1, "readers", Test::Read),
    again(1, "re-readers", Test::Reread),
    block(3, "reverse readers", Test::Reverse),
    block(5, "stride readers", Test::Stride),
    block(2, "random readers", Test::RandomRead),
    block(8, "mixed workload", Test::Mixed),
    block(2, "random writers", Test::RandomWrite),
    same(9, "pwrite writers", Test::Write, "initial writers"),
    same(10, "pread readers", Test::Read, "readers"),
    same(6, "fwriters", Test::Write, "initial writers"),
    same(7, "freaders", Test::Read, "readers"),
];

/// What is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Children.
    pub threads: u32,
    /// Bytes of each file.
    pub size: u64,
    /// Bytes of each record.
    pub record: u64,
    /// Tests by number; none for all.
    pub tests: Vec<u8>,
    /// No rewrite and no re-read (`-+n`).
    pub no_retest: bool,
    /// The time includes a flush (`-e`).
    pub flush: bool,
    /// The time includes the close (`-c`).
    pub close: bool,
    /// Each write is stable (`-o`).
    pub sync: bool,
    /// Files stay (`-w`).
    pub keep: bool,
    /// All children go to their end (`-x`).
    pub no_stonewall: bool,
    /// Records between two reads of the stride test (`-j`).
    pub stride: u64,
}

impl Settings {
    /// Checks what belongs together.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub fn check(&self) -> Result<(), String> {
        let Self { threads, size, record, .. } = *self;
        if !(1..=CHILDREN_MAX).contains(&threads) {
            return Err(format!("-t {threads}: use 1 to {CHILDREN_MAX} children"));
        }
        if record == 0 || record > IO_MAX {
            return Err("-r: a record has 1 byte to 64m".into());
        }
        if size < record || !size.is_multiple_of(record) {
            return Err("-s: the size of a file is a multiple of its records (-r)".into());
        }
        if self.stride == 0 {
            return Err("-j: the stride is at least 1 record".into());
        }
        for test in &self.tests {
            match test {
                4 | 11 | 12 => {
                    let why = "has no throughput form in IOzone: omit it";
                    return Err(format!("-i {test} {why}"));
                }
                _ if BLOCKS.iter().any(|block| block.number == *test) => {}
                _ => return Err(format!("-i {test} is not a test: 0 to 3 and 5 to 10 are")),
            }
        }
        Ok(())
    }

    /// The blocks that are printed.
    pub fn blocks(&self) -> Vec<Block> {
        let is_chosen = |block: &&Block| {
            (self.tests.is_empty() || self.tests.contains(&block.number))
                && !(self.no_retest && block.retest)
        };
        BLOCKS.iter().filter(is_chosen).copied().collect()
    }

    /// Whether files must exist before the first test: no test writes them.
    pub fn needs_files(&self) -> bool {
        self.blocks().first().is_some_and(|block| block.test != Test::Write)
    }
}

/// A size as IOzone has it: `k`, `m`, `g`, and kB without a unit.
///
/// # Errors
/// It is not a size.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || "use a number with k, m or g; kB without one".to_owned();
    let (number, unit) = match text.to_ascii_lowercase().chars().last() {
        Some('k') => (&text[..text.len() - 1], 10),
        Some('m') => (&text[..text.len() - 1], 20),
        Some('g') => (&text[..text.len() - 1], 30),
        _ => (text, 10),
    };
    let number: u64 = base::text::decimal(number).ok_or_else(wrong)?;
    number.checked_mul(1 << unit).ok_or_else(wrong)
}

#[cfg(test)]
mod tests;
