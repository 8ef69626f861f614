//! Snapshots of a share on a pool as clients see them, through a running server on a loop device.

use e2e::api::Api;
use e2e::nfs3::Failure;
use e2e::pool_disk::{PoolDisk, change, done, wait_online};
use e2e::server::Server;
use e2e::{http, nfs4, skip};
use serde_json::json;
use wire::nfs3::{CreateHow, Fattr3, Nfsstat3, StableHow};
use wire::nfs4::attr4;

use crate::pool_mount::Mounted;

const SHARE: &str = "work";

fn refused<T>(outcome: Result<T, Failure>) -> Option<Nfsstat3> {
    match outcome {
        Err(Failure::Status(status)) => Some(status),
        _ => None,
    }
}

#[test]
fn clients_read_snapshots_and_handles_stay_what_they_are() {
    let bed = match PoolDisk::new("snapshots", 256) {
        Ok(bed) => bed,
        Err(why) => skip!("pool-snapshots", "{why}"),
    };
    let (mut server, api) = bed.start();
    bed.create(&api, SHARE);
    let mut mounted = Mounted::new(&server, SHARE);
    mounted.put("file", b"one");
    bed.snapshot(&api, SHARE, "monday");
    mounted.put("file", b"two");
    bed.snapshot(&api, SHARE, "tuesday");
    let live = mounted.put("file", b"now");
    // Three trees with the same inode number, distinguished by their file systems.
    let paths = ["file", ".snapshot/monday/file", ".snapshot/tuesday/file"];
    let [_, monday, tuesday] = paths.map(|path| mounted.find(path).expect(path));
    let files = [live.clone(), monday.clone(), tuesday.clone()];
    let contents = [b"now", b"one", b"two"];
    let attrs = files.clone().map(|file| mounted.attr(&file));
    for (at, file) in files.iter().enumerate() {
        assert_eq!(mounted.read(file).expect("read"), contents[at]);
        assert_eq!(attrs[at].fileid, attrs[0].fileid);
        let same = |other: &Fattr3| other.fsid == attrs[at].fsid;
        assert_eq!(attrs.iter().filter(|other| same(other)).count(), 1);
        assert_eq!(files.iter().filter(|other| *other == file).count(), 1);
    }
    nothing_changes(&mut mounted, &monday);
    other_protocols(&server, &api);
    let root = mounted.root.clone();
    assert_eq!(mounted.client.names(&root).expect("listed"), ["file"]);
    change(
        &api,
        &json!([{ "set": format!("/shares/default/{SHARE}"), "property": "snapdir",
        "value": "visible" }]),
    );
    assert_eq!(mounted.client.names(&root).expect("listed"), [".snapshot", "file"]);
    // After a restart each handle leads to the same file.
    drop(mounted);
    server.stop();
    drop(server);
    let (server, api) = bed.start();
    wait_online(&api, SHARE);
    let mut mounted = Mounted::new(&server, SHARE);
    assert_eq!(mounted.root, root);
    for (file, content) in files.iter().zip(contents) {
        assert_eq!(mounted.read(file).expect("read"), content);
    }
    // Destroyed, it is stale at once, and nothing else is.
    let snapshot = format!("{}/snapshots/{SHARE}@monday", bed.node());
    done(&api, &snapshot, "destroy_snapshot", &json!({}));
    assert_eq!(refused(mounted.read(&monday)), Some(Nfsstat3::STALE));
    assert_eq!(refused(mounted.find(".snapshot/monday")), Some(Nfsstat3::NOENT));
    bed.snapshot(&api, SHARE, "monday");
    assert_eq!(refused(mounted.read(&monday)), Some(Nfsstat3::STALE));
    let again = mounted.find(".snapshot/monday/file").expect("there");
    assert_eq!(mounted.read(&again).expect("read"), b"now");
    assert_eq!(mounted.read(&tuesday).expect("read"), b"two");
    assert_eq!(mounted.read(&live).expect("read"), b"now");
    change(&api, &json!([{ "destroy": format!("/shares/default/{SHARE}"), "confirm": true }]));
    // Open snapshots do not keep the pool.
    done(&api, &bed.node(), "export_pool", &json!({}));
}

fn nothing_changes(mounted: &mut Mounted, file: &[u8]) {
    let rofs = Some(Nfsstat3::ROFS);
    let monday = mounted.find(".snapshot/monday").expect("there");
    let door = mounted.find(".snapshot").expect("there");
    let client = &mut mounted.client;
    assert_eq!(refused(client.write(file, 0, b"x", StableHow::FILE_SYNC)), rofs);
    for dir in [&monday, &door] {
        let how = CreateHow::Guarded(Default::default());
        assert_eq!(refused(client.create(dir, "new", how)), rofs);
        assert_eq!(refused(client.mkdir(dir, "new", Default::default())), rofs);
        assert_eq!(refused(client.remove(dir, "file", false)), rofs);
    }
    assert_eq!(refused(client.remove(&mounted.root, ".snapshot", true)), rofs);
    assert_eq!(refused(client.link(file, &mounted.root, "link")), Some(Nfsstat3::XDEV));
    // The number of another snapshot in a handle, as a client could put it there.
    let mut forged = file.to_vec();
    let other = mounted.find(".snapshot/tuesday/file").expect("there");
    forged[6..14].copy_from_slice(&other[6..14]);
    assert_eq!(refused(mounted.read(&forged)), Some(Nfsstat3::BADHANDLE));
}

/// NFSv4.2 with its numbers of file systems, and HTTP.
fn other_protocols(server: &Server, api: &Api) {
    let mut client = nfs4::Client::connect(server.nfs(), (0, 0), "snapshots", 1).expect("a client");
    let fsid = |client: &mut nfs4::Client, path: &str| {
        let file = client.walk(path).expect("found");
        let wanted = [attr4::FSID, attr4::FILEID, attr4::MOUNTED_ON_FILEID];
        let read = client.getattr(&file, &wanted, |a| (a.fsid, a.fileid, a.mounted_on_fileid));
        read.expect("attributes")
    };
    let top = format!("/export/{SHARE}");
    let [live, door, monday, file] =
        ["", "/.snapshot", "/.snapshot/monday", "/.snapshot/monday/file"]
            .map(|path| fsid(&mut client, &format!("{top}{path}")));
    assert!(live.0 == door.0 && door.0 != monday.0 && monday.0 == file.0);
    // The root of a snapshot has two numbers, its own and that in the directory above.
    assert!(monday.1 != monday.2 && file.1 == file.2 && door.1 == door.2);
    let set = |property: &str, value: serde_json::Value| json!({ "set": "/configuration/services/http", "property": property, "value": value });
    let user = json!({ "create": "/configuration/users", "name": "anna",
        "properties": { "password": "correct horse battery", "uid": 4321, "gid": 4322 } });
    let plain = set("plain", json!("serve"));
    let basic = set("basic_over_plain", json!(true));
    change(api, &json!([set("enabled", json!(true)), plain, basic, user]));
    let user = ("anna", "correct horse battery");
    let target = format!("GET /{SHARE}/.snapshot/monday/file");
    let (status, body) = http::ask(server.at(80), user, &target, &[], b"");
    assert!(status == 200 && body.ends_with("one"), "{status} {body}");
    let target = format!("DELETE /{SHARE}/.snapshot/monday/file");
    let (status, body) = http::ask(server.at(80), user, &target, &[], b"");
    assert!((400..500).contains(&status), "{status} {body}");
}
