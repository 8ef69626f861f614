//! What the READs of one turn share, and what ends it: never the data, never the end of the file,
//! never anything after a change.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use vfs::attr::{Attr, SetAttr};
use vfs::conformance::{cx, root, user};
use vfs::cred::Cred;
use vfs::fs::{Context, CreateHow, FileSystem, ReadDone, Result, Stable};
use vfs::handle::Handle;
use vfs::host::HostFs;
use vfs::status::Status;
use vfs::turn::ReadBatch;

use super::{Scratch, memory};

const SIZE: u64 = 10_000;

/// A file of ones that is served, and the same file as a program on this machine has it.
struct Scene {
    scratch: Scratch,
    fs: Arc<HostFs>,
    file: Handle,
}

impl Scene {
    fn new(name: &str) -> Self {
        let scratch = Scratch::new(&memory(), name);
        let fs = scratch.open(true);
        let file = add(&fs, "file");
        // From then on its birth goes with its attributes.
        fs.getattr(cx(&root()), &file).expect("there");
        Self { scratch, fs, file }
    }

    fn local(&self) -> std::fs::File {
        let path = self.scratch.share().join("file");
        OpenOptions::new().write(true).open(path).expect("there")
    }

    /// As a connection's thread reads for root.
    fn read(&self, offset: u64, count: usize) -> (ReadDone, Vec<u8>) {
        let (done, data) = self.read_as(&root(), offset, count);
        (done.expect("read"), data)
    }

    fn read_as(&self, cred: &Cred, offset: u64, count: usize) -> (Result<ReadDone>, Vec<u8>) {
        let mut data = vec![0; count];
        let inline = Context { cred, may_block: false };
        let done = self.fs.read(inline, &self.file, offset, &mut data);
        (done, data)
    }

    fn attr(&self) -> Attr {
        self.fs.getattr(cx(&root()), &self.file).expect("there")
    }
}

fn add(fs: &HostFs, name: &str) -> Handle {
    let mode = SetAttr { mode: Some(0o644), ..SetAttr::default() };
    let how = CreateHow::Guarded(mode);
    let file = fs.create(cx(&root()), &fs.root(), name.as_bytes(), how).expect("made");
    let file = file.value.handle;
    fs.write(cx(&root()), &file, 0, &[1; SIZE as usize], Stable::Unstable).expect("written");
    file
}

#[test]
fn a_turn_has_one_look_at_a_file_and_the_next_another() {
    let scene = Scene::new("turn");
    let turn = ReadBatch::begin();
    let (first, _) = scene.read(0, 100);
    // A program writes, and makes it longer.
    scene.local().write_all_at(&[2; 100], 100).expect("written");
    scene.local().set_len(2 * SIZE).expect("longer");
    let (second, data) = scene.read(100, 100);
    assert_eq!(data, [2; 100], "the data are always those that are there");
    assert_eq!(second.attr, first.attr, "older than the data, and of this turn");
    assert!(!second.eof);
    drop(turn);

    let (outside, _) = scene.read(100, 100);
    assert_eq!(outside.attr, scene.attr());
    let _turn = ReadBatch::begin();
    let (next, _) = scene.read(100, 100);
    assert_eq!((next.attr.size, next.attr), (2 * SIZE, scene.attr()));
}

#[test]
fn without_a_turn_nothing_is_shared() {
    let scene = Scene::new("turn-none");
    scene.read(0, 100);
    scene.local().set_len(2 * SIZE).expect("longer");
    assert_eq!(scene.read(0, 100).0.attr.size, 2 * SIZE);
}

/// What would be the end by what was seen is asked again, and so is what came out short.
#[test]
fn the_end_of_the_file_is_where_the_data_end() {
    let scene = Scene::new("turn-end");
    let _turn = ReadBatch::begin();
    let (_, _) = scene.read(0, 100);
    scene.local().set_len(2 * SIZE).expect("longer");
    let (to_the_old_end, _) = scene.read(SIZE - 100, 100);
    assert!(!to_the_old_end.eof);
    assert_eq!(to_the_old_end.attr.size, 2 * SIZE);
    let (over_it, data) = scene.read(SIZE - 50, 100);
    assert_eq!((over_it.count, over_it.eof, data[49], data[50]), (100, false, 1, 0));

    scene.local().set_len(500).expect("shorter");
    let (short, _) = scene.read(450, 100);
    assert_eq!((short.count, short.eof, short.attr.size), (50, true, 500));
    let (behind, _) = scene.read(1000, 100);
    assert_eq!((behind.count, behind.eof, behind.attr.size), (0, true, 500));
}

#[test]
fn a_change_in_the_turn_is_seen_by_what_follows_it() {
    let scene = Scene::new("turn-change");
    let me = root();
    let _turn = ReadBatch::begin();
    let (before, _) = scene.read(0, 100);
    let more = [3; 100];
    scene.fs.write(cx(&me), &scene.file, SIZE, &more, Stable::Unstable).expect("written");
    let (after, _) = scene.read(0, 100);
    assert_eq!(after.attr.size, SIZE + 100);
    assert!(after.attr.change > before.attr.change, "another change attribute");
    let mode = SetAttr { mode: Some(0o600), ..SetAttr::default() };
    scene.fs.setattr(cx(&me), &scene.file, &mode, None).expect("set");
    assert_eq!(scene.read(0, 100).0.attr.mode, 0o600);
    scene.fs.link(cx(&me), &scene.file, &scene.fs.root(), b"second").expect("linked");
    assert_eq!(scene.read(0, 100).0.attr.nlink, 2);
}

/// As another connection's thread does it.
#[test]
fn a_change_by_another_thread_of_the_server_is_seen_as_well() {
    let scene = Scene::new("turn-other");
    let _turn = ReadBatch::begin();
    scene.read(0, 100);
    let (fs, file) = (Arc::clone(&scene.fs), scene.file);
    let other = std::thread::spawn(move || {
        fs.write(cx(&root()), &file, SIZE, &[3; 100], Stable::Unstable).expect("written").value
    });
    assert_eq!(other.join().expect("written"), 100);
    assert_eq!(scene.read(0, 100).0.attr.size, SIZE + 100);
}

#[test]
fn another_file_and_another_caller_are_checked_separately() {
    let mut scene = Scene::new("turn-who");
    let (one, other) = (scene.file, add(&scene.fs, "other"));
    let _turn = ReadBatch::begin();
    let (first, _) = scene.read(0, 100);
    scene.file = other;
    let (second, _) = scene.read(0, 100);
    assert_ne!(first.attr.fileid, second.attr.fileid);
    scene.file = one;
    assert_eq!(scene.read(0, 100).0.attr.fileid, first.attr.fileid);
    if !scene.fs.privileged() {
        return println!("SKIP turn-who: needs root");
    }
    // What a program has done to its rights, the owner does not feel.
    let path = scene.scratch.share().join("file");
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(path, private).expect("ours");
    scene.read(0, 100);
    let other = scene.read_as(&user(1234, 1234), 0, 100).0;
    assert_eq!(other.map(|done| done.count), Err(Status::Access));
}
