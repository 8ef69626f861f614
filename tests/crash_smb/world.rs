//! The server with SMB and a share on a file system that forgets; its state is next to it.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use e2e::api::Api;
use e2e::scratch::{Scratch, make_folder};
use e2e::server::{Options, Server};
use e2e::smb::scene::{PASSWORD, SHARE, SMB, UID, USER, set_up};
use e2e::smb::{Offer, Smb};
use e2e::tcp::HERE;
use serde_json::json;
use sim::forget::{ForgetFs, Mounted};

use super::cases::Case;

/// Such a server.
pub struct World {
    /// Above `mounted`, so that it is still there when that is unmounted.
    pub server: Option<Server>,
    pub mounted: Mounted,
    scratch: Scratch,
    skip: Option<&'static str>,
    /// The state is on the file system that forgets, too.
    forgets_state: bool,
    is_set_up: bool,
}

impl World {
    /// Not serving yet; without this flush when it does.
    pub fn new(skip: Option<&'static str>) -> Self {
        let scratch = Scratch::new("crash-smb");
        let mounted = ForgetFs::mount(&scratch.folder("mount", None)).expect("the mount");
        let root = mounted.path().join("share");
        make_folder(&root, None);
        fs::set_permissions(&root, Permissions::from_mode(0o777)).expect("a mode");
        on_disk(mounted.path());
        Self { server: None, mounted, scratch, skip, forgets_state: false, is_set_up: false }
    }

    /// The same with the state on the file system that forgets, and persistent handles.
    pub fn continuous(skip: Option<&'static str>) -> Self {
        Self { forgets_state: true, ..Self::new(skip) }
    }

    /// The state directory.
    pub fn state(&self) -> PathBuf {
        let around = if self.forgets_state { self.mounted.path() } else { self.scratch.path() };
        around.join("state")
    }

    /// The directory of the share.
    pub fn share(&self) -> PathBuf {
        self.mounted.path().join("share")
    }

    /// Creates the files and folders that exist before a case, on disk.
    pub fn prepare(&self, case: &Case) {
        let dir = self.share().join(case.name);
        make_folder(&dir, None);
        fs::set_permissions(&dir, Permissions::from_mode(0o777)).expect("a mode");
        for (name, content) in case.before {
            let path = dir.join(name);
            match content {
                Some(content) => fs::write(&path, content).expect("a file"),
                None => make_folder(&path, None),
            }
            fs::set_permissions(&path, Permissions::from_mode(0o777)).expect("a mode");
            // Only the owner of a file may set its times.
            chown(&path, Some(UID), None).expect("an owner");
        }
        on_disk(&dir);
        File::open(self.share()).and_then(|share| share.sync_all()).expect("on disk");
    }

    /// Serves.
    pub fn start(&mut self) {
        drop(self.server.take());
        let served = self.scratch.path().join("served");
        let state = self.state();
        if !self.is_set_up {
            make_folder(&served, None);
            make_folder(&state, None);
            on_disk(self.mounted.path());
        }
        let mut options = Options::new(&served, &state);
        if let Some(site) = self.skip {
            options.env.push(("PLIMSOLL_TEST_SKIP_FLUSH", site.to_owned()));
        }
        self.server = Some(Server::start(&options));
        if !std::mem::replace(&mut self.is_set_up, true) {
            let api = Api::new(&state);
            set_up(&api, &self.share(), &[]);
            if self.forgets_state {
                let share = format!("/shares/default/{SHARE}");
                let set = json!({"set": share, "property": "continuous", "value": true});
                let (code, done) = api.post("/api/v1/changes", &json!({ "changes": [set] }));
                assert_eq!(code, 200, "{done}");
                on_disk(&state);
            }
        }
    }

    /// Anna at her share.
    pub fn connect(&self) -> io::Result<Smb> {
        self.connect_as(Offer::default().client)
    }

    /// The same at a client of this ClientGuid.
    pub fn connect_as(&self, client: [u8; 16]) -> io::Result<Smb> {
        let at = self.server.as_ref().expect("a server").at(SMB);
        let offer = Offer { client, ..Offer::default() };
        Smb::open((HERE, at), &offer, (USER, PASSWORD), SHARE)
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
