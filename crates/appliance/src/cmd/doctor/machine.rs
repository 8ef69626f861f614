//! The machine itself: kernel, cores, memory, descriptors, the clock.

use std::fs;

use super::finding::Finding;
use crate::sys;

/// The flight recorder takes a quarter of that.
const MEMORY: u64 = 1 << 30;
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
    let bytes = memory_bytes();
    Finding::new(
        "memory",
        "the flight recorder alone keeps 256 MiB",
        "the same, but the page cache will be small",
        "1 GiB or more",
    )
    .is(bytes >= MEMORY, base::units::bytes(bytes as f64))
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

fn memory_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
