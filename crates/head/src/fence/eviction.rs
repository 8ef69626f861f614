//! Eviction of the CephFS client of a head that was lost. CephFS keeps locks and capabilities of a
//! client that is silent for minutes, and until then even opening a file of its may wait. An
//! evicted client is refused by all OSDs, so nothing that it still writes reaches the file system.
//!
//! Its machine cannot use its mount any more until it is mounted again. So a client is evicted only
//! if the lock on the state directory is not free soon: a head may have died without its machine.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

use super::program;
use crate::mounts;

/// How long the lock may take before: several times what CephFS needs if the client answers.
const AFTER: Duration = Duration::from_millis(500);
/// How often it is tried again.
const AGAIN: Duration = Duration::from_secs(2);

/// What to evict, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evict {
    /// The number of the client.
    pub client: u64,
    /// The command without the number.
    pub command: Vec<String>,
}

/// An eviction that happens unless this value is dropped before.
#[derive(Debug)]
pub(super) struct Eviction {
    _ends: Sender<()>,
}

impl Eviction {
    /// Prepares it, for this state directory.
    pub(super) fn prepare(evict: &Evict, state: &Path) -> Option<Self> {
        let (ends, ended) = mpsc::channel();
        let (evict, state) = (evict.clone(), PathBuf::from(state));
        let work = move || {
            let mut wait = AFTER;
            while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                if mounts::ceph_client(&state) == Some(evict.client) {
                    // This machine has the same mount, and another process the lock.
                    return;
                }
                let client = evict.client;
                match evict.run() {
                    Ok(()) => {
                        base::warning!("head", "the CephFS client {client} was evicted");
                        return;
                    }
                    Err(why) => {
                        base::warning!("head", "the CephFS client {client} is not evicted: {why}");
                    }
                }
                wait = AGAIN;
            }
        };
        // Without a thread the lock is waited for.
        std::thread::Builder::new().name("eviction".to_owned()).spawn(work).ok()?;
        Some(Self { _ends: ends })
    }
}

impl Evict {
    fn run(&self) -> Result<(), String> {
        let (program, words) = self.command.split_first().ok_or("there is no command")?;
        let mut command = Command::new(program);
        command.args(words).arg(format!("id={}", self.client));
        program::run(command, Path::new(program))
    }
}
