//! The same suite in a process without privilege: the test program runs itself again as uid 65534,
//! or continues as it is when it is not root.

use std::process::Command;
use std::sync::Arc;

use vfs::fs::FileSystem;

use super::{Scratch, disk, memory, restart, suite};

const MARK: &str = "PLIMSOLL_TEST_AS_NOBODY";

/// Runs `test` without privilege: in a child process if this one is root.
fn without_privilege(name: &str, test: impl Fn()) {
    let root = std::fs::metadata("/proc/self").is_ok_and(|meta| {
        use std::os::unix::fs::MetadataExt;
        meta.uid() == 0
    });
    if !root || std::env::var_os(MARK).is_some() {
        return test();
    }
    let program = std::env::current_exe().expect("this program");
    // The program may lie where an ordinary user cannot read.
    let copy = std::env::temp_dir().join(format!("plimsoll-vfs-{}-{name}", std::process::id()));
    std::fs::copy(&program, &copy).expect("a copy");
    let child = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&copy)
        .args([&format!("nobody::{name}"), "--exact", "--nocapture"])
        .env(MARK, "1")
        .current_dir("/")
        .output();
    std::fs::remove_file(&copy).expect("ours to remove");
    let child = match child {
        Ok(child) => child,
        Err(error) => return println!("SKIP {name}: setpriv cannot be run: {error}"),
    };
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(output.contains("1 passed"), "{output}\n{}", String::from_utf8_lossy(&child.stderr));
    assert!(child.status.success());
}

#[test]
fn conforms_on_disk() {
    without_privilege("conforms_on_disk", || suite(&disk(), "nobody-disk", true));
}

#[test]
fn conforms_on_tmpfs() {
    without_privilege("conforms_on_tmpfs", || suite(&memory(), "nobody-tmpfs", true));
}

#[test]
fn handles_survive_restart_on_disk() {
    without_privilege("handles_survive_restart_on_disk", || {
        restart(&disk(), "nobody-restart", true);
    });
}

#[test]
fn handles_survive_restart_on_tmpfs() {
    without_privilege("handles_survive_restart_on_tmpfs", || {
        restart(&memory(), "nobody-restart-tmpfs", true);
    });
}

#[test]
fn says_so() {
    without_privilege("says_so", || {
        let scratch = Scratch::new(&disk(), "nobody-says");
        let fs = scratch.open(true);
        assert!(!fs.privileged() && !fs.has_kernel_handles());
        assert!(fs.acting_as().contains("identity of the server"), "{}", fs.acting_as());
    });
}

/// The table is lost, as after a crash before it was written: the search finds the files.
#[test]
fn found_without_the_table() {
    without_privilege("found_without_the_table", || {
        let scratch = Scratch::new(&disk(), "nobody-search");
        let fs = scratch.open(true);
        let me = vfs::conformance::user(65_534, 65_534);
        let cx = vfs::conformance::cx(&me);
        let set = vfs::attr::SetAttr { mode: Some(0o755), ..Default::default() };
        let mut dir = fs.root();
        for name in ["a", "b", "c"] {
            dir = fs.mkdir(cx, &dir, name.as_bytes(), &set).expect("made").value.handle;
        }
        let how = vfs::fs::CreateHow::Guarded(set);
        let file = fs.create(cx, &dir, b"file", how).expect("made").value.handle;
        let other = fs.create(cx, &dir, b"other", how).expect("made").value.handle;
        drop(fs);
        for entry in std::fs::read_dir(scratch.0.join("state")).expect("readable") {
            std::fs::remove_file(entry.expect("an entry").path()).expect("ours to remove");
        }
        // Linked elsewhere and removed from where it was, behind our back.
        let share = scratch.share();
        std::fs::hard_link(share.join("a/b/c/other"), share.join("a/elsewhere")).expect("linked");
        std::fs::remove_file(share.join("a/b/c/other")).expect("removed");
        let fs: Arc<dyn FileSystem> = scratch.open(true);
        assert!(fs.getattr(cx, &file).is_ok() && fs.getattr(cx, &other).is_ok());
        assert!(fs.getattr(cx, &dir).is_ok());
    });
}

/// Without privilege a file that its owner may neither read nor write is usable as long as the
/// server that made it keeps it open; after a restart only SETATTR restores access.
#[test]
fn no_owner_bits_after_a_restart() {
    without_privilege("no_owner_bits_after_a_restart", || {
        let scratch = Scratch::new(&disk(), "nobody-0000");
        let fs = scratch.open(true);
        if fs.privileged() {
            return println!("SKIP no owner bits: this process has privilege");
        }
        let me = vfs::conformance::user(65_534, 65_534);
        let cx = vfs::conformance::cx(&me);
        let mode = |mode| vfs::attr::SetAttr { mode: Some(mode), ..Default::default() };
        let how = vfs::fs::CreateHow::Guarded(mode(0));
        let made = fs.create(cx, &fs.root(), b"file", how).expect("made");
        let (file, stable) = (made.value.handle, vfs::fs::Stable::FileSync);
        fs.sweep();
        fs.sweep();
        let wrote = fs.write(cx, &file, 0, b"mine", stable).expect("kept open over sweeps");
        wrote.flush.wait().expect("flushed");
        drop(fs);
        let fs = scratch.open(true);
        let mut buf = [0; 8];
        let refused = fs.read(cx, &file, 0, &mut buf).err();
        assert_eq!(refused, Some(vfs::status::Status::Access));
        assert!(fs.getattr(cx, &file).is_ok(), "it is there, with its attributes");
        fs.setattr(cx, &file, &mode(0o600), None).expect("the owner may");
        assert_eq!(fs.read(cx, &file, 0, &mut buf).expect("readable").count, 4);
    });
}

/// The table of handles holds what is there: directories that are removed, or replaced by another,
/// and files that were moved and removed leave it.
#[test]
fn the_table_holds_what_is_there() {
    without_privilege("the_table_holds_what_is_there", || {
        let scratch = Scratch::new(&disk(), "nobody-leaves");
        let fs = scratch.open(true);
        let me = vfs::conformance::user(65_534, 65_534);
        let cx = vfs::conformance::cx(&me);
        let set = vfs::attr::SetAttr { mode: Some(0o755), ..Default::default() };
        let root = fs.root();
        let mkdir = |name: &[u8]| fs.mkdir(cx, &root, name, &set).expect("made").value.handle;
        let (a, _) = (mkdir(b"a"), mkdir(b"b"));
        let known = fs.counts().handles;
        for _ in 0..100 {
            mkdir(b"comes");
            fs.rmdir(cx, &root, b"comes").expect("removed");
            mkdir(b"replaces");
            fs.rename(cx, (&root, b"replaces"), (&root, b"b")).expect("renamed");
            let how = vfs::fs::CreateHow::Guarded(set);
            fs.create(cx, &root, b"file", how).expect("made");
            fs.rename(cx, (&root, b"file"), (&a, b"file")).expect("renamed");
            assert_eq!(fs.counts().handles, known + 1, "where the file went");
            fs.remove(cx, &a, b"file").expect("removed");
        }
        assert_eq!(fs.counts().handles, known);
        // One of two names: the file is there, and its handle has to lead to it.
        let how = vfs::fs::CreateHow::Guarded(set);
        let file = fs.create(cx, &root, b"file", how).expect("made").value.handle;
        fs.link(cx, &file, &a, b"other").expect("linked");
        fs.remove(cx, &root, b"file").expect("removed");
        assert_eq!(fs.counts().handles, known + 1);
        drop(fs);
        assert!(scratch.open(true).getattr(cx, &file).is_ok());
    });
}
