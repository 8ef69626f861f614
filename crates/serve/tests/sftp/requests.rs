//! Every request once and more: its effect, and its status on failure.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use base::limits::{SFTP_IDS_LOOKED_MAX, SFTP_IO_MAX};
use serve::files::VPath;
use serve::sftp::{Settings, SymlinkOrder};
use vfs::identity::Owners;
use vfs::locks::{self, ClientKey, Protocol, SHARE_READ, SHARE_WRITE, Share};
use vfs::share::Service;
use wire::sftp::extended::{
    CopyData, HomeDirectory, Ids, Limits, Statvfs, UserGroupNames, UsersGroups,
};
use wire::sftp::request::{OfHandle, OfPath, SetByPath};
use wire::sftp::{
    Attrs, Extended, HandleBytes, OpenFlags, Owner, PathBytes, Request, StatusCode, Str, Times,
};
use wire::xdr::{Decode, Reader};

use crate::client::*;
use crate::planted::Planted;
use crate::scene::{Scene, Scratch};
use crate::scripted::Scripted;

const OK: Got = Got::Status(StatusCode::OK);
const EOF: Got = Got::Status(StatusCode::EOF);
const FAILURE: Got = Got::Status(StatusCode::FAILURE);
const NONE: Got = Got::Status(StatusCode::NO_SUCH_FILE);
const DENIED: Got = Got::Status(StatusCode::PERMISSION_DENIED);

fn scene() -> Scene {
    Scene::in_memory(Service::Sftp)
}

/// copy-data.
fn copy<'a>(from: &'a [u8], read_offset: u64, read_len: u64, to: &'a [u8], at: u64) -> Request<'a> {
    let (read_handle, write_handle) = (HandleBytes(from), HandleBytes(to));
    let write_offset = at;
    let args = CopyData { read_handle, read_offset, read_len, write_handle, write_offset };
    Request::Extended(Extended::CopyData(args))
}

#[test]
fn all_extensions_are_announced() {
    with_client(&scene(), |_, client, _| async move {
        let names: Vec<_> = client.extensions.iter().map(|(name, _)| name.as_slice()).collect();
        assert!(names.contains(&b"posix-rename@openssh.com".as_slice()));
        assert_eq!(names.len(), Extended::KNOWN.len());
        assert_eq!(client.end().await, Ok(()));
    });
}

#[test]
fn a_file_makes_a_round_trip() {
    with_client(&scene(), |_, mut c, _| async move {
        let data: Vec<u8> = (0..700_000u32).map(|n| ((n * 7) >> 3) as u8).collect();
        let handle = c.call(open(b"/share/f", new_file())).await.handle();
        // All at once, in pieces of odd sizes.
        let ids: Vec<_> = data
            .chunks(32_768)
            .enumerate()
            .map(|(n, piece)| c.put(&write(&handle, n as u64 * 32_768, piece)))
            .collect();
        let end = c.put(&close(&handle));
        c.flush(50_001);
        for id in ids {
            assert_eq!(c.answer(id).await, OK);
        }
        assert_eq!(c.answer(end).await, OK);
        assert_eq!(c.get_file(b"/share/f").await, data);
        // The most that one READ brings.
        let handle = c.call(open(b"/share/f", OpenFlags::READ)).await.handle();
        let Got::Data(some) = c.call(read(&handle, 5, u32::MAX)).await else { panic!("no data") };
        assert_eq!(some, data[5..5 + SFTP_IO_MAX]);
        assert_eq!(c.call(read(&handle, 700_000, 1)).await, EOF);
        assert_eq!(c.call(read(&handle, 1, 0)).await, Got::Data(Vec::new()));
        assert_eq!(c.call(write(&handle, 0, b"x")).await, DENIED);
        c.done(close(&handle)).await;
        assert_eq!(c.call(close(&handle)).await, FAILURE);
        assert_eq!(c.call(read(&handle, 0, 1)).await, FAILURE);
    });
}

#[test]
fn many_requests_are_all_answered() {
    with_client(&scene(), |_, mut c, _| async move {
        c.put_file(b"/share/f", &[7; 5000]).await;
        let handle = c.call(open(b"/share/f", OpenFlags::READ)).await.handle();
        let ids: Vec<_> = (0..2000).map(|n| c.put(&read(&handle, n % 5000, 3000))).collect();
        c.flush(usize::MAX);
        for (n, id) in ids.into_iter().enumerate() {
            let expect = 3000.min(5000 - n % 5000);
            assert_eq!(c.answer(id).await, Got::Data(vec![7; expect]));
        }
    });
}

#[test]
fn flags_of_open() {
    with_client(&scene(), |_, mut c, _| async move {
        let (r, w) = (OpenFlags::READ, OpenFlags::WRITE);
        assert_eq!(c.call(open(b"/share/f", r)).await, NONE);
        assert_eq!(c.call(open(b"/share/f", w)).await, NONE);
        assert_eq!(c.call(open(b"/share/f", w.with(OpenFlags::TRUNC))).await, NONE);
        c.put_file(b"/share/f", b"0123456789").await;
        let excl = w.with(OpenFlags::CREAT).with(OpenFlags::EXCL);
        assert_eq!(c.call(open(b"/share/f", excl)).await, FAILURE);
        let handle = c.call(open(b"/share/new", excl)).await.handle();
        assert_eq!(c.call(open(b"/share/new", excl)).await, FAILURE);
        c.done(close(&handle)).await;
        // Without TRUNC what is there stays.
        let handle = c.call(open(b"/share/f", w.with(OpenFlags::CREAT))).await.handle();
        c.done(write(&handle, 8, b"abc")).await;
        assert_eq!(c.call(read(&handle, 0, 9)).await, DENIED);
        c.done(close(&handle)).await;
        assert_eq!(c.get_file(b"/share/f").await, b"01234567abc");
        // With APPEND the offset has no effect.
        let append = w.with(OpenFlags::APPEND);
        let handle = c.call(open(b"/share/f", append)).await.handle();
        let ids = [c.put(&write(&handle, 0, b"DE")), c.put(&write(&handle, 0, b"F"))];
        c.flush(usize::MAX);
        for id in ids {
            assert_eq!(c.answer(id).await, OK);
        }
        c.done(close(&handle)).await;
        assert_eq!(c.get_file(b"/share/f").await, b"01234567abcDEF");
        // For both.
        let handle = c.call(open(b"/share/f", r.with(w).with(OpenFlags::TRUNC))).await.handle();
        c.done(write(&handle, 2, b"x")).await;
        assert_eq!(c.call(read(&handle, 0, 9)).await, Got::Data(b"\0\0x".to_vec()));
        c.done(close(&handle)).await;
        assert_eq!(c.call(open(b"/share", r)).await, FAILURE);
        assert_eq!(c.call(open(b"/share", new_file())).await, DENIED);
        assert_eq!(c.call(open(b"/", r)).await, FAILURE);
        assert_eq!(c.call(open(b"/other/f", r)).await, NONE);
        let nothing = c.call(open(b"/share/f", OpenFlags(0))).await;
        assert_eq!(nothing, Got::Status(StatusCode::BAD_MESSAGE));
    });
}

#[test]
fn what_two_clients_append_is_all_there() {
    let fs = Planted::over(vfs::mem::MemFs::new(vfs::share::tag("share"), 1 << 20));
    let scene = Scene::over(Service::Sftp, &[("share", fs.clone())]);
    with_client(&scene, move |core, mut c, who| async move {
        let mut other = Client::hello(&core, who, atomic_settings()).await;
        c.put_file(b"/share/f", b"before").await;
        let append = OpenFlags::WRITE.with(OpenFlags::APPEND);
        let first = c.call(open(b"/share/f", append)).await.handle();
        let second = other.call(open(b"/share/f", append)).await.handle();
        // On the pool, where two writes may be in progress at once.
        fs.blocks.store(true, Relaxed);
        let held = fs.hold("write");
        let one = c.put(&write(&first, 0, b"AA"));
        c.flush(usize::MAX);
        let held = tokio::task::spawn_blocking(move || {
            held.wait();
            held
        });
        let held = held.await.expect("a write that stands still");
        let two = other.put(&write(&second, 0, b"BB"));
        assert_eq!(other.call(stat(b"/share/none")).await, NONE, "the write before it has begun");
        drop(held);
        assert_eq!((c.answer(one).await, other.answer(two).await), (OK, OK));
        c.done(close(&first)).await;
        other.done(close(&second)).await;
        assert_eq!(c.get_file(b"/share/f").await, b"beforeAABB");
    });
}

#[test]
fn attributes() {
    with_client(&scene(), |_, mut c, _| async move {
        c.put_file(b"/share/f", b"0123456789").await;
        let attrs = c.call(stat(b"/share/f")).await.attrs();
        assert_eq!((attrs.size, attrs.permissions), (Some(10), Some(0o100_644)));
        let set = Attrs {
            size: Some(4),
            owner: Some(Owner { uid: 5, gid: 6 }),
            permissions: Some(0o100_600),
            times: Some(Times { atime: 7, mtime: 8 }),
        };
        c.done(setstat(b"/share/f", set)).await;
        assert_eq!(c.call(lstat(b"/share/f")).await.attrs(), set);
        let handle = c.call(open(b"/share/f", OpenFlags::READ)).await.handle();
        let set = Attrs { permissions: Some(0o100_640), ..set };
        c.done(fsetstat(&handle, Attrs { permissions: set.permissions, ..Attrs::default() })).await;
        assert_eq!(c.call(fstat(&handle)).await.attrs().permissions, set.permissions);
        c.done(setstat(b"/share/f", Attrs::default())).await;
        assert_eq!(c.call(setstat(b"/share/none", set)).await, NONE);
        assert_eq!(c.call(setstat(b"/", set)).await, DENIED);
        let root = c.call(stat(b"/")).await.attrs();
        assert_eq!(root.permissions, Some(0o040_555));
    });
}

#[test]
fn names_are_bytes() {
    with_client(&scene(), |_, mut c, _| async move {
        let odd: [&[u8]; 5] = [b" a b ", b"'\"$(x)`", b"\xff\xfe", b"\n\t", "ä—字".as_bytes()];
        let mut expect: Vec<Vec<u8>> = odd.iter().map(|name| name.to_vec()).collect();
        expect.sort();
        for name in odd {
            c.put_file(&[b"/share/", name].concat(), name).await;
        }
        assert_eq!(c.list(b"/share").await, expect);
        for name in odd {
            assert_eq!(c.get_file(&[b"/share/", name].concat()).await, name);
        }
        let bad = Got::Status(StatusCode::BAD_MESSAGE);
        assert_eq!(c.call(stat(b"/share/\0")).await, bad);
        assert_eq!(c.call(mkdir(&[b"/share/", [b'x'; 300].as_slice()].concat())).await, bad);
        assert_eq!(c.call(stat(&[b'/'; 5000])).await, bad);
    });
}

#[test]
fn directories() {
    with_client(&scene(), |_, mut c, _| async move {
        assert_eq!(c.list(b"/").await, [b"share"]);
        c.done(mkdir(b"/share/d")).await;
        assert_eq!(c.call(mkdir(b"/share/d")).await, FAILURE);
        assert_eq!(c.call(mkdir(b"/share")).await, FAILURE);
        assert_eq!(c.call(mkdir(b"/share/none/d")).await, NONE);
        let mode = c.call(stat(b"/share/d")).await.attrs().permissions;
        assert_eq!(mode, Some(0o040_755));
        let count = 1500;
        for n in 0..count {
            c.put_file(format!("/share/d/{n:04}").as_bytes(), b"").await;
        }
        let names = c.list(b"/share/d").await;
        let expect: Vec<_> = (0..count).map(|n| format!("{n:04}").into_bytes()).collect();
        assert_eq!(names, expect);
        assert_eq!(c.call(rmdir(b"/share/d")).await, FAILURE);
        assert_eq!(c.call(remove(b"/share/d")).await, FAILURE);
        assert_eq!(c.call(rmdir(b"/share/d/0000")).await, NONE);
        for n in 0..count {
            c.done(remove(format!("/share/d/{n:04}").as_bytes())).await;
        }
        c.done(rmdir(b"/share/d")).await;
        assert_eq!(c.call(rmdir(b"/share/d")).await, NONE);
        assert_eq!(c.call(remove(b"/share/d")).await, NONE);
        assert_eq!(c.call(opendir(b"/share/d")).await, NONE);
        c.put_file(b"/share/f", b"").await;
        assert_eq!(c.call(opendir(b"/share/f")).await, NONE);
        let dir = c.call(opendir(b"/share")).await.handle();
        assert_eq!(c.call(read(&dir, 0, 1)).await, FAILURE);
        assert_eq!(c.call(fstat(&dir)).await.attrs().permissions.map(|m| m >> 12), Some(4));
        let file = c.call(open(b"/share/f", OpenFlags::READ)).await.handle();
        let readdir = Request::Readdir(OfHandle { handle: HandleBytes(&file) });
        assert_eq!(c.call(readdir).await, FAILURE);
    });
}

#[test]
fn renames_and_links() {
    with_client(&scene(), |_, mut c, _| async move {
        c.put_file(b"/share/a", b"A").await;
        c.put_file(b"/share/b", b"B").await;
        assert_eq!(c.call(rename(b"/share/a", b"/share/b")).await, FAILURE);
        c.done(rename(b"/share/a", b"/share/c")).await;
        assert_eq!(c.list(b"/share").await, [b"b", b"c"]);
        c.done(replace(b"/share/c", b"/share/b")).await;
        assert_eq!(c.get_file(b"/share/b").await, b"A");
        assert_eq!(c.call(rename(b"/share/none", b"/share/c")).await, NONE);
        c.done(mkdir(b"/share/d")).await;
        c.done(rename(b"/share/d", b"/share/e")).await;
        c.done(rename(b"/share/b", b"/share/e/b")).await;
        let paths = |oldpath, newpath| wire::sftp::request::TwoPaths {
            oldpath: PathBytes(oldpath),
            newpath: PathBytes(newpath),
        };
        let link = Extended::Hardlink(paths(b"/share/e/b", b"/share/l"));
        c.done(Request::Extended(link.clone())).await;
        assert_eq!(c.call(Request::Extended(link)).await, FAILURE);
        assert_eq!(c.get_file(b"/share/l").await, b"A");
        c.done(symlink(b"e/b", b"/share/s")).await;
        let readlink = Request::Readlink(OfPath { path: PathBytes(b"/share/s") });
        let Got::Names(names) = c.call(readlink).await else { panic!("no name") };
        assert_eq!(names[0].0, b"e/b");
        assert_eq!(c.get_file(b"/share/s").await, b"A");
        let kind = |attrs: Attrs| attrs.permissions.map(|mode| mode >> 12);
        assert_eq!(kind(c.call(lstat(b"/share/s")).await.attrs()), Some(0o12));
        assert_eq!(kind(c.call(stat(b"/share/s")).await.attrs()), Some(0o10));
        // An upload through a link goes to where it leads.
        c.put_file(b"/share/s", b"through").await;
        assert_eq!(kind(c.call(lstat(b"/share/s")).await.attrs()), Some(0o12));
        assert_eq!(c.get_file(b"/share/e/b").await, b"through");
        // Out of the share leads no link.
        c.done(symlink(b"../../etc/passwd", b"/share/out")).await;
        c.done(symlink(b"/etc/passwd", b"/share/abs")).await;
        assert_eq!(c.call(stat(b"/share/out")).await, DENIED);
        assert_eq!(c.call(open(b"/share/abs", OpenFlags::READ)).await, DENIED);
        assert_eq!(c.call(open(b"/share/out", new_file())).await, DENIED);
        // Times of a link itself.
        let attrs = Attrs { times: Some(Times { atime: 3, mtime: 4 }), ..Attrs::default() };
        let set = Extended::Lsetstat(SetByPath { path: PathBytes(b"/share/s"), attrs });
        c.done(Request::Extended(set)).await;
        assert_eq!(c.call(lstat(b"/share/s")).await.attrs().times, attrs.times);
        assert_ne!(c.call(stat(b"/share/s")).await.attrs().times, attrs.times);
    });
}

#[test]
fn a_rename_that_fails_leaves_one_name() {
    with_client(&scene(), |core, mut c, who| async move {
        c.put_file(b"/share/a", b"A").await;
        let path = VPath::parse(b"/share/a").expect("a path");
        let found = core.find(&who, &path, serve::files::Links::Keep).await.expect("there");
        let key = found.node().expect("a file").key();
        let nfs = ClientKey { protocol: Protocol::Nfs4, id: 7 };
        let owner = locks::Owner::new(nfs, b"nfs").expect("short");
        let keeps_its_name = Share { access: SHARE_READ, deny: SHARE_WRITE };
        core.files.locks.open(key, &owner, keeps_its_name).expect("free");
        for request in [rename, replace] {
            assert_eq!(c.call(request(b"/share/a", b"/share/b")).await, FAILURE);
            assert_eq!(c.list(b"/share").await, [b"a"]);
        }
        core.files.locks.close(key, &owner);
        c.done(rename(b"/share/a", b"/share/b")).await;
        assert_eq!(c.list(b"/share").await, [b"b"]);
    });
}

#[test]
fn symlinks_of_clients_that_go_by_the_server_s_name() {
    for name in ["libssh_0.11.1", "WinSCP_release_6.5", "AsyncSSH_2.24.1"] {
        assert_eq!(SymlinkOrder::of(name.as_bytes()), SymlinkOrder::Draft, "{name}");
    }
    for name in ["OpenSSH_10.0p2", "libssh2_1.11.1", "paramiko_5.1.0", "PuTTY_Release_0.83", ""] {
        assert_eq!(SymlinkOrder::of(name.as_bytes()), SymlinkOrder::OpenSsh, "{name}");
    }
    let scene = scene();
    let who = scene.caller("alice");
    scene.run(move |core| async move {
        let settings = Settings { symlink: SymlinkOrder::Draft, ..atomic_settings() };
        let mut c = Client::hello(&core, who, settings).await;
        c.put_file(b"/share/a", b"A").await;
        c.done(symlink(b"/share/s", b"a")).await;
        assert_eq!(c.get_file(b"/share/s").await, b"A");
    });
}

#[test]
fn paths_in_their_full_form() {
    with_client(&scene(), |_, mut c, _| async move {
        let real = |path| Request::Realpath(OfPath { path: PathBytes(path) });
        let expand =
            |path| Request::Extended(Extended::ExpandPath(OfPath { path: PathBytes(path) }));
        let home = |name| {
            Request::Extended(Extended::HomeDirectory(HomeDirectory { username: Str(name) }))
        };
        let cases: [(Request<'_>, &[u8]); 10] = [
            (real(b""), b"/"),
            (real(b"."), b"/"),
            (real(b"share/../x/./y//"), b"/x/y"),
            (real(b"../../.."), b"/"),
            (real(b"/~"), b"/~"),
            (expand(b"~"), b"/"),
            (expand(b"~/x"), b"/x"),
            (expand(b"~alice/x/.."), b"/"),
            (expand(b"x"), b"/x"),
            (home(b"alice"), b"/"),
        ];
        for (request, expect) in cases {
            let shown = format!("{request:?}");
            let Got::Names(names) = c.call(request).await else { panic!("no path: {shown}") };
            assert_eq!((names.len(), names[0].0.as_slice()), (1, expect), "{shown}");
        }
        assert_eq!(c.call(expand(b"~bob")).await, NONE);
        assert_eq!(c.call(home(b"root")).await, NONE);
    });
}

#[test]
fn what_the_server_reports_of_itself() {
    with_client(&scene(), |_, mut c, _| async move {
        let Got::Extended(bytes) = c.call(Request::Extended(Extended::Limits(()))).await else {
            panic!("no limits")
        };
        let limits = Limits::decode(&mut Reader::new(&bytes)).expect("limits");
        assert_eq!(limits.max_read_length, SFTP_IO_MAX as u64);
        let path = OfPath { path: PathBytes(b"/share") };
        let Got::Extended(bytes) = c.call(Request::Extended(Extended::Statvfs(path))).await else {
            panic!("no space")
        };
        let space = Statvfs::decode(&mut Reader::new(&bytes)).expect("space");
        assert_eq!(space.blocks * space.frsize, 1 << 30);
        let asked = UsersGroups { uids: Ids(vec![0, 1]), gids: Ids(vec![2]) };
        let asked = Request::Extended(Extended::UsersGroupsById(asked));
        let Got::Extended(bytes) = c.call(asked).await else { panic!("no names") };
        let names = UserGroupNames::decode(&mut Reader::new(&bytes)).expect("names");
        assert_eq!((names.users.len(), names.groups.len()), (2, 1));
    });
}

/// All ids have names, which are counted as they are looked up.
#[derive(Default)]
struct Counted(AtomicUsize);

impl Owners for Counted {
    fn user(&self, uid: u32) -> Option<String> {
        self.0.fetch_add(1, Relaxed);
        Some(format!("u{uid}"))
    }

    fn group(&self, gid: u32) -> Option<String> {
        self.0.fetch_add(1, Relaxed);
        Some(format!("g{gid}"))
    }
}

#[test]
fn names_of_many_ids_are_looked_up_once_each_and_not_all() {
    let scene = scene();
    let who = scene.caller("alice");
    scene.run(move |core| async move {
        let owners = Arc::new(Counted::default());
        let settings = Settings { owners: owners.clone(), ..atomic_settings() };
        let mut c = Client::hello(&core, who, settings).await;
        let uids: Vec<u32> = (0..4_000).map(|n| n / 2).collect();
        let asked = UsersGroups { uids: Ids(uids), gids: Ids(vec![7; 4_000]) };
        let asked = Request::Extended(Extended::UsersGroupsById(asked));
        let Got::Extended(bytes) = c.call(asked).await else { panic!("no names") };
        let names = UserGroupNames::decode(&mut Reader::new(&bytes)).expect("names");
        assert_eq!(owners.0.load(Relaxed), SFTP_IDS_LOOKED_MAX + 1);
        assert_eq!((names.users.len(), names.users[3].0), (4_000, &b"u1"[..]));
        assert_eq!((names.users[3_999].0, names.groups[3_999].0), (&b""[..], &b"g7"[..]));
    });
}

#[test]
fn copies_at_the_server() {
    with_client(&scene(), |_, mut c, _| async move {
        let data: Vec<u8> = (0..300_000u32).map(|n| (n % 251) as u8).collect();
        c.put_file(b"/share/a", &data[..200_000]).await;
        let both = OpenFlags::READ.with(OpenFlags::WRITE);
        let from = c.call(open(b"/share/a", both)).await.handle();
        let to = c.call(open(b"/share/b", new_file())).await.handle();
        c.done(copy(&from, 0, 0, &to, 10)).await;
        c.done(copy(&from, 100, 5, &to, 0)).await;
        assert_eq!(c.call(copy(&from, 0, 10, &from, 5)).await, FAILURE);
        c.done(copy(&from, 0, 10, &from, 100_000)).await;
        assert_eq!(c.call(copy(&to, 0, 0, &from, 0)).await, DENIED);
        c.done(Request::Extended(Extended::Fsync(OfHandle { handle: HandleBytes(&to) }))).await;
        c.done(close(&to)).await;
        let got = c.get_file(b"/share/b").await;
        assert_eq!(got.len(), 200_010);
        assert_eq!((&got[..5], &got[10..]), (&data[100..105], &data[..200_000]));
    });
}

#[test]
fn nothing_is_copied_over_itself() {
    let folder = Scratch::new();
    std::fs::create_dir(folder.0.join("share/sub")).expect("a folder");
    let sub = folder.0.join("share/sub");
    let options = vfs::host::HostOptions::new(vfs::share::tag("sub"), [7; 32]);
    let inner: Arc<dyn vfs::fs::FileSystem> =
        vfs::host::HostFs::open(&sub, options).expect("a share");
    let scene = Scene::over(Service::Sftp, &[("share", folder.share()), ("sub", inner)]);
    with_client(&scene, move |_, mut c, _| async move {
        let data: Vec<u8> = (0..100_000u32).map(|n| (n / 3) as u8).collect();
        c.put_file(b"/share/sub/f", &data).await;
        std::fs::hard_link(sub.join("f"), sub.join("again")).expect("a second name");
        std::os::unix::fs::symlink("f", sub.join("link")).expect("a link");
        let both = OpenFlags::READ.with(OpenFlags::WRITE);
        let from = c.call(open(b"/share/sub/f", both)).await.handle();
        for other in [b"/share/sub/again".as_slice(), b"/share/sub/link", b"/sub/f"] {
            let to = c.call(open(other, both)).await.handle();
            for (at, len, into) in [(0, 10, 5), (5, 10, 0), (0, 0, 50_000), (0, u64::MAX, 1)] {
                assert_eq!(c.call(copy(&from, at, len, &to, into)).await, FAILURE, "{other:?}");
            }
            c.done(close(&to)).await;
        }
        // To its own end it can be copied.
        let append = c.call(open(b"/sub/again", both.with(OpenFlags::APPEND))).await.handle();
        c.done(copy(&from, 10, 20, &append, 0)).await;
        c.done(copy(&append, 0, 5, &append, 0)).await;
        assert_eq!(c.call(copy(&append, 0, 0, &append, 0)).await, FAILURE);
        c.done(close(&append)).await;
        c.done(close(&from)).await;
        let expect = [&data[..], &data[10..30], &data[..5]].concat();
        assert!(c.get_file(b"/share/sub/f").await == expect);
    });
}

#[test]
fn a_share_that_refuses_changes() {
    let fs: Arc<dyn vfs::fs::FileSystem> = vfs::mem::MemFs::new(vfs::share::tag("share"), 1 << 20);
    let scene = Scene::over(Service::Sftp, &[("share", Arc::new(vfs::share::ReadOnly::new(fs)))]);
    with_client(&scene, |_, mut c, _| async move {
        assert_eq!(c.call(open(b"/share/f", new_file())).await, DENIED);
        assert_eq!(c.call(mkdir(b"/share/d")).await, DENIED);
        assert_eq!(c.call(symlink(b"x", b"/share/s")).await, DENIED);
        assert_eq!(c.list(b"/share").await, Vec::<Vec<u8>>::new());
    });
}

#[test]
fn a_handle_outlives_the_name_of_its_file() {
    let folder = Scratch::new();
    for fs in [folder.share(), vfs::mem::MemFs::new(vfs::share::tag("share"), 1 << 20)] {
        let scene = Scene::over(Service::Sftp, &[("share", fs)]);
        with_client(&scene, |core, mut c, who| async move {
            let mut other = Client::hello(&core, who, atomic_settings()).await;
            for round in 0..3 {
                c.put_file(b"/share/f", b"as it was").await;
                let handle = c.call(open(b"/share/f", OpenFlags::READ)).await.handle();
                let both = OpenFlags::READ.with(OpenFlags::WRITE);
                let edited = c.call(open(b"/share/f", both)).await.handle();
                assert_eq!(c.call(read(&handle, 0, 2)).await, Got::Data(b"as".to_vec()));
                match round {
                    0 => other.put_file(b"/share/f", b"new").await,
                    1 => other.done(remove(b"/share/f")).await,
                    _ => {
                        other.put_file(b"/share/g", b"new").await;
                        other.done(replace(b"/share/g", b"/share/f")).await;
                    }
                }
                assert_eq!(c.call(read(&handle, 2, 50)).await, Got::Data(b" it was".to_vec()));
                assert_eq!(c.call(fstat(&handle)).await.attrs().size, Some(9));
                c.done(write(&edited, 9, b"!")).await;
                assert_eq!(c.call(read(&handle, 0, 50)).await, Got::Data(b"as it was!".to_vec()));
                c.done(close(&edited)).await;
                c.done(close(&handle)).await;
                match round {
                    1 => assert_eq!(c.call(stat(b"/share/f")).await, NONE),
                    _ => assert_eq!(c.get_file(b"/share/f").await, b"new"),
                }
            }
        });
    }
}

#[test]
fn no_link_leads_out_of_a_home_that_is_all_there_is() {
    with_client(&scene(), |core, mut c, who| async move {
        c.done(mkdir(b"/share/home")).await;
        c.put_file(b"/share/outside", b"secret").await;
        let root = VPath::parse(b"/share/home").expect("a path");
        let mut bob = Client::hello(&core, who, Settings { root, ..atomic_settings() }).await;
        bob.put_file(b"/mine", b"y").await;
        for target in [b"../outside".as_slice(), b"/share/outside", b"/outside", b"../home/mine"] {
            bob.done(symlink(target, b"/link")).await;
            assert_eq!(bob.call(stat(b"/link")).await, DENIED);
            assert_eq!(bob.call(open(b"/link", OpenFlags::READ)).await, DENIED);
            assert_eq!(bob.call(open(b"/link", new_file())).await, DENIED);
            bob.done(remove(b"/link")).await;
        }
        for target in [b"mine".as_slice(), b"/share/home/mine"] {
            bob.done(symlink(target, b"/link")).await;
            assert_eq!(bob.get_file(b"/link").await, b"y");
            bob.done(remove(b"/link")).await;
        }
        assert_ne!(bob.call(rmdir(b"/")).await, OK, "nor is the home in it");
        assert_eq!(c.get_file(b"/share/outside").await, b"secret");
    });
}

#[test]
fn a_mount_is_listed_and_not_entered() {
    let scene = Scene::over(Service::Sftp, &[("share", Scripted::with_mount())]);
    with_client(&scene, |_, mut c, _| async move {
        let dir = c.call(opendir(b"/share")).await.handle();
        let mut names = Vec::new();
        // First `.` and `..`.
        while names.len() < 3 {
            let request = Request::Readdir(OfHandle { handle: HandleBytes(&dir) });
            let Got::Names(some) = c.call(request).await else { panic!("only {names:?}") };
            names.extend(some);
        }
        let (_, line, attrs) = names.iter().find(|(name, ..)| name == b"mounted").expect("listed");
        assert_eq!(attrs.permissions, Some(0o040_755));
        assert!(line.starts_with(b"drwxr-xr-x"));
        for request in [stat(b"/share/mounted"), opendir(b"/share/mounted")] {
            assert_eq!(c.call(request).await, DENIED);
        }
    });
}

#[test]
fn a_slash_at_the_end_names_a_directory_only() {
    with_client(&scene(), |_, mut c, _| async move {
        c.put_file(b"/share/f", b"data").await;
        c.done(symlink(b"f", b"/share/l")).await;
        let bare = Attrs { permissions: Some(0o600), ..Attrs::default() };
        for name in [b"/share/f/".as_slice(), b"/share/f/.", b"/share/f//", b"/share/l/"] {
            for request in [
                remove(name),
                rename(name, b"/share/g"),
                replace(name, b"/share/g"),
                stat(name),
                lstat(name),
                setstat(name, bare),
                open(name, OpenFlags::READ),
                open(name, new_file()),
                opendir(name),
                rmdir(name),
            ] {
                let shown = format!("{request:?}");
                assert_ne!(c.call(request).await, OK, "{shown}");
            }
        }
        for request in [
            open(b"/share/new/", new_file()),
            rename(b"/share/f", b"/share/g/"),
            replace(b"/share/f", b"/share/g/"),
            symlink(b"f", b"/share/g/"),
        ] {
            let shown = format!("{request:?}");
            assert_eq!(c.call(request).await, NONE, "{shown}");
        }
        assert_eq!(c.list(b"/share").await, [b"f", b"l"]);
        // Directories may be named so, also before they are there.
        c.done(mkdir(b"/share/d/")).await;
        c.done(rename(b"/share/d/", b"/share/e/")).await;
        assert_eq!(c.list(b"/share/e/").await, Vec::<Vec<u8>>::new());
        c.done(rmdir(b"/share/e/")).await;
        assert_eq!(c.get_file(b"/share/f").await, b"data");
    });
}

#[test]
fn open_files_end_with_their_user() {
    let scene = scene();
    let users = Arc::clone(&scene.users);
    with_client(&scene, move |_, mut c, _| async move {
        c.put_file(b"/share/f", b"data").await;
        let handle = c.call(open(b"/share/f", OpenFlags::READ)).await.handle();
        let upload = c.call(open(b"/share/g", new_file())).await.handle();
        users.add("bob", "b", vfs::cred::Cred::root());
        assert_eq!(c.call(read(&handle, 0, 1)).await, Got::Data(b"d".to_vec()), "another user");
        users.remove("alice");
        assert_eq!(c.call(read(&handle, 0, 1)).await, DENIED);
        assert_eq!(c.call(fstat(&handle)).await, DENIED);
        assert_eq!(c.call(write(&upload, 0, b"more")).await, DENIED);
        assert_eq!(c.call(close(&upload)).await, DENIED);
    });
}
