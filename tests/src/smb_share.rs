//! A server with SMB enabled, a user anna with a password set then, and a share `box` of hers, in
//! memory: what the laboratory puts load on.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::api::Api;
use crate::scratch::Scratch;
use crate::server::{Options, Server};

/// The password of anna, which has to be encoded in a URL.
pub const PASSWORD: &str = "correct horse/battery";
/// The standard port of SMB.
pub const PORT: u16 = 445;

/// The server.
pub struct SmbShare {
    /// It.
    pub server: Server,
    /// Its API.
    pub api: Api,
    /// Its state directory.
    pub state: PathBuf,
    /// A folder that goes with it.
    pub scratch: Scratch,
}

impl SmbShare {
    /// Starts it, with `name` in the folder's name and settings of the service.
    ///
    /// # Panics
    /// When it does not get ready, or refuses its settings.
    pub fn start(name: &str, settings: &[(&str, Value)]) -> Self {
        let scratch = Scratch::below(std::path::Path::new("/dev/shm"), name);
        let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
        let server = Server::start(&Options::new(&dir, &state));
        let api = Api::new(&state);
        let smb = "/configuration/services/smb";
        let set = |name: &str, value: &Value| json!({"set": smb, "property": name, "value": value});
        let mut changes = vec![set("enabled", &json!(true))];
        changes.extend(settings.iter().map(|(property, value)| set(property, value)));
        let user = json!({"create": "/configuration/users", "name": "anna",
            "properties": {"password": PASSWORD, "uid": 4321, "gid": 4322}});
        let share = json!({"create": "/shares/default", "name": "box", "properties":
            {"directory": dir.join("box"), "make_directory": true, "root_mode": "777"}});
        // The hash that SMB needs is kept with passwords that are set from then on.
        for changes in [changes, vec![user, share]] {
            let (code, done) = api.post("/api/v1/changes", &json!({ "changes": changes }));
            assert_eq!(code, 200, "{done}");
        }
        Self { server, api, state, scratch }
    }

    /// The share as a target, with the password.
    pub fn url(&self, options: &str) -> String {
        let password = PASSWORD.replace(' ', "%20").replace('/', "%2F");
        let at = self.server.at(PORT);
        format!("smb://anna:{password}@{at}/box{options}")
    }
}
