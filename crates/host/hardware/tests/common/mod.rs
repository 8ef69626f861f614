//! Captured and constructed machines as folders: trees of `tests/machines`, unpacked.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use e2e::scratch::Scratch;
use host::Root;

/// Machines: captured (`virtual`) and constructed.
pub const MACHINES: [&str; 3] = ["virtual", "hcas", "chassis"];

/// A machine as a folder.
pub struct Machine {
    scratch: Scratch,
    /// Files and links in it, without folders.
    pub entries: Vec<PathBuf>,
}

/// Where the trees are.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines")
}

impl Machine {
    /// Unpacks one.
    pub fn unpack(name: &str) -> Self {
        let tree = fs::read_to_string(folder().join(name).with_extension("tree")).expect("a tree");
        let scratch = Scratch::new(name);
        let mut entries = Vec::new();
        for line in tree.lines().filter(|line| !line.starts_with('#')) {
            let mut fields = line.splitn(3, ' ');
            let (Some(kind), Some(path)) = (fields.next(), fields.next()) else { panic!("{line}") };
            let rest = fields.next().unwrap_or_default();
            let path = scratch.path().join(path.replace("%20", " "));
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            match kind {
                "f" => fs::write(&path, unescape(rest) + "\n").expect("a file"),
                "b" => fs::write(&path, bytes(rest)).expect("a file"),
                "l" => symlink(rest.replace("%20", " "), &path).expect("a link"),
                _ => panic!("{line}"),
            }
            entries.push(path);
        }
        Self { scratch, entries }
    }

    /// As the readers take it.
    pub fn root(&self) -> Root {
        Root::at(self.scratch.path())
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        self.scratch.path()
    }
}

fn unescape(text: &str) -> String {
    text.replace("\\n", "\n").replace("\\\\", "\\")
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("digits"));
    digits.map(|pair| u8::from_str_radix(pair, 16).expect("a byte")).collect()
}
