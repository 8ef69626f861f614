//! What a request still costs once its client has closed the connection.

use std::time::Duration;

use base::limits::PEER_PATIENCE;
use serve::ftp::Settings;
use serve::pool::Pool;
use vfs::share::Service;
use wire::ftp::{Request, Verb};
use wire::nfs3::{Fh3, NFS_PROGRAM, NFS_V3, Proc, ReaddirplusArgs};
use wire::nfs4::{
    ArgOp, Bitmap4, Fh4, NFS_V4, NFS4_PROGRAM, NFSPROC4_COMPOUND, PutfhArgs4, ReaddirArgs4, attr4,
};

use crate::calls::{Compound, Wire};
use crate::clock::{self, wait_for};
use crate::ftp::Running;
use crate::listings::large;
use crate::nfs::{handle, scene};
use crate::scene::{Scene, Scratch};
use crate::search::MOST;
use crate::stand::Stand;

/// Directories of this test: such that each job would take seconds.
const FILES: usize = 60_000;

/// Waits until nothing of a service is at work, and gives what was computed since `act` began.
fn costs_after(pool: &Pool, act: impl FnOnce()) -> Duration {
    let before = clock::server();
    act();
    // A job of the connection's task is queued as soon as the one before it has ended.
    let mut quiet = 0;
    wait_for("the pool has nothing to do", || {
        quiet = if pool.busy() == 0 && pool.queued() == 0 { quiet + 1 } else { 0 };
        (quiet > 100).then_some(())
    });
    clock::server().saturating_sub(before)
}

/// Waits until a service has no connection: the next request could meet what is left of the last.
fn ended(scene: &Scene) {
    let budgets = &scene.files.engine.budgets;
    wait_for("the connection ends", || (budgets.connections() == 0).then_some(()));
}

/// Waits until a job of a service has begun.
fn begun(pool: &Pool) {
    wait_for("a job begins", || (pool.busy() > 0).then_some(()));
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
        let pool = &stand.scene.files.engine.pool;
        // An answer that is sent in parts begins while they are made, by jobs too short to be met.
        match line.split_once(' ') {
            Some(("PROPFIND" | "GET", _)) => client.begin(),
            _ => begun(pool),
        }
        let cost = costs_after(pool, || {
            drop(client);
            ended(&stand.scene);
        });
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
    let pool = &ftp.scene.files.engine.pool;
    let large = folder.set_len("share/sparse", 1 << 40);
    drop(large);
    for (verb, what) in [(Verb::Mlsd, "large"), (Verb::List, "large/*b"), (Verb::Nlst, "large/?b")]
    {
        let mut client = ftp.signed_in();
        let data = client.begin(&Request::Maybe(verb, Some(what.as_bytes())));
        let cost = costs_after(pool, || {
            drop((data, client));
            ended(&ftp.scene);
        });
        println!("{} {what}: {cost:?} after its client has gone", verb.name());
        assert!(cost <= MOST, "{} {what}: {cost:?}", verb.name());
    }
    for line in ["HASH sparse\r\n", "STAT large/*b\r\n"] {
        let mut client = ftp.signed_in();
        client.send(line.as_bytes());
        begun(pool);
        let cost = costs_after(pool, || {
            drop(client);
            ended(&ftp.scene);
        });
        println!("{}: {cost:?} after its client has gone", line.trim());
        assert!(cost <= MOST, "{}: {cost:?}", line.trim());
    }
}

/// Calls that are sent at once. Each takes milliseconds, so that all take seconds.
const CALLS: usize = 250;

#[test]
fn of_nfs() {
    let folder = folder();
    let scene = scene(&folder);
    let dir = handle(&mut Wire::connect(scene.addr), "large");
    let (cookie, cookieverf, most) = (0, [0; 8], 1 << 16);
    let mut attr_request = Bitmap4::EMPTY;
    attr4::ALL.iter().for_each(|(number, _)| attr_request.add(*number));
    let (dircount, maxcount) = (most, most);
    let readdir = ReaddirArgs4 { cookie, cookieverf, dircount, maxcount, attr_request };
    let putfh = ArgOp::Putfh(PutfhArgs4 { object: Fh4(&dir) });
    let ops = [&[putfh][..], &vec![ArgOp::Readdir(readdir); 15]].concat();
    let plus = ReaddirplusArgs { dir: Fh3(&dir), cookie, cookieverf, dircount, maxcount };
    for version in [NFS_V3, NFS_V4] {
        let mut wire = Wire::connect(scene.addr);
        for _ in 0..CALLS {
            match version {
                NFS_V4 => {
                    let compound = (NFS4_PROGRAM, NFS_V4, NFSPROC4_COMPOUND);
                    wire.start(compound, &Compound(0, &ops));
                }
                _ => wire.start((NFS_PROGRAM, NFS_V3, Proc::READDIRPLUS.0), &plus),
            }
        }
        // Some are answered on the connection's thread, others on the pool.
        wire.reply();
        let cost = costs_after(&scene.pool, || {
            drop(wire);
            let connections = &scene.hub.gauges().connections;
            wait_for("the connection ends", || (connections.get() == 0).then_some(()));
        });
        println!("NFS version {version}: {cost:?} after its client has gone");
        assert!(cost <= MOST, "version {version}: {cost:?}");
    }
}
