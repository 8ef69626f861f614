//! A server with SMB enabled, a user with a password set since, and a share.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Offer, Smb};
use crate::api::{Api, wait_for};
use crate::patience;
use crate::scratch::Scratch;
use crate::server::{Options, Server};
use crate::tcp::HERE;

/// The standard port of SMB.
pub const SMB: u16 = 445;
/// The node of the service.
pub const NODE: &str = "/configuration/services/smb";
/// The user.
pub const USER: &str = "anna";
/// Her password.
pub const PASSWORD: &str = "correct horse battery";
/// Her uid.
pub const UID: u32 = 4321;
/// The share.
pub const SHARE: &str = "box";

/// A server, and its share `box`.
pub struct Scene {
    /// The server.
    pub server: Server,
    /// Its administration.
    pub api: Api,
    /// The directory of the share.
    pub share: PathBuf,
    /// Where the server keeps its state.
    pub state: PathBuf,
    /// Around all of it.
    pub scratch: Scratch,
}

/// Enables SMB, makes the user, and the share in a directory; `more` comes first.
///
/// # Panics
/// When a change is refused.
pub fn set_up(api: &Api, directory: &Path, more: &[Value]) {
    let enable = json!({"set": NODE, "property": "enabled", "value": true});
    let user = json!({"create": "/configuration/users", "name": USER,
        "properties": {"password": PASSWORD, "uid": UID, "gid": 4322}});
    let share = json!({"create": "/shares/default", "name": SHARE, "properties":
        {"directory": directory, "make_directory": true, "root_mode": "777"}});
    // The hash that SMB needs is kept with passwords that are set from then on.
    for changes in [[&[enable][..], more].concat(), vec![user, share]] {
        let (code, done) = api.post("/api/v1/changes", &json!({ "changes": changes }));
        assert_eq!(code, 200, "{done}");
    }
}

impl Scene {
    /// Starts it, in memory: what is asked here is not how fast the disk is.
    ///
    /// # Panics
    /// When it does not get ready.
    pub fn new(name: &str, more: &[Value]) -> Self {
        let scratch = Scratch::below(Path::new("/dev/shm"), name);
        let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).expect("a mode");
        let server = Server::start(&Options::new(&dir, &state));
        let api = Api::new(&state);
        let share = dir.join(SHARE);
        set_up(&api, &share, more);
        Self { server, api, share, state, scratch }
    }

    /// Changes the configuration.
    ///
    /// # Panics
    /// When it is refused.
    pub fn change(&self, changes: &Value) {
        let (code, done) = self.api.post("/api/v1/changes", &json!({ "changes": changes }));
        assert_eq!(code, 200, "{done}");
    }

    /// Where SMB listens.
    pub fn at(&self) -> SocketAddr {
        self.server.at(SMB)
    }

    /// Anna, connected to her share.
    ///
    /// # Errors
    /// Something of that is refused.
    pub fn anna(&self) -> io::Result<Smb> {
        self.anna_from(HERE, &Offer::default())
    }

    /// The same from an address, with this offer.
    ///
    /// # Errors
    /// Something of that is refused.
    pub fn anna_from(&self, from: IpAddr, offer: &Offer) -> io::Result<Smb> {
        Smb::open((from, self.at()), offer, (USER, PASSWORD), SHARE)
    }

    /// A property of the service.
    ///
    /// # Panics
    /// When there is none.
    pub fn property(&self, name: &str) -> Value {
        let (code, node) = self.api.get(&format!("/api/v1/nodes{NODE}"));
        assert_eq!(code, 200, "{node}");
        let properties = node["properties"].as_array().expect("properties");
        let found = properties.iter().find(|one| one["name"] == json!(name));
        found.unwrap_or_else(|| panic!("{name}: {node}"))["value"].clone()
    }

    /// Waits until there are `files` open files and `sessions` sessions.
    pub fn wait_for_state(&self, files: u64, sessions: usize) {
        wait_for(&format!("{files} open files, {sessions} sessions"), patience(10), || {
            let open = self.property("files_open") == json!(files);
            let there = self.property("sessions").as_array().map_or(0, Vec::len);
            (open && there == sessions).then_some(())
        });
    }
}
