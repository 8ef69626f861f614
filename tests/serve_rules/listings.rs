//! Listings of large directories while entries come and go, and names that are not UTF-8.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use e2e::nfs3::{Client, Handle};
use e2e::server::Server;
use wire::nfs3::{CreateHow, Nfsstat3, StableHow};

use super::{Scene, mode, status};

/// One of this number of pages is followed by changes; 100 000 entries are some 300 pages.
const CHANGE_EVERY: usize = 3;

/// A directory that changes while it is listed.
struct Changing<'a> {
    dir: &'a Path,
    /// Next to be removed: these exist at first and go.
    going: usize,
    /// Number of names made so far.
    made: usize,
}

impl Changing<'_> {
    fn change(&mut self) {
        for _ in 0..20 {
            // Fails when all are gone.
            if fs::remove_file(self.dir.join(format!("going-{}", self.going))).is_ok() {
                self.going += 1;
            }
            File::create(self.dir.join(format!("new-{}", self.made))).expect("a file");
            self.made += 1;
        }
    }
}

/// Lists with changes between pages and, half way, a restart of the server; counts each name.
fn list(scene: &Scene, total: usize) -> HashMap<Vec<u8>, usize> {
    let mut server = scene.start();
    let (mut client, root) = server.mount(0, 0);
    let dir = client.lookup(&root, "large").expect("the directory").handle;
    let mut changing = Changing { dir: &scene.dir.join("large"), going: 0, made: 0 };
    let mut seen: HashMap<Vec<u8>, usize> = HashMap::new();
    let (mut cookie, mut verf, mut restarted) = (0, [0; 8], false);
    for page in 0.. {
        let done = client.readdirplus(&dir, cookie, verf).expect("a page");
        assert!(done.eof || !done.entries.is_empty(), "an empty page that is not the last");
        for entry in &done.entries {
            *seen.entry(entry.name.clone()).or_default() += 1;
            cookie = entry.cookie;
        }
        if done.eof {
            break;
        }
        verf = done.cookieverf;
        if page % CHANGE_EVERY == 0 {
            changing.change();
        }
        if !restarted && seen.len() > total / 2 {
            restarted = true;
            (server, client) = restart(scene, server);
        }
    }
    assert!(restarted && changing.going > 100, "{} went", changing.going);
    assert!(server.stop().success());
    seen
}

fn restart(scene: &Scene, mut server: Server) -> (Server, Client) {
    assert!(server.stop().success());
    let server = scene.start();
    let client = Client::connect(server.nfs(), 0, 0).expect("a connection");
    (server, client)
}

fn large_directory(place: &Path, entries: usize) {
    let scene = Scene::by(place, "large", false);
    let dir = scene.dir.join("large");
    fs::create_dir(&dir).expect("a directory");
    let going = entries / 10;
    let stays = entries - going;
    for n in 0..stays {
        File::create(dir.join(format!("stays-{n}"))).expect("a file");
    }
    for n in 0..going {
        File::create(dir.join(format!("going-{n}"))).expect("a file");
    }
    let seen = list(&scene, entries);
    for n in 0..stays {
        let name = format!("stays-{n}");
        assert_eq!(seen.get(name.as_bytes()), Some(&1), "{name}");
    }
    let twice: Vec<_> = seen.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "listed more than once: {twice:?}");
    assert_eq!(seen.get(&b"."[..]), Some(&1));
    assert_eq!(seen.get(&b".."[..]), Some(&1));
}

#[test]
fn readdirplus_of_a_changing_directory_in_memory() {
    large_directory(Path::new("/dev/shm"), 100_000);
}

#[test]
fn readdirplus_of_a_changing_directory_on_disk() {
    large_directory(&std::env::temp_dir(), 20_000);
}

#[test]
fn names_are_bytes() {
    let scene = Scene::new("bytes");
    let server = scene.start();
    let (mut client, root) = server.mount(0, 0);
    let long = [b'x'; 255];
    let names: [&[u8]; 7] = [
        b"\xff\xfe",
        b"latin-1 \xe9t\xe9",
        b"cut utf-8 \xe2\x82",
        "Größe 文件".as_bytes(),
        b"line\nbreak\t\x01\x7f",
        b" -*?\\:|<>\"' ",
        &long,
    ];
    let mut handles: Vec<Handle> = Vec::new();
    for name in names {
        let made = client.create(&root, name, CreateHow::Guarded(mode(0o644)));
        let handle = made.expect("a file").handle;
        client.write(&handle, 0, name, StableHow::FILE_SYNC).expect("written");
        let here = scene.dir.join(OsStr::from_bytes(name));
        assert_eq!(fs::read(here).expect("the same name here"), name);
        handles.push(handle);
    }
    let page = client.readdirplus(&root, 0, [0; 8]).expect("names");
    for (name, handle) in names.into_iter().zip(&handles) {
        assert_eq!(&client.lookup(&root, name).expect("found").handle, handle);
        let listed = page.entries.iter().find(|entry| entry.name == name).expect("listed");
        assert_eq!(listed.handle.as_ref().expect("with its handle"), handle);
        assert_eq!(listed.size, Some(name.len() as u64));
        client.remove(&root, name, false).expect("removed");
        assert_eq!(status(client.lookup(&root, name)), Nfsstat3::NOENT);
    }
    let too_long = [b'x'; 256];
    assert_eq!(status(client.lookup(&root, &too_long)), Nfsstat3::NAMETOOLONG);
    let made = client.create(&root, &too_long, CreateHow::Guarded(mode(0o644)));
    assert_eq!(status(made), Nfsstat3::NAMETOOLONG);
    assert_eq!(client.names(&root).expect("names").len(), 0);
}
