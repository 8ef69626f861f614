//! A directory to serve and a state directory: for one server, or one after the other.

use std::path::PathBuf;

use crate::scratch::Scratch;
use crate::server::{Options, Server};

/// Both, in a folder of their own.
pub struct Scene {
    /// The folder.
    pub scratch: Scratch,
    /// What is served.
    pub dir: PathBuf,
    /// Where servers keep their state.
    pub state: PathBuf,
}

impl Scene {
    /// Makes them, with `name` in the folder's name.
    ///
    /// # Panics
    /// When they cannot be made.
    pub fn new(name: &str) -> Self {
        let scratch = Scratch::new(name);
        let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
        Self { scratch, dir, state }
    }

    /// Starts a server with more arguments.
    ///
    /// # Panics
    /// When it does not get ready.
    pub fn start(&self, args: &[&str]) -> Server {
        let args = args.iter().map(Into::into).collect();
        Server::start(&Options { args, ..Options::new(&self.dir, &self.state) })
    }
}
