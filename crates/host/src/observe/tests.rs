//! A captured machine for the tests of this module, and an observer of this process.

use super::*;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that stands for `/`. It goes with this value.
pub(super) struct Machine {
    pub root: Root,
    dir: PathBuf,
}

impl Machine {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("plimsoll-observe-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        Self { root: Root::at(&dir), dir }
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub fn file(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        std::fs::write(self.at(name), text).unwrap();
    }

    pub fn link(&self, name: &str, to: &str) {
        std::fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        symlink(to, self.at(name)).unwrap();
    }

    /// A process: parent, ticks of its own, ticks of its children that have ended.
    pub fn process(&self, pid: u32, parent: u32, own: u64, ended: u64) {
        let stat = format!(
            "{pid} (a (b) c) S {parent} 1 1 0 -1 0 0 0 0 0 {own} 0 {ended} 0 20 0 1 0 77 1000 10 0"
        );
        self.file(&format!("proc/{pid}/stat"), &stat);
    }

    pub fn end(&self, pid: u32) {
        std::fs::remove_dir_all(self.at(&format!("proc/{pid}"))).unwrap();
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn this_process_with_a_file_of_a_run() {
    let machine = Machine::new();
    machine.file("plimsoll-lab.0", &"x".repeat(100_000));
    let file = std::fs::File::open(machine.at("plimsoll-lab.0")).unwrap();
    let own = std::process::id();
    let mut observer = Observer::new(Root::default(), &[own], None, Hints::default());
    let sample = observer.sample().unwrap();
    let family = sample.family.unwrap();
    assert_eq!(family.processes[0], own);
    assert!(family.cpu_ns > 0 && family.resident > 0, "{family:?}");
    assert!(sample.interfaces.iter().any(|i| i.name == "lo"), "{:?}", sample.interfaces);
    assert!(sample.memory_available > 0 && sample.cost_ns > 0);
    // The folder is found by the open file; what is below it differs from machine to machine.
    assert!(observer.folder().unwrap().ends_with(machine.dir.strip_prefix("/").unwrap()));
    assert!(!sample.devices.is_empty() || sample.no_device.is_some());
    let pages = sample.pages.unwrap();
    assert_eq!(pages.all, 100_000u64.div_ceil(base::memory::page_size()));
    assert_eq!(pages.resident, pages.all, "it was just written");
    drop(file);
}

#[test]
fn a_server_that_has_ended_gives_no_sample() {
    let machine = Machine::new();
    machine.process(10, 1, 5, 0);
    let mut observer = Observer::new(machine.root.clone(), &[10], None, Hints::default());
    assert!(observer.sample().is_some());
    machine.end(10);
    assert!(observer.sample().is_none());
}

#[test]
fn a_stated_path_is_what_is_observed() {
    let path = Path::new("/proc");
    let hints = Hints { path: Some(path.to_owned()), ..Default::default() };
    let mut observer = Observer::new(Root::default(), &[std::process::id()], None, hints);
    let sample = observer.sample().unwrap();
    assert_eq!(sample.no_device.as_deref(), Some("the file system proc has no device"));
}
