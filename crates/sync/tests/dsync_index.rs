//! What is kept from one run to the next saves reading, and changes nothing else.

use std::fs::{self, File};
use std::io::Read;
use std::net::Ipv4Addr;
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::{Gardener, Scratch, assert_same, lines, notes, plain, set_time};
use base::clock::{ManualClock, wall_ns};
use sync::index::{Index, IndexedTrees};
use sync::run::{self, With, answer, local, local_with, pair};
use sync::streams::connect::Calling;
use sync::{Counts, Options, Role};

/// Two trees, and an index of them.
struct Pair {
    from: PathBuf,
    to: PathBuf,
    index: PathBuf,
    scratch: Scratch,
}

/// How the two sides meet.
#[derive(Debug, Clone, Copy)]
enum Topology {
    Local,
    Push,
    Pull,
}

/// How far the index's clock is ahead of the machine's: in a test nothing has been changed long
/// ago.
const LATER_NS: u64 = 60_000_000_000;

impl Pair {
    fn new(name: &str) -> Self {
        let scratch = Scratch::new(name);
        let [from, to, index] = ["from", "to", "index"].map(|name| scratch.join(name));
        fs::create_dir(&from).expect("a folder");
        Self { from, to, index, scratch }
    }

    fn places(&self) -> IndexedTrees {
        let of = |path: &Path| path.as_os_str().as_bytes().to_vec();
        IndexedTrees { source: of(&self.from), destination: of(&self.to) }
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.from.join(name), bytes).expect("a file");
    }

    fn run(&self, way: Topology, options: &Options) -> (Counts, Vec<String>) {
        self.run_at(way, options, wall_ns() + LATER_NS)
    }

    fn run_at(&self, way: Topology, options: &Options, now_ns: u64) -> (Counts, Vec<String>) {
        let clock = Arc::new(ManualClock::at(now_ns));
        let index = Index::open(&self.index, self.places(), options.dry_run, clock);
        let index = index.expect("an index");
        let (report, kept) = notes();
        let done = match way {
            Topology::Local => local_with(&self.from, &self.to, options, &report, with(&index)),
            Topology::Push | Topology::Pull => {
                let (near, far) = pair().expect("sockets");
                let other =
                    std::thread::spawn(move || answer(far, Some(Ipv4Addr::LOCALHOST.into())));
                let (role, here, there) = match way {
                    Topology::Pull => (Role::DESTINATION, &self.to, &self.from),
                    _ => (Role::SOURCE, &self.from, &self.to),
                };
                let ends = (here.as_path(), there.as_os_str().as_bytes());
                let none = Calling::none();
                let done =
                    run::start_with(near, role, ends, options, (&none, &report), with(&index));
                other.join().expect("the other side").expect("its part");
                done
            }
        };
        let counts = done.unwrap_or_else(|why| panic!("{way:?}: {why:?}: {:?}", lines(&kept)));
        (counts, lines(&kept))
    }
}

/// A run that keeps this index.
fn with(index: &Arc<Index>) -> With<'_> {
    With { index: Some(index), guard: None }
}

fn sums() -> Options {
    Options { checksum: true, ..plain() }
}

/// Sees which files are read, by whomever.
struct Watch(File);

impl Watch {
    fn on(tops: &[&Path]) -> Self {
        // SAFETY: takes a number only.
        let fd = unsafe { libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC) };
        assert!(fd >= 0);
        for top in tops {
            Self::add(fd, top);
        }
        // SAFETY: it was opened above, and nothing else owns it.
        Self(unsafe { File::from_raw_fd(fd) })
    }

    fn add(fd: i32, dir: &Path) {
        let path = std::ffi::CString::new(dir.as_os_str().as_bytes()).expect("no NUL");
        // SAFETY: the path ends with NUL.
        assert!(unsafe { libc::inotify_add_watch(fd, path.as_ptr(), libc::IN_ACCESS) } >= 0);
        for entry in fs::read_dir(dir).expect("a directory") {
            let entry = entry.expect("an entry");
            if entry.file_type().expect("its kind").is_dir() {
                Self::add(fd, &entry.path());
            }
        }
    }

    /// The names of files that were read since it was last asked, each once.
    fn files(&mut self) -> Vec<String> {
        let (mut names, mut bytes) = (Vec::new(), vec![0; 1 << 16]);
        while let Ok(count) = self.0.read(&mut bytes) {
            let mut left = &bytes[..count];
            while left.len() >= 16 {
                // inotify(7): watch, mask, cookie, length of the name, the name.
                let word = |at: usize| u32::from_ne_bytes(left[at..at + 4].try_into().expect("4"));
                let (mask, length) = (word(4), word(12) as usize);
                let name = &left[16..16 + length];
                if mask & libc::IN_ISDIR == 0 {
                    let name = name.split(|b| *b == 0).next().unwrap_or_default();
                    names.push(String::from_utf8_lossy(name).into_owned());
                }
                left = &left[16 + length..];
            }
        }
        names.sort();
        names.dedup();
        names
    }
}

/// Writes other bytes where a file lies, as many, and sets its time back.
fn change_unseen(path: &Path, byte: &[u8]) {
    let meta = fs::metadata(path).expect("a file");
    let file = File::options().write(true).open(path).expect("a file");
    file.write_all_at(byte, 0).expect("a byte");
    drop(file);
    set_time(path, meta.mtime(), meta.mtime_nsec());
}

fn grown(name: &str) -> Pair {
    let pair = Pair::new(name);
    fs::create_dir(pair.from.join("dir")).expect("a folder");
    for (name, size) in [("a", 10), ("b", 100_000), ("dir/c", 3_000), ("dir/d", 0)] {
        pair.write(name, &vec![7; size]);
    }
    pair
}

#[test]
fn an_unchanged_tree_is_not_read_again() {
    let pair = grown("unread");
    for (round, way) in [Topology::Local, Topology::Push, Topology::Pull].into_iter().enumerate() {
        let _first = fs::remove_file(&pair.index);
        pair.run(way, &plain());
        let mut watch = Watch::on(&[&pair.from, &pair.to]);
        pair.run(way, &sums());
        let read = watch.files();
        assert_eq!(read, ["a", "b", "c"], "{way:?}: the first time there is no sum");
        drop(watch);
        let here: &[&Path] = match way {
            Topology::Local => &[&pair.from, &pair.to],
            Topology::Push => &[&pair.from],
            Topology::Pull => &[&pair.to],
        };
        let mut watch = Watch::on(here);
        for options in [sums(), Options { dry_run: true, ..sums() }, plain(), sums()] {
            let (counts, told) = pair.run(way, &options);
            assert_eq!((counts.changes, told.len()), (0, 0), "{told:?}");
            assert_eq!(watch.files(), [""; 0], "{way:?} {round}");
        }
        assert_same(&pair.from, &pair.to, "unread");
    }
}

#[test]
fn what_is_changed_where_it_lies_with_its_time_set_back_is_found() {
    for way in [Topology::Local, Topology::Push, Topology::Pull] {
        let pair = grown("ctime");
        pair.run(way, &plain());
        pair.run(way, &sums());
        for (side, byte) in [(&pair.from, b"#"), (&pair.to, b"%")] {
            change_unseen(&side.join("b"), byte);
            let mut watch = Watch::on(&[&pair.from, &pair.to]);
            let (_, told) = pair.run(way, &Options { dry_run: true, ..sums() });
            assert_eq!(told, ["update b "], "{way:?}");
            assert!(watch.files().contains(&"b".to_owned()));
            let (counts, told) = pair.run(way, &sums());
            assert_eq!((counts.changes, told), (1, vec!["update b ".to_owned()]), "{way:?}");
            assert_same(&pair.from, &pair.to, "ctime");
        }
    }
}

#[test]
fn another_file_with_the_same_size_and_time_is_found() {
    let pair = grown("inode");
    pair.run(Topology::Local, &plain());
    pair.run(Topology::Local, &sums());
    let (old, new) = (pair.from.join("b"), pair.from.join("new"));
    let meta = fs::metadata(&old).expect("a file");
    fs::write(&new, vec![9; 100_000]).expect("a file");
    set_time(&new, meta.mtime(), meta.mtime_nsec());
    fs::rename(&new, &old).expect("its name");
    let (counts, _) = pair.run(Topology::Local, &sums());
    assert_eq!(counts.changes, 2, "it, and the directory");
    assert_same(&pair.from, &pair.to, "inode");
}

#[test]
fn the_sum_of_a_file_that_was_changed_in_this_tick_is_not_kept() {
    let pair = grown("racy");
    pair.run(Topology::Local, &plain());
    // The clock has gone on by less than a tick since the last change.
    let changed = ["a", "b", "dir/c"].map(|name| {
        let meta = [&pair.from, &pair.to].map(|top| fs::metadata(top.join(name)).expect("a file"));
        meta.map(|meta| meta.ctime() * 1_000_000_000 + meta.ctime_nsec())
    });
    let first = changed.into_iter().flatten().min().expect("a time") as u64;
    pair.run_at(Topology::Local, &sums(), first + 19_000_000);
    let mut watch = Watch::on(&[&pair.from, &pair.to]);
    pair.run_at(Topology::Local, &sums(), first + 19_000_000);
    assert_eq!(watch.files(), ["a", "b", "c"]);
    pair.run(Topology::Local, &sums());
    assert_eq!(watch.files(), ["a", "b", "c"]);
    pair.run(Topology::Local, &sums());
    assert_eq!(watch.files(), [""; 0]);
}

#[test]
fn random_trees_converge_with_an_index_as_without() {
    for seed in 0..25 {
        let pair = Pair::new("random");
        let alone = pair.scratch.join("alone");
        let mut gardener = Gardener::new(7_000 + seed);
        gardener.grow(&pair.from, 3);
        for round in 0..5 {
            let what = format!("seed {seed} round {round}");
            let way = gardener.pick(&[Topology::Local, Topology::Push, Topology::Pull]);
            let checksum = gardener.below(3) > 0;
            let options = Options { checksum, ..plain() };
            let dry = Options { dry_run: true, ..options.clone() };
            let (_, planned) = pair.run(way, &dry);
            let (counts, done) = pair.run(way, &options);
            assert_eq!(counts.failures, 0, "{what}: {done:?}");
            assert_eq!(planned, done, "{what}");
            assert_same(&pair.from, &pair.to, &what);
            let (report, _) = notes();
            local(&pair.from, &alone, &options, &report).expect("a run without");
            assert_same(&alone, &pair.to, &what);
            // At the destination nothing may be changed that only its content would show.
            gardener.edit(&pair.from);
            if gardener.below(3) == 0 {
                gardener.edit(&pair.to);
            }
        }
    }
}

#[test]
fn an_index_of_other_trees_is_reported_and_not_used() {
    let pair = grown("damaged");
    pair.run(Topology::Local, &plain());
    pair.run(Topology::Local, &sums());
    let whole = fs::read(&pair.index).expect("the index");
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 4;
    let mut older = whole.clone();
    older[8] = 0;
    let text = String::from_utf8_lossy(&whole).replace("from", "form").into_bytes();
    let other = pair.scratch.join("other");
    let places = IndexedTrees { source: b"/elsewhere".to_vec(), ..pair.places() };
    let clock = Arc::new(ManualClock::at(0));
    let index = Index::open(&other, places, false, clock).expect("an index");
    local_with(&pair.from, &pair.to, &plain(), &notes().0, with(&index)).expect("a run");
    let cases: [(&str, Vec<u8>, &str); 7] = [
        ("torn", whole[..whole.len() / 2].to_vec(), "damaged: it ends too early"),
        ("without its end", whole[..whole.len() - 1].to_vec(), "damaged: it ends too early"),
        ("flipped", flipped, "damaged: "),
        ("older", older, "it has version 0, this is version 1"),
        ("foreign", b"# a list of things to do\n".to_vec(), "it is not a dsync index"),
        ("edited", text, "damaged: "),
        ("of others", fs::read(&other).expect("the index"), "it belongs to other directories"),
    ];
    for (what, bytes, why) in cases {
        fs::write(&pair.index, &bytes).expect("the index");
        change_unseen(&pair.from.join("b"), what.as_bytes());
        pair.write("a", what.as_bytes());
        let (counts, told) = pair.run(Topology::Local, &sums());
        assert_eq!(counts.failures, 0);
        let notice = told.iter().find(|line| line.starts_with("notice")).expect(what);
        assert!(notice.contains("is not used, because") && notice.contains(why), "{notice}");
        assert_same(&pair.from, &pair.to, what);
        let (_, told) = pair.run(Topology::Local, &sums());
        assert_eq!(told, [""; 0], "{what}: it was written anew");
    }
}

#[test]
fn a_dry_run_and_a_run_that_fails_leave_the_index_as_it_is() {
    let pair = grown("kept");
    pair.run(Topology::Local, &plain());
    pair.run(Topology::Local, &sums());
    let whole = fs::read(&pair.index).expect("the index");
    pair.write("new", b"new");
    pair.run(Topology::Local, &Options { dry_run: true, ..sums() });
    assert!(fs::read(&pair.index).expect("the index") == whole);
    let index = Index::open(&pair.index, pair.places(), false, Arc::new(ManualClock::at(0)));
    let index = index.expect("an index");
    let (near, far) = run::pair().expect("sockets");
    drop(far);
    let ends = (pair.from.as_path(), pair.to.as_os_str().as_bytes());
    let (none, report) = (Calling::none(), notes().0);
    run::start_with(near, Role::SOURCE, ends, &sums(), (&none, &report), with(&index))
        .expect_err("nobody is there");
    assert!(fs::read(&pair.index).expect("the index") == whole);
    drop(index);
    let left: Vec<_> = fs::read_dir(pair.index.parent().expect("its folder"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[test]
fn changes_of_others_at_the_destination_are_reported() {
    for way in [Topology::Local, Topology::Pull] {
        let pair = grown("others");
        pair.run(way, &plain());
        // At the destination only, at both, at the source only, and one that will be deleted.
        fs::write(pair.to.join("a"), b"other").expect("a file");
        fs::write(pair.to.join("b"), b"other").expect("a file");
        pair.write("b", b"mine");
        pair.write("dir/c", b"mine");
        fs::remove_file(pair.from.join("dir/d")).expect("a file");
        fs::write(pair.to.join("dir/d"), b"other").expect("a file");
        let notices = |told: Vec<String>| -> Vec<String> {
            told.into_iter().filter(|line| line.starts_with("notice")).collect()
        };
        let expected = [
            "notice a it was changed at the destination since the last run",
            "notice b it was changed on both sides since the last run",
            "notice dir/d it was changed at the destination since the last run",
        ];
        let (_, told) = pair.run(way, &Options { dry_run: true, ..plain() });
        assert_eq!(notices(told), expected, "{way:?}");
        let (_, told) = pair.run(way, &plain());
        assert_eq!(notices(told), expected, "{way:?}");
        assert_same(&pair.from, &pair.to, "others");
    }
}
