//! The machine itself: kernel, cores, memory, descriptors, the clock.

use std::fs;

use super::finding::Finding;
use crate::cmd::memory;
use crate::sys;

/// Some thousand connections and as many open files.
const DESCRIPTORS: u64 = 20_000;

/// Everything about it.
pub fn findings() -> Vec<Finding> {
    let fact = |id, found| Finding::new(id, "", "", "").is(true, found);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    vec![
        fact("kernel", first_line("/proc/sys/kernel/osrelease")),
        fact("cores", cores.to_string()),
        memory(),
        descriptors(),
        clock(),
    ]
}

fn memory() -> Finding {
    let finding = Finding::new(
        "memory",
        "the flight recorder keeps 256 MiB, and each service may hold as much of requests",
        "both are smaller, in proportion to the memory that this process may use",
        "4 GiB or more, and no less in MemoryMax= of the service manager",
    );
    let (Some(memory), sizes) = memory::here() else {
        return finding.unknown("/proc/meminfo cannot be read");
    };
    let found = format!("{}, {}", base::units::bytes(memory.bytes as f64), memory.bound);
    match sizes.reduced() {
        None => finding.is(true, found),
        Some(reduced) => finding.is(false, format!("{found}: {reduced}")),
    }
}

fn descriptors() -> Finding {
    let most = sys::file_limit().map_or(0, |(_, hard)| hard);
    Finding::new(
        "open files",
        "descriptors for connections and open files",
        "fewer connections and a smaller cache of open files",
        "ulimit -Hn 65536, or LimitNOFILE= of the service manager",
    )
    .is(most >= DESCRIPTORS, format!("at most {most}"))
}

fn clock() -> Finding {
    let finding = Finding::new(
        "time",
        "times of files and statistics agree between machines",
        "this machine's own clock, as it goes",
        "chrony, or timedatectl set-ntp true",
    );
    match sys::clock_is_kept() {
        Ok(true) => finding.is(true, "the clock is kept right"),
        Ok(false) => finding.is(false, "nobody keeps the clock right"),
        Err(e) => finding.unknown(e.to_string()),
    }
}

/// The first line of a file of the kernel's.
pub fn first_line(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().lines().next().unwrap_or("unknown").to_owned()
}
