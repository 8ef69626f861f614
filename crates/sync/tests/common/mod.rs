//! Random trees, random edits, and a comparer that knows nothing of how dsync looks at files.

#![allow(dead_code, reason = "each test uses its part")]

pub mod broken;

use std::collections::{BTreeMap, HashMap};
use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use base::random::{Random, SeededRandom};
use sync::events::{Event, Report};
use sync::run::{answer, pair, start};
use sync::streams::connect::Calling;
use sync::{Counts, Note, Options, Role};
use wire::dsync::{Bytes, Kind, Meta, Time};
use wire::xdr::Seq;

/// The metadata of an entry that a simulated side sends.
pub fn meta(kind: Kind, size: u64) -> Meta {
    Meta {
        kind,
        mode: 0o755,
        uid: 0,
        gid: 0,
        size,
        mtime: Time { seconds: 1, nanoseconds: 1 },
        major: 0,
        minor: 0,
        target: Bytes(Vec::new()),
        link: None,
        xattrs: Seq::default(),
    }
}

/// A folder that goes with the test, unless that fails.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("plimsoll-test-sync-{name}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _left = fs::remove_dir_all(&self.0);
        }
    }
}

/// What a run does if nothing is asked.
pub fn plain() -> Options {
    Options {
        delete: true,
        checksum: false,
        dry_run: false,
        owners: true,
        names: true,
        xattrs: true,
        pack: true,
        devices: true,
        set_id: true,
        in_place: false,
        bandwidth: 0,
        rules: Seq(Vec::new()),
    }
}

pub fn is_root() -> bool {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Keeps all notes.
pub fn notes() -> (Report, Arc<Mutex<Vec<Note>>>) {
    let kept: Arc<Mutex<Vec<Note>>> = Arc::default();
    let keeps = Arc::clone(&kept);
    let report: Report = Arc::new(move |event| {
        if let Event::Note(note) = event {
            keeps.lock().expect("notes").push(note);
        }
    });
    (report, kept)
}

/// A run between two sides that speak over a link without streams; what it counted.
pub fn pushed(from: &Path, to: &Path, options: &Options) -> Counts {
    let (near, far) = pair().expect("sockets");
    let other = std::thread::spawn(move || answer(far, None));
    let ends = (from, to.as_os_str().as_bytes());
    let done = start(near, Role::SOURCE, ends, options, &Calling::none(), &notes().0);
    other.join().expect("no panic").expect("the other side");
    done.expect("a run")
}

/// The notes as lines, sorted: several threads report them.
pub fn lines(notes: &Mutex<Vec<Note>>) -> Vec<String> {
    let notes = notes.lock().expect("notes");
    let line = |n: &Note| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        format!("{} {} {}", n.about, text(&n.path.0), text(&n.text.0))
    };
    let mut lines: Vec<String> = notes.iter().map(line).collect();
    lines.sort();
    lines
}

fn c(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("no NUL")
}

/// Sets the time of change.
pub fn set_time(path: &Path, seconds: i64, nanoseconds: i64) {
    let time = libc::timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let times = [time, time];
    let path = c(path);
    // SAFETY: the path ends with NUL; there are two times.
    let done = unsafe {
        libc::utimensat(libc::AT_FDCWD, path.as_ptr(), times.as_ptr(), libc::AT_SYMLINK_NOFOLLOW)
    };
    assert_eq!(done, 0, "{path:?}");
}

/// Sets an extended attribute; whether this file system has them.
pub fn set_xattr(path: &Path, name: &str, value: &[u8]) -> bool {
    let (path, name) = (c(path), CString::new(name).expect("no NUL"));
    let (at, length) = (value.as_ptr().cast(), value.len());
    // SAFETY: both strings end with NUL; pointer and length describe `value`.
    unsafe { libc::lsetxattr(path.as_ptr(), name.as_ptr(), at, length, 0) == 0 }
}

/// All extended attributes.
pub fn xattrs(path: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let path = c(path);
    let mut names = vec![0u8; 65_536];
    // SAFETY: the path ends with NUL; pointer and length describe `names`.
    let got = unsafe { libc::llistxattr(path.as_ptr(), names.as_mut_ptr().cast(), names.len()) };
    names.truncate(usize::try_from(got).unwrap_or(0));
    let mut all = BTreeMap::new();
    for name in names.split(|b| *b == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0u8; 65_536];
        let name_c = CString::new(name).expect("no NUL");
        let (at, room) = (value.as_mut_ptr().cast(), value.len());
        // SAFETY: both strings end with NUL; pointer and length describe `value`.
        let got = unsafe { libc::lgetxattr(path.as_ptr(), name_c.as_ptr(), at, room) };
        value.truncate(usize::try_from(got).unwrap_or(0));
        all.insert(name.to_vec(), value);
    }
    all
}

/// The properties of an entry that are visible from outside.
#[derive(Debug, PartialEq, Eq, Clone)]
pub struct Facts {
    mode: u32,
    owner: (u32, u32),
    time: (i64, i64),
    device: u64,
    content: Vec<u8>,
    /// The first path of the same inode.
    same_as: Vec<u8>,
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Facts {
    /// Whether a file has all of its content; other things always have.
    pub fn is_as_whole_as(&self, now: &Self) -> bool {
        let file = |facts: &Self| facts.mode & libc::S_IFMT == libc::S_IFREG;
        !file(self) || !file(now) || self.content == now.content
    }
}

/// All of a tree, by path.
pub fn facts(top: &Path) -> BTreeMap<Vec<u8>, Facts> {
    let mut paths = Vec::new();
    collect(top, top, &mut paths);
    paths.sort();
    let (mut firsts, mut all) = (HashMap::new(), BTreeMap::new());
    for path in paths {
        let full = top.join(OsStr::from_bytes(&path));
        let meta = fs::symlink_metadata(&full).expect("an entry");
        let kind = meta.file_type();
        let link = kind.is_symlink();
        let content = match () {
            () if kind.is_file() => fs::read(&full).expect("a file"),
            () if link => fs::read_link(&full).expect("a link").as_os_str().as_bytes().to_vec(),
            () => Vec::new(),
        };
        let device = kind.is_block_device() || kind.is_char_device();
        let first = firsts.entry((meta.dev(), meta.ino())).or_insert_with(|| path.clone()).clone();
        let facts = Facts {
            mode: meta.mode(),
            owner: (meta.uid(), meta.gid()),
            time: (meta.mtime(), meta.mtime_nsec()),
            device: if device { meta.rdev() } else { 0 },
            content,
            same_as: first,
            xattrs: xattrs(&full),
        };
        all.insert(path, facts);
    }
    all
}

fn collect(top: &Path, at: &Path, into: &mut Vec<Vec<u8>>) {
    let path = at.strip_prefix(top).expect("below the top").as_os_str().as_bytes().to_vec();
    into.push(path);
    if fs::symlink_metadata(at).expect("an entry").is_dir() {
        for entry in fs::read_dir(at).expect("a directory") {
            collect(top, &entry.expect("an entry").path(), into);
        }
    }
}

/// Two trees must be the same.
pub fn assert_same(one: &Path, other: &Path, what: &str) {
    let (one, other) = (facts(one), facts(other));
    let paths: std::collections::BTreeSet<_> = one.keys().chain(other.keys()).collect();
    for path in paths {
        let (a, b) = (one.get(path), other.get(path));
        if a != b {
            let brief = |facts: Option<&Facts>| {
                facts.map(|f| {
                    let mut f = f.clone();
                    let length = f.content.len();
                    f.content.truncate(40);
                    (f, length)
                })
            };
            let path = String::from_utf8_lossy(path);
            panic!("{what}: {path}:\n{:?}\n{:?}", brief(a), brief(b));
        }
    }
}

/// Makes trees and changes them.
pub struct Gardener {
    pub random: SeededRandom,
}

const NAMES: [&[u8]; 14] = [
    b"a",
    b"b",
    b"c",
    b"d.o",
    b"e e",
    b"f",
    b"g'\"",
    b"\xff\xfe",
    b"-n",
    b"line\nend",
    b"*",
    b".h",
    b"z",
    b"\xc3\xa4",
];

impl Gardener {
    pub fn new(seed: u64) -> Self {
        Self { random: SeededRandom::new(seed) }
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.random.below(n)
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    fn name(&mut self) -> &'static OsStr {
        OsStr::from_bytes(NAMES[self.below(NAMES.len() as u64) as usize])
    }

    /// Some entries in a directory.
    pub fn grow(&mut self, dir: &Path, depth: u32) {
        for _ in 0..self.below(7) {
            let path = dir.join(self.name());
            if fs::symlink_metadata(&path).is_err() {
                self.make(&path, depth);
            }
        }
        self.dress(dir);
    }

    fn make(&mut self, path: &Path, depth: u32) {
        match self.below(16) {
            0..=3 if depth > 0 => {
                fs::create_dir(path).expect("a directory");
                self.grow(path, depth - 1);
                return;
            }
            4 => {
                let targets = ["a", "/etc/passwd", "../..", "nowhere", "\u{e4}/b"];
                let target = targets[self.below(5) as usize];
                symlink(target, path).expect("a link");
            }
            5 => self.node(path, libc::S_IFIFO, 0),
            6 => self.node(path, libc::S_IFSOCK, 0),
            7 if is_root() => self.node(path, libc::S_IFCHR, libc::makedev(1, 3)),
            _ => self.fill(path),
        }
        self.dress(path);
    }

    fn node(&mut self, path: &Path, kind: u32, device: u64) {
        let path = c(path);
        // SAFETY: the path ends with NUL.
        assert_eq!(unsafe { libc::mknod(path.as_ptr(), kind | 0o600, device) }, 0);
    }

    /// A file: empty, small, large, with holes.
    fn fill(&mut self, path: &Path) {
        let file = File::create(path).expect("a file");
        let size = match self.below(5) {
            0 => 0,
            1 => self.below(600_000),
            _ => self.below(3_000),
        };
        let mut bytes = vec![0; size as usize];
        self.random.fill(&mut bytes);
        let at = if self.below(4) == 0 { self.below(1 << 20) } else { 0 };
        file.write_all_at(&bytes, at).expect("its content");
        if self.below(4) == 0 {
            file.set_len(at + size + self.below(1 << 18)).expect("a hole");
        }
    }

    /// Random metadata.
    fn dress(&mut self, path: &Path) {
        let meta = fs::symlink_metadata(path).expect("an entry");
        if !meta.is_symlink() {
            if meta.is_file() || meta.is_dir() {
                for name in ["user.one", "user.two"] {
                    if self.below(4) == 0 {
                        let length = self.below(300) as usize;
                        let mut value = vec![0; length];
                        self.random.fill(&mut value);
                        set_xattr(path, name, &value);
                    }
                }
            }
            if is_root() {
                let (uid, gid) = (self.below(3) as u32 * 1000, self.below(3) as u32 * 100);
                std::os::unix::fs::lchown(path, Some(uid), Some(gid)).expect("its owner");
            }
            let bits = self.random.next_u64() as u32 & 0o7777;
            let mode = if is_root() { bits } else { (bits & 0o777) | 0o700 };
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its mode");
            if self.below(8) == 0 && (meta.is_file() || meta.is_dir()) {
                set_xattr(path, "system.posix_acl_access", &acl(self.below(8) as u16));
                if meta.is_dir() {
                    set_xattr(path, "system.posix_acl_default", &acl(self.below(8) as u16));
                }
            }
        }
        self.date(path);
    }

    fn date(&mut self, path: &Path) {
        let seconds = self.below(2_000_000_000) as i64;
        set_time(path, seconds, self.below(1_000_000_000) as i64);
    }

    /// Some changes anywhere in a tree.
    pub fn edit(&mut self, top: &Path) {
        for _ in 0..1 + self.below(8) {
            let mut paths = Vec::new();
            collect(top, top, &mut paths);
            let pick = paths[self.below(paths.len() as u64) as usize].clone();
            let path = top.join(OsStr::from_bytes(&pick));
            let meta = fs::symlink_metadata(&path).expect("an entry");
            match self.below(6) {
                0 if !pick.is_empty() => self.replace(&path, &meta),
                1 if !pick.is_empty() => remove(&path, &meta),
                2 if meta.is_dir() => self.grow(&path, 2),
                3 if meta.is_file() => self.scribble(&path),
                4 if meta.is_file() => self.name_again(top, &path, &paths),
                _ => self.dress(&path),
            }
        }
    }

    fn replace(&mut self, path: &Path, meta: &fs::Metadata) {
        remove(path, meta);
        self.make(path, 2);
    }

    fn scribble(&mut self, path: &Path) {
        let mut bytes = fs::read(path).expect("a file");
        let at = self.below(bytes.len() as u64 + 1) as usize;
        let length = self.below(2_000) as usize;
        let mut new = vec![0; length];
        self.random.fill(&mut new);
        let end = (at + self.below(2_000) as usize).min(bytes.len());
        bytes.splice(at..end, new);
        fs::write(path, bytes).expect("its content");
        self.date(path);
    }

    /// Another name of a file, somewhere.
    fn name_again(&mut self, top: &Path, file: &Path, paths: &[Vec<u8>]) {
        let pick = &paths[self.below(paths.len() as u64) as usize];
        let dir = top.join(OsStr::from_bytes(pick));
        if fs::symlink_metadata(&dir).is_ok_and(|meta| meta.is_dir()) {
            let name = self.name();
            // A name that is taken stays what it is.
            let _taken = fs::hard_link(file, dir.join(name));
        }
    }
}

fn remove(path: &Path, meta: &fs::Metadata) {
    if meta.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
        .expect("taking it away");
}

/// An access control list as the kernel stores it: user 1000 may do what `bits` say.
fn acl(bits: u16) -> Vec<u8> {
    let mut bytes = 2u32.to_le_bytes().to_vec();
    let none = u32::MAX;
    for (tag, perm, id) in
        [(1u16, 7u16, none), (2, bits, 1000), (4, 5, none), (16, 7, none), (32, 4, none)]
    {
        bytes.extend_from_slice(&tag.to_le_bytes());
        bytes.extend_from_slice(&perm.to_le_bytes());
        bytes.extend_from_slice(&id.to_le_bytes());
    }
    bytes
}

/// Makes a node; whether that can be done here.
pub fn make_node(path: &Path, kind: u32, (major, minor): (u32, u32)) -> bool {
    let path = c(path);
    // SAFETY: the path ends with NUL.
    unsafe { libc::mknod(path.as_ptr(), kind | 0o600, libc::makedev(major, minor)) == 0 }
}
