//! Captured and constructed machines as folders: trees of `tests/machines`, unpacked.

mod tree;

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
        let scratch = Scratch::new(name);
        let tree = folder().join(name).with_extension("tree");
        let entries = tree::unpack(&tree, scratch.path());
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
