//! Cleanup: a run that is requested to end removes what it has made, and the leftovers of a run
//! that was killed are removed by the next.
//!
//! All that a run makes outside of its process has the process's number in its name: the
//! namespaces, the folder with its files, the control groups. So it is found without a record.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, PipeReader, Read};
use std::os::fd::IntoRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use crate::group;

#[cfg(test)]
mod tests;

/// Prefix of the names of a run's namespaces, followed by its process's number and the end.
const NAMESPACE: &str = "plimsoll-bench-";
/// Prefix of the name of a run's folder, followed by its process's number.
const FOLDER: &str = "bench-distance.";
/// Where `ip netns` keeps namespaces by their names.
const NAMESPACES: &str = "/run/netns";

/// Whether this run was requested to end.
static ASKED: AtomicBool = AtomicBool::new(false);
/// The pipe that signal handlers write to; none before [`watch`].
static TELLS: AtomicI32 = AtomicI32::new(-1);

/// The folder of a run with this number.
pub fn folder(scratch: &Path, run: u32) -> PathBuf {
    scratch.join(format!("{FOLDER}{run}"))
}

/// The namespace at one end of a run with this number.
pub fn namespace(run: u32, end: &str) -> String {
    format!("{NAMESPACE}{run}-{end}")
}

/// Removes the leftovers of runs that have ended.
pub fn sweep(scratch: &Path) {
    for run in left(scratch) {
        if !Path::new(&format!("/proc/{run}")).exists() {
            eprintln!("bench: putting away what run {run} has left, which was killed");
            clear(scratch, run);
        }
    }
}

/// Makes SIGTERM, SIGINT and SIGHUP end the run cleanly: the program of the turn is ended, and
/// [`ended`] returns the reason. A second signal does not wait for that.
///
/// # Errors
/// No pipe, or no thread.
pub fn watch(scratch: &Path) -> io::Result<()> {
    let (signals, tells) = io::pipe()?;
    TELLS.store(tells.into_raw_fd(), Ordering::Release);
    let scratch = scratch.to_owned();
    std::thread::Builder::new().name("asked".to_owned()).spawn(move || end(&scratch, signals))?;
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        // SAFETY: all zeros are a valid action; the handler only writes to a pipe. Child processes
        // have the default again, unlike with a signal that is blocked.
        let set = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = notify as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut())
        };
        if set != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Whether the run continues.
///
/// # Errors
/// It was requested to end.
pub fn ended() -> io::Result<()> {
    match ASKED.load(Ordering::Acquire) {
        true => Err(io::Error::new(io::ErrorKind::Interrupted, "asked to end")),
        false => Ok(()),
    }
}

extern "C" fn notify(_signal: libc::c_int) {
    let byte = 0u8;
    // SAFETY: write(2) may be called in a handler; the buffer has one byte. A full pipe is enough.
    unsafe { libc::write(TELLS.load(Ordering::Acquire), (&raw const byte).cast(), 1) };
}

fn end(scratch: &Path, mut signals: PipeReader) {
    let (own, mut byte) = (std::process::id(), [0]);
    while signals.read_exact(&mut byte).is_ok() {
        if ASKED.swap(true, Ordering::AcqRel) {
            clear(scratch, own);
            std::process::exit(1);
        }
        eprintln!("bench: asked to end; a second time, and it does not wait for the turn");
        // The thread that waits for the turn continues, finds the reason, and removes everything.
        kill(within(&namespace(own, "near")));
    }
}

/// Numbers of runs with leftovers.
fn left(scratch: &Path) -> BTreeSet<u32> {
    let names = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let folders = names(scratch);
    let folders = folders.iter().filter_map(|name| name.strip_prefix(FOLDER)?.parse().ok());
    let namespaces = names(Path::new(NAMESPACES));
    let namespaces = namespaces.iter().filter_map(|name| name.strip_prefix(NAMESPACE));
    let namespaces = namespaces.filter_map(|name| name.split_once('-')?.0.parse().ok());
    folders.chain(namespaces).collect()
}

/// Removes all that a run has made.
fn clear(scratch: &Path, run: u32) {
    let ends = ["near", "far"].map(|end| namespace(run, end));
    kill(bridges(&ends));
    for namespace in ends.iter().filter(|name| Path::new(NAMESPACES).join(name).exists()) {
        kill(within(namespace));
        let _ = Command::new("ip").args(["netns", "del", namespace]).status();
    }
    let _ = fs::remove_dir_all(folder(scratch, run));
    group::clear(run);
}

/// Processes in a namespace.
fn within(namespace: &str) -> Vec<i32> {
    let said = Command::new("ip").args(["netns", "pids", namespace]).output();
    let said = said.map(|said| said.stdout).unwrap_or_default();
    String::from_utf8_lossy(&said).lines().filter_map(|line| line.trim().parse().ok()).collect()
}

/// Bridges between such namespaces, which do not run in them.
fn bridges(namespaces: &[String]) -> Vec<i32> {
    let ends: Vec<String> = namespaces.iter().map(|name| format!("ns:{name}@")).collect();
    let joins = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<_> = line.split(|b| *b == 0).map(String::from_utf8_lossy).collect();
        words.get(1).is_some_and(|word| word == "bridge")
            && words.iter().any(|word| ends.iter().any(|end| word.starts_with(end)))
    };
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    all.filter(joins).collect()
}

fn kill(processes: Vec<i32>) {
    for pid in processes.into_iter().filter(|pid| *pid > 1) {
        // SAFETY: takes two numbers; the error for a process that is gone is of no interest.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
}
