//! Files that are retained because they are open: until they are released, whatever removes them;
//! and no more of them than the budget of descriptors allows.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use vfs::attr::SetAttr;
use vfs::conformance::{cx, root};
use vfs::fs::{CreateHow, FileSystem};
use vfs::handle::Handle;
use vfs::host::{HostFs, HostOptions};
use vfs::status::Status;

use super::{Scratch, disk, memory};

const PATIENCE: Duration = Duration::from_secs(60);

fn create(fs: &HostFs, name: &str) -> Handle {
    let how = CreateHow::Guarded(SetAttr { mode: Some(0o644), ..SetAttr::default() });
    fs.create(cx(&root()), &fs.root(), name.as_bytes(), how).expect("made").value.handle
}

/// Removed files below `dir` that this process has descriptors on.
fn removed_but_open(dir: &Path) -> usize {
    let links = std::fs::read_dir("/proc/self/fd").expect("our own");
    let to = links.filter_map(|link| std::fs::read_link(link.ok()?.path()).ok());
    to.filter(|to| to.starts_with(dir) && to.to_string_lossy().ends_with(" (deleted)")).count()
}

fn outlives_its_name(fs: &Arc<HostFs>, dir: &Path, remove: impl Fn(&Path)) {
    let me = root();
    let file = create(fs, "file");
    let data = |fs: &HostFs| {
        let mut back = [0; 8];
        fs.read(cx(&me), &file, 0, &mut back).map(|done| back[..done.count].to_vec())
    };
    let stable = vfs::fs::Stable::FileSync;
    let wrote = fs.write(cx(&me), &file, 0, b"before", stable).expect("written");
    wrote.flush.wait().expect("on disk");
    // It holds the file, too.
    drop(wrote);
    let retained = fs.retain(cx(&me), &file).expect("retained");
    assert_eq!(fs.counts().retained, 1);
    remove(&dir.join("file"));
    for _ in 0..2 {
        // Only files that are not open are swept.
        fs.sweep();
        assert_eq!(data(fs).as_deref(), Ok(&b"before"[..]));
    }
    assert!(removed_but_open(dir) > 0);
    drop(retained);
    let end = Instant::now() + PATIENCE;
    while removed_but_open(dir) > 0 {
        assert!(Instant::now() < end, "its room is not free");
        std::thread::yield_now();
    }
    assert_eq!((fs.counts().retained, data(fs)), (0, Err(Status::Stale)));
}

#[test]
fn what_is_retained_outlives_its_name_and_then_goes_at_once() {
    for (base, place) in [(disk(), "disk"), (memory(), "memory")] {
        for (kernel_handles, form) in [(true, "kernel"), (false, "table")] {
            let scratch = Scratch::new(&base, &format!("retain-{place}-{form}"));
            let (fs, dir) = (scratch.open(kernel_handles), scratch.share());
            outlives_its_name(&fs, &dir, |_| {
                assert!(fs.remove(cx(&root()), &fs.root(), b"file").is_ok());
            });
            outlives_its_name(&fs, &dir, |path| std::fs::remove_file(path).expect("removed"));
            outlives_its_name(&fs, &dir, |path| {
                std::fs::write(dir.join("new"), b"new").expect("written");
                std::fs::rename(dir.join("new"), path).expect("renamed");
                std::fs::remove_file(path).expect("removed");
            });
        }
    }
}

#[test]
fn no_more_are_retained_than_the_budget_allows() {
    let scratch = Scratch::new(&memory(), "retain-budget");
    let options = HostOptions { descriptors: Some(400), ..scratch.options(true) };
    let fs = HostFs::open(&scratch.share(), options).expect("can be served");
    let me = root();
    let files: Vec<_> = (0..300).map(|n| create(&fs, &format!("f{n}"))).collect();
    let retained: Vec<_> = files.iter().map(|file| fs.retain(cx(&me), file)).collect();
    let refused = retained.iter().filter(|one| matches!(one, Err(Status::Busy))).count();
    let held = retained.iter().filter(|one| one.is_ok()).count();
    // Half of the nodes, which are three quarters of the descriptors.
    assert_eq!((held, refused), (150, 150));
    // A file that is retained already costs no more, and there is room for others.
    assert!(fs.retain(cx(&me), &files[0]).is_ok());
    assert!(files.iter().all(|file| fs.getattr(cx(&me), file).is_ok()));
    drop(retained);
    assert_eq!(fs.counts().retained, 0);
    assert!(fs.retain(cx(&me), &files[299]).is_ok());
}
