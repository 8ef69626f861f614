//! No path, name, link or handle leads out of the share, nor into the server's own state.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use e2e::nfs3::{Client, Failure};
use e2e::process::succeed;
use e2e::server::{Options, Server};
use wire::nfs3::{CreateHow, Nfsstat3, Sattr3, StableHow};

use super::{Scene, mode, status};

const SECRET: &str = "not for clients";

/// The share's content, and next to it a file and a directory that no client may reach.
fn furnish(scene: &Scene) {
    let outside = scene.scratch.folder("outside", None);
    fs::write(outside.join("secret"), SECRET).expect("the secret");
    // Open to all, so that nothing but the border protects it.
    open_to_all(&outside.join("secret"), 0o666);
    open_to_all(&outside, 0o777);
    fs::create_dir(scene.dir.join("sub")).expect("a directory");
    fs::write(scene.dir.join("file"), "inside").expect("a file");
    let links = [
        ("absolute", outside.join("secret")),
        ("relative", "../outside/secret".into()),
        ("dir-out", outside),
        ("dotdot", "..".into()),
        ("root", "/".into()),
        ("etc", "/etc/passwd".into()),
    ];
    for (name, target) in links {
        symlink(target, scene.dir.join(name)).expect("a link");
    }
}

fn open_to_all(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its mode");
}

fn untouched(scene: &Scene) {
    let outside = scene.scratch.path().join("outside");
    let secret = outside.join("secret");
    assert_eq!(fs::read_to_string(&secret).expect("the secret"), SECRET);
    let mode = |path: &Path| fs::metadata(path).expect("attributes").permissions().mode() & 0o7777;
    assert_eq!((mode(&secret), mode(&outside)), (0o666, 0o777));
    assert_eq!(fs::read_dir(&outside).expect("outside").count(), 1);
}

#[test]
fn mount_takes_directories_of_the_share_only() {
    let scene = Scene::new("exports");
    furnish(&scene);
    let server = scene.start();
    let mut client = Client::connect(server.nfs(), 0, 0).expect("a connection");
    let export = server.export();
    let root = client.mnt(&export).expect("the export");
    for same in [format!("{export}/"), format!("{export}/."), format!("{export}//")] {
        if let Ok(handle) = client.mnt(&same) {
            assert_eq!(handle, root, "{same}");
        }
    }
    let sub = client.mnt(&format!("{export}/sub")).expect("a directory of it");
    assert_eq!(client.lookup(&root, "sub").expect("sub").handle, sub);

    let outside = [
        "".to_owned(),
        "/".to_owned(),
        "/export".to_owned(),
        "/export/other".to_owned(),
        format!("{export}x"),
        format!("{export}/missing"),
        format!("{export}/file"),
        format!("{export}/.."),
        format!("{export}/../outside"),
        format!("{export}/sub/../../outside"),
        format!("{export}/dir-out"),
        format!("{export}/root/etc"),
        format!("{export}/dotdot/outside"),
        scene.dir.display().to_string(),
        "/etc".to_owned(),
        "x".repeat(1024),
    ];
    for path in outside {
        match client.mnt(&path) {
            // The status of MOUNT, as text: refused, not disconnected.
            Err(Failure::Broken(why)) if why.starts_with("MNT3ERR") => {}
            other => panic!("MNT of {path:?}: {other:?}"),
        }
    }
}

#[test]
fn names_do_not_lead_out() {
    let scene = Scene::new("names");
    furnish(&scene);
    let server = scene.start();
    let (mut client, root) = server.mount(0, 0);
    let sub = client.lookup(&root, "sub").expect("sub").handle;
    assert_eq!(client.lookup(&root, "..").expect("..").handle, root, "above the root is the root");
    assert_eq!(client.lookup(&sub, "..").expect("..").handle, root);
    assert_eq!(client.lookup(&sub, ".").expect(".").handle, sub);

    let bad: [&[u8]; 6] =
        [b"", b"../outside", b"sub/..", b"/etc/passwd", b"a\0b", b"sub/../../outside/secret"];
    for name in bad {
        let shown = String::from_utf8_lossy(name).into_owned();
        let outcomes = [
            ("LOOKUP", status(client.lookup(&root, name))),
            ("CREATE", status(client.create(&root, name, CreateHow::Unchecked(mode(0o644))))),
            ("MKDIR", status(client.mkdir(&root, name, mode(0o755)))),
            ("SYMLINK", status(client.symlink(&root, name, "x"))),
            ("REMOVE", status(client.remove(&root, name, false))),
            ("RMDIR", status(client.remove(&root, name, true))),
        ];
        for (what, status) in outcomes {
            let refused = [Nfsstat3::ACCES, Nfsstat3::INVAL, Nfsstat3::NOENT];
            assert!(refused.contains(&status), "{what} {shown:?}: {status:?}");
        }
    }
    for name in [".", ".."] {
        let made = status(client.create(&sub, name, CreateHow::Unchecked(mode(0o644))));
        let gone = status(client.remove(&sub, name, true));
        let away = status(client.rename((&root, "file"), (&sub, name)));
        for status in [made, gone, away] {
            assert_ne!(status, Nfsstat3::OK, "{name}");
        }
    }
    assert_eq!(fs::read_to_string(scene.dir.join("file")).expect("file"), "inside");
    untouched(&scene);
}

#[test]
fn links_are_not_followed() {
    let scene = Scene::new("links");
    furnish(&scene);
    let server = scene.start();
    let (mut client, root) = server.mount(0, 0);
    for name in ["absolute", "relative", "dir-out", "dotdot", "root", "etc"] {
        let link = client.lookup(&root, name).expect(name).handle;
        let target = fs::read_link(scene.dir.join(name)).expect("the link");
        let told = client.readlink(&link).expect("READLINK");
        assert_eq!(String::from_utf8_lossy(&told), target.to_string_lossy());
        assert_eq!(status(client.read(&link, 0, 100)), Nfsstat3::INVAL, "READ of {name}");
        let written = client.write(&link, 0, b"x", StableHow::FILE_SYNC);
        assert_eq!(status(written), Nfsstat3::INVAL, "WRITE to {name}");
        assert_eq!(status(client.lookup(&link, "secret")), Nfsstat3::NOTDIR, "LOOKUP in {name}");
        assert_eq!(status(client.names(&link)), Nfsstat3::NOTDIR, "READDIR of {name}");
        let made = client.create(&link, "new", CreateHow::Unchecked(mode(0o644)));
        assert_eq!(status(made), Nfsstat3::NOTDIR, "CREATE in {name}");
        // May fail or set the link's own attributes; never the target's.
        let _own = client.setattr(&link, mode(0o600));
        let _own = client.setattr(&link, Sattr3 { size: Some(0), ..Sattr3::default() });
        let truncate = Sattr3 { size: Some(0), mode: Some(0o600), ..Sattr3::default() };
        let over = client.create(&root, name, CreateHow::Unchecked(truncate));
        assert_ne!(status(over), Nfsstat3::OK, "CREATE over {name}");
        let over = client.create(&root, name, CreateHow::Guarded(truncate));
        assert_eq!(status(over), Nfsstat3::EXIST, "CREATE GUARDED over {name}");
        let over = client.create(&root, name, CreateHow::Exclusive(*b"verifier"));
        assert_eq!(status(over), Nfsstat3::EXIST, "CREATE EXCLUSIVE over {name}");
        // A second name of a link is a link.
        let again = format!("{name}-too");
        if client.link(&link, &root, &again).is_ok() {
            let meta = fs::symlink_metadata(scene.dir.join(&again)).expect("it");
            assert!(meta.is_symlink(), "{again}");
        }
    }
    untouched(&scene);
}

#[test]
fn state_below_the_share_is_not_there() {
    let scene = Scene::new("state-below");
    let own = scene.dir.join("own");
    fs::create_dir_all(own.join("stats")).expect("a directory");
    fs::write(own.join("before"), "x").expect("a file");
    fs::write(scene.dir.join("file"), "x").expect("a file");

    // Handles of what is going to be the state directory, good by their MAC: the secret moves
    // there.
    let mut server = scene.start();
    let (mut client, root) = server.mount(0, 0);
    let handle = client.lookup(&root, "own").expect("still a directory").handle;
    let inner = client.lookup(&handle, "before").expect("still a file").handle;
    let stats = client.lookup(&handle, "stats").expect("still a directory").handle;
    assert!(server.stop().success());
    succeed(Command::new("cp").arg("-a").arg(scene.state.join(".")).arg(&own));
    let server = Server::start(&Options { state: &own, ..scene.options() });
    let (mut client, now_root) = server.mount(0, 0);
    assert_eq!(now_root, root, "the same secret");

    for (what, handle) in [("it", &handle), ("a file in it", &inner), ("a directory in it", &stats)]
    {
        assert_eq!(status(client.getattr(handle)), Nfsstat3::STALE, "GETATTR of {what}");
    }
    assert_eq!(status(client.lookup(&handle, "api-token")), Nfsstat3::STALE);
    assert_eq!(status(client.names(&handle)), Nfsstat3::STALE);
    assert_eq!(status(client.lookup(&root, "own")), Nfsstat3::NOENT);
    assert_eq!(client.names(&root).expect("names"), ["file"]);
    let page = client.readdirplus(&root, 0, [0; 8]).expect("names");
    assert!(page.entries.iter().all(|entry| entry.name != b"own"));
    assert!(client.mnt(&format!("{}/own", server.export())).is_err());

    let changes = [
        ("REMOVE", status(client.remove(&root, "own", false))),
        ("RMDIR", status(client.remove(&root, "own", true))),
        ("MKDIR", status(client.mkdir(&root, "own", mode(0o755)))),
        ("CREATE", status(client.create(&root, "own", CreateHow::Unchecked(mode(0o644))))),
        ("SYMLINK", status(client.symlink(&root, "own", "x"))),
        ("RENAME of it", status(client.rename((&root, "own"), (&root, "mine")))),
        ("RENAME over it", status(client.rename((&root, "file"), (&root, "own")))),
    ];
    for (what, status) in changes {
        assert_ne!(status, Nfsstat3::OK, "{what}");
    }
    assert!(own.join("api-token").exists() && scene.dir.join("file").exists());
}
