//! Trees of a seed: what is in them, and how they are planted on a back end.

use base::random::{Random, SeededRandom};
use vfs::attr::{FileType, SetAttr};
use vfs::cred::Cred;
use vfs::fs::{Context, CreateHow, FileSystem, Special, Stable};
use vfs::handle::Handle;
use vfs::status::Status;

/// Most entries of a tree.
const ENTRIES_MAX: u64 = 12;
/// Levels of directories.
const DEPTH: usize = 3;
/// Links that are followed one after the other, more than there are in a directory.
const LINKS: usize = 20;

/// Names that are special to some client, or are the longest; a null byte stands for 255 of what
/// follows.
const NAMES: [&[u8]; 30] = [
    b"plain.txt",
    b"CON",
    b"nul.txt",
    b"back\\slash",
    b"a:b*c?d\"e<f>g|h",
    b"end.",
    b"end ",
    b" begin",
    b"...",
    b".hidden",
    b"-la",
    b"~",
    b"%2e%2e",
    b"a&b;c=d#e?f",
    b"'quoted'",
    b"line\nfeed",
    b"carriage\rreturn",
    b"tab\tescape\x1b",
    b"\x01\x1f\x7f",
    b"\xff\xfe",
    b"caf\xc3\xa9",
    b"cafe\xcc\x81",
    b"CAF\xc3\x89",
    b"half \xc3",
    b"\xf0\x9f\x98\x80",
    b"\xed\xa0\xbd\xed\xb8\x80",
    b"p\xef\x80\xa6\xef\x80\xa8q\xef\x80\xa9",
    b"\0x",
    b"\0\xff",
    b"\0\xc3\xa9",
];

/// Where links lead in addition to their siblings.
const TARGETS: [&[u8]; 7] =
    [b"no-such", b"../../../../etc", b"/etc/passwd", b"no/such/way", b".", b"\xff\xfe\\", b"/"];

/// What an entry is.
#[derive(Debug, Clone)]
pub enum Kind {
    File(Vec<u8>),
    Directory(Vec<Entry>),
    Link(Vec<u8>),
    Special(FileType),
}

/// An entry of a directory.
#[derive(Debug, Clone)]
pub struct Entry {
    pub name: Vec<u8>,
    pub kind: Kind,
}

/// A tree.
pub struct Tree {
    pub entries: Vec<Entry>,
}

/// A tree that was planted.
pub struct Planted(Handle);

fn pick<'a>(random: &mut SeededRandom, all: &[&'a [u8]]) -> &'a [u8] {
    all[random.below(all.len() as u64) as usize]
}

/// A name: one of the list, or some random bytes.
fn name(random: &mut SeededRandom) -> Vec<u8> {
    let mut name = match random.below(4) {
        0 => {
            let length = 1 + random.below(20);
            (0..length).map(|_| 1 + random.below(255) as u8).collect()
        }
        _ => match pick(random, &NAMES) {
            [0, unit @ ..] => unit.repeat(255 / unit.len()),
            name => name.to_vec(),
        },
    };
    name.iter_mut().filter(|byte| **byte == b'/').for_each(|byte| *byte = b'\\');
    if matches!(name.as_slice(), b"." | b"..") { b"dots".to_vec() } else { name }
}

/// A name as a line of a listing has it.
pub fn in_a_line(name: &[u8]) -> Vec<u8> {
    name.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b'?' } else { *byte }).collect()
}

/// A name that nothing has: the number is in no other one, in no case.
pub fn another(random: &mut SeededRandom, number: usize) -> Vec<u8> {
    let (mut name, number) = (name(random), format!("#{number}#"));
    name.truncate(255 - number.len());
    [number.as_bytes(), &name].concat()
}

impl Tree {
    /// The tree of a seed.
    pub fn new(seed: u64) -> Self {
        let mut random = SeededRandom::new(seed);
        let mut left = 1 + random.below(ENTRIES_MAX);
        Self { entries: directory(&mut random, &mut left, DEPTH) }
    }

    /// Where the server's own following of a link ends; `None` if that is nowhere.
    pub fn follow<'a>(&self, link: &'a Entry, around: &'a [Entry]) -> Option<&'a Kind> {
        static HERE: Kind = Kind::Directory(Vec::new());
        let mut at = link;
        for _ in 0..LINKS {
            match &at.kind {
                Kind::Link(target) if target == b"." => return Some(&HERE),
                Kind::Link(target) => at = around.iter().find(|one| one.name == *target)?,
                kind => return Some(kind),
            }
        }
        None
    }

    /// Makes it in a directory of the root.
    pub fn plant(&self, fs: &dyn FileSystem, name: &[u8]) -> Planted {
        let cred = Cred::root();
        let cx = Context { cred: &cred, may_block: true };
        let made = fs.mkdir(cx, &fs.root(), name, &SetAttr::default());
        let at = made.expect("a directory").value.handle;
        self.entries.iter().for_each(|entry| plant(fs, cx, &at, entry));
        Planted(at)
    }
}

impl Planted {
    /// That nothing is left of it but its directory, which is removed.
    pub fn is_empty(&self, fs: &dyn FileSystem, name: &[u8]) {
        let cred = Cred::root();
        let cx = Context { cred: &cred, may_block: true };
        let mut left = Vec::new();
        let listed = fs.list(cx, &self.0, 0, [0; 8], false, &mut |entry| {
            left.push(entry.name.to_vec());
            true
        });
        listed.expect("a listing");
        left.retain(|name| !matches!(name.as_slice(), b"." | b".."));
        assert_eq!(left, Vec::<Vec<u8>>::new());
        fs.rmdir(cx, &fs.root(), name).expect("an empty directory");
    }
}

fn directory(random: &mut SeededRandom, left: &mut u64, depth: usize) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let count = 1 + random.below(ENTRIES_MAX);
    for _ in 0..count {
        if *left == 0 {
            break;
        }
        let name = name(random);
        // What FTP lists alike it does not distinguish.
        if entries.iter().any(|one| in_a_line(&one.name) == in_a_line(&name)) {
            continue;
        }
        *left -= 1;
        let kind = match random.below(10) {
            0 | 1 => Kind::File(format!("{:x}", random.next_u64()).into_bytes()),
            2 | 3 if depth > 0 => Kind::Directory(directory(random, left, depth - 1)),
            4 => Kind::Special(FileType::Fifo),
            5 => Kind::Special(FileType::Socket),
            6 => Kind::Special(FileType::Character),
            7 => Kind::Special(FileType::Block),
            _ => Kind::Link(target(random, &name, &entries)),
        };
        entries.push(Entry { name, kind });
    }
    entries
}

fn target(random: &mut SeededRandom, own: &[u8], entries: &[Entry]) -> Vec<u8> {
    match random.below(4) {
        // In a circle.
        0 => own.to_vec(),
        1 if !entries.is_empty() => {
            entries[random.below(entries.len() as u64) as usize].name.clone()
        }
        _ => pick(random, &TARGETS).to_vec(),
    }
}

fn plant(fs: &dyn FileSystem, cx: Context<'_>, dir: &Handle, entry: &Entry) {
    let (set, name) = (SetAttr { mode: Some(0o777), ..SetAttr::default() }, &entry.name);
    match &entry.kind {
        Kind::File(data) => {
            let made = fs.create(cx, dir, name, CreateHow::Guarded(set)).expect("a file");
            fs.write(cx, &made.value.handle, 0, data, Stable::Unstable).expect("written");
        }
        Kind::Directory(inside) => {
            let made = fs.mkdir(cx, dir, name, &set).expect("a directory");
            inside.iter().for_each(|entry| plant(fs, cx, &made.value.handle, entry));
        }
        Kind::Link(target) => {
            fs.symlink(cx, dir, name, target, &SetAttr::default()).expect("a link");
        }
        Kind::Special(kind) => {
            // A device that no driver has.
            let special = Special { kind: *kind, rdev: (250, 250) };
            match fs.mknod(cx, dir, name, special, &set) {
                // Only root makes devices: a pipe stands for one.
                Err(failed) if failed.status == Status::NotOwner => {
                    let pipe = Special { kind: FileType::Fifo, rdev: (0, 0) };
                    fs.mknod(cx, dir, name, pipe, &set).expect("a pipe");
                }
                made => drop(made.expect("a special file")),
            }
        }
    }
}
