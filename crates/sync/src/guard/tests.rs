//! A run with a server's table: what is hidden is not seen, what is in use stays as it is, and
//! what the run has open is in the table.

use super::serve::{Refusal, ShareLayer};
use super::*;
use crate::run;
use crate::tree::host::HostTree;
use crate::{Options, SyncError};
use base::random::{Random, SystemRandom};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A table of a test: what is hidden, what may not be done, what is open.
#[derive(Default)]
struct Table {
    hidden: Vec<Inode>,
    denied: Vec<(Inode, Access)>,
    recalls: Mutex<u32>,
    /// How often clients may still reclaim what is opened for a change.
    grace: Mutex<u32>,
    seen: Arc<Mutex<Vec<(PathBuf, Access)>>>,
    open: Arc<Mutex<usize>>,
}

struct Entry(Arc<Mutex<usize>>);

impl Drop for Entry {
    fn drop(&mut self) {
        *lock(&self.0) -= 1;
    }
}

impl ShareLayer for Table {
    type Open = Entry;

    fn wait(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn hidden(&self) -> Vec<Inode> {
        self.hidden.clone()
    }

    fn keeps_name(&self, entry: Inode) -> bool {
        self.denied.contains(&(entry, Access::Remove))
    }

    fn open(&self, path: &Path, file: Inode, access: Access) -> Result<Entry, Refusal> {
        assert_eq!(id(path), file);
        if self.denied.contains(&(file, access)) || self.hidden.contains(&file) {
            return Err(Refusal::InUse);
        }
        let mut recalls = lock(&self.recalls);
        if *recalls > 0 {
            *recalls -= 1;
            return Err(Refusal::Recalling);
        }
        let mut grace = lock(&self.grace);
        if *grace > 0 && access != Access::Read {
            *grace -= 1;
            return Err(Refusal::Grace);
        }
        lock(&self.seen).push((path.to_owned(), access));
        *lock(&self.open) += 1;
        Ok(Entry(Arc::clone(&self.open)))
    }
}

fn id(path: &Path) -> Inode {
    let meta = fs::symlink_metadata(path).unwrap();
    (meta.dev(), meta.ino())
}

struct Scene(PathBuf);

impl Scene {
    fn new() -> Self {
        let name = format!("plimsoll-guard-{:016x}", SystemRandom.next_u64());
        let top = std::env::temp_dir().canonicalize().unwrap().join(name);
        for dir in ["from", "to", "to/folder"] {
            fs::create_dir_all(top.join(dir)).unwrap();
        }
        for (file, text) in [
            ("from/new", "new"),
            ("from/changed", "after"),
            ("to/changed", "before"),
            ("to/disk.img", "a logical unit"),
            ("to/folder/unit", "another"),
            ("to/old", "old"),
        ] {
            fs::write(top.join(file), text).unwrap();
        }
        Self(top)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.at(name)).ok()
    }

    /// A run with `delete`; how many entries failed.
    fn run(&self, table: Table) -> Result<u64, SyncError> {
        let (near, far) = UnixStream::pair().unwrap();
        let serving = thread::spawn(move || serve::serve(far, &table));
        let guard = Guard::over(near).unwrap();
        let options = Options { delete: true, ..crate::guard::tests::plain() };
        let done = run::between(
            HostTree::open(&self.at("from"))?.with_guard(Some(Arc::clone(&guard))),
            HostTree::open_for_change(&self.at("to"))?.with_guard(Some(guard)),
            &options,
            &(Arc::new(|_| {}) as crate::events::Report),
        );
        serving.join().unwrap();
        done.map(|counts| counts.failures).map_err(|why| panic!("{}", why.error()))
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn plain() -> Options {
    Options {
        delete: false,
        checksum: false,
        dry_run: false,
        owners: false,
        names: false,
        xattrs: false,
        devices: false,
        set_id: false,
        pack: false,
        in_place: false,
        bandwidth: 0,
        rules: wire::xdr::Seq(Vec::new()),
    }
}

#[test]
fn what_is_hidden_is_neither_removed_nor_seen() {
    let scene = Scene::new();
    let hidden = vec![id(&scene.at("to/disk.img")), id(&scene.at("to/folder"))];
    let failures = scene.run(Table { hidden, ..Table::default() }).unwrap();
    assert_eq!(failures, 0);
    assert_eq!(scene.text("to/disk.img").as_deref(), Some("a logical unit"));
    assert_eq!(scene.text("to/folder/unit").as_deref(), Some("another"));
    assert_eq!(scene.text("to/changed").as_deref(), Some("after"));
    assert_eq!(scene.text("to/new").as_deref(), Some("new"));
    assert_eq!(scene.text("to/old"), None);
}

#[test]
fn a_hidden_file_of_the_source_is_not_copied() {
    let scene = Scene::new();
    fs::hard_link(scene.at("to/disk.img"), scene.at("from/disk.img")).unwrap();
    fs::remove_file(scene.at("to/disk.img")).unwrap();
    let hidden = vec![id(&scene.at("from/disk.img"))];
    assert_eq!(scene.run(Table { hidden, ..Table::default() }).unwrap(), 0);
    assert_eq!(scene.text("to/disk.img"), None);
    assert_eq!(scene.text("to/new").as_deref(), Some("new"));
}

#[test]
fn a_hidden_file_is_not_replaced_by_one_of_its_name() {
    let scene = Scene::new();
    fs::write(scene.at("from/disk.img"), "something else").unwrap();
    // As it would be taken for the same.
    let time = fs::metadata(scene.at("to/disk.img")).unwrap().modified().unwrap();
    let file = fs::File::options().write(true).open(scene.at("from/disk.img")).unwrap();
    file.set_modified(time).unwrap();
    let hidden = vec![id(&scene.at("to/disk.img"))];
    assert_eq!(scene.run(Table { hidden, ..Table::default() }).unwrap(), 1);
    assert_eq!(scene.text("to/disk.img").as_deref(), Some("a logical unit"));
}

#[test]
fn what_clients_deny_stays_and_is_reported() {
    let scene = Scene::new();
    let denied = vec![
        (id(&scene.at("to/changed")), Access::Remove),
        (id(&scene.at("to/old")), Access::Remove),
        (id(&scene.at("from/new")), Access::Read),
    ];
    assert_eq!(scene.run(Table { denied, ..Table::default() }).unwrap(), 3);
    assert_eq!(scene.text("to/changed").as_deref(), Some("before"));
    assert_eq!(scene.text("to/old").as_deref(), Some("old"));
    assert_eq!(scene.text("to/new"), None);
}

#[test]
fn files_are_open_in_the_table_and_leases_are_waited_for() {
    let scene = Scene::new();
    let table = Table { recalls: Mutex::new(3), ..Table::default() };
    let (seen, open) = (Arc::clone(&table.seen), Arc::clone(&table.open));
    assert_eq!(scene.run(table).unwrap(), 0);
    let seen = lock(&seen).clone();
    for (name, access) in [
        ("from/new", Access::Read),
        ("from/changed", Access::Read),
        ("to/changed", Access::Remove),
        ("to/old", Access::Remove),
    ] {
        assert!(seen.contains(&(scene.at(name), access)), "{name}: {seen:?}");
    }
    assert_eq!(*lock(&open), 0, "everything is closed");
}

#[test]
fn the_end_of_a_grace_period_is_waited_for() {
    let scene = Scene::new();
    let table = Table { grace: Mutex::new(3), ..Table::default() };
    let seen = Arc::clone(&table.seen);
    assert_eq!(scene.run(table).unwrap(), 0, "no file is in use");
    assert!(lock(&seen).contains(&(scene.at("to/old"), Access::Remove)));
    assert_eq!((scene.text("to/old"), scene.text("to/new").as_deref()), (None, Some("new")));
}

#[test]
fn without_a_server_marked_files_are_left_alone() {
    let scene = Scene::new();
    let _marks = ["to/disk.img", "to/folder"].map(|name| base::claim::Mark::set(&scene.at(name)));
    let options = Options { delete: true, ..plain() };
    let report: crate::events::Report = Arc::new(|_| {});
    let counts = run::local(&scene.at("from"), &scene.at("to"), &options, &report);
    let counts = counts.unwrap_or_else(|why| panic!("{}", why.error()));
    assert!(counts.failures > 0);
    assert_eq!(scene.text("to/disk.img").as_deref(), Some("a logical unit"));
    assert_eq!(scene.text("to/folder/unit").as_deref(), Some("another"));
    assert_eq!(scene.text("to/old"), None);
}
