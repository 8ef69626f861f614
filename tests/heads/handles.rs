//! Handles of files, directories and renamed files: all of them are good after the file system of a
//! share was mounted again, and at the mount of a second head.

use std::fs;
use std::path::Path;

use e2e::nfs3::{Client, Handle};
use e2e::server::{Options, Server};
use wire::nfs3::{CreateHow, Sattr3, StableHow};

/// Files of which a handle is kept; one of ten is renamed after that.
const FILES: usize = 1_000;
const RENAMED: usize = 10;
/// Directories likewise, half of them renamed.
const DIRECTORIES: usize = 50;

/// Handles of files with their content, and of directories with the name of their only file.
struct Handles {
    files: Vec<(String, Handle)>,
    directories: Vec<Handle>,
}

impl Handles {
    fn make(client: &mut Client, root: &Handle) -> Self {
        let mode = Sattr3 { mode: Some(0o755), ..Sattr3::default() };
        let mut file = |place: &Handle, name: &str| -> Handle {
            let made = client.create(place, name, CreateHow::Guarded(mode)).expect(name);
            client.write(&made.handle, 0, name.as_bytes(), StableHow::FILE_SYNC).expect(name);
            made.handle
        };
        let files: Vec<_> = (0..FILES)
            .map(|n| {
                let name = format!("file{n}");
                let handle = file(root, &name);
                (name, handle)
            })
            .collect();
        let directories: Vec<_> = (0..DIRECTORIES)
            .map(|n| client.mkdir(root, &format!("directory{n}"), mode).expect("made"))
            .map(|made| made.handle)
            .collect();
        let mode = Sattr3 { mode: Some(0o644), ..Sattr3::default() };
        for place in &directories {
            client.create(place, "inside", CreateHow::Guarded(mode)).expect("made");
        }
        for n in (0..FILES).step_by(RENAMED) {
            let (from, to) = (format!("file{n}"), format!("renamed{n}"));
            client.rename((root, &from), (root, &to)).expect("renamed");
        }
        for n in 0..DIRECTORIES / 2 {
            let (from, to) = (format!("directory{n}"), format!("moved{n}"));
            client.rename((root, &from), (root, &to)).expect("renamed");
        }
        Self { files, directories }
    }

    fn check(&self, server: &Server, what: &str) {
        let mut client = Client::connect(server.nfs(), 0, 0).expect("a connection");
        let is_good = |(name, handle): &&(String, Handle)| {
            client.read_all(handle).is_ok_and(|content| content == name.as_bytes())
        };
        let files = self.files.iter().filter(is_good).count();
        let leads = |place: &&Handle| client.lookup(place, "inside").is_ok();
        let directories = self.directories.iter().filter(leads).count();
        let of_directories = format!("{directories} of {DIRECTORIES} of directories");
        println!("{what}: {files} of {FILES} handles of files are good, {of_directories}");
        assert_eq!((files, directories), (FILES, DIRECTORIES), "{what}");
    }
}

/// Makes handles by a server on the first of two mounts of one file system, with its state
/// directory there, and tries them after that was mounted again and on the second.
pub fn outlive(mounts: [&Path; 2], mount_again: impl FnOnce()) {
    let [[share, state], second] = mounts.map(|mount| [mount.join("share"), mount.join("state")]);
    [&share, &state].iter().for_each(|place| fs::create_dir(place).expect("made"));
    let mut server = Server::start(&Options::new(&share, &state));
    let mut client = Client::connect(server.nfs(), 0, 0).expect("a connection");
    let root = client.mnt(&server.export()).expect("the share");
    let handles = Handles::make(&mut client, &root);
    let offset = Some(server.offset);
    assert!(server.stop().success());

    mount_again();
    let mut server = Server::start(&Options { offset, ..Options::new(&share, &state) });
    handles.check(&server, "mounted again");
    assert!(server.stop().success());

    let [share, state] = second;
    let mut server = Server::start(&Options { offset, ..Options::new(&share, &state) });
    handles.check(&server, "at the second head");
    assert!(server.stop().success());
}
