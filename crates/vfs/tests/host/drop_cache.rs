//! Files of a share out of the page cache: on the disk before, out of memory after, the same bytes
//! when they are read again; nothing outside of the share is touched.

use std::io::Read;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::memory::cached_pages;
use vfs::attr::SetAttr;
use vfs::cache_drop::CacheDrop;
use vfs::conformance::{cx, root};
use vfs::fs::{Context, CreateHow, FileSystem, Stable};
use vfs::handle::Handle;
use vfs::host::{HostFs, sys};
use vfs::status::Status;

use super::{Scratch, disk};

const MIB: usize = 1 << 20;
/// `TMPFS_MAGIC` of linux/magic.h.
const TMPFS: u64 = 0x0102_1994;

/// A share on a disk of which the kernel counts the pages; `None` without one.
fn share(name: &str) -> Option<(Scratch, Arc<HostFs>)> {
    let scratch = Scratch::new(&disk(), name);
    let top = std::fs::File::open(scratch.share()).expect("a directory");
    let is_memory = sys::statfs(top.as_fd()).expect("known").f_type as u64 == TMPFS;
    std::fs::write(scratch.0.join("probe"), "x").expect("written");
    let probe = std::fs::File::open(scratch.0.join("probe")).expect("there");
    let pages = cached_pages(probe.as_fd(), 0, 0);
    if is_memory || !pages.is_ok_and(|pages| pages.resident > 0) {
        println!("SKIP {name}: no disk here, or a kernel that does not count pages (cachestat)");
        return None;
    }
    let fs = scratch.open(true);
    Some((scratch, fs))
}

fn create(fs: &dyn FileSystem, name: &str) -> Handle {
    let how = CreateHow::Guarded(SetAttr { mode: Some(0o644), ..SetAttr::default() });
    fs.create(cx(&root()), &fs.root(), name.as_bytes(), how).expect("made").value.handle
}

fn bytes(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|n| ((n / 7 + seed) % 251) as u8).collect()
}

fn write(fs: &dyn FileSystem, file: &Handle, data: &[u8]) {
    for (n, piece) in data.chunks(MIB).enumerate() {
        let at = (n * MIB) as u64;
        fs.write(cx(&root()), file, at, piece, Stable::Unstable).expect("written");
    }
}

fn read(fs: &dyn FileSystem, file: &Handle, len: usize) -> Vec<u8> {
    let mut data = vec![0; len];
    for (n, piece) in data.chunks_mut(MIB).enumerate() {
        fs.read(cx(&root()), file, (n * MIB) as u64, piece).expect("read");
    }
    data
}

fn drop_all(fs: &HostFs) -> CacheDrop {
    let (found, whole) = fs.drop_cache(Path::new(""), &mut |_| true).expect("the share");
    assert!(whole);
    found
}

/// What a connection sends of a file, from its mapping.
fn mapped(fs: &dyn FileSystem, file: &Handle, at: u64, len: usize) -> Option<Vec<u8>> {
    let cred = root();
    let extent = fs.extent(Context { cred: &cred, may_block: false }, file, at, len)?;
    let (from, mut to) = UnixStream::pair().expect("a pair");
    let (address, len) = extent.data.raw();
    let reader = std::thread::spawn(move || {
        let mut got = Vec::new();
        to.read_to_end(&mut got).map(|_| got)
    });
    // SAFETY: the kernel reads from the mapping, which `extent` keeps.
    let sent = unsafe { libc::send(from.as_raw_fd(), address.cast(), len, libc::MSG_NOSIGNAL) };
    drop(from);
    let got = reader.join().expect("ends").expect("read");
    assert_eq!(got.len(), usize::try_from(sent).expect("sent"));
    Some(got)
}

#[test]
fn what_is_dropped_was_written_back_and_is_read_again() {
    let Some((_scratch, fs)) = share("drop-cache") else { return };
    let file = create(&*fs, "file");
    let data = bytes(1, 4 * MIB);
    write(&*fs, &file, &data);
    assert_eq!(fs.counts().dirty, 1, "unstable writes wait");
    read(&*fs, &file, data.len());
    let sent = [0, 1].map(|_| mapped(&*fs, &file, 100, MIB));
    assert!(sent[1].is_some(), "the second use is from a mapping");

    let found = drop_all(&fs);
    assert_eq!((found.files, found.bytes), (1, 4 * MIB as u64), "{found:?}");
    assert_eq!(found.before, 4 * MIB as u64, "{found:?}");
    assert_eq!((found.after, found.kept, found.failed), (0, 0, 0), "{found:?}");
    assert_eq!(fs.counts().dirty, 0, "it is on the disk");
    assert!(read(&*fs, &file, data.len()) == data, "the same bytes");
}

#[test]
fn a_mapping_that_is_being_sent_from_is_reported_as_kept() {
    let Some((_scratch, fs)) = share("drop-sending") else { return };
    let file = create(&*fs, "file");
    write(&*fs, &file, &bytes(2, 2 * MIB));
    let cred = root();
    let nowait = Context { cred: &cred, may_block: false };
    read(&*fs, &file, MIB);
    let slices = [0, 1].map(|_| fs.extent(nowait, &file, 0, MIB));
    // A page of the mapping that is in use: the kernel maps it when it is sent.
    mapped(&*fs, &file, 0, MIB).expect("from the mapping");
    let found = drop_all(&fs);
    assert_eq!((found.kept, found.sending), (1, 1), "{found:?}");
    assert!(found.after > 0, "{found:?}");
    drop(slices);
    let found = drop_all(&fs);
    assert_eq!((found.after, found.kept, found.sending), (0, 0, 0), "{found:?}");
}

#[test]
fn reads_and_writes_continue_meanwhile() {
    const ROUNDS: usize = 60;
    let Some((_scratch, fs)) = share("drop-busy") else { return };
    let (still, changing) = (create(&*fs, "still"), create(&*fs, "changing"));
    let data = bytes(3, 2 * MIB);
    write(&*fs, &still, &data);
    let over = AtomicBool::new(false);
    let sent = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut sent = 0;
            while !over.load(Ordering::Relaxed) {
                assert!(read(&*fs, &still, data.len()) == data, "read while it is dropped");
                let Some(got) = mapped(&*fs, &still, 4_096, MIB) else { continue };
                assert!(got == data[4_096..4_096 + MIB], "sent while it is dropped");
                sent += 1;
            }
            sent
        });
        for round in 0..ROUNDS {
            // Each is acknowledged and unstable; the drop may meet it at any point.
            let data = bytes(round, MIB + 5);
            std::thread::scope(|scope| {
                scope.spawn(|| write(&*fs, &changing, &data));
                assert_eq!(drop_all(&fs).failed, 0);
            });
            drop_all(&fs);
            assert!(read(&*fs, &changing, data.len()) == data, "round {round}");
        }
        over.store(true, Ordering::Relaxed);
        reader.join().expect("no fault")
    });
    println!("{sent} times from a mapping");
    assert!(sent > 0);
}

#[test]
fn what_is_not_of_the_share_stays_in_memory() {
    let Some((scratch, fs)) = share("drop-outside") else { return };
    let outside = scratch.0.join("outside");
    std::fs::create_dir(&outside).expect("made");
    std::fs::write(outside.join("file"), bytes(4, MIB)).expect("written");
    std::os::unix::fs::symlink(&outside, scratch.share().join("dir")).expect("made");
    std::os::unix::fs::symlink(outside.join("file"), scratch.share().join("link")).expect("made");
    let fifo = std::ffi::CString::new(scratch.share().join("fifo").as_os_str().as_encoded_bytes());
    // SAFETY: the path ends with NUL.
    assert_eq!(unsafe { libc::mkfifo(fifo.expect("a path").as_ptr(), 0o600) }, 0);
    std::fs::create_dir(scratch.share().join("a")).expect("made");
    std::fs::create_dir(scratch.share().join("b")).expect("made");
    for name in ["a/one", "b/two"] {
        std::fs::write(scratch.share().join(name), bytes(5, MIB)).expect("written");
    }
    let resident = |path: &Path| {
        let file = std::fs::File::open(path).expect("there");
        cached_pages(file.as_fd(), 0, 0).expect("counted").resident
    };
    let (found, whole) = fs.drop_cache(Path::new("a"), &mut |_| true).expect("a directory");
    assert_eq!((found.files, found.after, whole), (1, 0, true), "{found:?}");
    assert!(resident(&scratch.share().join("b/two")) > 0, "only below a");
    assert_eq!(drop_all(&fs).files, 2, "neither by a link nor the pipe");
    assert!(resident(&outside.join("file")) > 0, "outside of the share");
    for path in ["dir", "../outside", "none", "link"] {
        let refused = fs.drop_cache(Path::new(path), &mut |_| true);
        assert!(refused.is_err(), "{path}: {refused:?}");
    }
    assert_eq!(fs.drop_cache(Path::new("../outside"), &mut |_| true).err(), Some(Status::Invalid));
}

#[test]
fn it_stops_when_it_is_not_to_continue() {
    let Some((scratch, fs)) = share("drop-stop") else { return };
    for n in 0..20 {
        std::fs::write(scratch.share().join(format!("f{n}")), "x").expect("written");
    }
    let stop = |found: &CacheDrop| found.files < 5;
    let (found, whole) = fs.drop_cache(Path::new(""), &mut |found| stop(found)).expect("the share");
    assert_eq!((found.files, whole), (5, false));
}
