//! Sides that do not keep to what was agreed: refused with a named error, and nothing outside of
//! the destination is touched.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::thread::JoinHandle;

use crate::common;
use crate::common::{Scratch, meta, notes, plain};
use base::limits::{DSYNC_NEEDS_MAX, DSYNC_SCAN_WINDOW};
use sync::destination::{self, ReportTo};
use sync::link::{Link, read_frame, write_now};
use sync::memory::RunMemory;
use sync::run::pair;
use sync::tree::host::HostTree;
use sync::{Counts, Options, SyncError, Why, source};
use wire::dsync::{
    Basis, Begin, Bytes, Copy, Credit, Data, Directory, DirectoryEnd, End, Entries, Entry, Kept,
    Kind, Message, Meta, Need, Outcome, SendMode, Sum, Sums, Whole, frame,
};
use wire::xdr::Seq;

fn top() -> Message<'static> {
    let meta = Some(meta(Kind::DIRECTORY, 0));
    Message::Directory(Directory { name: Bytes(Vec::new()), meta })
}

fn directory(name: &[u8]) -> Message<'static> {
    Message::Directory(Directory { name: Bytes(name.to_vec()), meta: None })
}

fn entry(name: &[u8], meta: Meta) -> Entry {
    Entry { name: Bytes(name.to_vec()), meta }
}

fn entries(list: &[(&[u8], Kind)]) -> Message<'static> {
    let entries = list.iter().map(|(name, kind)| entry(name, meta(*kind, 0))).collect();
    Message::Entries(Entries { entries: Seq(entries) })
}

fn end() -> Message<'static> {
    Message::DirectoryEnd(DirectoryEnd { failed: None })
}

fn hole(id: u64, hole: u64, offset: u64, bytes: &'static [u8]) -> Message<'static> {
    Message::Data(Data { id, turn: 0, hole, offset, unpacked: 0, bytes })
}

fn piece(id: u64, offset: u64, bytes: &'static [u8]) -> Message<'static> {
    hole(id, 0, offset, bytes)
}

/// A file of one name and `size` bytes, at once.
fn whole(id: u64, kind: Kind, size: u64, bytes: &'static [u8]) -> Message<'static> {
    let (meta, hash) = (meta(kind, size), [7; 32]);
    Message::Whole(Whole { id, meta, hash, unpacked: 0, bytes })
}

fn copy(id: u64, length: u32) -> Message<'static> {
    Message::Copy(Copy { id, turn: 0, hole: 0, offset: 0, from: 0, length })
}

/// The end of a file of which nothing was sent that counts.
fn end_message(id: u64, outcome: Outcome, pieces: u64) -> Message<'static> {
    Message::End(End { id, outcome, hash: [0; 32], pieces, meta: None, why: Bytes(Vec::new()) })
}

/// The destination under test, and the link to it.
struct Destination {
    link: Link,
    done: JoinHandle<Result<Counts, Why>>,
}

impl Destination {
    fn start(to: &Path, options: &Options) -> Self {
        let (link, far) = pair().expect("sockets");
        let (to, options) = (to.to_owned(), options.clone());
        let done = std::thread::spawn(move || {
            let tree = HostTree::open_for_change(&to)?;
            destination::run(tree, &options, far, ReportTo::Local(notes().0), true)
        });
        Self { link, done }
    }

    fn send(&mut self, message: &Message<'_>) {
        // It may have had enough already.
        let _refused = write_now(&mut self.link.write, message);
    }

    /// Answers until the next question, which is returned.
    fn need(&mut self) -> Need {
        loop {
            let body = read_frame(&mut self.link.read).expect("a frame").expect("one more");
            if let Message::Need(need) = frame::message(&body).expect("a message") {
                return need;
            }
        }
    }

    /// The error with which it ends the run.
    fn refuses(self) -> Why {
        self.done.join().expect("no panic").expect_err("it is refused")
    }
}

fn refusal(to: &Path, options: &Options, messages: &[Message<'_>]) -> Why {
    let mut destination = Destination::start(to, options);
    messages.iter().for_each(|message| destination.send(message));
    destination.refuses()
}

#[test]
fn a_source_that_lies_about_its_tree_is_refused_by_name() {
    let (file, dir) = (Kind::FILE, Kind::DIRECTORY);
    let with = |change: fn(&mut Meta)| {
        let mut meta = meta(Kind::FILE, 0);
        change(&mut meta);
        Message::Entries(Entries { entries: Seq(vec![entry(b"a", meta)]) })
    };
    let aside = b".plimsoll-dsync-0123456789abcdef";
    let cases: Vec<(&str, Vec<Message<'_>>)> = vec![
        ("not inside the directory", vec![top(), entries(&[(b"..", dir)])]),
        ("not inside the directory", vec![top(), entries(&[(b".", dir)])]),
        ("not inside the directory", vec![top(), entries(&[(b"", file)])]),
        ("not inside the directory", vec![top(), entries(&[(b"a/b", file)])]),
        ("not inside the directory", vec![top(), entries(&[(b"/etc/passwd", file)])]),
        ("not inside the directory", vec![top(), entries(&[(b"a\0", file)])]),
        ("dsync's own", vec![top(), entries(&[(aside, file)])]),
        ("out of order", vec![top(), entries(&[(b"b", dir), (b"a", dir)])]),
        ("out of order", vec![top(), entries(&[(b"a", dir), (b"a", dir)])]),
        ("out of order", vec![top(), entries(&[(b"b", dir)]), entries(&[(b"a", dir)])]),
        ("unknown kind", vec![top(), entries(&[(b"a", Kind(77))])]),
        ("an invalid time", vec![top(), with(|m| m.mtime.nanoseconds = 1_000_000_000)]),
        ("to nothing", vec![top(), entries(&[(b"a", Kind::SYMLINK)])]),
        ("out of order", vec![top(), entries(&[(b"a", dir)]), end(), directory(b"b")]),
        ("a top that is not a directory", vec![top(), end(), directory(b"a"), end()]),
        ("before the end", vec![top(), entries(&[(b"a", dir)]), directory(b"a")]),
        ("after their directory", vec![top(), end(), entries(&[(b"a", file)])]),
        ("a second end", vec![top(), end(), end()]),
        ("entries for no directory", vec![entries(&[(b"a", file)])]),
        ("the end of no directory", vec![end()]),
        ("a top that is not a directory", vec![directory(b"")]),
        ("before all entries", vec![top(), Message::ScanEnd(())]),
        ("before all entries", vec![Message::ScanEnd(())]),
        ("before all entries", vec![top(), entries(&[(b"a", dir)]), end(), Message::ScanEnd(())]),
        ("a file unasked", vec![top(), Message::Begin(Begin { id: 7, meta: meta(file, 0) })]),
        ("non-file", vec![top(), Message::Begin(Begin { id: 7, meta: meta(dir, 0) })]),
        ("a file unasked", vec![top(), whole(7, file, 1, b"x")]),
        ("non-file", vec![top(), whole(7, dir, 1, b"x")]),
        ("wrong size", vec![top(), whole(7, file, 10, b"x")]),
        ("wrong size", vec![top(), whole(7, file, 0, b"x")]),
        ("data for an unknown file", vec![top(), piece(7, 0, b"x")]),
        (
            "a present block of no file",
            vec![top(), Message::Kept(Kept { id: 7, hole: 0, offset: 0, length: 1 })],
        ),
        ("a copy of no file", vec![top(), copy(7, 1)]),
        ("only a destination", vec![Message::Credit(Credit { bytes: 1 })]),
    ];
    for (number, (named, messages)) in cases.into_iter().enumerate() {
        let scratch = Scratch::new("lies");
        let why = refusal(&scratch.join("to"), &plain(), &messages);
        assert!(matches!(why.error(), SyncError::Broken(_)), "{number}: {why}");
        assert!(why.to_string().contains(named), "{number}: {why}, not {named}");
    }
}

/// A part of the error text, and the messages about the file of this number that are refused.
type Lie<'a> = (&'a str, &'a dyn Fn(u64) -> Vec<Message<'static>>);

#[test]
fn a_file_that_is_not_what_was_asked_for_is_refused() {
    let beyond = |id| vec![piece(id, 9, b"xx")];
    let twice = |id| vec![piece(id, 4, b"xx"), piece(id, 0, b"xx"), piece(id, 5, b"xx")];
    let hollow = |id| vec![hole(id, 5, 4, b"xx")];
    let holes = |id| vec![piece(id, 4, b"xx"), hole(id, 3, 8, b"xx")];
    let empty = |id| vec![piece(id, 4, b"")];
    let huge = |id| vec![piece(id, u64::MAX, b"xx")];
    let odd = |id| vec![end_message(id, Outcome::SAME, 0)];
    let more =
        |id| vec![piece(id, 4, b"xx"), piece(id, 0, b"xx"), end_message(id, Outcome::WHOLE, 1)];
    let late = |id| vec![end_message(id, Outcome::WHOLE, 1), end_message(id, Outcome::WHOLE, 1)];
    let long = |id| vec![copy(id, 1 << 30)];
    let kept = |id| vec![Message::Kept(Kept { id, hole: 0, offset: 0, length: 2 })];
    let unsummed = |id| vec![copy(id, 2)];
    let again = |id| vec![whole(id, Kind::FILE, 2, b"xx")];
    let lies: [Lie<'_>; 13] = [
        ("a file unasked", &again),
        ("without checksum", &unsummed),
        ("unannounced block", &kept),
        ("outside its file", &beyond),
        ("overlapping", &twice),
        ("outside its file", &hollow),
        ("overlapping", &holes),
        ("outside its file", &empty),
        ("more blocks", &more),
        ("a second end of a file", &late),
        ("outside its file", &huge),
        ("does not fit", &odd),
        ("longer than a piece", &long),
    ];
    for (named, lie) in lies {
        let scratch = Scratch::new("pieces");
        let to = scratch.join("to");
        let mut destination = Destination::start(&to, &plain());
        destination.send(&top());
        destination.send(&entries(&[(b"a", Kind::FILE)]));
        let id = destination.need().id;
        destination.send(&Message::Begin(Begin { id, meta: meta(Kind::FILE, 10) }));
        lie(id).iter().for_each(|message| destination.send(message));
        let why = destination.refuses();
        assert!(why.to_string().contains(named), "{why}, not {named}");
        assert_eq!(fs::read_dir(&to).expect("it").count(), 0, "nothing half is left");
    }
}

/// The notes of a destination that was sent an entry with this metadata, these pieces and this
/// hash.
fn sent(
    to: &Path,
    meta: &Meta,
    pieces: &[Message<'static>],
    hash: [u8; 32],
    meanwhile: impl FnOnce(),
) -> Vec<String> {
    let (link, far) = pair().expect("sockets");
    let place = to.to_owned();
    let (report, kept) = notes();
    let done = std::thread::spawn(move || {
        let tree = HostTree::open_for_change(&place).expect("a tree");
        destination::run(tree, &plain(), far, ReportTo::Local(report), true)
    });
    let mut destination = Destination { link, done };
    destination.send(&top());
    destination.send(&Message::Entries(Entries { entries: Seq(vec![entry(b"a", meta.clone())]) }));
    let (id, mut left) = {
        let need = destination.need();
        (need.id, need.basis.map_or(0, |basis| basis.count as usize))
    };
    while left > 0 {
        let body = read_frame(&mut destination.link.read).expect("a frame").expect("one more");
        if let Message::Sums(sums) = frame::message(&body).expect("a message") {
            left -= sums.sums.0.len();
        }
    }
    meanwhile();
    let count = pieces.iter().filter(|piece| !matches!(piece, Message::Begin(_))).count() as u64;
    let (outcome, why) = (Outcome::WHOLE, Bytes(Vec::new()));
    let begin = Message::Begin(Begin { id, meta: meta.clone() });
    let ends = Message::End(End { id, outcome, hash, pieces: count, meta: None, why });
    let at_once = matches!(pieces, [Message::Whole(_)]);
    let around = |message| (!at_once).then_some(message);
    for message in around(&begin).into_iter().chain(pieces).chain(around(&ends)) {
        destination.send(message);
    }
    destination.send(&end());
    destination.send(&Message::ScanEnd(()));
    let counts = loop {
        let body = read_frame(&mut destination.link.read).expect("a frame").expect("one more");
        if let Message::Done(counts) = frame::message(&body).expect("a message") {
            break counts;
        }
    };
    (destination.link.close)();
    let done = destination.done.join().expect("no panic").expect("done");
    assert_eq!(done.failures, counts.failures);
    common::lines(&kept)
}

/// Bytes of a file that is replaced.
const OLD: usize = 64 << 10;
/// The number that a run gives its first question.
const FIRST: u64 = 1;

#[test]
fn what_is_not_what_was_sent_gets_no_name() {
    let scratch = Scratch::new("hash");
    let to = scratch.join("to");
    for message in [piece(FIRST, 0, b"x"), whole(FIRST, Kind::FILE, 1, b"x")] {
        let said = sent(&to, &meta(Kind::FILE, 1), &[message], [7; 32], || {});
        assert!(said.iter().any(|line| line.contains("does not match its checksum")), "{said:?}");
        assert_eq!(fs::read_dir(&to).expect("it").count(), 0);
    }
}

/// The hash of blocks of 4 KiB that are copied to where they were, as docs/protocols/dsync.md has
/// it, put together by another way than the code's.
fn hash_of_copies(bytes: &[u8]) -> [u8; 32] {
    hash_of_copies_at(0, bytes)
}

fn hash_of_copies_at(first: u64, bytes: &[u8]) -> [u8; 32] {
    let mut sum = [0u8; 32];
    for (number, block) in bytes.chunks(4096).enumerate() {
        let strong = blake3::hash(block);
        let offset = (first + number as u64 * 4096).to_be_bytes();
        let hash = blake3::hash(&[&offset[..], &strong.as_bytes()[..16]].concat());
        let mut carry = 0;
        for (place, byte) in sum.iter_mut().zip(hash.as_bytes()) {
            carry += u16::from(*place) + u16::from(*byte);
            (*place, carry) = (carry as u8, carry >> 8);
        }
    }
    sum
}

/// An old file of 64 KiB where a new one is to come, and its bytes.
fn old_file(scratch: &Scratch) -> (std::path::PathBuf, Vec<u8>) {
    let (to, old) = (scratch.join("to"), (0..OLD).map(|at| (at / 300) as u8).collect());
    fs::create_dir(&to).expect("a directory");
    fs::write(to.join("a"), &old).expect("a file");
    (to, old)
}

#[test]
fn a_copy_that_differs_from_its_sums_gets_no_name() {
    let copy = |offset, from, length| {
        Message::Copy(Copy { id: FIRST, turn: 0, hole: 0, offset, from, length })
    };
    for changes in [false, true] {
        let scratch = Scratch::new("behind");
        let (to, old) = old_file(&scratch);
        // The first block comes to the end, all others are moved down.
        let mut moved = old.clone();
        moved.rotate_left(4096);
        let hash = hash_of_copies(&moved);
        let rest = OLD as u64 - 4096;
        let mut new = old.clone();
        new[40_000] ^= u8::from(changes);
        let wanted = meta(Kind::FILE, OLD as u64);
        let change = || fs::write(to.join("a"), &new).expect("a file");
        let pieces = [copy(0, 4096, rest as u32), copy(rest, 0, 4096)];
        let said = sent(&to, &wanted, &pieces, hash, change);
        let refused = said.iter().any(|line| line.contains("does not match its checksum"));
        assert_eq!(refused, changes, "{said:?}");
        let is = if changes { &new } else { &moved };
        assert!(fs::read(to.join("a")).expect("a file") == *is);
    }
}

#[test]
fn data_left_in_place_matches_its_sums_whatever_becomes_of_the_old_file() {
    let scratch = Scratch::new("stays");
    let (to, old) = old_file(&scratch);
    let wanted = meta(Kind::FILE, OLD as u64);
    let change = || fs::write(to.join("a"), [7; OLD]).expect("a file");
    let piece = [copy(FIRST, OLD as u32)];
    let said = sent(&to, &wanted, &piece, hash_of_copies(&old), change);
    assert!(!said.iter().any(|line| line.contains("does not match its checksum")), "{said:?}");
    assert!(fs::read(to.join("a")).expect("a file") == old);
}

#[test]
fn what_a_source_leaves_out_is_a_hole_and_nothing_of_the_old_file() {
    let old = vec![7; OLD];
    // The second block is a hole that a piece declares, and so is what follows the last piece.
    let copy = |offset, hole| {
        Message::Copy(Copy { id: FIRST, turn: 0, hole, offset, from: offset, length: 4096 })
    };
    let pieces = [copy(0, 0), copy(8192, 4096)];
    let mut new = vec![0; OLD];
    new[..4096].fill(7);
    new[8192..12_288].fill(7);
    let (mut hash, mut carry) = ([0u8; 32], 0);
    let ways = [hash_of_copies_at(0, &old[..4096]), hash_of_copies_at(8192, &old[..4096])];
    for (at, place) in hash.iter_mut().enumerate() {
        carry += ways.iter().map(|way| u16::from(way[at])).sum::<u16>();
        (*place, carry) = (carry as u8, carry >> 8);
    }
    let scratch = Scratch::new("left-out");
    let to = scratch.join("to");
    fs::create_dir(&to).expect("a directory");
    fs::write(to.join("a"), &old).expect("a file");
    let said = sent(&to, &meta(Kind::FILE, OLD as u64), &pieces, hash, || {});
    assert!(!said.iter().any(|line| line.contains("does not match its checksum")), "{said:?}");
    assert!(fs::read(to.join("a")).expect("a file") == new);
    let room = std::os::unix::fs::MetadataExt::blocks(&fs::metadata(to.join("a")).expect("it"));
    assert!(room * 512 < OLD as u64, "holes take no room: {room} blocks");
}

#[test]
fn late_data_of_a_restarted_file_is_only_counted() {
    let scratch = Scratch::new("anew");
    let (to, old) = old_file(&scratch);
    let wanted = meta(Kind::FILE, OLD as u64);
    let late = copy(FIRST, OLD as u32);
    let kept = Message::Kept(Kept { id: FIRST, hole: 0, offset: 0, length: 4096 });
    let anew = Message::Begin(Begin { id: FIRST, meta: wanted.clone() });
    let (id, offset, length) = (FIRST, 0, OLD as u32);
    let now = Message::Copy(Copy { id, turn: 1, hole: 0, offset, from: 0, length });
    let messages = [late.clone(), anew, late, kept, now];
    let said = sent(&to, &wanted, &messages, hash_of_copies(&old), || {});
    assert!(!said.iter().any(|line| line.contains("does not match its checksum")), "{said:?}");
    assert!(fs::read(to.join("a")).expect("a file") == old);
}

#[test]
fn entries_beyond_the_credit_are_refused() {
    let scratch = Scratch::new("credit");
    // The plan waits for an answer to the first file, for ever; what comes then is not kept.
    let mut destination = Destination::start(&scratch.join("to"), &plain());
    destination.send(&top());
    let mut sent = 0;
    let mut number = 0u32;
    while sent < 3 * DSYNC_SCAN_WINDOW {
        let list: Vec<Entry> = (0..400)
            .map(|_| {
                number += 1;
                entry(format!("{number:0200}").as_bytes(), meta(Kind::FILE, 0))
            })
            .collect();
        let message = Message::Entries(Entries { entries: Seq(list) });
        let mut bytes = Vec::new();
        frame::put(&message, &mut bytes);
        sent += bytes.len() as u64;
        if destination.link.write.write_all(&bytes).is_err() {
            break;
        }
    }
    let why = destination.refuses();
    assert!(why.to_string().contains("credit"), "{why}");
}

#[test]
fn a_directory_that_becomes_a_link_leads_nowhere() {
    let scratch = Scratch::new("swap");
    let (to, out) = (scratch.join("to"), scratch.join("out"));
    fs::create_dir_all(to.join("d")).expect("folders");
    fs::create_dir(&out).expect("a folder");
    fs::write(out.join("kept"), b"kept").expect("a file");
    let (link, far) = pair().expect("sockets");
    let place = to.clone();
    let (report, kept) = notes();
    let done = std::thread::spawn(move || {
        let tree = HostTree::open_for_change(&place).expect("a tree");
        destination::run(tree, &plain(), far, ReportTo::Local(report), true)
    });
    let mut destination = Destination { link, done };
    destination.send(&top());
    destination.send(&entries(&[(b"d", Kind::DIRECTORY)]));
    destination.send(&end());
    destination.send(&directory(b"d"));
    destination.send(&entries(&[(b"a", Kind::FILE)]));
    let id = destination.need().id;
    // Now that it is decided that d/a will be written, d leads away.
    fs::rename(to.join("d"), to.join("e")).expect("moving it");
    symlink(&out, to.join("d")).expect("a link");
    destination.send(&Message::Begin(Begin { id, meta: meta(Kind::FILE, 0) }));
    destination.send(&end_message(id, Outcome::WHOLE, 0));
    destination.send(&end());
    destination.send(&Message::ScanEnd(()));
    loop {
        let body = read_frame(&mut destination.link.read).expect("a frame").expect("one more");
        if let Message::Done(_) = frame::message(&body).expect("a message") {
            break;
        }
    }
    (destination.link.close)();
    let counts = destination.done.join().expect("no panic").expect("done");
    assert!(counts.failures > 0, "{:?}", common::lines(&kept));
    let left: Vec<_> = fs::read_dir(&out).expect("it").flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["kept"]);
}

/// A destination that does not keep to what was agreed, against a real source.
fn ask(
    from: &Path,
    options: &Options,
    messages: &[Message<'_>],
) -> (Link, JoinHandle<Result<Counts, Why>>) {
    let (mut link, far) = pair().expect("sockets");
    let (from, options) = (from.to_owned(), options.clone());
    let done = std::thread::spawn(move || {
        let tree = HostTree::open(&from)?;
        source::run(tree, &options, far, &notes().0)
    });
    for message in messages {
        let _refused = write_now(&mut link.write, message);
    }
    (link, done)
}

fn need(id: u64, path: &[u8]) -> Message<'static> {
    let path = Bytes(path.to_vec());
    Message::Need(Need { id, path, wish: SendMode::SEND, hash: None, basis: None, kept: None })
}

#[test]
fn a_destination_that_asks_for_too_much_is_refused_by_name() {
    let scratch = Scratch::new("asks");
    let from = scratch.join("from");
    fs::create_dir(&from).expect("a folder");
    // It waits for the sums that were announced.
    fs::write(from.join("a"), [7; 8192]).expect("a file");
    let basis = |block, count| {
        let path = Bytes(b"a".to_vec());
        let basis = Some(Basis { block, count });
        Message::Need(Need { id: 1, path, wish: SendMode::SEND, hash: None, basis, kept: None })
    };
    let sum = Sum { weak: 0, strong: [0; 16] };
    let sums = |n| Message::Sums(Sums { id: 1, sums: Seq(vec![sum.clone(); n]) });
    let without_hash = {
        let path = Bytes(b"a".to_vec());
        Message::Need(Need {
            id: 1,
            path,
            wish: SendMode::COMPARE,
            hash: None,
            basis: None,
            kept: None,
        })
    };
    let cases: Vec<(&str, Vec<Message<'_>>)> = vec![
        ("leads nowhere", vec![need(1, b"../secret")]),
        ("leads nowhere", vec![need(1, b"/etc/passwd")]),
        ("leads nowhere", vec![need(1, b"")]),
        ("leads nowhere", vec![need(1, b"a//b")]),
        ("impossible size", vec![basis(5, 1)]),
        ("without its hash", vec![without_hash]),
        ("duplicate request", vec![basis(4096, 2), basis(4096, 2)]),
        ("unexpected checksums", vec![sums(1)]),
        ("more checksums", vec![basis(4096, 2), sums(3)]),
        ("outstanding requests", vec![basis(4096, 1 << 20), basis(4096, 1 << 20)]),
        ("more credit", vec![Message::Credit(Credit { bytes: u64::MAX })]),
        ("only a source", vec![Message::ScanEnd(())]),
    ];
    for (named, messages) in cases {
        let (_link, done) = ask(&from, &plain(), &messages);
        let why = done.join().expect("no panic").expect_err("refused");
        assert!(why.to_string().contains(named), "{why}, not {named}");
    }
}

#[test]
fn queries_are_bounded_even_if_no_client_reads_the_answers() {
    let scratch = Scratch::new("many");
    let from = scratch.join("from");
    fs::create_dir(&from).expect("a folder");
    fs::write(from.join("a"), vec![1; 1 << 20]).expect("a file");
    let many: Vec<_> = (0..DSYNC_NEEDS_MAX as u64 + 200).map(|id| need(id, b"a")).collect();
    let (_link, done) = ask(&from, &plain(), &many);
    let why = done.join().expect("no panic").expect_err("refused");
    assert!(why.to_string().contains("outstanding requests"), "{why}");
}

#[test]
fn a_source_gives_nothing_that_lies_outside_or_is_left_out() {
    let scratch = Scratch::new("gives");
    let from = scratch.join("from");
    fs::create_dir_all(from.join("d")).expect("folders");
    fs::write(scratch.join("secret"), b"secret").expect("a file");
    fs::write(from.join("d/left"), b"out").expect("a file");
    symlink(scratch.join("secret"), from.join("link")).expect("a link");
    symlink(scratch.join(""), from.join("up")).expect("a link");
    let rules = Seq(vec![sync::rules::rule(false, b"/d/")]);
    let asked = [need(1, b"link"), need(2, b"up/secret"), need(3, b"d/left"), need(4, b"none")];
    let (mut link, done) = ask(&from, &Options { rules, ..plain() }, &asked);
    let mut failed = 0;
    while failed < asked.len() {
        let body = read_frame(&mut link.read).expect("a frame").expect("one more");
        match frame::message(&body).expect("a message") {
            Message::End(end) => {
                assert_eq!(end.outcome, Outcome::FAILED, "{}", end.id);
                failed += 1;
            }
            Message::Begin(_) | Message::Data(_) | Message::Whole(_) => {
                panic!("something is given")
            }
            _ => {}
        }
    }
    (link.close)();
    assert!(done.join().expect("no panic").is_err());
}

/// A source can list more directories than fit into memory, with metadata for each.
#[test]
fn directories_that_wait_have_a_bound() {
    let scratch = Scratch::new("waiting");
    let tree = HostTree::open_for_change(&scratch.join("to")).expect("a tree");
    let tree = tree.with_memory(RunMemory::new(64 << 10));
    let (mut link, far) = pair().expect("sockets");
    let done = std::thread::spawn(move || {
        destination::run(tree, &plain(), far, ReportTo::Local(notes().0), true)
    });
    write_now(&mut link.write, &top()).expect("heard");
    for first in 0..100 {
        let names: Vec<_> = (0..100).map(|n| format!("{first:02}{n:02}")).collect();
        let list: Vec<_> = names.iter().map(|n| (n.as_bytes(), Kind::DIRECTORY)).collect();
        if write_now(&mut link.write, &entries(&list)).is_err() {
            break;
        }
    }
    // It is not read if the run has ended as it should.
    let _unread = write_now(&mut link.write, &Message::ScanEnd(()));
    let why = done.join().expect("no panic").expect_err("more than there is room for");
    assert!(matches!(why.error(), SyncError::Directories(_)), "{}", why.error());
}

/// The walk of a source holds the directories that wait, at each depth.
#[test]
fn directories_that_wait_at_the_source_have_a_bound() {
    let scratch = Scratch::new("walk");
    let (from, to) = (scratch.join("from"), scratch.join("to"));
    let mut deepest = from.clone();
    for _ in 0..20 {
        for n in 0..20 {
            fs::create_dir_all(deepest.join(format!("b{n:02}"))).expect("folders");
        }
        deepest.push("a");
        fs::create_dir_all(&deepest).expect("folders");
    }
    let (near, far) = pair().expect("sockets");
    // Enough for the names of any of them, and not for all that wait above the deepest.
    let source = HostTree::open(&from).expect("a tree").with_memory(RunMemory::new(10 << 10));
    let reads = std::thread::spawn(move || source::run(source, &plain(), far, &notes().0));
    let tree = HostTree::open_for_change(&to).expect("a tree");
    let _ends_with_it = destination::run(tree, &plain(), near, ReportTo::Local(notes().0), true);
    let why = reads.join().expect("no panic").expect_err("more than there is room for");
    assert!(matches!(why.error(), SyncError::Directories(_)), "{}", why.error());
}

/// A source can list files with several names, each with a long path, without an end. Those for
/// which there is no memory are copied as separate files; that is noted once.
#[test]
fn files_of_several_names_have_a_bound() {
    let scratch = Scratch::new("links");
    let (from, to) = (scratch.join("from"), scratch.join("to"));
    fs::create_dir_all(&from).expect("a folder");
    for n in 0..60 {
        fs::write(from.join(format!("{n:02}")), "x").expect("a file");
        fs::hard_link(from.join(format!("{n:02}")), from.join(format!("{n:02}b"))).expect("a link");
    }
    let (near, far) = pair().expect("sockets");
    let source = HostTree::open(&from).expect("a tree");
    let reads = std::thread::spawn(move || source::run(source, &plain(), far, &notes().0));
    let tree = HostTree::open_for_change(&to).expect("a tree");
    let tree = tree.with_memory(RunMemory::new(4 << 10));
    let (report, notes) = notes();
    let counts =
        destination::run(tree, &plain(), near, ReportTo::Local(report), true).expect("a run");
    reads.join().expect("no panic").expect("a run");
    let lines = common::lines(&notes);
    let noted = lines.iter().filter(|line| line.contains("too many hard links")).count();
    assert_eq!((noted, counts.failures), (1, 0), "{lines:?}");
    let names = fs::read_dir(&to).expect("a folder").count();
    let links = |n: u32| fs::metadata(to.join(format!("{n:02}"))).expect("a file").nlink();
    assert_eq!((names, links(0), links(59)), (120, 2, 1));
}

/// One directory can have more names than fit into memory: it is reported, and the rest is done.
#[test]
fn names_of_a_directory_have_a_bound() {
    let scratch = Scratch::new("names");
    let (from, to) = (scratch.join("from"), scratch.join("to"));
    for dir in [&from, &to] {
        fs::create_dir_all(dir.join("many")).expect("folders");
        fs::create_dir_all(dir.join("some")).expect("folders");
    }
    for n in 0..40 {
        fs::write(to.join(format!("many/{n}")), "x").expect("a file");
    }
    fs::write(from.join("some/new"), "new").expect("a file");
    let (near, far) = pair().expect("sockets");
    let source = HostTree::open(&from).expect("a tree");
    let reads = std::thread::spawn(move || source::run(source, &plain(), far, &notes().0));
    let tree = HostTree::open_for_change(&to).expect("a tree").with_memory(RunMemory::new(1 << 10));
    let (report, notes) = notes();
    let counts =
        destination::run(tree, &plain(), near, ReportTo::Local(report), true).expect("a run");
    reads.join().expect("no panic").expect("a run");
    let lines = common::lines(&notes);
    let told = lines.iter().any(|l| {
        l.contains("many too many names in the directory: a dsync run holds at most 1 KiB")
    });
    assert!(told && counts.failures == 1, "{lines:?}");
    assert_eq!(fs::read(to.join("some/new")).expect("carried"), b"new");
    assert_eq!(fs::read_dir(to.join("many")).expect("a folder").count(), 40, "nothing is deleted");
}
