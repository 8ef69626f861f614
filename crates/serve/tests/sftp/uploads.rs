//! When an upload is at its name: whole or as configured, and nothing of one that was lost.

use serve::sftp::{Settings, Uploads};
use vfs::mem::MemFs;
use vfs::share::rules::Rules;
use vfs::share::{Service, tag};
use wire::sftp::extended::CopyData;
use wire::sftp::request::OfHandle;
use wire::sftp::{Attrs, Extended, HandleBytes, OpenFlags, Request, StatusCode, Times};

use crate::client::*;
use crate::scene::{NoLookup, Scene};

const NONE: Got = Got::Status(StatusCode::NO_SUCH_FILE);

/// Waits until a directory has these names, as another channel sees it.
async fn until(other: &mut Client, expect: &[&[u8]]) {
    for _ in 0..2000 {
        if other.list(b"/share").await == expect {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    panic!("{:?} instead of {expect:?}", other.list(b"/share").await);
}

#[test]
fn a_whole_upload_appears_when_it_is_closed() {
    with_client(&Scene::in_memory(Service::Sftp), |core, mut c, who| async move {
        let mut other = Client::hello(&core, who, atomic_settings()).await;
        c.put_file(b"/share/f", b"before").await;
        let handle = c.call(open(b"/share/f", new_file())).await.handle();
        let fresh = c.call(open(b"/share/new", new_file())).await.handle();
        c.done(write(&handle, 0, b"after!!")).await;
        c.done(write(&fresh, 0, b"fresh")).await;
        assert_eq!(other.get_file(b"/share/f").await, b"before");
        assert_eq!(other.call(stat(b"/share/new")).await, NONE);
        assert_eq!(other.list(b"/share").await, [b"f"]);
        // The channel of the upload sees it.
        assert_eq!(c.call(stat(b"/share/f")).await.attrs().size, Some(7));
        assert_eq!(c.call(lstat(b"/share/new")).await.attrs().size, Some(5));
        assert_eq!(c.list(b"/share").await, [b"f".as_slice(), b"new"]);
        let times = Attrs { times: Some(Times { atime: 1, mtime: 2 }), ..Attrs::default() };
        c.done(setstat(b"/share/new", times)).await;
        c.done(close(&handle)).await;
        c.done(close(&fresh)).await;
        assert_eq!(other.get_file(b"/share/f").await, b"after!!");
        assert_eq!(other.call(stat(b"/share/new")).await.attrs().times, times.times);
    });
}

#[test]
fn what_is_flushed_is_at_its_name() {
    with_client(&Scene::in_memory(Service::Sftp), |core, mut c, who| async move {
        let mut other = Client::hello(&core, who, atomic_settings()).await;
        c.put_file(b"/share/f", b"before").await;
        let handle = c.call(open(b"/share/f", new_file())).await.handle();
        c.done(write(&handle, 0, b"after")).await;
        assert_eq!(other.get_file(b"/share/f").await, b"before");
        let of = OfHandle { handle: HandleBytes(&handle) };
        c.done(Request::Extended(Extended::Fsync(of))).await;
        // What was acknowledged as on disk must be found after a power cut, and by its name.
        assert_eq!(other.get_file(b"/share/f").await, b"after");
        c.done(write(&handle, 5, b" all")).await;
        c.done(close(&handle)).await;
        assert_eq!(other.get_file(b"/share/f").await, b"after all");
    });
}

#[test]
fn a_lost_connection_leaves_nothing() {
    with_client(&Scene::in_memory(Service::Sftp), |core, mut c, who| async move {
        let mut other = Client::hello(&core, who.clone(), atomic_settings()).await;
        c.put_file(b"/share/f", b"before").await;
        let handle = c.call(open(b"/share/f", new_file())).await.handle();
        c.done(write(&handle, 0, b"after")).await;
        let handle = c.call(open(b"/share/new", new_file())).await.handle();
        c.put(&write(&handle, 0, b"new"));
        c.flush(usize::MAX);
        c.lose().await;
        until(&mut other, &[b"f"]).await;
        assert_eq!(other.get_file(b"/share/f").await, b"before");
        // So does one that ends its channel without closing.
        let mut c = Client::hello(&core, who, atomic_settings()).await;
        let handle = c.call(open(b"/share/new", new_file())).await.handle();
        c.done(write(&handle, 0, b"new")).await;
        assert_eq!(c.end().await, Ok(()));
        until(&mut other, &[b"f"]).await;
        assert_eq!(core.files.locks.counts().opens, 0);
    });
}

#[test]
fn names_of_what_is_not_whole_appear_at_once_and_stay() {
    with_client(&Scene::in_memory(Service::Sftp), |core, mut c, who| async move {
        let mut other = Client::hello(&core, who, atomic_settings()).await;
        for name in [b"/share/f.filepart".as_slice(), b"/share/f.abc.partial", b"/share/f.part"] {
            let handle = c.call(open(name, new_file())).await.handle();
            c.done(write(&handle, 0, b"half")).await;
            assert_eq!(other.call(stat(name)).await.attrs().size, Some(4));
        }
        c.lose().await;
        assert_eq!(other.get_file(b"/share/f.filepart").await, b"half");
    });
}

#[test]
fn in_place_appears_at_once() {
    let scene = Scene::in_memory(Service::Sftp);
    let who = scene.caller("alice");
    scene.run(move |core| async move {
        let settings = Settings { uploads: Uploads::InPlace, ..atomic_settings() };
        let mut c = Client::hello(&core, who.clone(), settings).await;
        let mut other = Client::hello(&core, who, atomic_settings()).await;
        c.put_file(b"/share/f", b"0123456789").await;
        let handle = c.call(open(b"/share/f", new_file())).await.handle();
        c.done(write(&handle, 0, b"abc")).await;
        assert_eq!(other.get_file(b"/share/f").await, b"abc");
    });
}

#[test]
fn a_resumed_upload_writes_in_place() {
    with_client(&Scene::in_memory(Service::Sftp), |core, mut c, who| async move {
        let mut other = Client::hello(&core, who, atomic_settings()).await;
        c.put_file(b"/share/f", b"0123").await;
        let flags = OpenFlags::WRITE.with(OpenFlags::CREAT);
        let handle = c.call(open(b"/share/f", flags)).await.handle();
        c.done(write(&handle, 4, b"4567")).await;
        assert_eq!(other.get_file(b"/share/f").await, b"01234567");
        c.lose().await;
        assert_eq!(other.get_file(b"/share/f").await, b"01234567");
    });
}

#[test]
fn an_upload_can_be_opened_renamed_and_removed_by_its_channel() {
    with_client(&Scene::in_memory(Service::Sftp), |core, mut c, who| async move {
        let mut other = Client::hello(&core, who, atomic_settings()).await;
        let handle = c.call(open(b"/share/f", new_file())).await.handle();
        c.done(write(&handle, 0, b"abc")).await;
        let reading = c.call(open(b"/share/f", OpenFlags::READ)).await.handle();
        c.done(write(&handle, 3, b"def")).await;
        assert_eq!(c.call(read(&reading, 0, 10)).await, Got::Data(b"abcdef".to_vec()));
        c.done(close(&reading)).await;
        c.done(replace(b"/share/f", b"/share/g")).await;
        c.done(write(&handle, 6, b"g")).await;
        c.done(close(&handle)).await;
        assert_eq!(other.list(b"/share").await, [b"g"]);
        assert_eq!(other.get_file(b"/share/g").await, b"abcdefg");
        // Removed while it is open: it was there, and is not.
        let handle = c.call(open(b"/share/h", new_file())).await.handle();
        c.done(write(&handle, 0, b"abc")).await;
        c.done(remove(b"/share/h")).await;
        c.done(close(&handle)).await;
        assert_eq!(other.list(b"/share").await, [b"g"]);
        // A directory that is moved takes the uploads in it along.
        c.done(mkdir(b"/share/d")).await;
        let handle = c.call(open(b"/share/d/f", new_file())).await.handle();
        c.done(rename(b"/share/d", b"/share/e")).await;
        c.done(write(&handle, 0, b"in e")).await;
        c.done(close(&handle)).await;
        assert_eq!(other.get_file(b"/share/e/f").await, b"in e");
    });
}

/// What sshfs does: it requests attributes by path before it knows whether OPEN has succeeded.
#[test]
fn requests_after_open_need_not_wait_for_it() {
    with_client(&Scene::in_memory(Service::Sftp), |_, mut c, _| async move {
        let opened = c.put(&open(b"/share/f", new_file()));
        let looked = c.put(&lstat(b"/share/f"));
        c.flush(usize::MAX);
        assert_eq!(c.answer(looked).await.attrs().size, Some(0));
        let handle = c.answer(opened).await.handle();
        // All in one: what comes later sees what came before.
        let data = vec![5; 100_000];
        let wrote = c.put(&write(&handle, 0, &data));
        let size = c.put(&fstat(&handle));
        let again = c.put(&write(&handle, 100_000, b"end"));
        let closed = c.put(&close(&handle));
        let late = c.put(&write(&handle, 0, b"late"));
        let after = c.put(&stat(b"/share/f"));
        let moved = c.put(&rename(b"/share/f", b"/share/g"));
        let gone = c.put(&stat(b"/share/f"));
        let there = c.put(&Request::Stat(wire::sftp::request::OfPath {
            path: wire::sftp::PathBytes(b"/share/g"),
        }));
        c.flush(10_000);
        assert_eq!(c.answer(wrote).await, Got::Status(StatusCode::OK));
        assert_eq!(c.answer(size).await.attrs().size, Some(100_000));
        assert_eq!(c.answer(again).await, Got::Status(StatusCode::OK));
        assert_eq!(c.answer(closed).await, Got::Status(StatusCode::OK));
        assert_eq!(c.answer(late).await, Got::Status(StatusCode::FAILURE));
        assert_eq!(c.answer(after).await.attrs().size, Some(100_003));
        assert_eq!(c.answer(moved).await, Got::Status(StatusCode::OK));
        assert_eq!(c.answer(gone).await, NONE);
        assert_eq!(c.answer(there).await.attrs().size, Some(100_003));
    });
}

/// A share with the file `f`, on which there is little room.
fn little_room() -> Scene {
    let share: std::sync::Arc<dyn vfs::fs::FileSystem> = MemFs::new(tag("share"), 100_000);
    Scene::over(Service::Sftp, &[("share", share)])
}

const FULL: Got = Got::Status(StatusCode::FAILURE);

#[test]
fn after_a_failed_write_close_fails_and_the_old_file_stays() {
    with_client(&little_room(), |core, mut c, who| async move {
        let mut other = Client::hello(&core, who, atomic_settings()).await;
        c.put_file(b"/share/f", b"before").await;
        let large = vec![7; 200_000];
        for (name, expect) in
            [(b"/share/f".as_slice(), Some(b"before".as_slice())), (b"/share/new", None)]
        {
            let handle = c.call(open(name, new_file())).await.handle();
            c.done(write(&handle, 0, b"after")).await;
            assert_eq!(c.call(write(&handle, 5, &large)).await, FULL);
            // What is there of it is no file: neither a later write nor a flush make it one.
            c.done(write(&handle, 5, b"small")).await;
            let of = OfHandle { handle: HandleBytes(&handle) };
            assert_eq!(c.call(Request::Extended(Extended::Fsync(of))).await, FULL);
            assert_eq!(c.call(close(&handle)).await, FULL);
            match expect {
                Some(data) => assert_eq!(c.get_file(name).await, data),
                None => assert_eq!(c.call(stat(name)).await, NONE),
            }
            until(&mut other, &[b"f"]).await;
        }
        // The next try has nothing to do with it.
        c.put_file(b"/share/f", b"again").await;
        assert_eq!(other.get_file(b"/share/f").await, b"again");
    });
}

#[test]
fn an_upload_that_failed_never_gets_its_name() {
    with_client(&little_room(), |_, mut c, _| async move {
        c.put_file(b"/share/f", b"before").await;
        let handle = c.call(open(b"/share/f", new_file())).await.handle();
        assert_eq!(c.call(write(&handle, 0, &vec![7; 200_000])).await, FULL);
        // These complete an open upload to its name first.
        assert_eq!(c.get_file(b"/share/f").await, b"before");
        assert_eq!(c.call(stat(b"/share/f")).await.attrs().size, Some(6));
        c.done(replace(b"/share/f", b"/share/g")).await;
        assert_eq!(c.call(close(&handle)).await, FULL);
        assert_eq!(c.get_file(b"/share/g").await, b"before");
        assert_eq!(c.call(stat(b"/share/f")).await, NONE);
    });
}

#[test]
fn in_place_what_was_written_stays_and_close_fails() {
    with_client(&little_room(), |_, mut c, _| async move {
        c.put_file(b"/share/f", b"before").await;
        let append = OpenFlags::WRITE.with(OpenFlags::APPEND);
        for flags in [OpenFlags::WRITE.with(OpenFlags::CREAT), append] {
            let handle = c.call(open(b"/share/f", flags)).await.handle();
            c.done(write(&handle, 0, b"BEFORE")).await;
            assert_eq!(c.call(write(&handle, 6, &vec![7; 200_000])).await, FULL);
            assert_eq!(c.call(close(&handle)).await, FULL);
        }
        assert_eq!(c.get_file(b"/share/f").await, b"BEFOREBEFORE");
    });
}

#[test]
fn a_copy_that_failed_is_no_upload() {
    with_client(&little_room(), |_, mut c, _| async move {
        c.put_file(b"/share/f", b"before").await;
        c.put_file(b"/share/source", &vec![5; 60_000]).await;
        let from = c.call(open(b"/share/source", OpenFlags::READ)).await.handle();
        let to = c.call(open(b"/share/f", new_file())).await.handle();
        let copy = Request::Extended(Extended::CopyData(CopyData {
            read_handle: HandleBytes(&from),
            read_offset: 0,
            read_len: 0,
            write_handle: HandleBytes(&to),
            write_offset: 0,
        }));
        assert_eq!(c.call(copy).await, FULL);
        assert_eq!(c.call(close(&to)).await, FULL);
        assert_eq!(c.get_file(b"/share/f").await, b"before");
    });
}

/// Permissions that are revoked are lost for open files as well.
#[test]
fn open_files_follow_the_rules_of_their_share() {
    let scene = Scene::in_memory(Service::Sftp);
    let files = scene.files.clone();
    with_client(&scene, |_, mut c, _| async move {
        const DENIED: Got = Got::Status(StatusCode::PERMISSION_DENIED);
        let table = files.shares.load();
        let share = table.by_name("share").expect("the share");
        let set = |rules: &str| {
            share.rules_for(Service::Sftp).set(Rules::parse(rules, &NoLookup).expect("rules"));
        };
        c.put_file(b"/share/f", b"before").await;
        c.put_file(b"/share/h", b"before").await;
        let whole = c.call(open(b"/share/h", new_file())).await.handle();
        let reading = c.call(open(b"/share/f", OpenFlags::READ)).await.handle();
        let dir = c.call(opendir(b"/share")).await.handle();
        let writing = c.call(open(b"/share/g", new_file())).await.handle();
        c.done(write(&writing, 0, b"all")).await;
        c.done(write(&whole, 0, b"after")).await;
        set("*(ro,no_root_squash)");
        assert_eq!(c.call(write(&whole, 5, b"!")).await, DENIED);
        let times = Attrs { times: Some(Times { atime: 1, mtime: 2 }), ..Attrs::default() };
        assert_eq!(c.call(fsetstat(&writing, times)).await, DENIED);
        assert_eq!(c.call(close(&writing)).await, DENIED);
        assert_eq!(c.call(read(&reading, 0, 10)).await, Got::Data(b"before".to_vec()));
        for nothing in ["10.0.0.1(rw)", "*(ro,all_squash)"] {
            set(nothing);
            assert_eq!(c.call(read(&reading, 0, 10)).await, DENIED, "{nothing}");
            assert_eq!(c.call(fstat(&reading)).await, DENIED, "{nothing}");
            let names = Request::Readdir(OfHandle { handle: HandleBytes(&dir) });
            assert_eq!(c.call(names).await, DENIED, "{nothing}");
        }
        set("*(rw,no_root_squash)");
        assert_eq!(c.call(read(&reading, 0, 10)).await, Got::Data(b"before".to_vec()));
        assert_eq!(c.call(close(&whole)).await, DENIED, "a part of it is missing");
        assert_eq!(c.get_file(b"/share/h").await, b"before");
        assert_eq!(c.call(stat(b"/share/g")).await, NONE);
        // And a share that is not served any more.
        files.shares.replace(vfs::share::ShareTable::default());
        assert_eq!(c.call(read(&reading, 0, 10)).await, NONE);
    });
}
