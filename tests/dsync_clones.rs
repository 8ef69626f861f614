//! `plimsoll dsync` where the kernel can copy, or have files share what they have in common.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use base::random::{Random, SeededRandom};
use e2e::disk::Disk;
use e2e::process::{DEADLINE, run};
use e2e::scratch::Scratch;
use e2e::server::binary;
use e2e::skip;
use serde_json::Value;

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
    let rsh = disk.path().join("rsh");
    fs::write(&rsh, "#!/bin/sh\nshift\nexec sh -c \"exec $*\"\n").expect("a script");
    fs::set_permissions(&rsh, fs::Permissions::from_mode(0o755)).expect("making it runnable");
    let (shell, program) = (rsh.display().to_string(), binary().display().to_string());
    let options = ["--rsh", &shell, "--remote-program", &program, "--streams", "0"];
    let done = go(&one, &format!("host:{other}"), &options);
    assert_same(&from, &to);
    assert!(number(&done, "bytes_cloned") >= SIZE / 2, "{done}");
    assert!(number(&done, "bytes_received") < SIZE / 4, "{done}");
}
