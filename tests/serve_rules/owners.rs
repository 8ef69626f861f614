//! Which rights apply: with privilege those of the caller's uid, gid and groups; without, those of
//! the serving user.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use e2e::api::Api;
use e2e::nfs3::Client;
use e2e::server::Server;
use e2e::{NOBODY, is_root, skip};
use wire::nfs3::{CreateHow, Nfsstat3, Sattr3, StableHow};

use super::{Scene, mode, status};

const OWNER: u32 = 4_001;
const STRANGER: u32 = 4_002;
const GROUP: u32 = 5_001;
const OTHER_GROUP: u32 = 5_002;

/// Callers: a name, uid, gid, supplementary groups.
const CALLERS: [(&str, u32, u32, &[u32]); 5] = [
    ("owner", OWNER, OTHER_GROUP, &[]),
    ("group", STRANGER, GROUP, &[]),
    ("supplementary", STRANGER, OTHER_GROUP, &[7, GROUP, 8]),
    ("other", STRANGER, OTHER_GROUP, &[7, 8]),
    ("root", 0, 0, &[]),
];

fn caller(server: &Server, name: &str) -> (Client, Vec<u8>) {
    let (_, uid, gid, groups) = CALLERS.into_iter().find(|c| c.0 == name).expect(name);
    let (client, root) = server.mount(uid, gid);
    (client.with_groups(groups), root)
}

/// Gives a file or directory to [`OWNER`] and [`GROUP`].
fn give(path: &Path, mode: u32) {
    chown(path, Some(OWNER), Some(GROUP)).expect("giving it away");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its mode");
}

/// Of a file: its mode, which users may read, which may write. The owner may do both whatever the
/// mode is, since NFSv3 has no OPEN at which rights were checked (RFC 1813 §4.4).
const FILES: [(u32, &[&str], &[&str]); 6] = [
    (0o600, &["owner"], &["owner"]),
    (0o640, &["owner", "group", "supplementary"], &["owner"]),
    (0o664, &["owner", "group", "supplementary", "other"], &["owner", "group", "supplementary"]),
    (0o060, &["owner", "group", "supplementary"], &["owner", "group", "supplementary"]),
    (0o606, &["owner", "other"], &["owner", "other"]),
    (0o000, &["owner"], &["owner"]),
];

#[test]
fn mode_owner_and_groups_decide_about_files() {
    if !is_root() {
        skip!("owners-files", "needs root");
    }
    let scene = Scene::new("owners");
    for (mode, ..) in FILES {
        let path = scene.dir.join(format!("{mode:o}"));
        fs::write(&path, "content").expect("a file");
        give(&path, mode);
    }
    let server = scene.start();
    assert_eq!(Api::new(&scene.state).status()["acting_as"]["privileged"], true);
    for (name, ..) in CALLERS {
        let (mut client, root) = caller(&server, name);
        for (mode, readers, writers) in FILES {
            let file = client.lookup(&root, &format!("{mode:o}")).expect("a file").handle;
            let may = |who: &[&str]| name == "root" || who.contains(&name);
            let expected = |may| if may { Nfsstat3::OK } else { Nfsstat3::ACCES };
            let read = status(client.read(&file, 0, 100));
            assert_eq!(read, expected(may(readers)), "{name} reads {mode:o}");
            let written = status(client.write(&file, 0, b"c", StableHow::UNSTABLE));
            assert_eq!(written, expected(may(writers)), "{name} writes {mode:o}");
            // ACCESS follows the mode for the owner as well, while READ and WRITE do not.
            if name != "owner" {
                let granted = client.access(&file, 1 | 4).expect("ACCESS");
                let wanted = u32::from(may(readers)) | u32::from(may(writers)) << 2;
                assert_eq!(granted, wanted, "ACCESS of {name} to {mode:o}");
            }
        }
    }
}

#[test]
fn mode_owner_and_groups_decide_about_directories() {
    if !is_root() {
        skip!("owners-directories", "needs root");
    }
    let scene = Scene::new("owners-dirs");
    let dirs: [(u32, &[&str], &[&str]); 4] = [
        (0o700, &["owner"], &["owner"]),
        (0o750, &["owner", "group", "supplementary"], &["owner"]),
        (0o2770, &["owner", "group", "supplementary"], &["owner", "group", "supplementary"]),
        (0o707, &["owner", "other"], &["owner", "other"]),
    ];
    for (mode, ..) in dirs {
        let path = scene.dir.join(format!("{mode:o}"));
        fs::create_dir(&path).expect("a directory");
        fs::write(path.join("file"), "content").expect("a file");
        give(&path, mode);
    }
    let server = scene.start();
    for (name, uid, gid, _) in CALLERS {
        let (mut client, root) = caller(&server, name);
        for (dir_mode, visitors, makers) in dirs {
            let at = format!("{dir_mode:o}");
            let dir = client.lookup(&root, &at).expect("a directory").handle;
            let may = |who: &[&str]| name == "root" || who.contains(&name);
            let expected = |may| if may { Nfsstat3::OK } else { Nfsstat3::ACCES };
            let what = format!("{name} in {at}");
            assert_eq!(
                status(client.lookup(&dir, "file")),
                expected(may(visitors)),
                "LOOKUP {what}"
            );
            assert_eq!(status(client.names(&dir)), expected(may(visitors)), "READDIR {what}");
            let made = client.create(&dir, name, CreateHow::Guarded(mode(0o640)));
            assert_eq!(status(made), expected(may(makers)), "CREATE {what}");
            let below = client.mkdir(&dir, &format!("{name}-dir"), mode(0o755));
            assert_eq!(status(below), expected(may(makers)), "MKDIR {what}");
            if !may(makers) {
                let gone = status(client.remove(&dir, "file", false));
                assert_eq!(gone, Nfsstat3::ACCES, "REMOVE {what}");
                continue;
            }
            let meta = fs::metadata(scene.dir.join(&at).join(name)).expect("the new file");
            // A directory with the set-group-id bit hands its group down.
            let group = if dir_mode & 0o2000 != 0 { GROUP } else { gid };
            assert_eq!(
                (meta.uid(), meta.gid(), meta.mode() & 0o777),
                (uid, group, 0o640),
                "{what}"
            );
            client.remove(&dir, name, false).expect("removing the own file");
        }
    }
}

#[test]
fn attributes_are_the_owners_to_change() {
    if !is_root() {
        skip!("owners-attributes", "needs root");
    }
    let scene = Scene::new("owners-attrs");
    let path = scene.dir.join("file");
    fs::write(&path, "content").expect("a file");
    give(&path, 0o666);
    let sticky = scene.dir.join("sticky");
    fs::create_dir(&sticky).expect("a directory");
    fs::write(sticky.join("file"), "content").expect("a file");
    give(&sticky.join("file"), 0o666);
    fs::set_permissions(&sticky, fs::Permissions::from_mode(0o1777)).expect("its mode");
    let server = scene.start();
    let refused = |status| matches!(status, Nfsstat3::PERM | Nfsstat3::ACCES);
    let owner = |uid| Sattr3 { uid: Some(uid), ..Sattr3::default() };
    let group = |gid| Sattr3 { gid: Some(gid), ..Sattr3::default() };

    for name in ["group", "supplementary", "other"] {
        let (mut client, root) = caller(&server, name);
        let file = client.lookup(&root, "file").expect("the file").handle;
        for change in [mode(0o777), owner(STRANGER), group(OTHER_GROUP)] {
            let changed = status(client.setattr(&file, change));
            assert!(refused(changed), "{name}: {change:?}: {changed:?}");
        }
        let dir = client.lookup(&root, "sticky").expect("the directory").handle;
        let gone = status(client.remove(&dir, "file", false));
        assert!(refused(gone), "{name} removes from a sticky directory: {gone:?}");
        let away = status(client.rename((&dir, "file"), (&dir, "other")));
        assert!(refused(away), "{name} renames in a sticky directory: {away:?}");
    }
    let (mut client, root) = caller(&server, "owner");
    let file = client.lookup(&root, "file").expect("the file").handle;
    assert_eq!(status(client.setattr(&file, mode(0o600))), Nfsstat3::OK, "the owner's mode");
    assert!(refused(status(client.setattr(&file, owner(STRANGER)))), "giving it away");
    assert!(refused(status(client.setattr(&file, group(9_999)))), "to a group of others");
    assert_eq!(status(client.setattr(&file, group(OTHER_GROUP))), Nfsstat3::OK, "to an own group");
    let (mut client, _) = caller(&server, "root");
    assert_eq!(status(client.setattr(&file, owner(STRANGER))), Nfsstat3::OK, "root gives it away");
    let meta = fs::metadata(&path).expect("attributes");
    assert_eq!((meta.uid(), meta.gid()), (STRANGER, OTHER_GROUP));
}

#[test]
fn without_privilege_everything_is_the_serving_users() {
    let scene = Scene::by(&std::env::temp_dir(), "serving-user", true);
    let mut server = scene.start();
    // SAFETY: no arguments, cannot fail.
    let serving = if is_root() { NOBODY } else { unsafe { libc::geteuid() } };
    let told = Api::new(&scene.state).status();
    let acting = &told["acting_as"];
    assert_eq!(acting["privileged"], false, "{told:#}");
    let note = acting["note"].as_str().unwrap_or_default();
    assert!(!note.is_empty(), "{told:#}");
    let note = told["shares"][0]["access"][0]["note"].as_str().unwrap_or_default();
    assert!(!note.is_empty(), "the share says so: {told:#}");

    for (name, ..) in CALLERS {
        let (mut client, root) = caller(&server, name);
        let file = client.create(&root, name, CreateHow::Guarded(mode(0o600))).expect(name).handle;
        client.write(&file, 0, b"content", StableHow::FILE_SYNC).expect(name);
        client.mkdir(&root, &format!("{name}-dir"), mode(0o700)).expect(name);
        for path in [name.to_owned(), format!("{name}-dir")] {
            let meta = fs::metadata(scene.dir.join(path)).expect("what was made");
            assert_eq!(meta.uid(), serving, "{name}");
        }
        let attr = client.getattr(&file).expect("attributes");
        assert_eq!(attr.uid, serving, "{name}");
    }
    // One caller's file is as good as the other's.
    for (name, ..) in CALLERS {
        let (mut client, root) = caller(&server, name);
        for (other, ..) in CALLERS {
            let file = client.lookup(&root, other).expect(other).handle;
            assert_eq!(client.read_all(&file).as_deref(), Ok(&b"content"[..]), "{name}, {other}");
        }
    }
    assert!(server.stop().success());
}
