//! Data connections that trickle are aborted; those that are merely slow are not.

use std::io::{Read, Write};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use base::limits::PEER_RATE_MIN;
use serve::ftp::{Settings, Uploads};
use vfs::share::Service;
use wire::ftp::{Request, Verb};

use crate::client::Running;
use crate::scene::{Scene, Scratch};

/// How long a peer may do nothing here.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long the server may take to give up one that does little more.
const DEADLINE: Duration = Duration::from_secs(60);
/// Pause between two pieces.
const PAUSE: Duration = Duration::from_millis(20);

fn running() -> Running {
    Running::over(Scene::with_patience(Service::Ftp, PATIENCE), Settings::default())
}

#[test]
fn an_upload_that_trickles_is_abandoned_and_one_that_is_slow_is_not() {
    let running = running();
    let timeouts = || running.scene.files.engine.budgets.timeouts.load(Relaxed);
    let mut c = running.signed_in();
    let mut data = c.begin(&Request::Text(Verb::Stor, b"a"));
    let begun = Instant::now();
    while timeouts() == 0 {
        assert!(begun.elapsed() < DEADLINE, "not given up");
        let _cut = data.write_all(b"x");
        std::thread::park_timeout(PAUSE);
    }
    assert_eq!(c.reply().code, 426);
    assert_eq!(c.code_of("SIZE a"), 550, "nothing is left of it");
    let mut data = c.begin(&Request::Text(Verb::Stor, b"b"));
    for _ in 0..200 {
        data.write_all(&vec![b'y'; PEER_RATE_MIN as usize / 5]).expect("taken");
        std::thread::park_timeout(PAUSE);
    }
    data.finish();
    assert_eq!(c.reply().code, 226);
    assert_eq!(timeouts(), 1);
}

#[test]
fn what_came_before_an_upload_was_abandoned_is_retained_in_place() {
    let settings = Settings { uploads: Uploads::InPlace, ..Settings::default() };
    let running = Running::over(Scene::with_patience(Service::Ftp, PATIENCE), settings);
    let mut c = running.signed_in();
    // In one piece with the first, in two, and less than one.
    for (name, size) in [("a", 200 << 10), ("b", 1_500_000), ("c", 100)] {
        let mut data = c.begin(&Request::Text(Verb::Stor, name.as_bytes()));
        data.write_all(&vec![b'x'; size]).expect("taken");
        assert_eq!(c.reply().code, 426, "{name}");
        assert_eq!(c.text(&format!("SIZE {name}")), size.to_string());
    }
}

#[test]
fn a_client_that_takes_a_byte_now_and_then_is_abandoned() {
    let folder = Scratch::new();
    let in_folder = Scene::in_folder(Service::Ftp, &folder, PATIENCE);
    for running in [running(), Running::over(in_folder, Settings::default())] {
        abandons_a_client_that_takes_a_byte(&running);
    }
}

fn abandons_a_client_that_takes_a_byte(running: &Running) {
    let mut c = running.signed_in();
    c.put("large", &vec![7; 32 << 20]);
    let mut data = c.begin(&Request::Text(Verb::Retr, b"large"));
    let begun = Instant::now();
    while running.scene.files.engine.budgets.timeouts.load(Relaxed) == 0 {
        assert!(begun.elapsed() < DEADLINE, "not given up");
        data.read_exact(&mut [0; 1]).expect("a byte");
        std::thread::park_timeout(PAUSE);
    }
    assert_eq!(c.reply().code, 426);
    assert_eq!(c.get("large").len(), 32 << 20);
}
