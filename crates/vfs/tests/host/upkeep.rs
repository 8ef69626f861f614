//! Automatic upkeep of the back end: descriptors, files removed outside the server, names for
//! statistics, the order of flushes.

use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::limits::{DIR_STREAMS_MAX, DIRTY_NODES_MAX};
use vfs::attr::{FileType, SetAttr};
use vfs::conformance::{cx, root};
use vfs::cred::Cred;
use vfs::fs::{Context, CreateHow, Durable, Extent, FileName, FileSystem, Flush, Special, Stable};
use vfs::handle::Handle;
use vfs::host::{HostFs, HostOptions};
use vfs::locks::FileKey;
use vfs::status::Status;

use super::{Scratch, disk, memory};

/// Files made until one gets the number of the one before it: ext4 assigns it at once while no
/// other process makes files.
const NUMBERS_TRIED: usize = 1_000;

fn mode(mode: u32) -> SetAttr {
    SetAttr { mode: Some(mode), ..SetAttr::default() }
}

fn create(fs: &dyn FileSystem, dir: &Handle, name: &str) -> Handle {
    let how = CreateHow::Guarded(mode(0o644));
    fs.create(cx(&root()), dir, name.as_bytes(), how).expect("made").value.handle
}

fn mkdir(fs: &dyn FileSystem, dir: &Handle, name: &str) -> Handle {
    fs.mkdir(cx(&root()), dir, name.as_bytes(), &mode(0o755)).expect("made").value.handle
}

#[test]
fn space_of_files_removed_behind_our_back_comes_back() {
    let scratch = Scratch::new(&memory(), "sweep");
    let fs = scratch.open(true);
    // Counted before, not after: where the process is short of descriptors, because other tests of
    // it have many, some of the hundred have gone again by the time the last is made.
    let without = fs.counts().nodes;
    let files: Vec<_> = (0..100).map(|n| create(&*fs, &fs.root(), &format!("f{n}"))).collect();
    for n in 0..100 {
        std::fs::remove_file(scratch.share().join(format!("f{n}"))).expect("there");
    }
    // No call requests it: the thread comes to each part of the table in turn.
    let end = Instant::now() + Duration::from_secs(120);
    while fs.counts().nodes > without {
        assert!(Instant::now() < end, "files removed behind our back are still held");
        std::thread::yield_now();
        std::thread::park_timeout(Duration::from_millis(20));
    }
    assert!(fs.getattr(cx(&root()), &files[0]).is_err());
}

#[test]
fn idle_descriptors_are_closed_and_had_again() {
    let scratch = Scratch::new(&disk(), "idle");
    let fs = scratch.open(true);
    let file = create(&*fs, &fs.root(), "file");
    assert_eq!(fs.counts().open_files, 1, "one serves for reading and writing");
    fs.sweep();
    assert_eq!(fs.counts().open_files, 1, "it was used since the last time");
    fs.sweep();
    assert_eq!(fs.counts().open_files, 0);
    let wrote = fs.write(cx(&root()), &file, 0, b"again", Stable::Unstable);
    assert_eq!(wrote.expect("written").value, 5);
}

#[test]
fn few_descriptors_serve_many_files() {
    let scratch = Scratch::new(&disk(), "few");
    let options = HostOptions { descriptors: Some(100), ..scratch.options(true) };
    let fs = HostFs::open(&scratch.share(), options).expect("can be served");
    let files: Vec<_> = (0..2_000).map(|n| create(&*fs, &fs.root(), &format!("f{n}"))).collect();
    let me = root();
    for _ in 0..2 {
        for (n, file) in files.iter().enumerate() {
            let data = n.to_le_bytes();
            fs.write(cx(&me), file, 0, &data, Stable::DataSync).expect("written");
            let mut back = [0; 8];
            fs.read(cx(&me), file, 0, &mut back).expect("read");
            assert_eq!(back, data);
        }
    }
    let counts = fs.counts();
    assert!(counts.nodes + counts.open_files <= 200, "{counts:?}");
    assert!(counts.nodes_forgotten > 1_000 && counts.cold_found > 1_000, "{counts:?}");
}

#[test]
fn writes_beyond_the_limit_of_unflushed_files_are_flushed() {
    let scratch = Scratch::new(&disk(), "unflushed");
    let fs = HostFs::open(&scratch.share(), scratch.options(true)).expect("can be served");
    let (me, make) = (root(), |n: usize| create(&*fs, &fs.root(), &format!("f{n}")));
    let write = |file: &Handle| {
        let wrote = fs.write(cx(&me), file, 0, b"x", Stable::Unstable).expect("written");
        wrote.flush.is_empty()
    };
    let files: Vec<_> = (0..DIRTY_NODES_MAX).map(make).collect();
    assert!(files.iter().all(write));
    assert_eq!(fs.counts().dirty, DIRTY_NODES_MAX as u64);
    assert!(!write(&make(DIRTY_NODES_MAX)), "before its reply");
    assert!(write(&files[0]), "it is one of them already");
    assert_eq!(fs.counts().dirty, DIRTY_NODES_MAX as u64);
}

/// The limit is of files that are there and unflushed, not of all that ever were.
#[test]
fn files_that_are_gone_or_flushed_with_everything_are_not_unflushed() {
    let scratch = Scratch::new(&disk(), "unflushed-gone");
    let fs = HostFs::open(&scratch.share(), scratch.options(true)).expect("can be served");
    let (me, top) = (root(), fs.root());
    let write = |file: &Handle| {
        fs.write(cx(&me), file, 0, b"x", Stable::Unstable).expect("written");
    };
    let made = |name: &str| {
        let file = create(&*fs, &top, name);
        write(&file);
        file
    };
    // The thread that sweeps may have a file in its hands just then.
    let comes_to = |count: u64, why: &str| {
        let end = Instant::now() + Duration::from_secs(60);
        while fs.counts().dirty != count {
            assert!(Instant::now() < end, "{why}: {}", fs.counts().dirty);
            std::thread::yield_now();
        }
    };
    made("removed");
    assert_eq!(fs.counts().dirty, 1);
    fs.remove(cx(&me), &top, b"removed").expect("removed");
    comes_to(0, "removed");
    made("replaced");
    create(&*fs, &top, "other");
    fs.rename(cx(&me), (&top, b"other"), (&top, b"replaced")).expect("renamed");
    comes_to(0, "replaced");
    let kept = fs.retain(cx(&me), &made("retained")).expect("retained");
    fs.remove(cx(&me), &top, b"retained").expect("removed");
    assert_eq!(fs.counts().dirty, 1, "it is open");
    drop(kept);
    comes_to(0, "released");
    let (first, second) = (made("first"), made("second"));
    fs.whole().expect("syncfs(2)").wait().expect("flushed");
    assert_eq!(fs.counts().dirty, 0, "flushed with everything");
    assert!(fs.commit(cx(&me), &first).expect("there").flush.is_empty(), "nothing is left");
    write(&second);
    assert_eq!(fs.counts().dirty, 1, "written again");
    fs.renew();
    comes_to(0, "let go");
}

/// Descriptors of this process by which directories are read: those of files that are only known
/// have O_PATH.
fn directories_being_read() -> usize {
    let list = std::fs::read_dir("/proc/self/fdinfo").expect("descriptors").flatten();
    let flags = list.filter_map(|one| {
        let info = std::fs::read_to_string(one.path()).ok()?;
        let line = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
        i32::from_str_radix(line.trim(), 8).ok()
    });
    let is_read = |flags: &i32| flags & libc::O_DIRECTORY != 0 && flags & libc::O_PATH == 0;
    flags.filter(is_read).count()
}

#[test]
fn listings_that_stop_hold_few_descriptors() {
    let scratch = Scratch::new(&memory(), "parked");
    let fs = scratch.open(true);
    let dirs: Vec<_> = (0..DIR_STREAMS_MAX + 300)
        .map(|n| {
            let dir = mkdir(&*fs, &fs.root(), &format!("d{n}"));
            for name in ["a", "b"] {
                create(&*fs, &dir, name);
            }
            dir
        })
        .collect();
    let one = |dir: &Handle, from: u64| {
        let mut names = Vec::new();
        let mut each = |entry: vfs::fs::DirEntry<'_>| {
            let takes = names.is_empty();
            names.extend(takes.then(|| (entry.name.to_vec(), entry.cookie)));
            takes
        };
        fs.list(cx(&root()), dir, from, [0; 8], false, &mut each).expect("listed");
        names.pop()
    };
    let begun: Vec<_> = dirs.iter().map(|dir| one(dir, 0).expect("a name")).collect();
    let most = directories_being_read();
    assert!(most <= DIR_STREAMS_MAX + 8, "{most} directories are being read");
    // All continue where they were, those that seek among them.
    for (dir, (first, cookie)) in dirs.iter().zip(begun) {
        let (mut names, mut from) = (vec![first], cookie);
        while let Some((name, cookie)) = one(dir, from) {
            names.push(name);
            from = cookie;
        }
        names.sort();
        assert_eq!(names, [&b"."[..], b"..", b"a", b"b"]);
    }
}

#[test]
fn names_are_seen_to_come_and_go() {
    for base in [disk(), memory()] {
        let scratch = Scratch::new(&base, "recent");
        let fs = scratch.open(true);
        let me = root();
        let top = fs.root();
        let look = || fs.lookup(cx(&me), &top, b"name").map(|found| found.0.handle).ok();
        let share = scratch.share();
        for round in 0..200 {
            assert_eq!(look(), None, "round {round}");
            std::fs::write(share.join("name"), "x").expect("written");
            let first = look().expect("there");
            assert_eq!(look(), Some(first));
            std::fs::write(share.join("other"), "y").expect("written");
            std::fs::rename(share.join("other"), share.join("name")).expect("renamed");
            let second = look().expect("there");
            assert_ne!(first, second, "round {round}: another file has the name now");
            std::fs::remove_file(share.join("name")).expect("there");
        }
        // Left alone for a while, it is found without a walk, and still seen to go.
        let file = create(&*fs, &top, "name");
        let end = Instant::now() + Duration::from_millis(200);
        while Instant::now() < end {
            assert_eq!(look(), Some(file));
        }
        std::fs::rename(share.join("name"), share.join("gone")).expect("renamed");
        assert_eq!(look(), None);
    }
}

#[test]
fn every_file_has_something_to_be_called() {
    for kernel_handles in [true, false] {
        let scratch = Scratch::new(&disk(), "called");
        let fs = scratch.open(kernel_handles);
        let dir = mkdir(&*fs, &fs.root(), "dir");
        let file = create(&*fs, &dir, "file");
        let id = fs.file_id(&file);
        let named = FileName::Path(b"dir/file".to_vec());
        assert_eq!(fs.describe(id), Some(named.clone()));
        let ino = fs.getattr(cx(&root()), &file).expect("there").fileid;
        drop(fs);
        let fs = scratch.open(kernel_handles);
        assert_eq!(fs.describe(id), None, "not met yet");
        fs.getattr(cx(&root()), &file).expect("found cold");
        let now = fs.describe(id);
        assert!(now == Some(named.clone()) || now == Some(FileName::Inode(ino)), "{now:?}");
        fs.lookup(cx(&root()), &fs.root(), b"dir").expect("there");
        fs.lookup(cx(&root()), &dir, b"file").expect("there");
        assert_eq!(fs.describe(id), Some(named));
    }
}

/// Keys of the targets of a flush, in order.
fn keys(flush: &Flush) -> Vec<u64> {
    flush.targets.iter().map(|target: &Arc<dyn Durable>| target.key()).collect()
}

#[test]
fn a_rename_is_durable_where_it_goes_before_it_is_gone_where_it_was() {
    let scratch = Scratch::new(&disk(), "order");
    let fs = scratch.open(true);
    let me = root();
    let (from, to) = (mkdir(&*fs, &fs.root(), "from"), mkdir(&*fs, &fs.root(), "to"));
    let key_of = |dir: &Handle| {
        let made = fs.symlink(cx(&me), dir, b"probe", b"x", &SetAttr::default()).expect("made");
        keys(&made.flush)[0]
    };
    let (from_key, to_key) = (key_of(&from), key_of(&to));
    create(&*fs, &from, "file");
    let moved = fs.rename(cx(&me), (&from, b"file"), (&to, b"file")).expect("renamed");
    let order = keys(&moved.flush);
    let at = |key| order.iter().position(|k| *k == key).expect("is flushed");
    assert!(at(to_key) < at(from_key), "between the two the file would have no name at all");
}

#[test]
fn what_has_no_descriptor_is_flushed_with_everything() {
    // SAFETY: it only reads the effective user ID.
    if unsafe { libc::geteuid() } != 0 {
        println!("SKIP special: only root may give files away");
        return;
    }
    let scratch = Scratch::new(&disk(), "special");
    let fs = scratch.open(true);
    let (me, top) = (root(), fs.root());
    let plain = fs.symlink(cx(&me), &top, b"link", b"x", &SetAttr::default()).expect("made");
    assert_eq!(plain.flush.targets.len(), 1, "made in one transaction with its name");
    let given = SetAttr { uid: Some(1000), ..SetAttr::default() };
    let other = fs.symlink(cx(&me), &top, b"given", b"x", &given).expect("made");
    assert_eq!(other.flush.targets.len(), 2, "the owner was changed after the name was made");
    let fifo = Special { kind: FileType::Fifo, rdev: (0, 0) };
    let fifo = fs.mknod(cx(&me), &top, b"fifo", fifo, &mode(0o600)).expect("made").value.handle;
    for handle in [plain.value.handle, fifo] {
        let set = SetAttr { uid: Some(1000), ..SetAttr::default() };
        let changed = fs.setattr(cx(&me), &handle, &set, None).expect("changed");
        assert_eq!(changed.flush.targets.len(), 1);
        changed.flush.wait().expect("flushed");
    }
}

#[test]
fn a_file_that_already_exists_is_durable_before_that_is_reported() {
    let scratch = Scratch::new(&disk(), "found-made");
    let fs = scratch.open(true);
    let (me, top) = (root(), fs.root());
    let how = CreateHow::Unchecked(mode(0o644));
    let first = fs.create(cx(&me), &top, b"file", how).expect("made");
    let second = fs.create(cx(&me), &top, b"file", how).expect("found");
    assert_eq!(keys(&second.flush), keys(&first.flush), "the first may still be waiting");
}

/// Thousands of handles of removed files, without kernel handles: one search is enough for all.
#[test]
fn a_flood_of_stale_handles_is_cheap() {
    let scratch = Scratch::new(&disk(), "flood");
    let fs = scratch.open(false);
    let dir = mkdir(&*fs, &fs.root(), "dir");
    let files: Vec<_> = (0..500).map(|n| create(&*fs, &dir, &format!("f{n}"))).collect();
    for n in 0..2_000 {
        std::fs::write(scratch.share().join(format!("more-{n}")), "").expect("written");
    }
    drop(fs);
    for n in 0..500 {
        std::fs::remove_file(scratch.share().join(format!("dir/f{n}"))).expect("there");
    }
    let fs = scratch.open(false);
    let begin = Instant::now();
    let stale = files.iter().filter(|file| fs.getattr(cx(&root()), file).is_err()).count();
    assert_eq!(stale, files.len());
    let most = begin.elapsed().as_secs() / 2 + 1;
    assert!(fs.counts().searches <= most, "{:?}", fs.counts());
}

/// What is in the mapping, as a socket gets it.
fn sent(extent: &Extent) -> Vec<u8> {
    let (from, mut to) = UnixStream::pair().expect("a pair");
    let (at, len) = extent.data.raw();
    let at = at as usize;
    let writer = std::thread::spawn(move || {
        let mut done = 0;
        while done < len {
            // SAFETY: the kernel reads from the mapping, which `extent` keeps until the join.
            let n = unsafe {
                libc::send(
                    from.as_raw_fd(),
                    (at + done) as *const _,
                    len - done,
                    libc::MSG_NOSIGNAL,
                )
            };
            done += usize::try_from(n).expect("sent");
        }
    });
    let mut got = Vec::new();
    to.read_to_end(&mut got).expect("received");
    writer.join().expect("ended");
    got
}

/// In memory and on a disk: what is sent from a file is what a read returns, to callers with
/// access.
#[test]
fn a_large_read_is_sent_from_where_it_is() {
    for medium in [memory(), disk()] {
        let scratch = Scratch::new(&medium, "extent");
        let fs = scratch.open(true);
        let file = create(&*fs, &fs.root(), "file");
        let data: Vec<u8> = (0..300_000_u32).map(|n| (n / 3) as u8).collect();
        fs.write(cx(&root()), &file, 0, &data, Stable::FileSync).expect("written");
        let me = root();
        let inline = Context { may_block: false, ..cx(&me) };
        assert!(fs.extent(inline, &file, 0, 100_000).is_none(), "the first use does not map");
        let Some(extent) = fs.extent(inline, &file, 100_000, 100_000) else {
            println!("SKIP extents: this kernel does not tell what is in its page cache");
            return;
        };
        assert!(!extent.eof);
        assert_eq!(sent(&extent), data[100_000..200_000]);
        let extent = fs.extent(inline, &file, 200_000, 1 << 20).expect("mapped");
        assert!(extent.eof && extent.count == 100_000 && extent.attr.size == 300_000);
        assert_eq!(sent(&extent), data[200_000..]);

        // A hole is left to READ, which need not fill it.
        let longer = SetAttr { size: Some(1 << 20), ..SetAttr::default() };
        fs.setattr(cx(&me), &file, &longer, None).expect("longer");
        fs.read(cx(&me), &file, 0, &mut [0; 10]).expect("opened again");
        assert!(fs.extent(inline, &file, 400_000, 100_000).is_none());
        assert!(fs.extent(inline, &file, 2 << 20, 100_000).is_none(), "behind the end");
    }
}

/// On memory and on a disk: the kernel is given what reading gives, brought into memory if it may
/// take its time.
#[test]
fn a_stretch_of_a_file_is_where_reading_finds_it() {
    for medium in [memory(), disk()] {
        let scratch = Scratch::new(&medium, "stretch");
        let fs = scratch.open(true);
        let file = create(&*fs, &fs.root(), "file");
        let data: Vec<u8> = (0..300_000_u32).map(|n| (n / 3) as u8).collect();
        fs.write(cx(&root()), &file, 0, &data, Stable::FileSync).expect("written");
        let me = root();
        let inline = Context { may_block: false, ..cx(&me) };
        let part = match fs.stretch(cx(&me), &file, 100_000, 100_000) {
            Err(Status::NotSupported) => {
                println!("SKIP stretches: this kernel does not tell what is in its page cache");
                return;
            }
            part => part.expect("sent so"),
        };
        assert_eq!((part.offset, part.count, part.eof), (100_000, 100_000, false));
        let open = std::fs::File::from(part.file.try_clone().expect("a descriptor"));
        let mut got = vec![0; part.count];
        open.read_exact_at(&mut got, part.offset).expect("read");
        assert!(got == data[100_000..200_000]);
        let end = fs.stretch(inline, &file, 200_000, 1 << 20).expect("in memory now");
        assert_eq!((end.count, end.eof), (100_000, true));
        let behind = fs.stretch(inline, &file, 300_000, 1 << 20).expect("nothing to wait for");
        assert_eq!((behind.count, behind.eof), (0, true));
        assert_eq!(fs.stretch(inline, &file, 1 << 63, 1).err(), Some(Status::Invalid));
        assert_eq!(fs.stretch(cx(&me), &fs.root(), 0, 1).err(), Some(Status::IsDirectory));

        // A hole is sent as zeros, after the disk's file system has had its time.
        let longer = SetAttr { size: Some(1 << 20), ..SetAttr::default() };
        fs.setattr(cx(&me), &file, &longer, None).expect("longer");
        let hole = fs.stretch(cx(&me), &file, 400_000, 100_000).expect("brought into memory");
        assert_eq!((hole.count, hole.eof), (100_000, false));
    }
}

/// As root: rights are asked for each time.
#[test]
fn no_user_is_sent_a_file_without_read_permission() {
    let scratch = Scratch::new(&memory(), "extent-rights");
    let fs = scratch.open(true);
    if !fs.privileged() {
        return println!("SKIP extent-rights: needs root");
    }
    let file = create(&*fs, &fs.root(), "file");
    let me = root();
    fs.write(cx(&me), &file, 0, &[1; 200_000], Stable::Unstable).expect("written");
    let other = Cred { uid: 1234, gid: 1234, groups: vec![] };
    let theirs = Context { cred: &other, may_block: false };
    fs.read(cx(&other), &file, 0, &mut [0; 10]).expect("it is for all to read");
    drop(fs.extent(theirs, &file, 0, 100_000));
    assert!(fs.extent(theirs, &file, 0, 100_000).is_some());
    assert!(fs.stretch(theirs, &file, 0, 100_000).is_ok());
    fs.setattr(cx(&me), &file, &mode(0o600), None).expect("made private");
    assert!(fs.extent(theirs, &file, 0, 100_000).is_none());
    assert_eq!(fs.stretch(cx(&other), &file, 0, 100_000).err(), Some(Status::Access));
    fs.read(cx(&other), &file, 0, &mut [0; 10]).expect_err("not any more");
}

/// Removes and makes a file until the new one has the old one's inode number; gives both handles
/// and both keys. `None` on a file system that does not use numbers again.
fn same_number(fs: &HostFs) -> Option<[(Handle, FileKey); 2]> {
    let me = root();
    let make = || {
        let file = create(fs, &fs.root(), "again");
        let attr = fs.getattr(cx(&me), &file).expect("attributes");
        assert_eq!(fs.file_key(cx(&me), &file), Ok(FileKey::from(&attr)));
        (file, FileKey::from(&attr))
    };
    let mut old = make();
    for _ in 0..NUMBERS_TRIED {
        assert!(fs.remove(cx(&me), &fs.root(), b"again").is_ok());
        let new = make();
        if new.1.fileid == old.1.fileid {
            return Some([old, new]);
        }
        old = new;
    }
    None
}

/// What is held on a removed file must not be met by another that gets its inode number.
#[test]
fn a_new_file_with_an_old_number_is_another_file_to_locks() {
    for (name, kernel_handles) in [("number-kernel", true), ("number-birth", false)] {
        let scratch = Scratch::new(&disk(), name);
        let fs = scratch.open(kernel_handles);
        let Some([(old, gone), (new, there)]) = same_number(&fs) else {
            println!("SKIP {name}: this file system does not use inode numbers again at once");
            continue;
        };
        assert_ne!(old, new);
        assert_ne!(gone, there, "{name}");
        assert!(matches!(fs.describe_key(there), Some(FileName::Path(_))));
        assert!(matches!(fs.describe_key(gone), Some(FileName::Inode(_))), "{name}: it is gone");
    }
}
