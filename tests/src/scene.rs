//! A directory to serve and a state directory: for one server, or one after the other.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::api::Api;
use crate::scratch::Scratch;
use crate::server::{Options, Server};

/// Both, in a folder of their own.
pub struct Scene {
    /// The folder.
    pub scratch: Scratch,
    /// Served shares.
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

    /// Starts a server with a user anna, uid 4321, and a share `box` that is open to her; `more` is
    /// changed with them.
    ///
    /// # Panics
    /// When it does not get ready, or refuses a change.
    pub fn start_for_anna(&self, password: &str, more: &[Value]) -> (Server, Api) {
        // All users that the mode of the share admits get that far.
        fs::set_permissions(&self.dir, fs::Permissions::from_mode(0o777)).expect("a mode");
        let server = self.start(&[]);
        let anna = json!({"create": "/configuration/users", "name": "anna",
            "properties": {"password": password, "uid": 4321, "gid": 4322}});
        let share = json!({"create": "/shares/default", "name": "box", "properties":
            {"directory": self.dir.join("box"), "make_directory": true, "root_mode": "777"}});
        let api = Api::new(&self.state);
        let changes = [&[anna, share], more].concat();
        let (code, done) = api.post("/api/v1/changes", &json!({ "changes": changes }));
        assert_eq!(code, 200, "{done}");
        (server, api)
    }
}
