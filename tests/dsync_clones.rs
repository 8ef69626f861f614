//! `plimsoll dsync` where the kernel can copy, or have files share what they have in common.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use base::random::{Random, SeededRandom};
use e2e::disk::Disk;
use e2e::place::Memory;
use e2e::process::{DEADLINE, run};
use e2e::scratch::Scratch;
use e2e::server::binary;
use e2e::skip;
use serde_json::Value;
use sim::forget::{self, ForgetFs};

/// Bytes of the large file, of which the second quarter is a hole.
const SIZE: u64 = 4 << 20;

/// A run; what it counted.
fn go(from: &str, to: &str, options: &[&str]) -> Value {
    let mut command = Command::new(binary());
    command.args(["dsync", "--json", from, to]).args(options);
    let output = run(&mut command, DEADLINE);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(text.lines().last().expect("a line")).expect("JSON")
}

/// A run with its other side started as ssh would start it; its counters.
fn go_as_between_machines(scratch: &Path, from: &str, to: &str, more: &[&str]) -> Value {
    let rsh = scratch.join("rsh");
    fs::write(&rsh, "#!/bin/sh\nshift\nexec sh -c \"exec $*\"\n").expect("a script");
    fs::set_permissions(&rsh, fs::Permissions::from_mode(0o755)).expect("making it runnable");
    let (shell, program) = (rsh.display().to_string(), binary().display().to_string());
    let options = ["--rsh", &shell, "--remote-program", &program, "--streams", "0"];
    go(from, &format!("host:{to}"), &[&options, more].concat())
}

fn plant(from: &Path) {
    let mut random = SeededRandom::new(5);
    let file = File::create(from.join("large")).expect("a file");
    let mut bytes = vec![0; SIZE as usize / 4];
    for quarter in [0, 2, 3] {
        random.fill(&mut bytes);
        file.write_all_at(&bytes, quarter * SIZE / 4).expect("its content");
    }
    // Its end is within a block.
    file.write_all_at(b"end", SIZE).expect("its end");
    fs::write(from.join("small"), b"small").expect("a file");
    fs::write(from.join("odd"), &bytes[..300_001]).expect("a file");
    rest(from);
}

/// Waits until the files were not changed just now: such ones are sent.
fn rest(folder: &Path) {
    let age = |name: &str| {
        let meta = fs::metadata(folder.join(name)).expect("it");
        let changed = meta.ctime() as i128 * 1_000_000_000 + i128::from(meta.ctime_nsec());
        i128::from(base::clock::wall_ns()) - changed
    };
    while ["large", "odd"].iter().any(|name| age(name) < 100_000_000) {
        std::thread::yield_now();
    }
}

fn assert_same(from: &Path, to: &Path) {
    for name in ["large", "small", "odd"] {
        let (one, other) = (from.join(name), to.join(name));
        assert!(fs::read(&one).expect("it") == fs::read(&other).expect("it"), "{name}");
        let blocks = |path: &Path| fs::metadata(path).expect("it").blocks();
        assert!(blocks(&other) <= blocks(&one) + 64, "{name}: the hole is one");
    }
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("{name} of {value}"))
}

#[test]
fn a_copy_on_one_machine_is_made_by_the_kernel() {
    let scratch = Scratch::new("dsync-kernel");
    let (from, to) = (scratch.folder("from", None), scratch.path().join("to"));
    plant(&from);
    let (one, other) = (from.display().to_string(), to.display().to_string());
    let done = go(&one, &other, &[]);
    assert_same(&from, &to);
    let taken = number(&done, "bytes_copied") + number(&done, "bytes_cloned");
    let data = SIZE * 3 / 4 + 300_001;
    assert!(taken >= data && taken <= data + 8_192, "{done}");
    assert_eq!(number(&done, "bytes_received"), 5, "{done}");
    assert_eq!(number(&done, "bytes_done"), taken + 5, "{done}");
    let again = go(&one, &other, &[]);
    assert_eq!((number(&again, "changes"), number(&again, "bytes_copied")), (0, 0));
}

#[test]
fn what_two_files_have_in_common_is_shared_where_that_can_be() {
    let disk = match Disk::new("xfs") {
        Ok(disk) => disk,
        Err(why) => skip!("dsync-clones", "{why}"),
    };
    let (from, to) = (disk.path().join("from"), disk.path().join("to"));
    fs::create_dir(&from).expect("a folder");
    plant(&from);
    let (one, other) = (from.display().to_string(), to.display().to_string());
    let done = go(&one, &other, &[]);
    assert_same(&from, &to);
    assert!(number(&done, "bytes_cloned") >= SIZE * 3 / 4, "{done}");
    assert_eq!(number(&done, "bytes_copied"), 0, "{done}");
    // A change there is none here.
    let file = File::options().write(true).open(to.join("large")).expect("it");
    file.write_all_at(b"other", 100).expect("written");
    assert_ne!(fs::read(from.join("large")).expect("it")[100..105], *b"other");
    // Two changes within one tick of the file system would give both files the same time.
    rest(&to);

    // Between machines, what did not change comes from the old file, which it then shares.
    let file = File::options().write(true).open(from.join("large")).expect("it");
    file.write_all_at(&[9; 70_000], SIZE * 3 / 4 + 1_000).expect("written");
    rest(&from);
    let done = go_as_between_machines(disk.path(), &one, &other, &[]);
    assert_same(&from, &to);
    assert!(number(&done, "bytes_cloned") >= SIZE / 2, "{done}");
    assert!(number(&done, "bytes_received") < SIZE / 4, "{done}");
}

#[test]
fn a_file_with_holes_takes_the_place_of_a_dense_one_where_only_it_has_room() {
    let memory = match Memory::new("size=8m") {
        Ok(memory) => memory,
        Err(why) => skip!("dsync-room", "{why}"),
    };
    let scratch = Scratch::new("dsync-room");
    let (from, to) = (scratch.folder("from", None), memory.path().join("to"));
    fs::create_dir(&to).expect("a folder");
    let mut bytes = vec![0; 5 << 20];
    SeededRandom::new(6).fill(&mut bytes);
    fs::write(to.join("a"), &bytes).expect("a file");
    let old = File::options().write(true).open(to.join("a")).expect("it");
    old.set_modified(std::time::SystemTime::UNIX_EPOCH).expect("its time");
    // The part that stays and the new part fit on the disk next to the old file.
    let file = File::create(from.join("a")).expect("a file");
    file.write_all_at(&bytes[..1 << 20], 0).expect("its begin");
    file.write_all_at(&[7; 1 << 20], 2 << 20).expect("its middle");
    file.set_len(5 << 20).expect("its size");
    let (one, other) = (from.display().to_string(), to.display().to_string());
    let done = go_as_between_machines(scratch.path(), &one, &other, &[]);
    let (from, to) = (from.join("a"), to.join("a"));
    assert!(fs::read(&from).expect("it") == fs::read(&to).expect("it"), "{done}");
    assert!(fs::metadata(&to).expect("it").blocks() * 512 <= 2 << 20, "its holes are some");
    assert!(number(&done, "bytes_received") < 1_300_000, "its begin is not sent: {done}");
}

#[test]
fn where_no_hole_can_be_made_there_are_zeros() {
    if let Err(why) = forget::available() {
        skip!("dsync-no-holes", "{why}");
    }
    let scratch = Scratch::new("dsync-no-holes");
    let mount = ForgetFs::mount(&scratch.folder("mount", None)).expect("the mount");
    let (from, to) = (scratch.folder("from", None), mount.path().join("to"));
    fs::create_dir(&to).expect("a folder");
    let bytes = vec![7; 1 << 20];
    fs::write(to.join("a"), &bytes).expect("a file");
    let old = File::options().write(true).open(to.join("a")).expect("it");
    old.set_modified(std::time::SystemTime::UNIX_EPOCH).expect("its time");
    let file = File::create(from.join("a")).expect("a file");
    file.write_all_at(&bytes[..1 << 18], 0).expect("its begin");
    file.write_all_at(b"other", 3 << 18).expect("a part");
    file.set_len(1 << 20).expect("its size");
    let (one, other) = (from.display().to_string(), to.display().to_string());
    let done = go_as_between_machines(scratch.path(), &one, &other, &["--in-place"]);
    let (from, to) = (from.join("a"), to.join("a"));
    assert!(fs::read(&from).expect("it") == fs::read(&to).expect("it"), "{done}");
    assert!(number(&done, "bytes_received") < 1 << 17, "what stays is not sent: {done}");
}
