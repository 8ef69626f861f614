//! A pool of one disk in a namespace of its own, and a server that has it.

use std::fs::{self, File};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::api::{Api, wait_for};
use crate::loops::tool;
use crate::scratch::Scratch;
use crate::server::{Options, Server};
use crate::{has, is_root, netns, patience};

/// How long a pool may take to be mounted.
const PATIENCE: Duration = patience(60);

/// A disk, and the name of its pool.
pub struct PoolDisk {
    /// Its image, and the folders of the server.
    pub scratch: Scratch,
    /// The loop device.
    pub device: String,
    /// The name of the pool, which no other process of this machine has.
    pub pool: String,
}

impl PoolDisk {
    /// A disk of `mib` MiB, for the test with this name.
    ///
    /// # Errors
    /// What is missing on this machine.
    pub fn new(name: &str, mib: u64) -> Result<Self, String> {
        let tools = ["unshare", "losetup", "mkfs.btrfs", "btrfs"];
        if !is_root() || !tools.iter().all(|tool| has(tool)) {
            return Err("needs root, unshare, losetup and btrfs-progs".to_owned());
        }
        let systems = fs::read_to_string("/proc/filesystems").unwrap_or_default();
        if !systems.lines().any(|line| line.trim() == "btrfs") {
            return Err("the kernel has no btrfs".to_owned());
        }
        // Mount points of other servers are not those of this one.
        netns::isolate("mount -t tmpfs tmpfs /run").map_err(|e| e.to_string())?;
        let scratch = Scratch::new(name);
        let image = scratch.path().join("disk");
        let file = File::create(&image).and_then(|file| file.set_len(mib << 20));
        file.map_err(|e| e.to_string())?;
        scratch.folder("data", None);
        let device = tool(Command::new("losetup").args(["--find", "--show"]).arg(&image))?;
        Ok(Self { scratch, device, pool: format!("{name}{}", std::process::id()) })
    }

    /// A server, and its API.
    pub fn start(&self) -> (Server, Api) {
        let (dir, state) = (self.scratch.path().join("data"), self.scratch.path().join("state"));
        let options = Options { offset: Some(10_000), ..Options::new(&dir, &state) };
        (Server::start(&options), Api::new(&state))
    }

    /// Creates the pool, and a share on it.
    ///
    /// # Panics
    /// When it is refused.
    pub fn create(&self, api: &Api, share: &str) {
        let parameters =
            json!({ "name": self.pool, "profile": "stripe", "disks": [self.device.trim()] });
        done(api, "/storage/pools", "create_pool", &parameters);
        change(
            api,
            &json!([{ "create": "/shares/default", "name": share,
                "properties": { "pool": self.pool, "root_mode": "777" } }]),
        );
    }

    /// The node of the pool.
    pub fn node(&self) -> String {
        format!("/storage/pools/{}", self.pool)
    }

    /// The mount point of the pool.
    pub fn directory(&self) -> String {
        format!("/run/plimsoll-pools/{}", self.pool)
    }

    /// Creates a snapshot of a share.
    ///
    /// # Panics
    /// When it is refused.
    pub fn snapshot(&self, api: &Api, share: &str, name: &str) {
        done(api, &self.node(), "create_snapshot", &json!({ "share": share, "name": name }));
    }
}

impl Drop for PoolDisk {
    fn drop(&mut self) {
        let _gone = tool(Command::new("umount").args(["-l", &self.directory()]));
        let device = self.device.trim();
        let _gone = tool(Command::new("btrfs").args(["device", "scan", "--forget", device]));
        let _gone = tool(Command::new("losetup").args(["--detach", device]));
    }
}

/// A property of a node.
pub fn value(api: &Api, path: &str, property: &str) -> Value {
    let (_, node) = api.get(&format!("/api/v1/nodes{path}"));
    let all = node["properties"].as_array().cloned().unwrap_or_default();
    let one = all.into_iter().find(|one| one["name"] == property);
    one.map(|one| one["value"].clone()).unwrap_or_default()
}

/// An action, with its status and answer.
pub fn act(api: &Api, path: &str, action: &str, parameters: &Value) -> (u16, Value) {
    let body = json!({ "parameters": parameters });
    api.post(&format!("/api/v1/nodes{path}/actions/{action}"), &body)
}

/// An action that is done.
///
/// # Panics
/// When it is refused.
pub fn done(api: &Api, path: &str, action: &str, parameters: &Value) -> Value {
    let (code, answer) = act(api, path, action, parameters);
    assert_eq!(code, 200, "{action}: {answer}");
    answer
}

/// Changes of the configuration.
///
/// # Panics
/// When they are refused.
pub fn change(api: &Api, changes: &Value) {
    let (code, answer) = api.post("/api/v1/changes", &json!({ "changes": changes }));
    assert_eq!(code, 200, "{changes}: {answer}");
}

/// Waits until a share is served.
pub fn wait_online(api: &Api, share: &str) {
    wait_for("the share is online", PATIENCE, || {
        (value(api, &format!("/shares/default/{share}"), "state") == "online").then_some(())
    });
}
