//! How the memory that this process may use is shared out, at start: the flight recorder, and what
//! the request buffers of each service have.

use base::limits::{
    BUFFERED_BYTES_MAX, BUFFERED_CORE_MIN, BUFFERED_MEMORY_PART, RECORDER_BYTES,
    RECORDER_MEMORY_PART,
};
use base::units;
use host::Root;
use host::memory::{Memory, available};

/// Bytes for what is sized at start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// The flight recorder, all cores together.
    pub recorder: usize,
    /// Requests and replies that one service may hold.
    pub buffered: usize,
}

/// The sizes without a memory limit.
const FULL: Sizes = Sizes { recorder: RECORDER_BYTES, buffered: BUFFERED_BYTES_MAX };

impl Sizes {
    /// With this much memory for a process that serves on `cores` cores.
    pub fn of(memory: Option<&Memory>, cores: usize) -> Self {
        let Some(memory) = memory else { return FULL };
        let part = |part: u64| usize::try_from(memory.bytes / part).unwrap_or(usize::MAX);
        let least = BUFFERED_CORE_MIN.saturating_mul(cores);
        Self {
            recorder: part(RECORDER_MEMORY_PART).min(FULL.recorder),
            buffered: part(BUFFERED_MEMORY_PART).max(least).min(FULL.buffered),
        }
    }

    /// What is less than where there is memory enough, as a sentence.
    pub fn reduced(&self) -> Option<String> {
        let size = |bytes: usize| units::bytes(bytes as f64);
        let part = |what: &str, is: usize, full: usize| {
            (is < full).then(|| format!("{what} {} instead of {}", size(is), size(full)))
        };
        let parts = [
            part("the flight recorder has", self.recorder, FULL.recorder),
            part("the request buffers of each service have", self.buffered, FULL.buffered),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// The memory that this process may use, and what comes of it.
pub fn here() -> (Option<Memory>, Sizes) {
    let memory = available(&Root::default());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let sizes = Sizes::of(memory.as_ref(), cores);
    (memory, sizes)
}

/// The sizes for a server that starts here; the log shows what is reduced, and why.
pub fn at_start() -> Sizes {
    let (memory, sizes) = here();
    if let (Some(memory), Some(reduced)) = (memory, sizes.reduced()) {
        let size = units::bytes(memory.bytes as f64);
        base::warning!("server", "memory is {size}, {}: {reduced}", memory.bound);
    }
    sizes
}

#[cfg(test)]
mod tests;
