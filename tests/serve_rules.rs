//! What the server promises about a share, seen from the wire: read-only means that, nothing leads
//! out, callers' ids decide where they can, an end is orderly, listings and verifiers keep their
//! word.

#[path = "serve_rules/borders.rs"]
mod borders;
#[path = "serve_rules/ends.rs"]
mod ends;
#[path = "serve_rules/exports.rs"]
mod exports;
#[path = "serve_rules/listings.rs"]
mod listings;
#[path = "serve_rules/owners.rs"]
mod owners;
#[path = "serve_rules/read_only.rs"]
mod read_only;

use std::path::{Path, PathBuf};

use e2e::nfs3::Failure;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::{NOBODY, is_root};
use wire::nfs3::{Nfsstat3, Sattr3};

/// A scratch share and its state.
struct Scene {
    scratch: Scratch,
    dir: PathBuf,
    state: PathBuf,
    unprivileged: bool,
}

impl Scene {
    /// Served by the user that runs the test.
    fn new(name: &str) -> Self {
        Self::by(&std::env::temp_dir(), name, false)
    }

    /// Below `place`, served by an ordinary user if so wanted.
    fn by(place: &Path, name: &str, unprivileged: bool) -> Self {
        let scratch = Scratch::below(place, name);
        let owner = unprivileged.then_some(NOBODY);
        let (dir, state) = (scratch.folder("data", owner), scratch.folder("state", owner));
        Self { scratch, dir, state, unprivileged }
    }

    fn options(&self) -> Options<'_> {
        let unprivileged = self.unprivileged && is_root();
        Options { unprivileged, ..Options::new(&self.dir, &self.state) }
    }

    fn start(&self) -> Server {
        Server::start(&self.options())
    }
}

/// A file's or directory's mode, and nothing else.
fn mode(mode: u32) -> Sattr3 {
    Sattr3 { mode: Some(mode), ..Sattr3::default() }
}

/// The status of a failure.
fn status<T: std::fmt::Debug>(outcome: Result<T, Failure>) -> Nfsstat3 {
    match outcome {
        Ok(_) => Nfsstat3::OK,
        Err(Failure::Status(status)) => status,
        Err(broken) => panic!("no answer: {broken:?}"),
    }
}
