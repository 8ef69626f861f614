//! Trees that `plimsoll dsync` carries, as tests plant and compare them.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Output;

use base::random::{Random, SeededRandom};

/// All that a run has printed.
pub fn output_text(output: &Output) -> String {
    let both = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&both).into_owned()
}

/// Its exit code; -1 for one that was killed.
pub fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

/// A tree with a bit of everything that an ordinary user can make.
///
/// # Panics
/// When it cannot be made.
pub fn plant(top: &Path, files: usize) {
    let mut random = SeededRandom::new(3);
    for n in 0..files {
        let dir = top.join(format!("d{}", n % 7));
        fs::create_dir_all(&dir).expect("a folder");
        let mut bytes = vec![0; random.below(40_000) as usize];
        random.fill(&mut bytes);
        fs::write(dir.join(format!("f{n}")), bytes).expect("a file");
    }
    fs::write(top.join(OsStr::from_bytes(b"odd \xff\n'name")), b"odd").expect("a file");
    symlink("/nowhere", top.join("link")).expect("a link");
    fs::hard_link(top.join("d0/f0"), top.join("again")).expect("a link");
    fs::set_permissions(top.join("d1"), fs::Permissions::from_mode(0o555)).expect("a mode");
}

type TreeListing = Vec<(Vec<u8>, u32, u64, (i64, i64), Vec<u8>)>;

/// All that is in a tree: path, mode, names, time, content.
fn seen(top: &Path) -> TreeListing {
    let mut all = Vec::new();
    let mut left = vec![top.to_owned()];
    while let Some(path) = left.pop() {
        let meta = fs::symlink_metadata(&path).expect("an entry");
        let content = match () {
            () if meta.is_symlink() => {
                fs::read_link(&path).expect("a link").as_os_str().as_bytes().to_vec()
            }
            () if meta.is_file() => fs::read(&path).expect("a file"),
            () => Vec::new(),
        };
        if meta.is_dir() {
            left.extend(fs::read_dir(&path).expect("a folder").map(|e| e.expect("one").path()));
        }
        let names = if meta.is_dir() { 0 } else { meta.nlink() };
        let name = path.strip_prefix(top).expect("below").as_os_str().as_bytes().to_vec();
        all.push((name, meta.mode(), names, (meta.mtime(), meta.mtime_nsec()), content));
    }
    all.sort();
    all
}

/// Two trees must be the same.
///
/// # Panics
/// When they are not, with the first entry that differs.
pub fn assert_same(from: &Path, to: &Path) {
    for (one, other) in seen(from).iter().zip(&seen(to)) {
        let name = String::from_utf8_lossy(&one.0);
        assert!(one == other, "{name} is another: {:?} {:?}", &one.1, &other.1);
    }
    assert_eq!(seen(from).len(), seen(to).len());
}
