//! What a run may not do: delete more than requested, write elsewhere, lose holes or links, or
//! report success when there was an error.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use crate::common;
use crate::common::{Scratch, assert_same, lines, notes, plain};
use sync::rules::rule;
use sync::run::local;
use sync::{Counts, Options};
use wire::xdr::Seq;

/// VFS_CAP_REVISION_2 with cap_net_bind_service, permitted and effective.
const CAPABILITY: [u8; 20] = [1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

fn go(from: &Path, to: &Path, options: &Options) -> (Counts, Vec<String>) {
    let (report, kept) = notes();
    let counts = local(from, to, options, &report).expect("a run");
    (counts, lines(&kept))
}

fn folders(scratch: &Scratch) -> (std::path::PathBuf, std::path::PathBuf) {
    let (from, to) = (scratch.join("from"), scratch.join("to"));
    fs::create_dir(&from).expect("a folder");
    fs::create_dir(&to).expect("a folder");
    (from, to)
}

#[test]
fn nothing_is_removed_unless_requested() {
    let scratch = Scratch::new("unasked");
    let (from, to) = folders(&scratch);
    fs::create_dir_all(to.join("old/deep")).expect("folders");
    fs::write(to.join("old/deep/file"), b"x").expect("a file");
    fs::write(to.join("extra"), b"x").expect("a file");
    fs::write(from.join("new"), b"x").expect("a file");
    fs::write(from.join("old"), b"now a file").expect("a file");
    let options = Options { delete: false, ..plain() };
    let (counts, said) = go(&from, &to, &options);
    assert_eq!(counts.failures, 1, "{said:?}");
    assert!(said.iter().any(|line| line.contains(
        "failure old the destination has a directory of \
        this name"
    )));
    assert!(to.join("old/deep/file").exists() && to.join("extra").exists());
    assert!(to.join("new").exists());
    let (counts, said) = go(&from, &to, &plain());
    assert_eq!(counts.failures, 0, "{said:?}");
    for gone in ["delete old/deep/file ", "delete old/deep ", "delete old ", "delete extra "] {
        assert!(said.iter().any(|line| line == gone), "{gone}: {said:?}");
    }
    assert_same(&from, &to, "with --delete");
}

#[test]
fn trees_as_deep_as_paths_allow_are_copied_and_removed() {
    let scratch = Scratch::new("deep");
    let (from, to) = folders(&scratch);
    let empty = scratch.join("empty");
    fs::create_dir(&empty).expect("a folder");
    let mut at = File::open(&from).expect("a folder");
    for _ in 0..1_900 {
        let inner = format!("/proc/self/fd/{}/d", at.as_raw_fd());
        fs::create_dir(&inner).expect("one more");
        at = File::open(&inner).expect("opened");
    }
    drop(at);
    // The roots have a line of their own where their times differ.
    let lines = |said: &[String], word| said.iter().filter(|line| line.starts_with(word)).count();
    let (counts, said) = go(&from, &to, &plain());
    assert_eq!((counts.failures, lines(&said, "create ")), (0, 1_900), "{:?}", said.first());
    for full in [&from, &to] {
        let (counts, said) = go(&empty, full, &plain());
        assert_eq!((counts.failures, lines(&said, "delete ")), (0, 1_900), "{:?}", said.first());
        assert_same(&empty, full, "with --delete");
    }
}

#[test]
fn what_the_rules_leave_out_stays_at_both_sides() {
    let scratch = Scratch::new("rules");
    let (from, to) = folders(&scratch);
    fs::create_dir_all(from.join("d")).expect("folders");
    fs::create_dir_all(to.join("gone/keep")).expect("folders");
    for path in ["a.o", "a.c", "d/b.o", "d/b.c"] {
        fs::write(from.join(path), b"new").expect("a file");
    }
    for path in ["z.o", "z.c", "gone/x.o", "gone/x.c", "gone/keep/y.o"] {
        fs::write(to.join(path), b"old").expect("a file");
    }
    let rules = Seq(vec![rule(false, b"*.o")]);
    let (counts, said) = go(&from, &to, &Options { rules, ..plain() });
    assert_eq!(counts.failures, 0, "{said:?}");
    for path in ["a.c", "d/b.c", "z.o", "gone/x.o", "gone/keep/y.o"] {
        assert!(to.join(path).exists(), "{path}");
    }
    for path in ["a.o", "d/b.o", "z.c", "gone/x.c"] {
        assert!(!to.join(path).exists(), "{path}");
    }
}

#[test]
fn links_here_are_replaced_and_not_followed() {
    let scratch = Scratch::new("links");
    let (from, to) = folders(&scratch);
    let out = scratch.join("out");
    fs::create_dir(&out).expect("a folder");
    fs::write(out.join("file"), b"outside").expect("a file");
    fs::create_dir(from.join("d")).expect("a folder");
    fs::write(from.join("d/file"), b"inside").expect("a file");
    fs::write(from.join("f"), b"inside").expect("a file");
    symlink(&out, to.join("d")).expect("a link");
    symlink(out.join("file"), to.join("f")).expect("a link");
    symlink(&out, to.join("extra")).expect("a link");
    let (counts, said) = go(&from, &to, &plain());
    assert_eq!(counts.failures, 0, "{said:?}");
    assert_same(&from, &to, "links");
    assert_eq!(fs::read(out.join("file")).expect("it"), b"outside");
    assert_eq!(fs::read_dir(&out).expect("it").count(), 1);
}

#[test]
fn a_file_that_has_names_elsewhere_is_not_written_to() {
    let scratch = Scratch::new("names");
    let (from, to) = folders(&scratch);
    fs::write(scratch.join("outside"), b"outside").expect("a file");
    fs::hard_link(scratch.join("outside"), to.join("f")).expect("a link");
    fs::write(from.join("f"), b"inside!").expect("a file");
    common::set_time(&from.join("f"), 5, 5);
    go(&from, &to, &plain());
    assert_same(&from, &to, "content");
    // The same content, other metadata: it is the metadata of the name outside, too.
    fs::remove_file(to.join("f")).expect("taking it away");
    fs::write(scratch.join("second"), b"inside!").expect("a file");
    common::set_time(&scratch.join("second"), 5, 5);
    fs::set_permissions(scratch.join("second"), fs::Permissions::from_mode(0o600)).expect("mode");
    fs::set_permissions(from.join("f"), fs::Permissions::from_mode(0o640)).expect("mode");
    fs::hard_link(scratch.join("second"), to.join("f")).expect("a link");
    go(&from, &to, &plain());
    assert_same(&from, &to, "metadata");
    assert_eq!(fs::read(scratch.join("outside")).expect("it"), b"outside");
    let mode = fs::metadata(scratch.join("second")).expect("it").mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn holes_stay_holes() {
    let scratch = Scratch::new("holes");
    let (from, to) = folders(&scratch);
    let file = File::create(from.join("sparse")).expect("a file");
    file.write_all_at(b"begin", 0).expect("data");
    file.write_all_at(b"middle", 1 << 30).expect("data");
    file.set_len(4 << 30).expect("a hole");
    let (counts, _) = go(&from, &to, &plain());
    let (one, other) = (fs::metadata(from.join("sparse")), fs::metadata(to.join("sparse")));
    let (one, other) = (one.expect("it"), other.expect("it"));
    assert_eq!(one.len(), other.len());
    assert!(other.blocks() <= one.blocks() + 16, "{} {}", one.blocks(), other.blocks());
    assert!(counts.bytes_received <= 128 << 10, "{}", counts.bytes_received);
    let mut middle = [0; 6];
    let file = File::open(to.join("sparse")).expect("it");
    file.read_exact_at(&mut middle, 1 << 30).expect("its middle");
    assert_eq!(&middle, b"middle");
}

#[test]
fn what_a_broken_run_left_is_swept_and_not_carried() {
    let scratch = Scratch::new("sweep");
    let (from, to) = folders(&scratch);
    let aside = ".plimsoll-dsync-0123456789abcdef";
    fs::write(from.join(aside), b"half").expect("a file");
    fs::write(to.join(aside), b"half").expect("a file");
    fs::write(from.join(".plimsoll-dsync-notes"), b"mine").expect("a file");
    let options = Options { delete: false, ..plain() };
    let (counts, said) = go(&from, &to, &options);
    assert_eq!((counts.failures, counts.files), (0, 1), "{said:?}");
    assert!(!to.join(aside).exists() && to.join(".plimsoll-dsync-notes").exists());
}

#[test]
fn a_file_that_never_stands_still_is_reported() {
    let scratch = Scratch::new("moving");
    let (from, to) = folders(&scratch);
    let path = from.join("busy");
    fs::write(&path, vec![1; 8 << 20]).expect("a file");
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (stops, file) = (std::sync::Arc::clone(&stop), File::options().write(true).open(&path));
    let file = file.expect("the file");
    let (began, begins) = std::sync::mpsc::channel();
    let writer = std::thread::spawn(move || {
        let mut n = 0u64;
        while !stops.load(std::sync::atomic::Ordering::Relaxed) {
            n += 1;
            file.write_all_at(&n.to_be_bytes(), n % (1 << 20)).expect("a write");
            let _ = began.send(());
        }
    });
    begins.recv().expect("a first write");
    drop(begins);
    let (counts, said) = while_written(&from, &to);
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    writer.join().expect("its end");
    assert_eq!(counts.failures, 1, "{said:?}");
    assert!(said.iter().any(|line| line.contains("changed while being read")), "{said:?}");
    assert!(!to.join("busy").exists());
    let (counts, _) = go(&from, &to, &plain());
    assert_eq!(counts.failures, 0);
    assert_same(&from, &to, "at rest");
}

/// Runs until one has reported the file: a writer that gets no processor time during a whole run
/// has changed nothing in it, and such a run copies the file as it is.
fn while_written(from: &Path, to: &Path) -> (Counts, Vec<String>) {
    const RUNS: usize = 100;
    let mut last = go(from, to, &plain());
    for _ in 1..RUNS {
        if last.0.failures != 0 {
            break;
        }
        fs::remove_file(to.join("busy")).expect("the file that came over");
        last = go(from, to, &plain());
    }
    last
}

#[test]
fn a_run_into_nowhere_or_from_nowhere_fails() {
    let scratch = Scratch::new("nowhere");
    let (from, _) = folders(&scratch);
    let report = notes().0;
    assert!(local(&scratch.join("none"), &scratch.join("to"), &plain(), &report).is_err());
    assert!(local(&from, &scratch.join("none/to"), &plain(), &report).is_err());
    fs::write(scratch.join("file"), b"x").expect("a file");
    assert!(local(&from, &scratch.join("file"), &plain(), &report).is_err());
    assert!(local(&scratch.join("file"), &scratch.join("to"), &plain(), &report).is_err());
}

/// A change of owner takes capabilities away, of a file that differs in nothing else.
#[test]
fn a_file_that_gets_another_owner_keeps_its_capabilities() {
    if !common::is_root() {
        return println!("SKIP dsync-devices: needs root");
    }
    let scratch = Scratch::new("capabilities");
    let (from, to) = folders(&scratch);
    for folder in [&from, &to] {
        let file = folder.join("file");
        fs::write(&file, b"x").expect("a file");
        if !common::set_xattr(&file, "security.capability", &CAPABILITY) {
            return println!("SKIP dsync-devices: no capabilities can be set here");
        }
        common::set_time(&file, 1_000_000, 0);
        common::set_time(folder, 1_000_000, 0);
    }
    assert_same(&from, &to, "before");
    if std::os::unix::fs::chown(to.join("file"), Some(65_534), Some(65_534)).is_err() {
        return println!("SKIP dsync-devices: no other owner can be set here");
    }
    assert!(common::set_xattr(&to.join("file"), "security.capability", &CAPABILITY));
    let (counts, said) = go(&from, &to, &plain());
    assert_eq!(counts.failures, 0, "{said:?}");
    assert_same(&from, &to, "of the same owner");
    assert!(common::xattrs(&to.join("file")).contains_key(b"security.capability".as_slice()));
}

/// What a source that is not trusted may bring along: neither devices nor privileges, and each that
/// is left behind is named and counted.
#[test]
fn devices_and_privileges_are_left_behind() {
    if !common::is_root() {
        return println!("SKIP dsync-devices: needs root");
    }
    let scratch = Scratch::new("devices");
    let (from, to) = folders(&scratch);
    let mode = |path: &Path| fs::metadata(path).expect("there").mode() & 0o7777;
    for (kind, name) in [(libc::S_IFCHR, "chr"), (libc::S_IFBLK, "blk"), (libc::S_IFIFO, "fifo")] {
        if !common::make_node(&from.join(name), kind, (1, 3)) {
            return println!("SKIP dsync-devices: no device nodes can be made here");
        }
    }
    for (name, mode) in [("suid", 0o4755), ("sgid", 0o2755), ("cap", 0o755), ("plain", 0o755)] {
        fs::write(from.join(name), name).expect("a file");
        fs::set_permissions(from.join(name), fs::Permissions::from_mode(mode)).expect("a mode");
    }
    let capable = common::set_xattr(&from.join("cap"), "security.capability", &CAPABILITY);
    fs::create_dir(from.join("dir")).expect("a folder");
    fs::set_permissions(from.join("dir"), fs::Permissions::from_mode(0o2775)).expect("a mode");
    let none = Options { devices: false, set_id: false, ..plain() };
    for dry_run in [true, false, false] {
        let (counts, said) = go(&from, &to, &Options { dry_run, ..none.clone() });
        let dropped = 2 + u64::from(capable);
        assert_eq!((counts.devices_skipped, counts.set_id_dropped), (2, dropped), "{said:?}");
        assert_eq!(counts.failures, 0, "{said:?}");
        let notices = said.iter().filter(|line| line.starts_with("notice ")).count() as u64;
        assert_eq!(notices, 2 + dropped, "{said:?}");
    }
    assert!(!to.join("chr").exists() && !to.join("blk").exists() && to.join("fifo").exists());
    for name in ["suid", "sgid", "cap", "plain"] {
        assert_eq!(
            (mode(&to.join(name)), fs::read(to.join(name)).expect("it")),
            (0o755, name.into())
        );
    }
    assert!(!common::xattrs(&to.join("cap")).contains_key(b"security.capability".as_slice()));
    assert_eq!(mode(&to.join("dir")), 0o2775, "what group new entries have is no privilege");
    let (counts, said) = go(&from, &to, &none);
    assert_eq!(counts.changes, 0, "nothing is done again: {said:?}");
    // What was there before stays where it is, also with --delete.
    let (counts, _) = go(&from, &to, &plain());
    assert_eq!((counts.devices_skipped, counts.set_id_dropped), (0, 0));
    assert_same(&from, &to, "with devices");
    go(&from, &to, &none);
    assert!(to.join("chr").symlink_metadata().is_ok());
    assert_eq!(mode(&to.join("suid")), 0o755);
}
