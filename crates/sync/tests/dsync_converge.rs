//! Random trees and random edits: after a run both trees are the same, whichever way the messages
//! went, and after runs that broke off, too.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use crate::common;
use crate::common::broken::Breaks;
use crate::common::{Gardener, Scratch, assert_same, facts, lines, notes, plain};
use sync::link::Link;
use sync::run::{self, answer, local, pair};
use sync::streams::connect::{Calling, StreamCount};
use sync::{Counts, Options, Role, Why};

/// How the two sides meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Topology {
    Local,
    Push,
    Pull,
    /// With additional streams for data.
    PushStreams,
    PullStreams,
}

const WAYS: [Topology; 5] =
    [Topology::Local, Topology::Push, Topology::Pull, Topology::PushStreams, Topology::PullStreams];

impl Topology {
    fn calling(self) -> Calling {
        match self {
            Self::PushStreams => Calling { wish: StreamCount::Fixed(3), ..Calling::default() },
            Self::PullStreams => Calling::default(),
            _ => Calling::none(),
        }
    }
}

fn over(
    way: Topology,
    (from, to): (&Path, &Path),
    options: &Options,
    (near, far): (Link, Link),
    report: &sync::events::Report,
) -> Result<Counts, Why> {
    use std::os::unix::ffi::OsStrExt;
    let other = std::thread::spawn(move || answer(far, Some(Ipv4Addr::LOCALHOST.into())));
    let (role, here, there) = match way {
        Topology::Pull | Topology::PullStreams => (Role::DESTINATION, to, from),
        _ => (Role::SOURCE, from, to),
    };
    let there = there.as_os_str().as_bytes();
    let done = run::start(near, role, (here, there), options, &way.calling(), report);
    let answered = other.join().expect("the other side");
    if done.is_ok() {
        assert!(answered.is_ok(), "{answered:?}");
    }
    done
}

fn go(way: Topology, from: &Path, to: &Path, options: &Options) -> (Counts, Vec<String>) {
    let (report, kept) = notes();
    let done = match way {
        Topology::Local => local(from, to, options, &report),
        _ => over(way, (from, to), options, pair().expect("sockets"), &report),
    };
    let counts = done.unwrap_or_else(|why| panic!("{way:?}: {why:?}: {:?}", lines(&kept)));
    (counts, lines(&kept))
}

#[test]
fn random_trees_converge_and_a_dry_run_lists_the_changes() {
    for seed in 0..60 {
        let scratch = Scratch::new("converge");
        let (from, to) = (scratch.join("from"), scratch.join("to"));
        let mut gardener = Gardener::new(seed);
        fs::create_dir(&from).expect("a folder");
        gardener.grow(&from, 3);
        if seed % 3 == 0 {
            fs::create_dir(&to).expect("a folder");
            gardener.grow(&to, 3);
        }
        for round in 0..4 {
            let what = format!("seed {seed} round {round}");
            let way = gardener.pick(&WAYS);
            let options = Options { checksum: gardener.below(3) == 0, ..plain() };
            let before = to.exists().then(|| facts(&to));
            let dry = Options { dry_run: true, ..options.clone() };
            let (_, planned) = go(gardener.pick(&WAYS), &from, &to, &dry);
            assert_eq!(
                to.exists().then(|| facts(&to)),
                before,
                "{what}: a dry run changes nothing"
            );
            let (counts, done) = go(way, &from, &to, &options);
            assert_eq!(planned, done, "{what}: {way:?}");
            assert_eq!(counts.failures, 0, "{what}: {done:?}");
            assert_same(&from, &to, &format!("{what}: {way:?}"));
            let (counts, done) = go(way, &from, &to, &options);
            assert_eq!(counts.changes, 0, "{what}: a second run has nothing to do: {done:?}");
            let here = gardener.below(4) == 0;
            gardener.edit(if here { &to } else { &from });
        }
    }
}

#[test]
fn runs_that_break_off_leave_nothing_half_and_the_next_continues() {
    let mut broken = 0;
    for seed in 0..60 {
        let scratch = Scratch::new("break");
        let (from, to) = (scratch.join("from"), scratch.join("to"));
        let mut gardener = Gardener::new(1_000 + seed);
        fs::create_dir(&from).expect("a folder");
        gardener.grow(&from, 3);
        gardener.grow(&from, 3);
        for _ in 0..3 {
            let way = gardener.pick(&WAYS[1..]);
            let (mut near, mut far) = pair().expect("sockets");
            let side = if gardener.below(2) == 0 { &mut near } else { &mut far };
            let write = std::mem::replace(&mut side.write, Box::new(io::sink()));
            let most = gardener.pick(&[600, 6_000, 200_000]);
            let left = gardener.below(most) as usize;
            side.write = Box::new(Breaks { write, left, sent: Arc::default() });
            let (report, _) = notes();
            if over(way, (&from, &to), &plain(), (near, far), &report).is_err() {
                broken += 1;
            }
            let old = facts(&from);
            for (path, now) in if to.exists() { facts(&to) } else { Default::default() } {
                let whole = old.get(&path).is_none_or(|old| old.is_as_whole_as(&now));
                assert!(whole, "seed {seed}: {} is half", String::from_utf8_lossy(&path));
            }
        }
        let (counts, done) = go(WAYS[(seed % 5) as usize], &from, &to, &plain());
        assert_eq!(counts.failures, 0, "{done:?}");
        assert_same(&from, &to, &format!("seed {seed}"));
    }
    assert!(broken > 60, "only {broken} runs broke off");
}

#[test]
fn a_small_change_of_a_large_file_costs_little() {
    let scratch = Scratch::new("delta");
    let (from, to) = (scratch.join("from"), scratch.join("to"));
    fs::create_dir(&from).expect("a folder");
    let mut gardener = Gardener::new(5);
    let mut bytes = vec![0; 8 << 20];
    base::random::Random::fill(&mut gardener.random, &mut bytes);
    fs::write(from.join("large"), &bytes).expect("a file");
    go(Topology::Push, &from, &to, &plain());
    bytes[4 << 20] ^= 1;
    bytes.splice(1000..1000, *b"inserted");
    fs::write(from.join("large"), &bytes).expect("a file");
    let (counts, _) = go(Topology::Pull, &from, &to, &plain());
    assert_same(&from, &to, "delta");
    assert!(counts.bytes_received < 64 << 10, "{}", counts.bytes_received);
    assert_eq!(counts.bytes_done, bytes.len() as u64);
}

/// Some bytes of a large file, and where it has holes: another one, made of it.
fn changed(gardener: &mut Gardener, old: &[u8]) -> (Vec<u8>, Vec<(usize, usize)>) {
    let (mut new, mut holes) = (old.to_vec(), Vec::new());
    for _ in 0..gardener.below(5) {
        let at = gardener.below(new.len() as u64) as usize;
        let length = gardener.below(90_000) as usize;
        let end = new.len().min(at + length);
        match gardener.below(6) {
            0 => new.truncate(at.max(1)),
            1 => new.extend(vec![1; length]),
            2 => drop(new.splice(at..at, vec![2; length % 5_000])),
            3 => new[at..end].fill(3),
            // A part of it moves.
            4 => new.rotate_left(at),
            _ => holes.push((at, end)),
        }
    }
    let size = new.len();
    holes.retain(|(start, end)| start < end && *end <= size);
    holes.iter().for_each(|(start, end)| new[*start..*end].fill(0));
    (new, holes)
}

fn punch(path: &Path, holes: &[(usize, usize)]) {
    use std::os::fd::AsRawFd;
    let file = fs::OpenOptions::new().write(true).open(path).expect("the file");
    for (start, end) in holes {
        let (mode, length) = (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, end - start);
        // SAFETY: no memory is involved.
        let done = unsafe { libc::fallocate(file.as_raw_fd(), mode, *start as i64, length as i64) };
        assert_eq!(done, 0, "{}", io::Error::last_os_error());
    }
}

/// Where what was laid of the old file must go again, stay, or be written over.
#[test]
fn a_large_file_becomes_another_of_any_shape() {
    for seed in 0..150 {
        let scratch = Scratch::new("shape");
        let (from, to) = (scratch.join("from"), scratch.join("to"));
        let mut gardener = Gardener::new(2_000 + seed);
        for dir in [&from, &to] {
            fs::create_dir(dir).expect("a folder");
        }
        let mut old = vec![0; (70_000 + gardener.below(900_000)) as usize];
        base::random::Random::fill(&mut gardener.random, &mut old);
        for name in ["one", "two", "three"] {
            fs::write(to.join(name), &old).expect("a file");
            // Long ago: a change in the same tick would not be seen.
            common::set_time(&to.join(name), 1_000, 0);
            let (new, holes) = changed(&mut gardener, &old);
            fs::write(from.join(name), &new).expect("a file");
            punch(&from.join(name), &holes);
        }
        let way = gardener.pick(&WAYS);
        if seed % 2 == 0 {
            // One breaks off before.
            let (mut near, far) = pair().expect("sockets");
            let write = std::mem::replace(&mut near.write, Box::new(io::sink()));
            let left = gardener.below(400_000) as usize;
            near.write = Box::new(Breaks { write, left, sent: Arc::default() });
            let _broke = over(Topology::Push, (&from, &to), &plain(), (near, far), &notes().0);
        }
        let (counts, said) = go(way, &from, &to, &plain());
        assert_eq!(counts.failures, 0, "seed {seed}: {said:?}");
        assert_same(&from, &to, &format!("seed {seed}: {way:?}"));
        for name in ["one", "two", "three"] {
            let blocks = |dir: &Path| fs::metadata(dir.join(name)).expect("it").blocks();
            let (one, other) = (blocks(&from), blocks(&to));
            assert!(other <= one + 16, "seed {seed}: {name}: {other} blocks, {one} at the source");
        }
    }
}

/// Of which no block stays, in many parts with holes between them: fewer and fewer are looked at.
#[test]
fn a_large_file_of_many_parts_becomes_another_of_which_nothing_stays() {
    const PART: usize = 48 << 10;
    let scratch = Scratch::new("parts");
    let (from, to) = (scratch.join("from"), scratch.join("to"));
    let mut gardener = Gardener::new(9);
    for dir in [&from, &to] {
        fs::create_dir(dir).expect("a folder");
        let mut bytes = vec![0; 200 * PART];
        base::random::Random::fill(&mut gardener.random, &mut bytes);
        fs::write(dir.join("parts"), bytes).expect("a file");
    }
    common::set_time(&to.join("parts"), 1_000, 0);
    let holes: Vec<_> = (0..100).map(|n| (2 * n * PART, (2 * n + 1) * PART)).collect();
    punch(&from.join("parts"), &holes);
    let (counts, said) = go(Topology::Push, &from, &to, &plain());
    assert_eq!(counts.failures, 0, "{said:?}");
    assert_same(&from, &to, "parts");
}
