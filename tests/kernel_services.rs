//! A real Linux client with its NFS service disabled and enabled again, and then restarted: its
//! operations wait meanwhile and continue, nothing of what it wrote is lost, and it has its locks.

use std::fs;
use std::path::PathBuf;

use e2e::api::Api;
use e2e::netns::{HOST, Namespace};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::skip;
use e2e::uml::{self, Guest, Task};
use serde_json::json;

/// The grace period is as long, and the client must be back within it.
const LEASE: &str = "8";
/// Bytes of a block of `uml/writer.c`.
const BLOCK: usize = 4096;
/// What the share is mounted as, and where.
const MOUNTS: [(&str, &str); 3] = [("3", "three"), ("4.0", "old"), ("4.2", "new")];
const NFS: &str = "/configuration/services/nfs";

struct Scene {
    guest: Guest,
    server: Server,
    api: Api,
    dir: PathBuf,
    _namespace: Namespace,
    _scratch: Scratch,
}

impl Scene {
    fn new() -> Result<Self, String> {
        let namespace = uml::namespace(1)?;
        let scratch = Scratch::new("kernel-services");
        let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
        let mut options = Options::new(&dir, &state);
        options.address = HOST;
        options.namespace = Some(&namespace);
        options.args = ["--nfs-lease", LEASE].map(Into::into).to_vec();
        let server = Server::start(&options);
        let mut guest = Guest::boot(&namespace, 0, scratch.path());
        guest.install("writer");
        let port = server.nfs_port();
        for (version, name) in MOUNTS {
            let options = match version {
                "3" => format!("vers=3,nolock,mountport={port},mountproto=tcp"),
                _ => format!("vers={version}"),
            };
            guest.mount(name, port, &server.export(), &options);
        }
        let api = Api::new(&state);
        Ok(Self { guest, server, api, dir, _namespace: namespace, _scratch: scratch })
    }

    fn enable(&self, enabled: bool) {
        let set = json!({ "set": NFS, "property": "enabled", "value": enabled });
        let (code, done) = self.api.post("/api/v1/changes", &json!({ "changes": [set] }));
        assert_eq!(code, 200, "{done}");
    }

    /// Bytes that the server has of each file.
    fn sizes(&self) -> [u64; 3] {
        MOUNTS.map(|(_, name)| fs::metadata(self.dir.join(name)).map_or(0, |file| file.len()))
    }

    /// Locks that clients hold now.
    fn locks(&self) -> usize {
        let (code, locks) = self.api.get("/api/v1/services/nfs/locks");
        assert_eq!(code, 200, "{locks}");
        locks["rows"].as_array().map_or(0, Vec::len)
    }

    /// Waits until every mount has made progress from here.
    fn wait_for_progress(&mut self) {
        for (_, name) in MOUNTS {
            let at = format!("{name} at");
            self.guest.forget(&at);
            self.guest.event(&at);
        }
    }
}

/// Shell: how often the client of a mount has tried to connect.
const TRIES: &str = "tries() {
    awk '/ mounted on / { at = $5 } at == \"/mnt/'$1'\" && $1 == \"xprt:\" { print $5 }' \
        /proc/self/mountstats
}
";

/// Waits until the client of each mount has tried to connect again, in vain.
fn tries_again(guest: &mut Guest, before: &str) {
    for ((_, name), before) in MOUNTS.iter().zip(before.split_whitespace()) {
        guest.run(&format!("{TRIES} until [ $(tries {name}) -gt {before} ]; do sleep 0.1; done"));
    }
}

/// Disabled for a while; nothing moves meanwhile, and nothing fails.
fn disabled_and_enabled(scene: &mut Scene) {
    scene.wait_for_progress();
    assert_eq!(scene.locks(), 2, "over version 4");
    let names = MOUNTS.map(|(_, name)| format!("tries {name}\n")).concat();
    let before = scene.guest.run(&format!("{TRIES} {names}"));
    scene.enable(false);
    let sizes = scene.sizes();
    tries_again(&mut scene.guest, &before);
    for (_, name) in MOUNTS {
        scene.guest.forget(&format!("{name} at"));
    }
    let first_again = scene.guest.run(&format!("{TRIES} {names}"));
    tries_again(&mut scene.guest, &first_again);
    for (_, name) in MOUNTS {
        assert!(!scene.guest.forget(&format!("{name} at")), "{name} gets on without a server");
    }
    assert_eq!(scene.sizes(), sizes);
    scene.enable(true);
    scene.wait_for_progress();
    assert_eq!(scene.locks(), 2, "they were reclaimed");
}

/// What the server has of a writer's file is what the writer reports.
fn nothing_is_lost(scene: &mut Scene, name: &str, writer: &Task) {
    let (status, log) = scene.guest.end(writer);
    assert_eq!(status, 0, "{name}: {log}\n{}", scene.guest.said());
    let wrote = log.lines().find_map(|line| line.strip_prefix("wrote "));
    let wrote: usize = wrote.and_then(|n| n.parse().ok()).expect("how many blocks");
    let data = fs::read(scene.dir.join(name)).expect("its file");
    assert_eq!(data.len(), wrote * BLOCK, "{name}");
    for (n, block) in data.chunks(BLOCK).enumerate() {
        let word = (n as u64).to_le_bytes();
        assert!(block.chunks(word.len()).all(|part| part == word), "{name}: block {n}");
    }
}

#[test]
fn a_linux_client_waits_while_nfs_is_disabled_and_continues() {
    if let Some(why) = uml::unavailable() {
        skip!("kernel-services", "{why}");
    }
    let _turn = uml::turn();
    let mut scene = match Scene::new() {
        Ok(scene) => scene,
        Err(why) => skip!("kernel-services", "{why}"),
    };
    let writers = MOUNTS.map(|(_, name)| {
        let command = format!("writer {name} /mnt/{name}/{name} /tmp/stop");
        (name, scene.guest.begin(&command))
    });
    disabled_and_enabled(&mut scene);
    let restart = format!("/api/v1/nodes{NFS}/actions/restart");
    let (code, answer) = scene.api.post(&restart, &json!({ "parameters": {} }));
    assert_eq!(code, 200, "{answer}");
    scene.wait_for_progress();
    scene.guest.run(": >/tmp/stop");
    for (name, writer) in &writers {
        nothing_is_lost(&mut scene, name, writer);
    }
    assert!(scene.server.stop().success());
}
