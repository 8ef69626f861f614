//! What the allocator of this process has handed out, and giving back what it keeps of freed
//! memory.

/// Gives back what the allocator keeps of freed memory. Worth it after work that is rare and takes
/// much: the GNU allocator keeps up to 64 MiB at the end of each of its heaps, and all that lies
/// below something that is still in use. Takes a millisecond for some hundred MiB; elsewhere it
/// does nothing.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes a number and touches only free memory.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Bytes that are allocated now and not freed, over all threads; `None` where the allocator does
/// not count them. Takes the lock of each of its heaps for a moment.
#[must_use]
pub fn allocated() -> Option<u64> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: takes nothing, and returns a structure of numbers.
        let heap = unsafe { libc::mallinfo2() };
        Some((heap.uordblks + heap.hblkhd) as u64)
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    None
}

/// Freed bytes after which memory is given back: below it, keeping it costs less than asking for it
/// again.
const FREED_MIN: u64 = 32 << 20;

/// Decides when to give memory back: when this much less is allocated than at the most since the
/// last time.
#[derive(Debug, Default)]
pub struct Trim {
    most: u64,
}

impl Trim {
    /// Gives memory back if `allocated` has fallen far enough; whether it did.
    pub fn observe(&mut self, allocated: u64) -> bool {
        let fallen = self.most.saturating_sub(allocated) >= FREED_MIN;
        if fallen {
            give_back();
        }
        self.most = if fallen { allocated } else { self.most.max(allocated) };
        fallen
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests;
