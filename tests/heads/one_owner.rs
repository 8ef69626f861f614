//! Watches all the time that at most one server of each resource exists.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the processes are listed.
const EVERY: Duration = Duration::from_millis(10);

/// The watch.
pub struct OneOwner {
    states: Vec<[String; 2]>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<u64>>,
}

impl OneOwner {
    /// Watches servers by their state directories: those of each resource, by head.
    pub fn watch(states: Vec<[PathBuf; 2]>) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let until = ends.clone();
        let text = |state: [PathBuf; 2]| state.map(|state| state.display().to_string());
        let states: Vec<_> = states.into_iter().map(text).collect();
        let watched = states.clone();
        let work = move || {
            let mut seen = 0;
            while !until.load(Ordering::SeqCst) {
                for resource in &watched {
                    let servers = servers(resource);
                    assert!(servers.len() < 2, "several servers at one time: {servers:?}");
                    seen += servers.len() as u64;
                }
                std::thread::sleep(EVERY);
            }
            seen
        };
        Self { states, ends, thread: Some(std::thread::spawn(work)) }
    }

    /// Servers that exist now.
    pub fn servers(&self) -> Vec<u32> {
        self.states.iter().flat_map(servers).collect()
    }

    /// Whether no second server was seen so far.
    pub fn holds(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Ends the watch.
    pub fn check(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        let Some(thread) = self.thread.take() else { return };
        let seen = thread.join().expect("one server at a time");
        assert!(seen > 0, "no server was seen at all");
        println!("one server each of the {seen} times that one was seen");
    }
}

impl Drop for OneOwner {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
    }
}

/// Servers with one of these state directories, without their children between fork and exec. A
/// process that has ended has no command line, and frees its locks after that.
fn servers(states: &[String; 2]) -> Vec<u32> {
    let found: Vec<(u32, u32)> = fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let mut words = line.split(|byte| *byte == 0);
            words.nth(1) == Some(b"serve")
                && words.any(|word| states.iter().any(|s| word == s.as_bytes()))
        })
        .map(|pid| (pid, parent(pid)))
        .collect();
    let is_child = |parent: u32| found.iter().any(|(pid, _)| *pid == parent);
    found.iter().filter(|(_, parent)| !is_child(*parent)).map(|(pid, _)| *pid).collect()
}

fn parent(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    line.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}
