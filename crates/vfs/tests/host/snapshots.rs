//! `.snapshot` in a share: found by name and listed if that is wanted, with handles of its own for
//! each snapshot, and nothing in it can be changed. Directories stand for snapshots; those of a
//! pool are tested through the server.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use base::limits::SNAPSHOTS_OPEN_MAX;
use vfs::attr::{FileType, SetAttr};
use vfs::conformance::{self, Bench, cx, root, user};
use vfs::fs::{Change, CreateHow, Entry, FileName, FileSystem, SetXattr, Special, Stable, access};
use vfs::handle::Handle;
use vfs::host::HostOptions;
use vfs::host::snapshots::Snapshots;
use vfs::share::{New, ServiceRules, Share, ShareTable};
use vfs::status::Status;

use super::{Scratch, disk};

const SNAPSHOT: &[u8] = b".snapshot";

struct Bed {
    scratch: Scratch,
    share: Arc<Share>,
}

impl Bed {
    fn new(name: &str) -> Self {
        let scratch = Scratch::new(&disk(), name);
        let share = open(&scratch);
        Self { scratch, share }
    }

    fn folder(&self) -> PathBuf {
        self.scratch.0.join("snapshots")
    }

    /// Copies the file `f` of the share into a snapshot, in the root and in a directory.
    fn take(&self, name: &str, content: &str) {
        let at = self.folder().join(name);
        fs::create_dir_all(at.join("d")).expect("created");
        for file in ["f", "d/f"] {
            fs::write(at.join(file), content).expect("written");
        }
    }

    fn fs(&self) -> &dyn FileSystem {
        &*self.share.fs
    }

    fn find(&self, path: &str) -> Result<Entry, Status> {
        self.find_from(self.fs().root(), path)
    }

    fn find_from(&self, from: Handle, path: &str) -> Result<Entry, Status> {
        let attr = self.fs().getattr(cx(&root()), &from)?;
        path.split('/').try_fold(Entry { handle: from, attr }, |at, name| {
            let found = self.fs().lookup(cx(&root()), &at.handle, name.as_bytes());
            found.map(|(entry, _)| entry).map_err(|failed| failed.status)
        })
    }

    fn read(&self, file: &Handle) -> Result<String, Status> {
        let mut buffer = [0; 64];
        let done = self.fs().read(cx(&root()), file, 0, &mut buffer)?;
        Ok(String::from_utf8_lossy(&buffer[..done.count]).into_owned())
    }

    /// Names of a directory, in as many calls as there are names.
    fn names(&self, dir: &Handle, plus: bool) -> Vec<String> {
        let (mut names, mut cookie) = (Vec::new(), 0);
        loop {
            let (mut next, mut full) = (None, false);
            let mut each = |entry: vfs::fs::DirEntry<'_>| {
                full = next.is_some();
                if !full {
                    next = Some(entry.cookie);
                    names.push(String::from_utf8_lossy(entry.name).into_owned());
                    assert!(!plus || entry.entry.is_some(), "{:?}", entry.name);
                }
                !full
            };
            let me = root();
            let done = self.fs().list(cx(&me), dir, cookie, [0; 8], plus, &mut each);
            if done.expect("listed").eof {
                names.retain(|name| name != "." && name != "..");
                names.sort();
                return names;
            }
            cookie = next.expect("an entry");
        }
    }
}

fn open(scratch: &Scratch) -> Arc<Share> {
    let options = HostOptions { exchangeable: true, ..scratch.options(true) };
    let snapshots =
        Arc::new(Snapshots::new(&scratch.0.join("snapshots"), &scratch.share(), &options));
    let files = vfs::host::HostFs::open(&scratch.share(), options).expect("can be served");
    let mut table = ShareTable::default();
    let rules = ServiceRules::default();
    let (name, snapshots) = ("test", Some(snapshots));
    let new = New { name, fs: files, read_only: false, id: 1, rules, snapshots, tree: 0 };
    table.put(new).expect("added")
}

fn status<T>(done: Change<T>) -> Option<Status> {
    done.err().map(|failed| failed.status)
}

#[test]
fn each_snapshot_is_a_tree_of_its_own_and_handles_lead_to_theirs_only() {
    let bed = Bed::new("snapshots");
    fs::write(bed.scratch.share().join("f"), "live").expect("written");
    let door = bed.find(".snapshot").expect("there without any");
    assert_eq!(bed.names(&door.handle, true), [""; 0]);
    bed.take("monday", "on monday");
    bed.take("tuesday", "on tuesday");
    assert_eq!(bed.names(&door.handle, true), ["monday", "tuesday"]);
    assert_eq!(bed.names(&door.handle, false), ["monday", "tuesday"]);
    let files = ["f", ".snapshot/monday/f", ".snapshot/tuesday/f", ".snapshot/monday/d/f"];
    let contents = ["live", "on monday", "on tuesday", "on monday"];
    let handles = files.map(|path| bed.find(path).expect(path).handle);
    for (handle, content) in handles.iter().zip(contents) {
        assert_eq!(bed.read(handle).as_deref(), Ok(content));
        assert_eq!(handles.iter().filter(|other| *other == handle).count(), 1);
    }
    // Handles of before stay good when the server has started again, also one of the directory.
    let Bed { scratch, share } = bed;
    drop(share);
    let again = Bed { share: open(&scratch), scratch };
    for (handle, content) in handles.iter().zip(contents) {
        assert_eq!(again.read(handle).as_deref(), Ok(content));
    }
    assert_eq!(again.names(&door.handle, true), ["monday", "tuesday"]);
    let bed = again;
    // The way up, from wherever.
    for (from, path, to) in [
        (".snapshot/monday/d", "..", ".snapshot/monday"),
        (".snapshot/monday", "..", ".snapshot"),
        (".snapshot", "..", "."),
        (".snapshot/monday/d", "../../tuesday/../..", "."),
    ] {
        let from = bed.find(from).expect(from).handle;
        let (found, to) = (bed.find_from(from, path), bed.find(to).expect(to));
        assert_eq!(found.expect(path).handle, to.handle, "{path}");
    }
    let monday = bed.find(".snapshot/monday").expect("there").handle;
    let above = bed.fs().lookup_parent(cx(&root()), &monday).expect("above");
    assert_eq!(above.handle, door.handle);
    assert!(bed.fs().mounted_on(&monday).is_some_and(|number| number > i64::MAX as u64));
    assert_eq!(bed.fs().mounted_on(&handles[1]), None);
}

#[test]
fn what_is_destroyed_is_stale_and_what_is_renamed_stays() {
    let bed = Bed::new("snapshots-gone");
    bed.take("one", "first");
    bed.take("two", "second");
    let [one, two] =
        [".snapshot/one/f", ".snapshot/two/f"].map(|path| bed.find(path).expect("there").handle);
    assert!(bed.read(&one).is_ok() && bed.read(&two).is_ok());
    let door = bed.find(".snapshot").expect("there").handle;
    let changed = |bed: &Bed| bed.fs().getattr(cx(&root()), &door).expect("there").change;
    let before = changed(&bed);
    fs::rename(bed.folder().join("one"), bed.folder().join("renamed")).expect("renamed");
    assert_eq!(bed.read(&one).as_deref(), Ok("first"));
    assert_eq!(bed.find(".snapshot/one/f").err(), Some(Status::NotFound));
    assert_eq!(bed.find(".snapshot/renamed/f").expect("there").handle, one);
    fs::remove_dir_all(bed.folder().join("two")).expect("removed");
    assert_eq!(bed.read(&two).err(), Some(Status::Stale));
    assert!(changed(&bed) > before, "clients would trust an old listing");
    // Another one with its name is another one.
    bed.take("two", "third");
    assert_eq!(bed.read(&two).err(), Some(Status::Stale));
    let again = bed.find(".snapshot/two/f").expect("there").handle;
    assert_eq!(bed.read(&again).as_deref(), Ok("third"));
    assert_ne!(again, two);
}

#[test]
fn a_list_that_cannot_be_read_stays_as_it_was_until_it_can() {
    let bed = Bed::new("snapshots-unread");
    bed.take("one", "first");
    let [door, one] =
        [".snapshot", ".snapshot/one/f"].map(|path| bed.find(path).expect("there").handle);
    assert_eq!(bed.read(&one).as_deref(), Ok("first"));
    // Neither there nor absent, as when no descriptor is free.
    let aside = bed.scratch.0.join("aside");
    fs::rename(bed.folder(), &aside).expect("moved away");
    std::os::unix::fs::symlink(bed.folder(), bed.folder()).expect("a link to itself");
    assert_eq!(bed.names(&door, true), ["one"]);
    assert_eq!(bed.read(&one).as_deref(), Ok("first"));
    // A server that starts now must not call handles stale.
    let Bed { scratch, share } = bed;
    drop(share);
    let bed = Bed { share: open(&scratch), scratch };
    assert_eq!(bed.find(".snapshot/one/f").err(), Some(Status::Io));
    assert_eq!(bed.read(&one).err(), Some(Status::Io));
    fs::remove_file(bed.folder()).expect("removed");
    fs::rename(&aside, bed.folder()).expect("moved back");
    assert_eq!(bed.read(&one).as_deref(), Ok("first"));
    bed.take("two", "second");
    assert_eq!(bed.names(&door, true), ["one", "two"]);
    // Without a directory there are none, until it is there again.
    fs::rename(bed.folder(), &aside).expect("moved away");
    assert_eq!(bed.names(&door, true), [""; 0]);
    assert_eq!(bed.read(&one).err(), Some(Status::Stale));
    fs::rename(&aside, bed.folder()).expect("moved back");
    assert_eq!(bed.names(&door, true), ["one", "two"]);
}

#[test]
fn forged_handles_lead_nowhere() {
    let bed = Bed::new("snapshots-forged");
    bed.take("one", "first");
    bed.take("two", "second");
    fs::write(bed.scratch.share().join("f"), "live").expect("written");
    let [live, one, two] = ["f", ".snapshot/one/f", ".snapshot/two/f"]
        .map(|path| bed.find(path).expect("there").handle.as_bytes().to_vec());
    let with = |bytes: &[u8], number: &[u8]| {
        let mut forged = bytes.to_vec();
        forged[6..14].copy_from_slice(number);
        Handle::new(&forged).expect("a handle")
    };
    // The number of another snapshot, of the directory of all, of none.
    assert_eq!(bed.read(&with(&one, &two[6..14])).err(), Some(Status::BadHandle));
    assert_eq!(bed.read(&with(&one, &[0; 8])).err(), Some(Status::BadHandle));
    assert_eq!(bed.read(&with(&one, &[9; 8])).err(), Some(Status::Stale));
    // A live handle with the number in it, and one of a snapshot without.
    let mut into = live.clone();
    into[5] |= 4;
    into.splice(6..6, two[6..14].iter().copied());
    let into = Handle::new(&into).expect("a handle");
    assert_eq!(bed.read(&into).err(), Some(Status::BadHandle));
    let mut out = one.clone();
    out[5] &= !4;
    out.drain(6..14);
    assert_eq!(bed.read(&Handle::new(&out).expect("a handle")).err(), Some(Status::BadHandle));
    // Each bit of each byte.
    for at in 5..one.len() {
        let mut bytes = one.clone();
        bytes[at] ^= 1;
        let error = bed.read(&Handle::new(&bytes).expect("a handle")).err();
        assert!(matches!(error, Some(Status::BadHandle | Status::Stale)), "{at}: {error:?}");
    }
}

/// All changes that a protocol can ask for.
fn changes(fs: &dyn FileSystem, dir: &Handle, file: &Handle, name: &[u8]) -> Vec<Option<Status>> {
    let me = root();
    let (cx, set) = (cx(&me), SetAttr::default());
    let fifo = Special { kind: FileType::Fifo, rdev: (0, 0) };
    vec![
        status(fs.create(cx, dir, name, CreateHow::Unchecked(set))),
        status(fs.create(cx, dir, name, CreateHow::Exclusive([1; 8]))),
        status(fs.mkdir(cx, dir, name, &set)),
        status(fs.symlink(cx, dir, name, b"x", &set)),
        status(fs.mknod(cx, dir, name, fifo, &set)),
        status(fs.link(cx, file, dir, name)),
        status(fs.remove(cx, dir, name)),
        status(fs.rmdir(cx, dir, name)),
        status(fs.rename(cx, (dir, name), (dir, b"other"))),
        status(fs.rename(cx, (dir, b"other"), (dir, name))),
    ]
}

#[test]
fn nothing_in_a_snapshot_changes_and_nothing_takes_its_name() {
    let bed = Bed::new("snapshots-changes");
    bed.take("one", "first");
    // The real entry is not seen.
    fs::create_dir(bed.scratch.share().join(".snapshot")).expect("created");
    fs::write(bed.scratch.share().join(".snapshot/real"), "").expect("written");
    fs::write(bed.scratch.share().join("f"), "live").expect("written");
    let (me, fs) = (root(), bed.fs());
    let [door, one, file] = [".snapshot", ".snapshot/one", ".snapshot/one/f"]
        .map(|path| bed.find(path).expect("there").handle);
    let (top, live) = (fs.root(), bed.find("f").expect("there").handle);
    assert_eq!(bed.find(".snapshot/real").err(), Some(Status::NotFound));
    for found in changes(fs, &top, &live, SNAPSHOT) {
        assert!(matches!(found, Some(Status::Exists | Status::ReadOnly)), "{found:?}");
    }
    for (dir, name) in [(&door, &b"new"[..]), (&door, b"one"), (&one, b"new"), (&one, b"f")] {
        for found in changes(fs, dir, &file, name) {
            assert_eq!(found, Some(Status::ReadOnly), "{name:?}");
        }
    }
    // From one tree into another.
    let cx = cx(&me);
    assert_eq!(status(fs.link(cx, &file, &top, b"l")), Some(Status::CrossDevice));
    assert_eq!(status(fs.rename(cx, (&top, b"f"), (&one, b"g"))), Some(Status::ReadOnly));
    assert_eq!(status(fs.rename(cx, (&one, b"f"), (&top, b"g"))), Some(Status::ReadOnly));
    assert_eq!(status(fs.copy_range(cx, (&file, 0), (&live, 0), 1)), Some(Status::CrossDevice));
    assert_eq!(status(fs.clone_range(cx, (&file, 0), (&live, 0), 0)), Some(Status::CrossDevice));
    assert_eq!(status(fs.copy_range(cx, (&live, 0), (&file, 0), 1)), Some(Status::ReadOnly));
    let set = SetAttr { mode: Some(0o777), ..SetAttr::default() };
    for at in [&door, &one, &file] {
        assert_eq!(status(fs.setattr(cx, at, &set, None)), Some(Status::ReadOnly));
        assert_eq!(status(fs.write(cx, at, 0, b"x", Stable::Unstable)), Some(Status::ReadOnly));
        assert_eq!(status(fs.allocate(cx, at, 0, 1)), Some(Status::ReadOnly));
        let xattr = fs.set_xattr(cx, at, b"x", b"y", SetXattr::Either);
        assert_eq!(status(xattr), Some(Status::ReadOnly));
        let (granted, _) = fs.access(cx, at, 0x3f).expect("asked");
        assert_eq!(granted & (access::MODIFY | access::EXTEND | access::DELETE), 0);
    }
    assert_eq!(fs::read(bed.folder().join("one/f")).expect("there"), b"first");
}

#[test]
fn the_root_lists_it_if_that_is_wanted_and_rights_are_those_of_the_root() {
    let bed = Bed::new("snapshots-shown");
    bed.take("one", "first");
    fs::write(bed.scratch.share().join("f"), "live").expect("written");
    fs::create_dir(bed.scratch.share().join(".snapshot")).expect("created");
    let (top, me) = (bed.fs().root(), user(4_711, 4_711));
    assert_eq!(bed.names(&top, true), ["f"]);
    bed.share.set_snapdir_visible(true);
    assert_eq!(bed.names(&top, true), [".snapshot", "f"]);
    assert_eq!(bed.names(&top, false), [".snapshot", "f"]);
    let file = bed.find(".snapshot/one/f").expect("there").handle;
    let id = bed.fs().file_id(&file);
    assert_eq!(bed.fs().describe(id), Some(FileName::Path(b".snapshot/one/f".to_vec())));
    // No other user may search the root, so no other user may search the snapshots.
    let set = SetAttr { mode: Some(0o700), ..SetAttr::default() };
    bed.fs().setattr(cx(&root()), &top, &set, None).expect("changed");
    // A server without privilege acts with its own rights.
    let denies = |dir: &Handle, name: &[u8]| {
        let found = bed.fs().lookup(cx(&me), dir, name).map_err(|failed| failed.status);
        matches!(found, Err(Status::Access))
    };
    let live = denies(&top, b"f");
    // SAFETY: no arguments.
    assert!(live || unsafe { libc::geteuid() } != 0);
    assert_eq!(denies(&top, SNAPSHOT), live);
    let door = bed.find(".snapshot").expect("there");
    assert_eq!(door.attr.mode, 0o500);
    assert_eq!(denies(&door.handle, b"one"), live);
}

#[test]
fn no_more_are_open_than_may_be_and_all_can_be_read() {
    let bed = Bed::new("snapshots-many");
    let count = SNAPSHOTS_OPEN_MAX + 8;
    for at in 0..count {
        bed.take(&format!("s{at}"), &format!("content {at}"));
    }
    let files: Vec<Handle> = (0..count)
        .map(|at| bed.find(&format!(".snapshot/s{at}/f")).expect("there").handle)
        .collect();
    for _ in 0..2 {
        for (at, file) in files.iter().enumerate() {
            assert_eq!(bed.read(file), Ok(format!("content {at}")));
        }
    }
    let snapshots = bed.share.snapshots.as_ref().expect("snapshots");
    assert_eq!(snapshots.all_open().len(), SNAPSHOTS_OPEN_MAX);
    fs::remove_dir_all(bed.folder()).expect("removed");
    snapshots.tidy();
    assert_eq!(snapshots.all_open().len(), 0);
    assert_eq!(bed.read(&files[0]).err(), Some(Status::Stale));
}

#[test]
fn a_share_with_snapshots_conforms() {
    let bed = Bed::new("snapshots-conform");
    bed.share.set_snapdir_visible(false);
    let privileged = bed.fs().getattr(cx(&user(1, 1)), &bed.fs().root()).is_ok()
        && vfs::host::acting::can_switch();
    conformance::run(&Bench { fs: bed.share.fs.clone(), privileged, reopen: None });
}
