//! What a request still costs once its client has closed the connection.

use std::time::Duration;

use base::limits::PEER_PATIENCE;
use serve::files::Files;
use serve::ftp::Settings;
use vfs::share::Service;
use wire::ftp::{Request, Verb};

use crate::clock::{self, wait_for};
use crate::ftp::Running;
use crate::listings::large;
use crate::scene::{Scene, Scratch};
use crate::search::MOST;
use crate::stand::Stand;

/// Directories of this test: such that each job would take seconds.
const FILES: usize = 60_000;

/// Waits until nothing of a service is at work, and gives what was computed since `act` began.
fn costs_after(files: &Files, act: impl FnOnce()) -> Duration {
    let before = clock::server();
    act();
    let pool = &files.engine.pool;
    // A job of the connection's task is queued as soon as the one before it has ended.
    let mut quiet = 0;
    wait_for("the pool has nothing to do", || {
        quiet = if pool.busy() == 0 && pool.queued() == 0 { quiet + 1 } else { 0 };
        (quiet > 100).then_some(())
    });
    clock::server().saturating_sub(before)
}

/// Waits until a job of a service has begun.
fn begun(files: &Files) {
    wait_for("a job begins", || (files.engine.pool.busy() > 0).then_some(()));
}

fn folder() -> Scratch {
    let folder = large(FILES);
    let to = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder.0.join("share/large"), to).expect("its mode");
    folder
}

#[test]
fn of_http_and_webdav() {
    let folder = folder();
    let scene = Scene::in_folder(Service::Http, &folder, PEER_PATIENCE);
    let stand = Stand::over(scene, crate::stand::open());
    for (line, fields) in [
        ("DELETE /share/large/", vec![]),
        ("COPY /share/large/", vec!["Destination: /share/copy/"]),
        ("PROPFIND /share/large/", vec!["Depth: 1"]),
        ("GET /share/large/?archive", vec![]),
        ("GET /share/large/", vec!["Accept: application/json"]),
    ] {
        let mut client = stand.client();
        client.send(line, &fields, b"");
        let files = &stand.scene.files;
        begun(files);
        let cost = costs_after(files, || drop(client));
        println!("{line}: {cost:?} after its client has gone");
        assert!(cost <= MOST, "{line}: {cost:?}");
        let left = std::fs::read_dir(folder.0.join("share/large")).expect("it is there").count();
        assert!(left > FILES / 2, "{line}: {left} files are left");
    }
}

#[test]
fn of_ftp() {
    let folder = folder();
    let scene = Scene::in_folder(Service::Ftp, &folder, PEER_PATIENCE);
    let ftp = Running::over(scene, Settings::default());
    let large = folder.set_len("share/sparse", 1 << 40);
    drop(large);
    for (verb, what) in [(Verb::Mlsd, "large"), (Verb::List, "large/*b"), (Verb::Nlst, "large/?b")]
    {
        let mut client = ftp.signed_in();
        let data = client.begin(&Request::Maybe(verb, Some(what.as_bytes())));
        let cost = costs_after(&ftp.scene.files, || drop((data, client)));
        println!("{} {what}: {cost:?} after its client has gone", verb.name());
        assert!(cost <= MOST, "{} {what}: {cost:?}", verb.name());
    }
    for line in ["HASH sparse\r\n", "STAT large/*b\r\n"] {
        let mut client = ftp.signed_in();
        client.send(line.as_bytes());
        begun(&ftp.scene.files);
        let cost = costs_after(&ftp.scene.files, || drop(client));
        println!("{}: {cost:?} after its client has gone", line.trim());
        assert!(cost <= MOST, "{}: {cost:?}", line.trim());
    }
}
