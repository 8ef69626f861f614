//! A server with all services, a share, a logical unit, and a share and a unit on a file system
//! that can be made to stand still.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use e2e::api::Api;
use e2e::iscsi::Access;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::tls;
use rustls::ClientConfig;
use serde_json::{Value, json};
use sim::forget::{self, ForgetFs, Mounted};

use super::Service;

/// The users that take what they can get.
pub(crate) const GREEDY: [&str; 3] = ["anna", "bella", "carla"];
/// The user of the other client.
pub(crate) const OTHER: &str = "olga";
/// The password of all of them.
pub(crate) const PASSWORD: &str = "correct horse battery";
/// The administrator that takes what it can get.
pub(crate) const ADMINISTRATOR: &str = "greta";
/// uid of [`OTHER`]; those of the others follow.
pub(crate) const UID: u32 = 4321;
/// gid of all.
pub(crate) const GID: u32 = 4300;
/// Bytes of the file `large`.
pub(crate) const LARGE: usize = 8 << 20;
/// Names of the directory `long`, of 250 bytes.
const LONG: usize = 80;
/// Descriptors of the server: its limits on connections and open files follow.
const DESCRIPTORS: u64 = 8_192;

/// The server and what it serves.
pub(crate) struct World {
    /// What `slow` lies on. It goes before the server, which cannot be killed as long as it waits
    /// for a file system that does not respond.
    still: Option<Mounted>,
    pub server: Server,
    pub api: Api,
    pub access: Access,
    /// TLS that trusts the server.
    pub tls: Arc<ClientConfig>,
    /// Directory of the share `box`.
    pub share: PathBuf,
    /// The root of the share `slow`, as NFSv3 and NFSv4 have it, and the file `large` of `box`.
    pub handles: Handles,
    _scratch: Scratch,
}

/// Handles of NFS.
#[derive(Debug, Clone, Default)]
pub(crate) struct Handles {
    pub slow: Vec<u8>,
    pub share: Vec<u8>,
    pub large: Vec<u8>,
    pub common: Vec<u8>,
}

fn change(api: &Api, changes: &[Value]) {
    let (code, done) = api.post("/api/v1/changes", &json!({ "changes": changes }));
    assert_eq!(code, 200, "{changes:?}: {done}");
}

fn user(name: &str, uid: u32) -> Value {
    json!({"create": "/configuration/users", "name": name,
        "properties": {"password": PASSWORD, "uid": uid, "gid": GID}})
}

impl World {
    pub(crate) fn new(of: Service) -> Arc<Self> {
        let name = format!("limits-{of:?}").to_lowercase();
        let scratch = Scratch::below(Path::new("/dev/shm"), &name);
        let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).expect("a mode");
        let options = Options {
            args: vec!["--lun".into(), "disk=64M".into()],
            descriptors: Some(DESCRIPTORS),
            ..Options::new(&dir, &state)
        };
        let server = Server::start(&options);
        let api = Api::new(&state);
        let share = dir.join("box");
        let still = forget::available().ok().map(|()| {
            let folder = scratch.folder("still", None);
            ForgetFs::mount(&folder).expect("a file system of FUSE")
        });
        set_up(&api, &share, still.as_ref().map(Mounted::path));
        plant(&share);
        let access = Access::of(&state);
        let tls = Arc::new(tls::client(&tls::own_certificate(&state), None));
        let handles = handles(&server, still.is_some());
        Arc::new(Self { still, server, api, access, tls, share, handles, _scratch: scratch })
    }

    /// Makes the file system of `slow` stand still, or respond again; whether there is one.
    pub(crate) fn stand_still(&self, is_still: bool) -> bool {
        if let Some(still) = &self.still {
            still.set_stuck(is_still);
        }
        self.still.is_some()
    }
}

fn set_up(api: &Api, share: &Path, still: Option<&Path>) {
    let set = |node: &str, property: &str, value: Value| {
        let node = format!("/configuration/services/{node}");
        json!({"set": node, "property": property, "value": value})
    };
    let http = |property: &str, value: Value| set("http", property, value);
    change(
        api,
        &[
            set("smb", "enabled", json!(true)),
            http("plain", json!("serve")),
            http("webdav", json!(true)),
            http("basic_over_plain", json!(true)),
        ],
    );
    let mut changes = vec![
        user(OTHER, UID),
        json!({"create": "/configuration/users", "name": ADMINISTRATOR, "properties":
            {"kind": "administrator", "roles": ["administrator"], "password": PASSWORD}}),
        json!({"create": "/shares/default", "name": "box", "properties":
            {"directory": share, "make_directory": true, "root_mode": "777"}}),
    ];
    changes.extend((1..).zip(GREEDY).map(|(n, name)| user(name, UID + n)));
    if let Some(still) = still {
        changes.extend([
            json!({"create": "/shares/default", "name": "slow", "properties":
                {"directory": still.join("slow"), "make_directory": true, "root_mode": "777"}}),
            json!({"create": "/shares/default/luns", "name": "bad", "properties":
                {"backing": "file", "path": still.join("bad"), "volsize": "16M",
                 "assignednumber": 1}}),
        ]);
    }
    change(api, &changes);
}

fn plant(share: &Path) {
    fs::write(share.join("large"), vec![7; LARGE]).expect("a file");
    fs::write(share.join("common"), b"common").expect("a file");
    fs::set_permissions(share.join("common"), fs::Permissions::from_mode(0o666)).expect("a mode");
    fs::create_dir(share.join("long")).expect("a directory");
    for n in 0..LONG {
        let name = format!("long/{n:03}{}", "x".repeat(247));
        fs::File::create(share.join(name)).expect("a file");
    }
}

fn handles(server: &Server, has_slow: bool) -> Handles {
    let mut client = e2e::nfs3::Client::connect(server.nfs(), UID, GID).expect("NFSv3");
    let share = client.mnt("/export/box").expect("a mount");
    let mut handle = |name: &str| client.lookup(&share, name).expect("LOOKUP").handle;
    let (large, common) = (handle("large"), handle("common"));
    let slow = has_slow.then(|| client.mnt("/export/slow").expect("a mount"));
    Handles { slow: slow.unwrap_or_default(), share, large, common }
}
