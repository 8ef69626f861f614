//! Changed files that are written where they lie: only what changed, and never what is not theirs.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::broken::Breaks;
use crate::common::{Gardener, Scratch, assert_same, is_root, notes, plain};
use base::random::Random;
use sync::run::{answer, local, pair, start};
use sync::streams::connect::Calling;
use sync::{Counts, Options, Role, Why};

const SIZE: usize = 2 << 20;

fn in_place() -> Options {
    Options { in_place: true, ..plain() }
}

/// Over a link that breaks after `left` bytes from the source.
fn push(from: &Path, to: &Path, left: usize) -> Result<Counts, Why> {
    let (mut near, far) = pair().expect("sockets");
    let write = std::mem::replace(&mut near.write, Box::new(io::sink()));
    near.write = Box::new(Breaks { write, left, sent: Arc::default() });
    let other = std::thread::spawn(move || answer(far, None));
    let ends = (from, to.as_os_str().as_encoded_bytes());
    let done = start(near, Role::SOURCE, ends, &in_place(), &Calling::none(), &notes().0);
    // The other side has ended with the link, whatever its result.
    let _other = other.join().expect("the other side");
    done
}

fn run(here: bool, from: &Path, to: &Path) -> Counts {
    let done = match here {
        true => local(from, to, &in_place(), &notes().0),
        false => push(from, to, usize::MAX),
    };
    let counts = done.expect("a run");
    assert_eq!(counts.failures, 0);
    counts
}

fn plant(scratch: &Scratch, gardener: &mut Gardener) -> (PathBuf, PathBuf) {
    let (from, to) = (scratch.join("from"), scratch.join("to"));
    fs::create_dir(&from).expect("a folder");
    let mut bytes = vec![0; SIZE];
    gardener.random.fill(&mut bytes);
    fs::write(from.join("large"), &bytes).expect("a file");
    fs::write(from.join("small"), b"small").expect("a file");
    (from, to)
}

fn inode(path: &Path) -> u64 {
    fs::metadata(path).expect("it").ino()
}

#[test]
fn only_what_changed_is_written_where_it_lies() {
    for here in [true, false] {
        let scratch = Scratch::new("in-place");
        let mut gardener = Gardener::new(1);
        let (from, to) = plant(&scratch, &mut gardener);
        run(here, &from, &to);
        let large = inode(&to.join("large"));
        // Changed in the middle; longer; shorter; a hole where something was.
        for change in 0..4 {
            let file = File::options().write(true).open(from.join("large")).expect("it");
            let mut bytes = vec![0; 30_000];
            gardener.random.fill(&mut bytes);
            match change {
                0 => file.write_all_at(&bytes, SIZE as u64 / 2).expect("written"),
                1 => file.write_all_at(&bytes, SIZE as u64).expect("written"),
                2 => file.set_len(SIZE as u64 - 12_345).expect("cut"),
                _ => {
                    file.set_len(SIZE as u64 / 2).expect("cut");
                    file.set_len(SIZE as u64).expect("a hole");
                }
            }
            fs::write(from.join("small"), vec![change; 5 + change as usize]).expect("a file");
            let small = inode(&to.join("small"));
            let counts = run(here, &from, &to);
            assert_ne!(inode(&to.join("small")), small, "small files come beside");
            let what = format!("here {here}, change {change}");
            assert_same(&from, &to, &what);
            assert_eq!(inode(&to.join("large")), large, "{what}");
            let most = if change == 3 { SIZE as u64 / 2 + 50_000 } else { 100_000 };
            assert!(counts.bytes_received < most, "{what}: {}", counts.bytes_received);
        }
    }
}

#[test]
fn what_is_not_the_files_own_is_not_written() {
    let scratch = Scratch::new("in-place-own");
    let mut gardener = Gardener::new(2);
    let (from, to) = plant(&scratch, &mut gardener);
    for name in ["named", "linked"] {
        fs::copy(from.join("large"), from.join(name)).expect("a copy");
    }
    let out = scratch.join("out");
    fs::create_dir_all(&to).expect("a folder");
    fs::write(&out, vec![1; SIZE]).expect("a file");
    fs::hard_link(&out, to.join("named")).expect("a name");
    symlink(&out, to.join("linked")).expect("a link");
    for here in [true, false] {
        run(here, &from, &to);
        assert_same(&from, &to, "own");
        assert!(fs::read(&out).expect("it") == vec![1; SIZE], "it is outside");
    }
    if is_root() {
        // A process that has it open now must not read the new content of another owner.
        let (file, old) = (to.join("large"), inode(&to.join("large")));
        std::os::unix::fs::chown(&file, Some(65_534), None).expect("given away");
        fs::write(from.join("large"), vec![7; SIZE]).expect("a change");
        run(false, &from, &to);
        assert_same(&from, &to, "given away");
        assert_ne!(inode(&file), old);
    }
}

#[test]
fn a_run_that_breaks_leaves_a_file_and_the_next_makes_it_whole() {
    let mut broken = 0;
    for seed in 0..12 {
        let scratch = Scratch::new("in-place-broken");
        let mut gardener = Gardener::new(seed);
        let (from, to) = plant(&scratch, &mut gardener);
        run(false, &from, &to);
        let old = inode(&to.join("large"));
        let mut bytes = vec![0; SIZE / 2];
        gardener.random.fill(&mut bytes);
        let file = File::options().write(true).open(from.join("large")).expect("it");
        file.write_all_at(&bytes, SIZE as u64 / 4).expect("written");
        let left = gardener.below(SIZE as u64 / 2) as usize;
        let done = push(&from, &to, left);
        broken += u32::from(done.is_err());
        let (file, size) = (to.join("large"), fs::metadata(to.join("large")).expect("it").len());
        assert_eq!((inode(&file), size), (old, SIZE as u64), "seed {seed}");
        let names = fs::read_dir(&to).expect("it").count();
        assert_eq!(names, 2, "seed {seed}: nothing is beside it");
        run(false, &from, &to);
        assert_same(&from, &to, &format!("seed {seed}"));
        assert_eq!(inode(&file), old, "seed {seed}");
    }
    assert!(broken > 6, "only {broken} runs broke");
}
