//! What a client of each protocol comes to while another one holds a file: the table "Every pair"
//! in `docs/protocols/locks.md` is what the real server does. Each cell is an attempt on another
//! file, by another client than the holder, which answers what it is called for.
//! `UPDATE_GOLDEN=1` writes the table.

#[path = "lock_table/dsync.rs"]
mod dsync;
#[path = "lock_table/first.rs"]
mod first;
#[path = "lock_table/nfs4.rs"]
mod nfs4;
#[path = "lock_table/old_nfs.rs"]
mod old_nfs;
#[path = "lock_table/report.rs"]
mod report;
#[path = "lock_table/second.rs"]
mod second;
#[path = "lock_table/smb.rs"]
mod smb;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use e2e::smb::scene::{Scene, UID};
use e2e::{patience, ssh_for_users};
use serde_json::{Value, json};

use dsync::Dsync;
use first::{First, Holders, Lock};
use report::{Report, Row};
use second::{Operation, Second, Seconds};

/// The export of the share.
const EXPORT: &str = "/export/box";
/// The file that is held and used; its other name, where it has one; and what it is renamed to.
const FILE: &str = "f";
const OTHER: &str = "g";
const RENAMED: &str = "h";
/// What is in it.
const DATA: &[u8] = b"held";
/// Longest time of one attempt: what waits for a holder is served at once.
const ATTEMPT_MAX: Duration = patience(60);

/// How far the attempt of the second has got.
#[derive(Default)]
struct Progress {
    /// It was answered to come again, or that it takes longer.
    is_delayed: AtomicBool,
    has_ended: AtomicBool,
}

impl Progress {
    fn delayed(&self) {
        self.is_delayed.store(true, Ordering::SeqCst);
    }

    /// Repeats an attempt for as long as it is to be repeated.
    fn repeat(&self, mut attempt: impl FnMut() -> Outcome) -> Outcome {
        let until = Instant::now() + ATTEMPT_MAX;
        loop {
            match attempt() {
                Err(Refusal::Again) if Instant::now() < until => {
                    self.delayed();
                    std::thread::yield_now();
                }
                other => return other,
            }
        }
    }

    /// Waits until it is known whether the attempt of a client that sees a delay is delayed: only
    /// then the holder answers.
    fn wait_for_delay(&self, second: Second) {
        let until = Instant::now() + ATTEMPT_MAX;
        let is_known = || {
            let [delayed, ended] = [&self.is_delayed, &self.has_ended];
            delayed.load(Ordering::SeqCst) || ended.load(Ordering::SeqCst)
        };
        while second.sees_delays() && !is_known() {
            assert!(Instant::now() < until, "{second:?} is neither delayed nor done");
            std::thread::yield_now();
        }
    }
}

/// Why an attempt has not succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Refusal {
    /// It is to be repeated.
    Again,
    /// This is the answer.
    Status(String),
}

/// What an attempt came to.
type Outcome<T = ()> = Result<T, Refusal>;

fn refused(status: impl ToString) -> Refusal {
    Refusal::Status(status.to_string())
}

/// Settings of HTTP with which methods that change files are done without TLS.
fn http() -> [Value; 3] {
    const NODE: &str = "/configuration/services/http";
    let set = |name: &str, value: Value| json!({"set": NODE, "property": name, "value": value});
    [set("webdav", json!(true)), set("plain", json!("serve")), set("basic_over_plain", json!(true))]
}

/// The file, new; with `links` it has two names.
fn plant(share: &Path, links: bool) {
    for entry in fs::read_dir(share).expect("a directory") {
        fs::remove_file(entry.expect("an entry").path()).expect("removed");
    }
    let file = share.join(FILE);
    fs::write(&file, DATA).expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("a mode");
    if links {
        fs::hard_link(&file, share.join(OTHER)).expect("a link");
    }
}

/// One cell: what the second comes to, and what the first is sent.
fn attempt(
    share: &Path,
    holders: &mut Holders,
    seconds: &mut Seconds,
    (first, lock): (First, Lock),
    (second, operation): (Second, Operation),
) -> report::Code {
    let mut holding = holders.take(first, lock, || plant(share, lock.has_links()));
    let (progress, name) = (Progress::default(), lock.name());
    let outcome = if holding.is_called() {
        std::thread::scope(|scope| {
            let done = scope.spawn(|| {
                let outcome = seconds.perform(second, operation, name, &progress);
                progress.has_ended.store(true, Ordering::SeqCst);
                outcome
            });
            while !done.is_finished() {
                holding.answer(holders, &progress, second);
            }
            done.join().expect("no panic")
        })
    } else {
        seconds.perform(second, operation, name, &progress)
    };
    let sent = holding.release(holders);
    let is_delayed = progress.is_delayed.load(Ordering::SeqCst);
    let refusal = match outcome {
        Ok(()) => None,
        Err(Refusal::Status(status)) => Some(status),
        Err(Refusal::Again) => panic!("{first:?} {lock:?}, {second:?} {operation:?}: no end"),
    };
    report::Code { refusal, sent, is_delayed }
}

#[test]
fn each_pair_of_protocols_is_as_documented() {
    if !ssh_for_users("lock-table") {
        return;
    }
    let scene = Scene::new("lock-table-pairs", &http());
    // dsync gives the directory the times of its own.
    chown(&scene.share, Some(UID), None).expect("root may");
    // Before the rest: a new key of a user ends the user's sessions.
    let dsync = Dsync::new(&scene);
    let mut holders = Holders::new(&scene);
    let mut seconds = Seconds::new(&scene, dsync);
    let mut report = Report::default();
    for lock in Lock::ALL {
        for first in lock.holders() {
            let mut row = Row { first: first.title(), cells: Vec::new() };
            for second in Second::ALL {
                let codes = Operation::ALL.map(|operation| {
                    second.has(operation).then(|| {
                        let cell = (second, operation);
                        attempt(&scene.share, &mut holders, &mut seconds, (*first, lock), cell)
                    })
                });
                row.cells.push(codes);
            }
            report.add(lock.title(), row);
        }
    }
    report.compare();
}
