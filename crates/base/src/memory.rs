//! Memory that is free inside of this process and of no use to it goes back to the system.

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

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests;
