//! Handles taken over the wire before a restart work after it, or are stale where they must be:
//! with kernel handles and through the table, on a disk and in memory, whatever happened to names.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use e2e::nfs3::{Client, Failure, Handle};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::{NOBODY, is_root, skip};
use wire::nfs3::{CreateHow, Nfsstat3, Sattr3, StableHow};

const MEMORY: &str = "/dev/shm";

/// A share and its server, which is restarted repeatedly.
struct Scene {
    scratch: Scratch,
    dir: PathBuf,
    state: PathBuf,
    unprivileged: bool,
    offset: u16,
}

impl Scene {
    fn new(place: &Path, name: &str, unprivileged: bool) -> (Self, Server) {
        let scratch = Scratch::below(place, name);
        let owner = unprivileged.then_some(NOBODY);
        let (dir, state) = (scratch.folder("data", owner), scratch.folder("state", owner));
        let mut scene = Self { scratch, dir, state, unprivileged, offset: 0 };
        let server = Server::start(&scene.options(None));
        scene.offset = server.offset;
        (scene, server)
    }

    fn options(&self, offset: Option<u16>) -> Options<'_> {
        let unprivileged = self.unprivileged && is_root();
        Options { unprivileged, offset, ..Options::new(&self.dir, &self.state) }
    }

    /// Starts the server again, which has ended, with nothing in memory.
    fn again(&self) -> Server {
        forget_caches(self.scratch.path());
        Server::start(&self.options(Some(self.offset)))
    }

    /// A path on this machine.
    fn at(&self, path: &str) -> PathBuf {
        self.dir.join(path)
    }

    /// A folder next to the share, on the same file system.
    fn outside(&self) -> PathBuf {
        self.scratch.folder("outside", None)
    }
}

/// Writes back the file system of a path, and drops the kernel's cached names and inodes, where
/// this is allowed.
fn forget_caches(at: &Path) {
    if is_root() {
        let top = fs::File::open(at).expect("the file system");
        // SAFETY: the descriptor is open.
        unsafe { libc::syncfs(top.as_raw_fd()) };
        let _refused = fs::write("/proc/sys/vm/drop_caches", "2");
    }
}

/// A new file with its name as content.
fn file(client: &mut Client, dir: &[u8], name: &str) -> Handle {
    let mode = Sattr3 { mode: Some(0o644), ..Sattr3::default() };
    let made = client.create(dir, name, CreateHow::Guarded(mode)).expect(name);
    let done = client.write(&made.handle, 0, name.as_bytes(), StableHow::FILE_SYNC);
    assert_eq!(done.expect(name).0 as usize, name.len());
    made.handle
}

fn folder(client: &mut Client, dir: &[u8], name: &str) -> Handle {
    let mode = Sattr3 { mode: Some(0o755), ..Sattr3::default() };
    client.mkdir(dir, name, mode).expect(name).handle
}

/// Handles, what they are called here, and the content that they must lead to.
type RetainedHandles = Vec<(&'static str, Handle, &'static str)>;
/// The same for what must be stale.
type RemovedHandles = Vec<(&'static str, Handle)>;

/// Everything that happens to names through us, in one tree.
fn through_us(client: &mut Client, root: &[u8]) -> (RetainedHandles, RemovedHandles) {
    let (one, two) = (folder(client, root, "one"), folder(client, root, "two"));
    let mut kept: RetainedHandles = vec![("plain", file(client, root, "plain"), "plain")];

    kept.push(("renamed in its directory", file(client, root, "old"), "old"));
    client.rename((root, "old"), (root, "new")).expect("a rename");

    kept.push(("renamed across directories", file(client, &one, "across"), "across"));
    client.rename((&one, "across"), (&two, "arrived")).expect("a rename");

    kept.push(("renamed three times", file(client, root, "thrice"), "thrice"));
    client.rename((root, "thrice"), (&one, "first")).expect("a rename");
    client.rename((&one, "first"), (&two, "second")).expect("a rename");
    client.rename((&two, "second"), (&one, "third")).expect("a rename");

    let moved = folder(client, &one, "moved");
    kept.push(("in a renamed directory", file(client, &moved, "inside"), "inside"));
    client.rename((&one, "moved"), (root, "moved-here")).expect("a rename");
    let deep = folder(client, &moved, "deep");
    kept.push(("made after the rename above it", file(client, &deep, "deeper"), "deeper"));
    client.rename((&moved, "deep"), (&two, "not-so-deep")).expect("a rename");

    let linked = file(client, &one, "linked");
    client.link(&linked, &two, "second-name").expect("a link");
    kept.push(("with a second name", linked, "linked"));
    let left = file(client, &one, "left");
    client.link(&left, &two, "only-name").expect("a link");
    client.remove(&one, "left", false).expect("a removal");
    kept.push(("left with its second name", left, "left"));

    let mut gone: RemovedHandles = vec![("removed", file(client, root, "removed"))];
    client.remove(root, "removed", false).expect("a removal");
    gone.push(("removed directory", folder(client, root, "removed-too")));
    client.remove(root, "removed-too", true).expect("a removal");
    gone.push(("replaced", file(client, root, "taken")));
    kept.push(("replaces", file(client, &one, "taker"), "taker"));
    client.rename((&one, "taker"), (root, "taken")).expect("a rename over it");
    gone.push(("removed and made again", file(client, root, "again")));
    client.remove(root, "again", false).expect("a removal");
    kept.push(("made again", file(client, root, "again"), "again"));
    (kept, gone)
}

/// Where a lookup must find the handles of [`through_us`] by then.
const NAMES: [(&str, &str); 9] = [
    ("plain", "plain"),
    ("renamed in its directory", "new"),
    ("renamed across directories", "two/arrived"),
    ("renamed three times", "one/third"),
    ("in a renamed directory", "moved-here/inside"),
    ("made after the rename above it", "two/not-so-deep/deeper"),
    ("with a second name", "two/second-name"),
    ("left with its second name", "two/only-name"),
    ("replaces", "taken"),
];

fn check(client: &mut Client, kept: &RetainedHandles, gone: &RemovedHandles, when: &str) {
    for (what, handle, content) in kept {
        let read = client.read_all(handle);
        let read = read.unwrap_or_else(|e| panic!("{what}, {when}: {e:?}"));
        assert_eq!(String::from_utf8_lossy(&read), *content, "{what}, {when}");
        client.getattr(handle).unwrap_or_else(|e| panic!("{what}, {when}: {e:?}"));
        let written = client.write(handle, 0, content.as_bytes(), StableHow::FILE_SYNC);
        written.unwrap_or_else(|e| panic!("writing {what}, {when}: {e:?}"));
    }
    for (what, handle) in gone {
        let stale = Err(Failure::Status(Nfsstat3::STALE));
        assert_eq!(client.getattr(handle).map(|a| a.fileid), stale, "{what}, {when}");
    }
}

fn check_names(client: &mut Client, root: &[u8], kept: &RetainedHandles, when: &str) {
    for (what, path) in NAMES {
        let mut at = root.to_vec();
        for name in path.split('/') {
            at = client.lookup(&at, name).unwrap_or_else(|e| panic!("{path}: {e:?}")).handle;
        }
        let (_, handle, _) = kept.iter().find(|(name, ..)| *name == what).expect(what);
        assert!(&at == handle, "a second handle for {what}, {when}");
    }
}

/// Changes through us; then the server is killed, then it ends in order, with cold caches after
/// each.
fn renamed_through_us(place: &Path, unprivileged: bool) {
    let (scene, mut server) = Scene::new(place, "handles", unprivileged);
    let (mut client, root) = server.mount(0, 0);
    let (kept, gone) = through_us(&mut client, &root);
    check(&mut client, &kept, &gone, "before any restart");
    server.kill();

    let mut server = scene.again();
    let mut client = Client::connect(server.nfs(), 0, 0).expect("a connection");
    check(&mut client, &kept, &gone, "after a kill");
    check_names(&mut client, &root, &kept, "after a kill");
    // What is renamed by a handle of an earlier life must be found in the next.
    let two = client.lookup(&root, "two").expect("two").handle;
    client.rename((&two, "arrived"), (&root, "arrived-again")).expect("a rename");
    assert!(server.stop().success());

    let mut server = scene.again();
    let mut client = Client::connect(server.nfs(), 0, 0).expect("a connection");
    check(&mut client, &kept, &gone, "after a second restart");
    let found = client.lookup(&root, "arrived-again").expect("it").handle;
    let (_, handle, _) = &kept[2];
    assert!(&found == handle, "a second handle after the second restart");
    assert!(server.stop().success());
}

/// Changes behind our back while the server is down.
fn renamed_behind_our_back(place: &Path, unprivileged: bool) {
    let (scene, mut server) = Scene::new(place, "behind", unprivileged);
    let (mut client, root) = server.mount(0, 0);
    let one = folder(&mut client, &root, "one");
    let two = folder(&mut client, &root, "two");
    let moves = folder(&mut client, &root, "moves");
    let leaves = folder(&mut client, &root, "leaves");
    let kept: RetainedHandles = vec![
        ("renamed where it was", file(&mut client, &one, "here"), "here"),
        ("moved to another directory", file(&mut client, &one, "there"), "there"),
        ("in a directory that moved", file(&mut client, &moves, "in"), "in"),
    ];
    let gone: RemovedHandles = vec![
        ("moved out", file(&mut client, &one, "out")),
        ("in a directory that was moved out", file(&mut client, &leaves, "in")),
        ("a directory that was moved out", leaves),
        ("removed", file(&mut client, &two, "removed")),
        ("replaced by another file", file(&mut client, &two, "replaced")),
        ("replaced by a directory", file(&mut client, &two, "other-type")),
    ];
    let by_name = client.lookup(&root, "moves").expect("it").handle;
    assert!(by_name == moves);
    assert!(server.stop().success());

    let rename = |from: &str, to: PathBuf| fs::rename(scene.at(from), to).expect(from);
    rename("one/here", scene.at("one/renamed"));
    rename("one/there", scene.at("two/moved"));
    rename("moves", scene.at("two/moves-too"));
    rename("one/out", scene.outside().join("out"));
    rename("leaves", scene.outside().join("leaves"));
    fs::remove_file(scene.at("two/removed")).expect("removing");
    fs::remove_file(scene.at("two/replaced")).expect("removing");
    fs::write(scene.at("two/replaced"), "another file").expect("replacing");
    fs::remove_file(scene.at("two/other-type")).expect("removing");
    fs::create_dir(scene.at("two/other-type")).expect("replacing");

    let mut server = scene.again();
    let mut client = Client::connect(server.nfs(), 0, 0).expect("a connection");
    if !unprivileged {
        // A kernel handle is not searched for in the whole tree (docs/formats/handles.md): it is
        // valid again as soon as a client has looked the file up where it is now.
        client.lookup(&two, "moved").expect("its new name");
    }
    check(&mut client, &kept, &gone, "after what happened behind our back");
    assert!(server.stop().success());

    // What comes back is good again.
    fs::rename(scene.outside().join("out"), scene.at("one/out")).expect("moving it back");
    let mut server = scene.again();
    let mut client = Client::connect(server.nfs(), 0, 0).expect("a connection");
    let (_, out) = &gone[0];
    assert_eq!(client.read_all(out).as_deref(), Ok(&b"out"[..]), "moved back");
    assert!(server.stop().success());
}

/// A handle is good for its share and its server only.
fn foreign(place: &Path, unprivileged: bool) {
    let (_scene, server) = Scene::new(place, "foreign", unprivileged);
    let (_other_scene, other) = Scene::new(place, "another", unprivileged);
    let (mut client, root) = server.mount(0, 0);
    let (_, strange) = other.mount(0, 0);
    let mut changed = root.clone();
    let cases = root.len();
    for at in 0..cases {
        changed[at] ^= 1;
        refused(&mut client, &changed, "one bit changed");
        changed[at] ^= 1;
        refused(&mut client, &root[..at], "cut short");
    }
    refused(&mut client, &strange, "of another server");
    refused(&mut client, &[0; 64], "zeroes");
    client.getattr(&root).expect("the root itself");
}

fn refused(client: &mut Client, handle: &[u8], what: &str) {
    match client.getattr(handle) {
        Err(Failure::Status(Nfsstat3::BADHANDLE | Nfsstat3::STALE)) => {}
        other => panic!("{what}: {other:?}"),
    }
}

fn temp() -> PathBuf {
    std::env::temp_dir()
}

#[test]
fn with_kernel_handles_on_a_disk() {
    if !is_root() {
        skip!("handles-root-disk", "needs root");
    }
    renamed_through_us(&temp(), false);
    renamed_behind_our_back(&temp(), false);
}

#[test]
fn with_kernel_handles_in_memory() {
    if !is_root() {
        skip!("handles-root-memory", "needs root");
    }
    renamed_through_us(Path::new(MEMORY), false);
    renamed_behind_our_back(Path::new(MEMORY), false);
}

#[test]
fn through_the_table_on_a_disk() {
    renamed_through_us(&temp(), true);
    renamed_behind_our_back(&temp(), true);
}

#[test]
fn through_the_table_in_memory() {
    renamed_through_us(Path::new(MEMORY), true);
    renamed_behind_our_back(Path::new(MEMORY), true);
}

#[test]
fn foreign_and_damaged_handles_are_refused() {
    if is_root() {
        foreign(&temp(), false);
    }
    foreign(&temp(), true);
}
