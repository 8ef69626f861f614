//! The server on a file system that forgets, with clients of FTP, SFTP and HTTP.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use e2e::api::Api;
use e2e::scratch::{Scratch, make_folder};
use e2e::server::{Options, Server};
use serde_json::json;
use sim::forget::{ForgetFs, Mounted};

use super::cases::{Case, Speakers, Thing};

/// A share on such a file system; the state is next to it, or on it too.
pub struct World {
    /// Above `mounted`, so that it is still there when that is unmounted.
    pub server: Option<Server>,
    pub mounted: Mounted,
    pub scratch: Scratch,
    skip: Option<&'static str>,
    state: PathBuf,
    /// Whether HTTP is set to be served without TLS.
    plain: bool,
}

/// Sets HTTP to be served without TLS, passwords and all.
pub fn serve_plain(state: &Path) {
    let http = "/configuration/services/http";
    let plain = json!({"set": http, "property": "plain", "value": "serve"});
    let basic = json!({"set": http, "property": "basic_over_plain", "value": true});
    let (code, done) = Api::new(state).post("/api/v1/changes", &json!({"changes": [plain, basic]}));
    assert_eq!(code, 200, "{done}");
}

impl World {
    /// Not serving yet; without these flushes when it does.
    pub fn new(skip: Option<&'static str>, state_forgets: bool) -> Self {
        let scratch = Scratch::new("crash-files");
        let mounted = ForgetFs::mount(&scratch.folder("mount", None)).expect("the mount");
        make_folder(&mounted.path().join("share"), None);
        let beside = if state_forgets { mounted.path() } else { scratch.path() };
        let state = beside.join("state");
        make_folder(&state, None);
        on_disk(mounted.path());
        Self { server: None, mounted, scratch, skip, state, plain: false }
    }

    /// The directory that is served.
    pub fn share(&self) -> PathBuf {
        self.mounted.path().join("share")
    }

    /// The state directory.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Creates the files that exist before a case, on disk.
    pub fn prepare(&self, case: &Case) {
        let dir = self.share().join(case.name);
        make_folder(&dir, None);
        for (name, thing) in case.before {
            let path = dir.join(name);
            match thing.content() {
                Some(data) => {
                    fs::write(&path, data).expect("a file");
                    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("a mode");
                }
                None if *thing == Thing::Link => symlink("f", &path).expect("a link"),
                None => make_folder(&path, None),
            }
        }
        on_disk(&dir);
        File::open(self.share()).and_then(|share| share.sync_all()).expect("on disk");
    }

    /// Serves, plain HTTP too.
    pub fn start(&mut self) {
        let share = self.share();
        let mut options = Options::new(&share, &self.state);
        if let Some(sites) = self.skip {
            options.env.push(("PLIMSOLL_TEST_SKIP_FLUSH", sites.to_owned()));
        }
        self.server = Some(Server::start(&options));
        if !std::mem::replace(&mut self.plain, true) {
            serve_plain(&self.state);
        }
    }

    /// Clients of the server.
    pub fn speakers(&self) -> Speakers {
        let server = self.server.as_ref().expect("a server");
        Speakers::new([21, 218, 80].map(|port| server.at(port)))
    }

    /// Ends the server at once; then, what was not flushed is gone.
    pub fn power_cut(&mut self) {
        drop(self.server.take());
        self.mounted.crash();
    }
}

/// Brings a directory and all below it to disk.
pub fn on_disk(dir: &Path) {
    for entry in fs::read_dir(dir).expect("a directory") {
        let entry = entry.expect("an entry");
        let kind = entry.file_type().expect("a kind");
        if kind.is_dir() {
            on_disk(&entry.path());
        } else if kind.is_file() {
            File::open(entry.path()).and_then(|file| file.sync_all()).expect("on disk");
        }
    }
    File::open(dir).and_then(|dir| dir.sync_all()).expect("on disk");
}
