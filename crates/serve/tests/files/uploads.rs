//! Uploads are whole or not there.

use std::rc::Rc;

use serve::files::list::Listing;
use serve::files::upload::How;
use serve::files::{Caller, Core, Links};
use serve::transport::buffers::ReplyBuf;
use vfs::attr::{SetAttr, SetTime, Time};
use vfs::cred::Cred;
use vfs::fs::{Context, CreateHow, DirEntry, FileSystem, Result, SetXattr};
use vfs::locks::{ClientKey, FileKey, Owner, Protocol, SHARE_READ, SHARE_WRITE, Share};
use vfs::mem::MemFs;
use vfs::share::{Service, tag};
use vfs::status::Status;

use crate::scene::Scene;
use crate::ways::path;

/// What is in a file.
async fn content(core: &Rc<Core>, who: &Caller, at: &str) -> Result<Vec<u8>> {
    let node = core.find(who, &path(at), Links::Follow).await?.node()?;
    let reader = core.reader(who, node).await?;
    let mut buf = ReplyBuf::default();
    loop {
        let offset = buf.len() as u64;
        let (count, eof) = reader.read(core, who, (offset, 3), &mut buf).await?;
        if eof || count == 0 {
            return Ok(buf.into_vec());
        }
    }
}

async fn begin(
    core: &Rc<Core>,
    who: &Caller,
    at: &str,
    how: How,
) -> Result<serve::files::upload::Upload> {
    let spot = core.spot(who, &path(at), Links::Follow).await?;
    core.upload(who, &spot, how).await
}

/// All names in the share, those of uploads too.
async fn names(core: &Rc<Core>, who: &Caller) -> Vec<Vec<u8>> {
    let dir = core.find(who, &path("/share"), Links::Follow).await.expect("there");
    let mut listing = Listing::new(dir.node().expect("a node"));
    let mut names = Vec::new();
    while let Some(batch) = listing.next(core, who).await.expect("listed") {
        names.extend(batch.into_iter().map(|one| one.name));
    }
    names
}

/// Waits until nothing at all is in the share.
async fn until_gone(core: &Rc<Core>, who: &Caller) {
    let until = base::clock::Deadline::after(std::time::Duration::from_secs(60));
    while !raw_names(core, who).await.is_empty() {
        assert!(!until.passed(), "something was left");
    }
}

/// All names in the share as the file system has them.
async fn raw_names(core: &Rc<Core>, who: &Caller) -> Vec<Vec<u8>> {
    let reached = core.reach(who, b"share").expect("the share");
    let fs = std::sync::Arc::clone(&reached.share.fs);
    let list = move |cx: Context<'_>| {
        let mut names = Vec::new();
        let mut each = |entry: DirEntry<'_>| {
            names.push(entry.name.to_vec());
            true
        };
        fs.list(cx, &fs.root(), 0, [0; 8], false, &mut each).expect("listed");
        names.retain(|name| name != b"." && name != b"..");
        names
    };
    core.pooled(who, &reached.cred, list).await.expect("it runs")
}

fn atomic() -> How {
    How::Atomic(SetAttr { mode: Some(0o644), ..SetAttr::default() })
}

#[test]
fn nothing_is_seen_before_the_end() {
    let scene = Scene::in_memory(Service::Ftp);
    let who = scene.caller("alice");
    scene.run(move |core| async move {
        let mut upload = begin(&core, &who, "/share/f", atomic()).await.expect("begun");
        let back = upload.write(0, b"hello ".to_vec()).await.expect("written");
        assert_eq!(back, b"hello ", "the buffer comes back");
        upload.write(6, b"world".to_vec()).await.expect("written");
        assert_eq!(content(&core, &who, "/share/f").await, Err(Status::NotFound));
        assert!(names(&core, &who).await.is_empty(), "nor is it listed");
        let mtime = SetTime::At(Time { sec: 1_000, nsec: 5 });
        let node = upload.finish(SetAttr { mtime, ..SetAttr::default() }).await.expect("whole");
        assert_eq!((node.attr.size, node.attr.mtime), (11, Time { sec: 1_000, nsec: 5 }));
        assert_eq!(content(&core, &who, "/share/f").await.as_deref(), Ok(&b"hello world"[..]));
        // One that replaces it: as it was until the end, with the mode that it had.
        let mut upload = begin(&core, &who, "/share/f", atomic()).await.expect("begun");
        upload.write(0, b"new".to_vec()).await.expect("written");
        assert_eq!(content(&core, &who, "/share/f").await.as_deref(), Ok(&b"hello world"[..]));
        drop(upload);
        assert_eq!(content(&core, &who, "/share/f").await.as_deref(), Ok(&b"hello world"[..]));
        let spot = core.spot(&who, &path("/share/f"), Links::Keep).await.expect("there");
        let put = core.put(&who, &spot, (b"put".to_vec(), SetAttr::default())).await;
        assert_eq!(put.map(|node| node.attr.mode & 0o777), Ok(0o644));
        assert_eq!(content(&core, &who, "/share/f").await.as_deref(), Ok(&b"put"[..]));
    });
}

#[test]
fn one_that_is_broken_off_leaves_nothing() {
    let scene = Scene::in_memory(Service::Ftp);
    let who = scene.caller("alice");
    scene.run(move |core| async move {
        let mut upload = begin(&core, &who, "/share/f", atomic()).await.expect("begun");
        upload.write(0, b"half".to_vec()).await.expect("written");
        drop(upload);
        until_gone(&core, &who).await;
    });
}

/// Makes a file as an upload of a process that is not there.
async fn make(core: &Rc<Core>, who: &Caller, name: &[u8]) {
    let at = path("/share").with(name);
    let spot = core.spot(who, &at, Links::Keep).await.expect("a place");
    let (dir, name, set) = (spot.dir, name.to_vec(), SetAttr::default());
    let make = move |fs: &dyn FileSystem, cx: Context<'_>| {
        fs.create(cx, &dir, &name, CreateHow::Guarded(set))
    };
    core.alter(who, &spot.reached, make).await.expect("made");
}

#[test]
fn what_this_server_has_left_is_removed_and_what_others_write_is_not() {
    let scene = Scene::in_memory(Service::Ftp);
    let who = scene.caller("alice");
    scene.run(move |core| async move {
        let upload = begin(&core, &who, "/share/f", atomic()).await.expect("begun");
        let ours = raw_names(&core, &who).await.remove(0);
        drop(upload);
        until_gone(&core, &who).await;
        // `.plimsoll-upload-OWNER-LIFE-NUMBER`
        let text = String::from_utf8(ours).expect("text");
        let parts: Vec<&str> = text.rsplitn(4, '-').collect();
        let [number, _, owner, begin] = parts[..] else { panic!("{text}") };
        let earlier = format!("{begin}-{owner}-0123456789abcdef-{number}");
        let others = format!("{begin}-0123456789abcdef-0123456789abcdef-{number}");
        make(&core, &who, earlier.as_bytes()).await;
        make(&core, &who, others.as_bytes()).await;
        // What a server that was killed has left goes with the next listing.
        assert_eq!(raw_names(&core, &who).await.len(), 2);
        let until = base::clock::Deadline::after(std::time::Duration::from_secs(60));
        while raw_names(&core, &who).await.len() > 1 {
            assert!(names(&core, &who).await.is_empty());
            assert!(!until.passed(), "something was left");
        }
        assert!(names(&core, &who).await.is_empty());
        assert_eq!(raw_names(&core, &who).await, [others.as_bytes()]);
    });
}

#[test]
fn what_is_there_is_gone_on_with() {
    let scene = Scene::in_memory(Service::Ftp);
    let who = scene.caller("alice");
    scene.run(move |core| async move {
        let spot = core.spot(&who, &path("/share/f"), Links::Keep).await.expect("a place");
        core.put(&who, &spot, (b"12345".to_vec(), SetAttr::default())).await.expect("put");
        let how = How::InPlace(SetAttr::default());
        let mut upload = begin(&core, &who, "/share/f", how).await.expect("begun");
        assert!(!upload.is_aside());
        upload.write(5, b"678".to_vec()).await.expect("written");
        assert_eq!(content(&core, &who, "/share/f").await.as_deref(), Ok(&b"12345678"[..]));
        upload.finish(SetAttr::default()).await.expect("on disk");
        assert_eq!(content(&core, &who, "/share/f").await.as_deref(), Ok(&b"12345678"[..]));
    });
}

#[test]
fn denied_writing_is_respected() {
    let scene = Scene::in_memory(Service::Http);
    let (who, locks) = (scene.caller("alice"), scene.files.locks.clone());
    scene.run(move |core| async move {
        let spot = core.spot(&who, &path("/share/f"), Links::Keep).await.expect("a place");
        let node = core.put(&who, &spot, (b"x".to_vec(), SetAttr::default())).await.expect("put");
        let client = ClientKey { protocol: Protocol::Nfs4, id: 1 };
        let other = Owner::new(client, b"other").expect("short");
        let key = FileKey::from(&node.attr);
        let deny = Share { access: SHARE_READ, deny: SHARE_WRITE };
        locks.open(key, &other, deny).expect("nobody else has it open");
        let refused = begin(&core, &who, "/share/f", atomic()).await;
        assert_eq!(refused.err(), Some(Status::InUse));
        assert_eq!(content(&core, &who, "/share/f").await.as_deref(), Ok(&b"x"[..]));
        locks.close(key, &other);
        let upload = begin(&core, &who, "/share/f", atomic()).await.expect("now it may");
        let refused = locks.open(key, &other, deny);
        assert!(refused.is_err(), "the upload itself is an open for writing");
        upload.finish(SetAttr::default()).await.expect("done");
        locks.open(key, &other, deny).expect("it is over");
    });
}

#[test]
fn what_replaces_a_file_takes_over_what_is_not_data() {
    let scene = Scene::in_memory(Service::Http);
    let who = scene.caller("alice");
    scene.run(move |core| async move {
        let spot = core.spot(&who, &path("/share/f"), Links::Keep).await.expect("a place");
        let node = core.put(&who, &spot, (b"x".to_vec(), SetAttr::default())).await.expect("put");
        let (file, how) = (node.handle, SetXattr::Create);
        let set = move |fs: &dyn FileSystem, cx: Context<'_>| {
            fs.set_xattr(cx, &file, b"color", b"blue", how)
        };
        core.alter(&who, &node.reached, set).await.expect("set");
        let owner = SetAttr { uid: Some(7), gid: Some(8), mode: Some(0o640), ..SetAttr::default() };
        core.set_attr(&who, &node, owner).await.expect("given away");
        for whole in [true, false] {
            let spot = core.spot(&who, &path("/share/f"), Links::Keep).await.expect("there");
            let new = if whole {
                let how = How::Atomic(SetAttr::default());
                let mut upload = core.upload(&who, &spot, how).await.expect("begun");
                upload.write(0, b"new".to_vec()).await.expect("written");
                upload.finish(SetAttr::default()).await
            } else {
                core.put(&who, &spot, (b"put".to_vec(), SetAttr::default())).await
            };
            let new = new.expect("whole");
            assert_ne!(new.attr.fileid, node.attr.fileid, "it is another file");
            assert_eq!((new.attr.uid, new.attr.gid, new.attr.mode & 0o777), (7, 8, 0o640));
            let (fs, file) = (std::sync::Arc::clone(&new.reached.share.fs), new.handle);
            let get = move |cx: Context<'_>| fs.get_xattr(cx, &file, b"color");
            let color = core.look(&who, &new.reached.cred, get).await;
            assert_eq!(color.as_deref(), Ok(&b"blue"[..]));
        }
    });
}

#[test]
fn an_upload_with_a_failed_write_takes_no_name() {
    let share: std::sync::Arc<dyn FileSystem> = MemFs::new(tag("share"), 100_000);
    let scene = Scene::over(Service::Http, &[("share", share)]);
    let who = scene.caller("alice");
    scene.run(move |core| async move {
        let how = How::Atomic(SetAttr::default());
        let mut before = begin(&core, &who, "/share/f", how).await.expect("begun");
        before.write(0, b"before".to_vec()).await.expect("written");
        before.finish(SetAttr::default()).await.expect("finished");
        let mut upload = begin(&core, &who, "/share/f", how).await.expect("begun");
        assert_eq!(upload.write(0, vec![7; 200_000]).await, Err(Status::NoSpace));
        upload.write(0, b"small".to_vec()).await.expect("written");
        assert_eq!(upload.publish().await, Err(Status::NoSpace));
        let finished = upload.finish(SetAttr::default()).await.map(|_| ());
        assert_eq!(finished, Err(Status::NoSpace));
        assert_eq!(content(&core, &who, "/share/f").await, Ok(b"before".to_vec()));
        assert_eq!(names(&core, &who).await, [b"f"]);
    });
}

#[test]
fn in_a_sticky_directory_a_file_of_others_is_written_in_place() {
    let fs = MemFs::new(tag("share"), 1 << 30);
    let files = prepare_sticky(&fs);
    let scene = Scene::over(Service::Sftp, &[("share", fs)]);
    scene.users.add("bob", "b", Cred { uid: 1000, gid: 1000, groups: Vec::new() });
    let bob = scene.caller("bob");
    scene.run(move |core| async move {
        for (at, (ino, aside)) in
            [("/share/st/theirs", (files[0], false)), ("/share/st/own", (files[1], true))]
        {
            let mut upload = begin(&core, &bob, at, atomic()).await.expect("begun");
            assert_eq!(upload.is_aside(), aside, "{at}");
            upload.write(0, b"long".to_vec()).await.expect("written");
            let node = upload.finish(SetAttr::default()).await.expect("finished");
            assert_eq!(node.attr.fileid == ino, !aside, "{at}");
            assert_eq!(content(&core, &bob, at).await.as_deref(), Ok(&b"long"[..]));
            let spot = core.spot(&bob, &path(at), Links::Follow).await.expect("a place");
            let node = core.put(&bob, &spot, (b"short".to_vec(), SetAttr::default())).await;
            assert_eq!(node.expect("put").attr.fileid == ino, !aside, "{at}");
            assert_eq!(content(&core, &bob, at).await.as_deref(), Ok(&b"short"[..]));
        }
        let dir = core.find(&bob, &path("/share/st"), Links::Follow).await.expect("there");
        let mut listing = Listing::new(dir.node().expect("a node"));
        let batch = listing.next(&core, &bob).await.expect("listed").expect("a batch");
        assert_eq!(batch.len(), 2, "nothing is left beside them");
    });
}

/// A sticky directory with a file of root's that all users may write, and one of user 1000; their
/// inode numbers.
fn prepare_sticky(fs: &MemFs) -> [u64; 2] {
    let (root, bob) = (Cred::root(), Cred { uid: 1000, gid: 1000, groups: Vec::new() });
    let cx = |cred| Context { cred, may_block: true };
    let set = |mode| SetAttr { mode: Some(mode), ..SetAttr::default() };
    let dir = fs.mkdir(cx(&root), &fs.root(), b"st", &set(0o1777)).expect("made").value.handle;
    [(b"theirs".as_slice(), &root), (b"own", &bob)].map(|(name, who)| {
        let made = fs.create(cx(who), &dir, name, CreateHow::Guarded(set(0o666)));
        made.expect("made").value.attr.fileid
    })
}

/// The file that is to be replaced is removed while the data of the new one is being written.
#[test]
fn what_is_to_be_replaced_may_be_removed_meanwhile() {
    let scene = Scene::in_memory(Service::Http);
    let who = scene.caller("alice");
    scene.run(|core| async move {
        let set = SetAttr { mode: Some(0o600), ..SetAttr::default() };
        for how in [None, Some(How::Atomic(set)), Some(How::InPlace(set))] {
            let spot = core.spot(&who, &path("/share/f"), Links::Follow).await.expect("a place");
            core.put(&who, &spot, (b"old".to_vec(), set)).await.expect("put");
            let spot = core.spot(&who, &path("/share/f"), Links::Follow).await.expect("a place");
            core.remove(&who, &spot).await.expect("removed");
            assert_eq!(core.may_upload(&who, &spot).await, Ok(()));
            match how {
                None => drop(core.put(&who, &spot, (b"new".to_vec(), set)).await.expect("put")),
                Some(how) => {
                    let mut upload = core.upload(&who, &spot, how).await.expect("begun");
                    upload.write(0, b"new".to_vec()).await.expect("written");
                    upload.finish(SetAttr::default()).await.expect("finished");
                }
            }
            assert_eq!(content(&core, &who, "/share/f").await.expect("read"), b"new");
            let spot = core.spot(&who, &path("/share/f"), Links::Follow).await.expect("a place");
            core.remove(&who, &spot).await.expect("removed");
        }
        assert!(raw_names(&core, &who).await.is_empty());
    });
}
