//! The chunked transfer coding (RFC 9112 §7.1), pure: where the data is in what came.
//!
//! Chunk extensions and trailer fields are bounded and ignored.

use base::limits::{HTTP_CHUNK_LINE_MAX, HTTP_HEAD_MAX};

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The digits of a size.
    Size { size: u64, digits: usize, line: usize },
    /// What follows the size on its line.
    Extension { size: u64, line: usize },
    /// The line feed of a size's line.
    SizeEnd { size: u64 },
    /// Bytes of data.
    Data { left: u64 },
    /// The carriage return behind the data.
    DataReturn,
    /// The line feed behind it.
    DataEnd,
    /// A trailer's line, this many bytes of it.
    Trailer { line: usize, all: usize },
    /// The line feed of a trailer's line; whether the line was empty.
    TrailerEnd { empty: bool, all: usize },
    /// Nothing more.
    End,
}

/// An invalid chunk: the peer's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the chunks are malformed")]
pub struct ChunkError;

/// What a step has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkStep {
    /// This many bytes that are not data.
    Skip(usize),
    /// This many bytes of data.
    Data(usize),
    /// The body has ended.
    End,
}

/// How far a body has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunks {
    state: State,
}

impl Default for Chunks {
    fn default() -> Self {
        Self { state: State::Size { size: 0, digits: 0, line: 0 } }
    }
}

impl Chunks {
    /// Whether the body has ended.
    pub fn has_ended(&self) -> bool {
        self.state == State::End
    }

    /// How many bytes of data are still to come of the chunk at hand; they may be taken without
    /// being shown here, by [`Chunks::took`].
    pub fn left(&self) -> u64 {
        match self.state {
            State::Data { left } => left,
            _ => 0,
        }
    }

    /// This many bytes of data were taken: not more than are left.
    pub fn took(&mut self, count: u64) {
        if let State::Data { left } = self.state {
            let left = left.saturating_sub(count);
            self.state = if left == 0 { State::DataReturn } else { State::Data { left } };
        }
    }

    /// Looks at what came: all of `bytes` up to the next data, or data. What is found counts as
    /// taken.
    ///
    /// # Errors
    /// The chunks are invalid.
    pub fn step(&mut self, bytes: &[u8]) -> Result<ChunkStep, ChunkError> {
        let mut used = 0;
        for byte in bytes {
            if let State::Data { left } = self.state {
                if used > 0 {
                    break;
                }
                let count = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                self.took(count as u64);
                return Ok(ChunkStep::Data(count));
            }
            if self.state == State::End {
                break;
            }
            self.state = self.state.after(*byte)?;
            used += 1;
        }
        Ok(if used == 0 && self.state == State::End {
            ChunkStep::End
        } else {
            ChunkStep::Skip(used)
        })
    }
}

impl State {
    fn after(self, byte: u8) -> Result<Self, ChunkError> {
        Ok(match (self, byte) {
            (Self::Size { size, digits: 1.., .. }, b'\r') => Self::SizeEnd { size },
            (Self::Size { size, digits: 1.., line }, b';' | b' ' | b'\t') => {
                Self::Extension { size, line }
            }
            (Self::Size { size, digits, line }, byte) => {
                let digit = char::from(byte).to_digit(16).ok_or(ChunkError)?;
                // No more digits than fit, zeros in front included.
                if digits >= 15 {
                    return Err(ChunkError);
                }
                Self::Size {
                    size: size << 4 | u64::from(digit),
                    digits: digits + 1,
                    line: line + 1,
                }
            }
            (Self::Extension { size, .. }, b'\r') => Self::SizeEnd { size },
            (Self::Extension { .. }, b'\n' | 0) => return Err(ChunkError),
            (Self::Extension { size, line }, _) if line < HTTP_CHUNK_LINE_MAX => {
                Self::Extension { size, line: line + 1 }
            }
            (Self::SizeEnd { size: 0 }, b'\n') => Self::Trailer { line: 0, all: 0 },
            (Self::SizeEnd { size }, b'\n') => Self::Data { left: size },
            (Self::DataReturn, b'\r') => Self::DataEnd,
            (Self::DataEnd, b'\n') => Self::default_size(),
            (Self::Trailer { line, all }, b'\r') => Self::TrailerEnd { empty: line == 0, all },
            (Self::Trailer { .. }, b'\n' | 0) => return Err(ChunkError),
            (Self::Trailer { line, all }, _) if all < HTTP_HEAD_MAX => {
                Self::Trailer { line: line + 1, all: all + 1 }
            }
            (Self::TrailerEnd { empty: true, .. }, b'\n') => Self::End,
            (Self::TrailerEnd { empty: false, all }, b'\n') => Self::Trailer { line: 0, all },
            _ => return Err(ChunkError),
        })
    }

    const fn default_size() -> Self {
        Self::Size { size: 0, digits: 0, line: 0 }
    }
}

#[cfg(test)]
mod tests;
