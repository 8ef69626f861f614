//! An open file stays available until it is closed: it is read and written completely although its
//! name is removed, or given to another file, by a user that may.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use base::clock::Deadline;
use serve::files::reader::Reader;
use serve::files::upload::How;
use serve::files::{Caller, Core, Links};
use serve::transport::buffers::ReplyBuf;
use vfs::attr::SetAttr;
use vfs::fs::FileSystem;
use vfs::host::{HostFs, HostOptions};
use vfs::mem::MemFs;
use vfs::share::{Service, tag};
use vfs::status::Status;

use crate::scene::{Scene, Scratch};
use crate::ways::path;

const PIECE: usize = 100_000;

fn old() -> Vec<u8> {
    (0..3 * PIECE).map(|n| (n / 7) as u8).collect()
}

async fn put(core: &Rc<Core>, who: &Caller, at: &str, data: &[u8]) {
    let spot = core.spot(who, &path(at), Links::Keep).await.expect("a place");
    core.put(who, &spot, (data.to_vec(), SetAttr::default())).await.expect("put");
}

async fn open(core: &Rc<Core>, who: &Caller, at: &str) -> Reader {
    let found = core.find(who, &path(at), Links::Follow).await.expect("found");
    core.reader(who, found.node().expect("a file")).await.expect("opened")
}

/// The operation of a user other than the reader.
#[derive(Debug, Clone, Copy)]
enum Other {
    Puts,
    Renames,
    Removes,
}

async fn interfere(core: &Rc<Core>, who: &Caller, how: Other) {
    let spot = core.spot(who, &path("/share/f"), Links::Keep).await.expect("a place");
    match how {
        Other::Puts => put(core, who, "/share/f", b"another").await,
        Other::Removes => core.remove(who, &spot).await.expect("removed"),
        Other::Renames => {
            put(core, who, "/share/g", b"another").await;
            let from = core.spot(who, &path("/share/g"), Links::Keep).await.expect("a place");
            core.rename(who, &from, &spot).await.expect("renamed");
        }
    }
}

/// Reads on from `offset` to the end.
async fn rest(core: &Rc<Core>, who: &Caller, reader: &Reader, offset: usize) -> Vec<u8> {
    let mut buf = ReplyBuf::default();
    loop {
        let at = (offset + buf.len()) as u64;
        let (count, eof) = reader.read(core, who, (at, PIECE), &mut buf).await.expect("read");
        if eof || count == 0 {
            return buf.into_vec();
        }
    }
}

fn outlives_its_name(fs: Arc<dyn FileSystem>) {
    let scene = Scene::over(Service::Ftp, &[("share", fs)]);
    let who = scene.caller("alice");
    scene.run(move |core| async move {
        for how in [Other::Puts, Other::Renames, Other::Removes] {
            put(&core, &who, "/share/f", &old()).await;
            let reader = open(&core, &who, "/share/f").await;
            let mut buf = ReplyBuf::default();
            reader.read(&core, &who, (0, PIECE), &mut buf).await.expect("read");
            interfere(&core, &who, how).await;
            assert!(rest(&core, &who, &reader, PIECE).await == old()[PIECE..], "{how:?}");
            core.attr(&who, reader.node()).await.expect("it is there for who has it open");
        }
    });
}

#[test]
fn a_file_that_is_read_outlives_its_name() {
    let folder = Scratch::new();
    outlives_its_name(folder.share());
    outlives_its_name(MemFs::new(tag("share"), 1 << 30));
}

#[test]
fn a_file_that_is_written_in_place_outlives_its_name() {
    let folder = Scratch::new();
    for fs in [folder.share(), MemFs::new(tag("share"), 1 << 30)] {
        let scene = Scene::over(Service::Sftp, &[("share", fs)]);
        let who = scene.caller("alice");
        scene.run(move |core| async move {
            put(&core, &who, "/share/f", &old()).await;
            let spot = core.spot(&who, &path("/share/f"), Links::Keep).await.expect("a place");
            let how = How::InPlace(SetAttr::default());
            let mut upload = core.upload(&who, &spot, how).await.expect("opened");
            interfere(&core, &who, Other::Puts).await;
            upload.write(5, b"more".to_vec()).await.expect("written");
            upload.finish(SetAttr::default()).await.expect("closed");
            let now = open(&core, &who, "/share/f").await;
            assert_eq!(rest(&core, &who, &now, 0).await, b"another");
        });
    }
}

/// Removed files of a folder that this process has descriptors on.
fn removed_but_open(folder: &std::path::Path) -> usize {
    let links = std::fs::read_dir("/proc/self/fd").expect("our own");
    let to = links.filter_map(|link| std::fs::read_link(link.ok()?.path()).ok());
    let is_ours =
        |to: &PathBuf| to.starts_with(folder) && to.to_string_lossy().ends_with(" (deleted)");
    to.filter(is_ours).count()
}

#[test]
fn its_room_is_free_when_the_transfer_ends() {
    let folder = Scratch::new();
    let options = HostOptions::new(tag("share"), [7; 32]);
    let fs = HostFs::open(&folder.0.join("share"), options).expect("a share");
    let scene = Scene::over(Service::Http, &[("share", fs.clone())]);
    let (who, at) = (scene.caller("alice"), folder.0.clone());
    folder.file("share/f", &old());
    folder.file("g", b"another");
    scene.run(move |core| async move {
        let readers = [open(&core, &who, "/share/f").await, open(&core, &who, "/share/f").await];
        assert_eq!(fs.counts().retained, 1, "one file, however often it is open");
        std::fs::rename(at.join("g"), at.join("share/f")).expect("by a program on the server");
        for reader in &readers {
            // Files that are still open are not swept.
            fs.sweep();
            assert!(rest(&core, &who, reader, 0).await == old());
        }
        assert!(removed_but_open(&at) > 0);
        drop(readers);
        assert_eq!(fs.counts().retained, 0);
        let until = Deadline::after(std::time::Duration::from_secs(60));
        while removed_but_open(&at) > 0 {
            assert!(!until.passed(), "its room is not free");
            std::thread::yield_now();
        }
    });
}

#[test]
fn what_is_replaced_before_it_is_opened_is_the_new_file() {
    let folder = Scratch::new();
    let scene = Scene::over(Service::Http, &[("share", folder.share())]);
    let (who, at) = (scene.caller("alice"), folder.0.clone());
    scene.run(move |core| async move {
        put(&core, &who, "/share/f", &old()).await;
        let found = core.find(&who, &path("/share/f"), Links::Follow).await.expect("found");
        let found = found.node().expect("a file");
        put(&core, &who, "/share/f", b"another").await;
        // Not what the server holds of the old one: that it is gone is seen at the second look.
        let gone = core.attr(&who, &found).await;
        assert_eq!(gone.err(), Some(Status::Stale));
        let reader = core.reader_at(&who, &path("/share/f"), found.clone()).await.expect("opened");
        assert_eq!(rest(&core, &who, &reader, 0).await, b"another");
        std::fs::remove_file(at.join("share/f")).expect("removed");
        let none = core.reader_at(&who, &path("/share/f"), found).await;
        assert_eq!(none.err(), Some(Status::NotFound));
    });
}
