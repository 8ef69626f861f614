//! A run that breaks off within a file: the next sends what is missing, and nothing is taken for
//! written that was not.

use std::fs::{self, File};
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common;
use crate::common::broken::{Breaks, breaks};
use crate::common::{Gardener, Scratch, assert_same, lines, notes, plain, pushed};
use base::random::Random;
use sync::destination::{self, ReportTo};
use sync::run::{answer, local, pair, start};
use sync::streams::DataStreams;
use sync::streams::connect::{Caller, Calling, StreamCount};
use sync::streams::listen::Answerer;
use sync::tree::aside::{aside_of, is_aside};
use sync::tree::host::HostTree;
use sync::{Counts, Role, Why, source};
use wire::dsync::StreamRequest;

/// Bytes of the one large file, a hole of an eighth in it.
const SIZE: usize = 3 << 20;
/// What may be sent twice: what was in flight, a block in part, and control messages.
const WINDOW: u64 = 512 << 10;

fn plant(scratch: &Scratch, gardener: &mut Gardener, size: usize) -> (PathBuf, PathBuf) {
    let (from, to) = (scratch.join("from"), scratch.join("to"));
    fs::create_dir(&from).expect("a folder");
    for name in ["a", "z"] {
        fs::write(from.join(name), name).expect("a file");
    }
    let file = File::create(from.join("large")).expect("a file");
    let mut bytes = vec![0; size / 16];
    for at in (0..16).filter(|at| *at != 5 && *at != 6) {
        gardener.random.fill(&mut bytes);
        file.write_all_at(&bytes, at * bytes.len() as u64).expect("its content");
    }
    (from, to)
}

/// A run over one stream, of which the source's side breaks after `left` bytes.
fn go(
    role: Role,
    (from, to): (&Path, &Path),
    left: usize,
    sent: &Arc<AtomicU64>,
) -> Result<Counts, Why> {
    let (mut near, mut far) = pair().expect("sockets");
    let reads = if role == Role::SOURCE { &mut near } else { &mut far };
    let write = std::mem::replace(&mut reads.write, Box::new(io::sink()));
    reads.write = Box::new(Breaks { write, left, sent: Arc::clone(sent) });
    let other = std::thread::spawn(move || answer(far, None));
    let (here, there) = if role == Role::SOURCE { (from, to) } else { (to, from) };
    let ends = (here, there.as_os_str().as_bytes());
    let done = start(near, role, ends, &plain(), &Calling::none(), &notes().0);
    // The other side has ended with the link, whatever its result.
    let _other = other.join().expect("the other side");
    done
}

fn left_aside(to: &Path) -> usize {
    let names = fs::read_dir(to).expect("it").flatten().map(|e| e.file_name());
    names.filter(|name| is_aside(name.as_encoded_bytes())).count()
}

#[test]
fn what_was_sent_before_a_break_is_not_sent_again() {
    let mut gained = 0;
    for seed in 0..40 {
        let scratch = Scratch::new("resume");
        let mut gardener = Gardener::new(seed);
        let (from, to) = plant(&scratch, &mut gardener, SIZE);
        let role = if seed % 2 == 0 { Role::SOURCE } else { Role::DESTINATION };
        if seed % 4 > 1 {
            // There is an older one with blocks that are of use, too.
            go(role, (&from, &to), usize::MAX, &Arc::default()).expect("a run");
            let file = File::options().write(true).open(from.join("large")).expect("it");
            let mut bytes = vec![0; SIZE / 2];
            gardener.random.fill(&mut bytes);
            file.write_all_at(&bytes, SIZE as u64 / 4).expect("its content");
        }
        let sent = Arc::default();
        let mut breaks = 0;
        for _ in 0..3 {
            let left = gardener.below(SIZE as u64 / 2) as usize;
            breaks += u64::from(go(role, (&from, &to), left, &sent).is_err());
            gained += left_aside(&to);
        }
        let counts = go(role, (&from, &to), usize::MAX, &sent).expect("a run");
        assert_eq!(counts.failures, 0, "seed {seed}");
        assert_same(&from, &to, &format!("seed {seed}"));
        let sent = sent.load(Ordering::Relaxed);
        let most = SIZE as u64 + breaks * WINDOW;
        assert!(sent < most, "seed {seed}: {sent} bytes in {breaks} runs that broke");
        let (one, copy) = (blocks(&from.join("large")), blocks(&to.join("large")));
        assert!(copy <= one + 64, "seed {seed}: the hole is one");
        assert_eq!(left_aside(&to), 0, "seed {seed}");
    }
    assert!(gained > 40, "only {gained} runs left something");
}

/// Blocks on the disk.
fn blocks(path: &Path) -> u64 {
    fs::metadata(path).expect("it").blocks()
}

#[test]
fn what_a_run_has_left_without_holes_gets_those_of_the_source() {
    const BLOCK: usize = 4096;
    for in_place in [false, true] {
        let scratch = Scratch::new("resume-holes");
        let (from, to) = (scratch.join("from"), scratch.join("to"));
        let mut gardener = Gardener::new(77);
        [&from, &to].iter().for_each(|dir| fs::create_dir(dir).expect("a folder"));
        let mut bytes = vec![0; 256 * BLOCK];
        gardener.random.fill(&mut bytes);
        // A hole of some blocks where there are zeros, another where there is something else, a
        // block of which half is none, and the end.
        let holes = [(10, 30, 0), (50, 60, 9), (100, 101, 0), (240, 256, 5)];
        let mut left = bytes.clone();
        for (first, last, there) in holes {
            bytes[first * BLOCK..last * BLOCK].fill(0);
            left[first * BLOCK..last * BLOCK].fill(there);
        }
        let file = File::create(from.join("large")).expect("a file");
        let mut at = 0;
        for (first, last, _) in holes {
            file.write_all_at(&bytes[at * BLOCK..first * BLOCK], (at * BLOCK) as u64)
                .expect("data");
            at = last;
        }
        file.set_len(bytes.len() as u64).expect("its size");
        let name = if in_place { b"large".to_vec() } else { aside_of(b"large") };
        let place = to.join(std::ffi::OsStr::from_bytes(&name));
        fs::write(&place, &left).expect("a file");
        fs::set_permissions(&place, fs::Permissions::from_mode(0o600)).expect("its mode");
        common::set_time(&place, 1_000, 0);
        let counts = pushed(&from, &to, &sync::Options { in_place, ..plain() });
        assert_same(&from, &to, &format!("in place: {in_place}"));
        let (one, copy) = (blocks(&from.join("large")), blocks(&to.join("large")));
        assert!(copy <= one, "in place: {in_place}: {copy} blocks, {one} at the source");
        assert!(counts.bytes_received < 10 * BLOCK as u64, "{counts:?}");
    }
}

/// Breaks off when the streams do.
struct BreaksWith {
    write: Box<dyn Write + Send>,
    sent: Arc<AtomicU64>,
    most: i64,
}

impl Write for BreaksWith {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The last read of the port may be a part of what it had left.
        let sent = self.sent.load(Ordering::Relaxed) as i64;
        if sent.saturating_add(16 << 10) > self.most {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.write.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.write.flush()
    }
}

/// A run with streams through a port that breaks, and with them the control stream.
fn go_streams(
    role: Role,
    (from, to): (&Path, &Path),
    bytes: i64,
    sent: &Arc<AtomicU64>,
) -> Result<Counts, Why> {
    let wanted = StreamRequest { most: 3, low: 0, high: 0 };
    let (answerer, mut offer) =
        Answerer::open(&wanted, Some(Ipv4Addr::LOCALHOST.into())).expect("a port");
    offer.port = breaks(offer.port, bytes, sent);
    let calling = Calling { wish: StreamCount::Fixed(3), ..Calling::default() };
    let (mut reads, mut writes) = pair().expect("sockets");
    let caller = DataStreams::Calls(Caller::new(&offer, &calling, &notes().0).expect("an offer"));
    let answers = DataStreams::Answers(answerer);
    (reads.beside, writes.beside) =
        if role == Role::SOURCE { (caller, answers) } else { (answers, caller) };
    // The control stream goes with the streams: what they had could go over it.
    let write = std::mem::replace(&mut reads.write, Box::new(io::sink()));
    reads.write = Box::new(BreaksWith { write, sent: Arc::clone(sent), most: bytes });
    let tree = HostTree::open(from)?;
    let other = std::thread::spawn(move || source::run(tree, &plain(), reads, &notes().0));
    let tree = HostTree::open_for_change(to)?;
    let done = destination::run(tree, &plain(), writes, ReportTo::Local(notes().0), true);
    let _other = other.join().expect("the other side");
    done
}

#[test]
fn streams_that_break_lose_no_more_than_was_in_flight() {
    let size = 16 << 20;
    // What sockets of this machine hold, of three streams.
    let window = 6 << 20;
    for seed in 0..12 {
        let scratch = Scratch::new("resume-streams");
        let mut gardener = Gardener::new(500 + seed);
        let (from, to) = plant(&scratch, &mut gardener, size);
        let role = if seed % 2 == 0 { Role::SOURCE } else { Role::DESTINATION };
        let sent = Arc::default();
        let broken = gardener.below(size as u64 * 3 / 4) as i64;
        let first = go_streams(role, (&from, &to), broken, &sent);
        assert!(first.is_err(), "seed {seed}: it breaks after {broken} bytes");
        let counts = go_streams(role, (&from, &to), i64::MAX, &sent).expect("a run");
        assert_eq!(counts.failures, 0, "seed {seed}");
        assert_same(&from, &to, &format!("seed {seed}"));
        let sent = sent.load(Ordering::Relaxed);
        assert!(sent < size as u64 + window, "seed {seed}: {sent} bytes, broken after {broken}");
    }
}

#[test]
fn what_is_left_counts_only_where_it_is_what_should_be_there() {
    let scratch = Scratch::new("resume-wrong");
    let mut gardener = Gardener::new(9);
    let (from, to) = plant(&scratch, &mut gardener, SIZE);
    fs::create_dir(&to).expect("a folder");
    let aside = to.join(String::from_utf8(aside_of(b"large")).expect("text"));
    // Longer than the file, right in its second quarter, wrong elsewhere, also where a hole is.
    let right = fs::read(from.join("large")).expect("it");
    let mut left = vec![3; SIZE + 100_000];
    left[SIZE / 4..SIZE / 2].copy_from_slice(&right[SIZE / 4..SIZE / 2]);
    fs::write(&aside, &left).expect("what is left");
    fs::set_permissions(&aside, fs::Permissions::from_mode(0o600)).expect("its mode");
    let sent = Arc::default();
    let counts = go(Role::SOURCE, (&from, &to), usize::MAX, &sent).expect("a run");
    assert_eq!(counts.failures, 0);
    assert_same(&from, &to, "wrong");
    let sent = sent.load(Ordering::Relaxed);
    assert!(sent > SIZE as u64 / 2 && sent < SIZE as u64 * 7 / 8, "{sent}");
}

#[test]
fn files_that_others_may_have_created_are_not_written_to() {
    for kind in ["link", "name", "open", "folder"] {
        let scratch = Scratch::new("resume-planted");
        let mut gardener = Gardener::new(9);
        let (from, to) = plant(&scratch, &mut gardener, SIZE);
        let out = scratch.join("out");
        fs::create_dir(&to).expect("a folder");
        fs::write(&out, vec![1; SIZE]).expect("a file");
        fs::set_permissions(&out, fs::Permissions::from_mode(0o600)).expect("its mode");
        let aside = to.join(String::from_utf8(aside_of(b"large")).expect("text"));
        match kind {
            "link" => symlink(&out, &aside).expect("a link"),
            "name" => fs::hard_link(&out, &aside).expect("a name"),
            "folder" => fs::create_dir(&aside).expect("a folder"),
            _ => {
                fs::copy(&out, &aside).expect("a copy");
                fs::set_permissions(&aside, fs::Permissions::from_mode(0o666)).expect("its mode");
            }
        }
        let (report, kept) = notes();
        let counts = {
            let (near, far) = pair().expect("sockets");
            let other = std::thread::spawn(move || answer(far, None));
            let ends = (from.as_path(), to.as_os_str().as_encoded_bytes());
            let done = start(near, Role::SOURCE, ends, &plain(), &Calling::none(), &report);
            let _other = other.join().expect("the other side");
            done.expect("a run")
        };
        assert_eq!(fs::read(&out).expect("it"), vec![1; SIZE], "{kind}");
        if kind == "folder" {
            assert!(counts.failures > 0 && aside.exists(), "a folder is none of ours");
        } else {
            assert_eq!(counts.failures, 0, "{kind}: {:?}", lines(&kept));
            assert_same(&from, &to, kind);
        }
    }
}

#[test]
fn what_nothing_came_of_is_swept_by_a_run_that_ends_well() {
    let scratch = Scratch::new("resume-stale");
    let mut gardener = Gardener::new(9);
    let (from, to) = plant(&scratch, &mut gardener, SIZE);
    while left_aside_or_none(&to) == 0 {
        let left = gardener.below(SIZE as u64) as usize;
        assert!(go(Role::SOURCE, (&from, &to), left, &Arc::default()).is_err());
    }
    fs::remove_file(from.join("large")).expect("taking it away");
    let counts = local(&from, &to, &plain(), &notes().0).expect("a run");
    assert_eq!(counts.failures, 0);
    assert_same(&from, &to, "stale");
    assert_eq!(left_aside(&to), 0);
}

fn left_aside_or_none(to: &Path) -> usize {
    if to.exists() { left_aside(to) } else { 0 }
}
