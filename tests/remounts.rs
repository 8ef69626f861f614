//! Handles of a share on a FUSE file system, which has another device number after each mount and
//! no `f_fsid`: they are good after a remount with the server running and after a restart, and
//! on a new mount of the same data with the state directory moved. Another file system at the path
//! is never taken for it. Clients recognise the server after all of it.

#[path = "remounts/stale.rs"]
mod stale;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::protocol::ports::SMB;
use e2e::api::{Api, wait_for};
use e2e::crash::remote::{Outcome, Over, Remote};
use e2e::nfs3::{Client, Failure, Handle};
use e2e::scratch::{Scratch, make_folder};
use e2e::server::{Options, Server};
use e2e::smb::{Offer, Smb};
use e2e::{nfs4, patience, skip};
use serde_json::json;
use sim::forget::available;
use sim::through::Through;
use wire::nfs3::{Nfsstat3, StableHow};

/// The user of the calls.
const USER: u32 = 1000;
/// What an OPEN is answered with while others may reclaim (RFC 8881 §15.1.9.2).
const GRACE: Nfsstat3 = Nfsstat3(10_013);
/// The mount source of all that is mounted here, unless a test is about it.
const SOURCE: &str = "host:/data";
/// How long a share may take to be served again.
const SOON: Duration = patience(60);
/// Mounts that take the device number of one that has gone, at most.
const MOUNTS_MAX: usize = 16;
/// The protocols in which clients retain handles.
const BOTH: [Over; 2] = [Over::V3, Over::V4];

/// Directories that are mounted, places to mount them, state directories, and the ports.
struct World {
    scratch: Scratch,
    offset: Option<u16>,
}

/// A handle, what it is called here, and what must be read through it (nothing of a directory).
type Handles = Vec<(&'static str, Handle, Option<&'static str>)>;

impl World {
    fn new(name: &str) -> Self {
        Self { scratch: Scratch::new(name), offset: None }
    }

    /// A directory with the data of a file system.
    fn data(&self, name: &str) -> PathBuf {
        let path = self.scratch.folder(name, Some(USER));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).expect("a mode");
        path
    }

    /// Mounts it; the share has the same name at each place.
    fn mount(&self, data: &Path, place: &str, source: &str) -> Through {
        let at = self.scratch.path().join(place).join("share");
        make_folder(&at, None);
        Through::mount(data, &at, source).expect("a mount")
    }

    /// Mounts until one has this device number: the kernel gives the lowest that is free.
    fn take_device(&self, device_number: u64) -> Vec<Through> {
        let mut others = Vec::new();
        while others.len() < MOUNTS_MAX && others.last().is_none_or(|m| device(m) != device_number)
        {
            let place = format!("other-{}", others.len());
            others.push(self.mount(&self.data("other"), &place, "other"));
        }
        others
    }

    /// Serves a mount, always on the same ports.
    fn serve(&mut self, mount: &Through, state: &Path) -> Server {
        let offset = self.offset;
        let server = Server::start(&Options { offset, ..Options::new(mount.path(), state) });
        self.offset = Some(server.offset);
        server
    }

    fn state(&self, name: &str) -> PathBuf {
        self.scratch.folder(name, None)
    }
}

fn device(mount: &Through) -> u64 {
    fs::metadata(mount.path()).expect("a mount").dev()
}

fn client(server: &Server, over: Over) -> Box<dyn Remote> {
    let address: SocketAddr = (Ipv4Addr::LOCALHOST, server.nfs_port()).into();
    over.connect(address, USER, "remounts").expect("a client")
}

/// Makes files, renames some, and remembers all.
fn fill(server: &Server, over: Over) -> Handles {
    let mut client = client(server, over);
    let root = client.root("/export/share").expect("the share");
    let mut known: Handles = vec![("the root", root.clone(), None)];
    let dir = client.mkdir(&root, "dir", 0o755).expect("a directory").handle;
    let below = client.mkdir(&dir, "below", 0o755).expect("a directory").handle;
    for (what, at, name) in [
        ("in the root", &root, "plain"),
        ("renamed", &root, "old"),
        ("below", &below, "deep"),
        ("moved", &dir, "moved"),
    ] {
        let made = in_grace(|| client.create(at, name, 0o644)).expect(name).handle;
        client.write(&made, 0, name.as_bytes(), StableHow::FILE_SYNC).expect(name);
        client.close(&made).expect(name);
        known.push((what, made, Some(name)));
    }
    client.rename((&root, "old"), (&root, "new")).expect("a rename");
    client.rename((&dir, "moved"), (&below, "arrived")).expect("a rename");
    client.rename((&dir, "below"), (&root, "risen")).expect("a rename");
    known.extend([("a directory", dir, None), ("a moved directory", below, None)]);
    known
}

/// Waits as long as others may reclaim.
fn in_grace<T>(mut call: impl FnMut() -> Outcome<T>) -> Outcome<T> {
    wait_for("the end of grace", patience(120), || match call() {
        Err(Failure::Status(GRACE)) => None,
        other => Some(other),
    })
}

/// All of it is what it was, over both protocols.
fn check(server: &Server, known: &Handles, when: &str) {
    for over in BOTH {
        let mut client = client(server, over);
        client.root("/export/share").expect("the share");
        for (what, handle, content) in known {
            let seen = in_grace(|| client.getattr(handle));
            seen.unwrap_or_else(|e| panic!("{what}, {over:?}, {when}: {e:?}"));
            let Some(content) = content else { continue };
            let read = in_grace(|| client.read_all(handle));
            let read = read.unwrap_or_else(|e| panic!("{what}, {over:?}, {when}: {e:?}"));
            assert_eq!(String::from_utf8_lossy(&read), *content, "{what}, {over:?}, {when}");
        }
        let root = &known[0].1;
        for (what, path) in [("in the root", "plain"), ("renamed", "new"), ("a directory", "dir")] {
            let found = client.lookup(root, path).expect(path);
            let (_, handle, _) = known.iter().find(|(name, ..)| *name == what).expect(what);
            assert!(found == *handle, "a second handle for {path}, {over:?}, {when}");
        }
    }
}

/// None of it is answered.
fn check_stale(server: &Server, known: &Handles, when: &str) {
    for over in BOTH {
        let mut client = client(server, over);
        client.root("/export/share").expect("the share");
        for (what, handle, _) in known {
            let stale = Failure::Status(Nfsstat3::STALE);
            let got = client.getattr(handle).map(|seen| seen.fileid);
            assert_eq!(got, Err(stale), "{what}, {over:?}, {when}");
        }
    }
}

/// The `fsid` attribute.
fn fsid(server: &Server, file: &[u8]) -> u64 {
    let mut client = Client::connect(server.nfs(), USER, USER).expect("a connection");
    client.getattr(file).expect("attributes").fsid
}

/// What clients recognise the server by: owner and scope of NFSv4, GUID of SMB.
fn recognised(server: &Server, state: &Path) -> ([Vec<u8>; 2], [u8; 16]) {
    let v4 = nfs4::Client::connect(server.nfs(), (USER, USER), "recognised", 1).expect("a client");
    let enable =
        json!({"set": "/configuration/services/smb", "property": "enabled", "value": true});
    let (code, done) = Api::new(state).post("/api/v1/changes", &json!({ "changes": [enable] }));
    assert_eq!(code, 200, "{done}");
    let here = Ipv4Addr::LOCALHOST.into();
    let smb = Smb::connect(here, server.at(SMB.number), &Offer::default()).expect("a connection");
    (v4.server, smb.negotiated.server_guid)
}

/// Waits until the server has closed what was mounted and serves what is mounted now.
fn wait_until_served(server: &Server) {
    let online = || server.stderr_text().contains("online again").then_some(());
    wait_for("the share is served again", SOON, online);
}

/// Waits until the state directory has a name in the root by which it is known again.
fn wait_until_known(state: &Path) {
    wait_for("the root is known", SOON, || {
        let files = fs::read_dir(state).ok()?.flatten();
        let mut kept =
            files.filter(|at| at.file_name().to_string_lossy().starts_with("file-system-"));
        fs::read_to_string(kept.next()?.path()).ok().filter(|text| text.contains("\nentry "))
    });
}

#[test]
fn handles_outlive_remounts() {
    if let Err(why) = available() {
        skip!("remounts", "{why}");
    }
    for over in BOTH {
        let mut world = World::new("remounts");
        let (data, state) = (world.data("data"), world.state("state"));
        let mount = world.mount(&data, "one", SOURCE);
        let mut server = world.serve(&mount, &state);
        let known = fill(&server, over);
        let root = known[0].1.clone();
        check(&server, &known, "before any remount");
        let (first, before) = (device(&mount), fsid(&server, &root));

        // With the server running, which has files of the old one open.
        mount.detach().expect("detached");
        let mount = world.mount(&data, "one", SOURCE);
        assert_ne!(device(&mount), first, "the same device number");
        wait_until_served(&server);
        check(&server, &known, "after a remount");
        assert_eq!(fsid(&server, &root), before, "fsid after a remount");

        // With a restart; another file system takes the device number.
        assert!(server.stop().success());
        let second = device(&mount);
        mount.unmount().expect("unmounted");
        let _others = world.take_device(second);
        let mount = world.mount(&data, "one", SOURCE);
        assert_ne!(device(&mount), second, "the same device number");
        let mut server = world.serve(&mount, &state);
        check(&server, &known, "after a restart");
        assert_eq!(fsid(&server, &root), before, "fsid after a restart");

        // As after a power cut, without a remount.
        server.kill();
        let server = world.serve(&mount, &state);
        check(&server, &known, "after a kill");
    }
}

#[test]
fn handles_are_good_on_a_new_mount_with_the_state_directory_moved() {
    if let Err(why) = available() {
        skip!("remounts-moved", "{why}");
    }
    let mut world = World::new("remounts-moved");
    let (data, state) = (world.data("data"), world.state("state"));
    let mount = world.mount(&data, "one", SOURCE);
    let mut server = world.serve(&mount, &state);
    let known = fill(&server, Over::V4);
    let (before, first) = (recognised(&server, &state), device(&mount));
    assert!(server.stop().success());
    let elsewhere = world.scratch.path().join("elsewhere");
    fs::rename(&state, &elsewhere).expect("moved");
    let again = world.mount(&data, "two", SOURCE);
    mount.unmount().expect("unmounted");
    assert_ne!(device(&again), first, "the same device number");
    let server = world.serve(&again, &elsewhere);
    check(&server, &known, "at another place");
    assert_eq!(recognised(&server, &elsewhere), before, "another server");
}

/// Another one at the path of a share with the same number for its root.
fn another(source: &str, running: bool) {
    let mut world = World::new("remounts-another");
    let (data, state) = (world.data("data"), world.state("state"));
    let mount = world.mount(&data, "one", SOURCE);
    let mut server = world.serve(&mount, &state);
    let known = fill(&server, Over::V3);
    if running {
        // The names are written within a second; a server that ends writes them at once.
        wait_until_known(&state);
    }

    // Files of the same names, which are others.
    let strange = world.data("strange");
    for name in ["plain", "new", "more"] {
        fs::write(strange.join(name), "strange").expect("written");
    }
    for name in ["dir", "risen"] {
        fs::create_dir(strange.join(name)).expect("made");
    }
    let (server, mount) = if running {
        mount.detach().expect("detached");
        let mount = world.mount(&strange, "one", source);
        wait_until_served(&server);
        (server, mount)
    } else {
        assert!(server.stop().success());
        mount.unmount().expect("unmounted");
        // Mostly with the same device number.
        let mount = world.mount(&strange, "one", source);
        (world.serve(&mount, &state), mount)
    };
    check_stale(&server, &known, "on another file system");

    // The first one is back.
    drop(server);
    mount.unmount().expect("unmounted");
    let mount = world.mount(&data, "one", SOURCE);
    let server = world.serve(&mount, &state);
    check(&server, &known, "when it is back");
}

#[test]
fn the_file_of_a_logical_unit_stays_hidden() {
    if let Err(why) = available() {
        skip!("remounts-lun", "{why}");
    }
    let mut world = World::new("remounts-lun");
    let (data, state) = (world.data("data"), world.state("state"));
    fs::write(data.join("plain"), "data").expect("a file");
    let mount = world.mount(&data, "one", SOURCE);
    let server = world.serve(&mount, &state);
    let properties = json!({
        "backing": "file", "path": mount.path().join("unit"), "volsize": "1M",
    });
    let unit = json!({"create": "/shares/default/luns", "name": "unit", "properties": properties});
    let (code, done) = Api::new(&state).post("/api/v1/changes", &json!({ "changes": [unit] }));
    assert_eq!(code, 200, "{done}");
    let first = device(&mount);
    let check = |when: &str| {
        let mut client = client(&server, Over::V3);
        let root = client.root("/export/share").expect("the share");
        client.lookup(&root, "plain").expect("a file");
        let found = client.lookup(&root, "unit").map(drop);
        assert_eq!(found, Err(Failure::Status(Nfsstat3::NOENT)), "{when}");
    };
    check("at first");
    mount.detach().expect("detached");
    let mount = world.mount(&data, "one", SOURCE);
    assert_ne!(device(&mount), first, "the same device number");
    assert!(mount.path().join("unit").exists());
    wait_until_served(&server);
    check("after a remount");
}

#[test]
fn another_file_system_at_the_path_is_not_taken_for_it() {
    if let Err(why) = available() {
        skip!("remounts-another", "{why}");
    }
    another(SOURCE, false);
    another("other:/data", false);
    another(SOURCE, true);
}
