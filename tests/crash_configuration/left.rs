//! What is left after the power went: is it a committed configuration, and is all of it there?

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use e2e::NOBODY;
use e2e::api::Api;
use e2e::process::{DEADLINE, run};
use e2e::scratch::Scratch;
use e2e::server::{Server, binary};
use serde_json::{Value, json};
use sim::forget::Image;

use super::run::{Run, SECRET, options};

/// What is left, where a server can be started from it.
pub struct Left {
    /// The call before which the power went.
    call: u64,
    scratch: Scratch,
}

impl Left {
    /// Of a moment.
    pub fn new(image: &Image) -> Self {
        let scratch = Scratch::new("crash-configuration-left");
        image.left.copy_to(scratch.path()).expect("a copy of what is left");
        Self { call: image.call, scratch }
    }

    fn state(&self) -> PathBuf {
        self.scratch.path().join("state")
    }

    /// What is wrong with it, if anything is.
    pub fn fault(&self, run: &Run) -> Option<String> {
        let fault = whole(run, self.call, &self.state()).err();
        fault.map(|what| format!("cut before call {}: {what}", self.call))
    }

    /// What is wrong with a server that starts from it, if anything is.
    pub fn fault_of_a_server(&self, run: &Run) -> Option<String> {
        let fault = starts(run, self.call, &self.state()).err();
        fault.map(|what| format!("a server after a cut before call {}: {what}", self.call))
    }
}

/// The number of the current revision.
fn highest(state: &Path) -> Result<usize, String> {
    let folder = state.join("configuration");
    if !folder.exists() {
        return Ok(0);
    }
    // As the server sees it, which does not run as root.
    let list = run(Command::new("ls").arg(&folder).uid(NOBODY).gid(NOBODY), DEADLINE);
    if !list.status.success() {
        return Err(String::from_utf8_lossy(&list.stderr).into_owned());
    }
    let names = String::from_utf8_lossy(&list.stdout).into_owned();
    let numbers = names.lines().filter_map(|name| name.strip_suffix(".toml")?.parse().ok());
    Ok(numbers.max().unwrap_or(0))
}

/// The content of a revision, read as `plimsoll inspect` does, by the server's own user.
pub fn inspect(state: &Path, number: usize) -> Result<Value, String> {
    let file = state.join(format!("configuration/{number:06}.toml"));
    let mut command = Command::new(binary());
    let out = run(command.args(["inspect", "--json"]).arg(file).uid(NOBODY).gid(NOBODY), DEADLINE);
    let found: Value = serde_json::from_slice(&out.stdout)
        .map_err(|_| format!("revision {number}: {}", String::from_utf8_lossy(&out.stderr)))?;
    if found["revision"]["revision"] != number {
        return Err(format!("revision {number} cannot be loaded: {found}"));
    }
    Ok(found["nodes"].clone())
}

fn whole(run: &Run, call: u64, state: &Path) -> Result<(), String> {
    let (number, least) = (highest(state)?, run.least(call));
    if number < least {
        return Err(format!("revision {number} is in force, and {least} was acknowledged"));
    }
    let committed = run.revisions.get(number);
    let committed = committed.ok_or_else(|| format!("revision {number} was never committed"))?;
    if number > 0 && inspect(state, number)? != committed.nodes {
        return Err(format!("revision {number} is not what was committed"));
    }
    has_secrets(run, &committed.nodes, state)?;
    audited(run, least, state)
}

/// Every secret that the configuration refers to is there, and the one that was set.
fn has_secrets(run: &Run, nodes: &Value, state: &Path) -> Result<(), String> {
    let file = fs::read(state.join("secrets.json")).unwrap_or_else(|_| b"{}".to_vec());
    let left: Value = serde_json::from_slice(&file).map_err(|e| format!("secrets.json: {e}"))?;
    for (path, settings) in nodes.as_object().into_iter().flatten() {
        for property in ["password", "secret"] {
            let Some(id) = settings[property].as_u64() else { continue };
            let id = id.to_string();
            let (ours, theirs) = (&left["secrets"][&id], &run.secrets["secrets"][&id]);
            if ours.is_null() || ours != theirs {
                return Err(format!("{path} has lost its {property}"));
            }
        }
    }
    Ok(())
}

/// The log has all that was acknowledged, and no secret.
fn audited(run: &Run, least: usize, state: &Path) -> Result<(), String> {
    let log = fs::read_to_string(state.join("audit.log")).unwrap_or_default();
    let key = |revision: &Value, change: &Value| {
        let [path, property, before, after] =
            ["path", "property", "before", "after"].map(|name| change[name].clone());
        json!([revision, path, property, before, after]).to_string()
    };
    let records = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let there: BTreeSet<String> = records.map(|record| key(&record["revision"], &record)).collect();
    for (number, revision) in run.revisions.iter().enumerate().take(least + 1) {
        for change in &revision.changes {
            if !there.contains(&key(&json!(number), change)) {
                return Err(format!("the audit log has no {change} of revision {number}"));
            }
        }
    }
    let secrets = run.secrets["secrets"].as_object().into_iter().flatten();
    let mut secrets = secrets.filter_map(|(_, kept)| kept["value"].as_str());
    if log.contains(SECRET) || secrets.any(|secret| log.contains(secret)) {
        return Err("the audit log has a secret".to_owned());
    }
    Ok(())
}

fn starts(run: &Run, call: u64, state: &Path) -> Result<(), String> {
    let number = highest(state)?;
    let served: PathBuf = run.served();
    let mut server = Server::try_start(&options(&served, state))?;
    let api = Api::new(state);
    let (_, history) = api.get("/api/v1/configuration/history?limit=1");
    let in_force = history[0]["revision"].as_u64().unwrap_or(0);
    if in_force != number as u64 {
        return Err(format!("revision {in_force} is in force, and {number} was left: {history}"));
    }
    let nodes = &run.revisions[number].nodes;
    for (path, settings) in nodes.as_object().into_iter().flatten() {
        let (code, node) = api.get(&format!("/api/v1/nodes{path}"));
        for (name, value) in settings.as_object().into_iter().flatten() {
            let mut properties = node["properties"].as_array().into_iter().flatten();
            let found = properties.find(|one| one["name"] == **name);
            let same = found.is_some_and(|one| one["value"] == *value || one["set"] == true);
            if code != 200 || !same {
                return Err(format!("{path} {name} is not {value}: {node}"));
            }
        }
    }
    for (user, password) in &run.passwords {
        if nodes[format!("/configuration/users/{user}")].is_null() {
            continue;
        }
        let (code, answer) =
            api.post("/api/v1/session", &json!({ "user": user, "password": password }));
        if code != 200 {
            return Err(format!("{user} cannot sign in: {answer}"));
        }
    }
    let next = json!({ "changes": [
        { "set": "/configuration/preferences", "property": "session_age", "value": 86_401 + call },
    ] });
    let (code, answer) = api.post("/api/v1/changes", &next);
    if code != 200 || answer["revision"] != number + 1 {
        return Err(format!("the next change: {answer}"));
    }
    let mode = fs::metadata(state.join("secrets.json")).map(|meta| meta.permissions().mode());
    server.stop();
    match mode {
        Ok(mode) if mode & 0o077 != 0 => Err(format!("secrets.json has mode {mode:o}")),
        _ => Ok(()),
    }
}
