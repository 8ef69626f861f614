//! A destination with a file system that stores times as whole seconds (ext4 with inodes of 128
//! bytes, as ext3 has them) or as every second one (FAT): what was copied is not copied again, and
//! a change is not missed.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Scratch, lines, notes, plain, set_time};
use sync::run::local;
use sync::{Counts, Options};

/// A file system in a file, mounted until it is dropped.
struct Mounted(PathBuf);

fn run(program: &str, args: &[&str]) -> Result<(), String> {
    let done = Command::new(program).args(args).output();
    let done = done.map_err(|error| format!("{program} cannot be run: {error}"))?;
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    if done.status.success() { Ok(()) } else { Err(format!("{program}: {said}")) }
}

impl Mounted {
    fn new(scratch: &Scratch, mkfs: &[&str]) -> Result<Self, String> {
        let (image, place) = (scratch.join("image"), scratch.join("mounted"));
        File::create(&image).and_then(|file| file.set_len(64 << 20)).expect("a sparse file");
        fs::create_dir(&place).expect("a folder");
        let (image, at) = (image.to_str().expect("our own"), place.to_str().expect("our own"));
        let (program, options) = mkfs.split_first().expect("a program");
        run(program, &[options, &[image]].concat())?;
        run("mount", &["-o", "loop", image, at])?;
        Ok(Self(place))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Err(error) = run("umount", &[self.0.to_str().unwrap_or_default()]) {
            println!("left mounted: {error}");
        }
    }
}

fn go(from: &Path, to: &Path, options: &Options) -> (Counts, Vec<String>) {
    let (report, kept) = notes();
    let counts = local(from, to, options, &report).expect("a run");
    (counts, lines(&kept))
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("after 1970").as_secs().cast_signed()
}

fn on(name: &str, mkfs: &[&str], links: bool) -> Result<(), String> {
    let scratch = Scratch::new(name);
    let mounted = Mounted::new(&scratch, mkfs)?;
    let (from, to) = (scratch.join("from"), mounted.0.join("to"));
    fs::create_dir_all(from.join("d")).expect("folders");
    fs::write(from.join("d/file"), "one").expect("a file");
    fs::write(from.join("young"), "one").expect("a file");
    set_time(&from.join("d/file"), now() - 1_001, 123_456_789);
    if links {
        symlink("d/file", from.join("link")).expect("a link");
        set_time(&from.join("link"), now() - 1_000, 999_999_999);
    }
    set_time(&from.join("d"), now() - 1_003, 500_000_000);
    set_time(&from, now() - 1_004, 500_000_000);
    // Younger than what is written of it here: another change could come within the second.
    let soon = now() + 3_601;
    set_time(&from.join("young"), soon, 200_000_000);
    // FAT has neither owners nor modes of its own.
    let options = Options { owners: false, xattrs: links, ..plain() };
    let (counts, said) = go(&from, &to, &options);
    assert_eq!(counts.failures, 0, "{said:?}");
    fs::remove_file(from.join("young")).expect("removed");
    set_time(&from, now() - 1_004, 500_000_000);
    go(&from, &to, &options);
    for dry_run in [true, false] {
        let (counts, said) = go(&from, &to, &Options { dry_run, ..options.clone() });
        assert_eq!((counts.changes, counts.files), (0, 0), "{name}: {said:?}");
    }
    // Another time, further away than the resolution.
    fs::write(from.join("d/file"), "two").expect("a file");
    set_time(&from.join("d/file"), now() - 900, 1);
    let (counts, said) = go(&from, &to, &options);
    assert_eq!(counts.files, 1, "{said:?}");
    assert_eq!(fs::read(to.join("d/file")).expect("it"), b"two");
    // One within the resolution, of a change that came behind what is here.
    set_time(&from.join("d/file"), soon, 200_000_000);
    go(&from, &to, &options);
    fs::write(from.join("d/file"), "new").expect("a file");
    set_time(&from.join("d/file"), soon, 700_000_000);
    let (_, said) = go(&from, &to, &options);
    assert_eq!(fs::read(to.join("d/file")).expect("it"), b"new", "{name}: {said:?}");
    Ok(())
}

#[test]
fn whole_seconds_are_no_change() {
    let mkfs = ["mkfs.ext4", "-q", "-F", "-I", "128"];
    if let Err(why) = on("coarse-ext4", &mkfs, true) {
        println!("SKIP dsync-coarse-ext4: {why}");
    }
}

#[test]
fn every_second_second_is_no_change() {
    if let Err(why) = on("coarse-fat", &["mkfs.vfat"], false) {
        println!("SKIP dsync-coarse-fat: {why}");
    }
}
