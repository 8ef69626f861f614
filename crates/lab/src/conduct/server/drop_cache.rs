//! Which node of a Plimsoll server has the data of a target, and its `drop_cache`
//! (docs/protocols/api.md).

use super::api::ServerApi;
use crate::client::Target;
use base::clock::Deadline;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest time for dropping: its data is written back first.
const DROP_MAX: Duration = Duration::from_secs(600);
/// How long one question takes: a server answers before this, finished or not.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// The node that has the data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataNode {
    /// Its path in the API.
    node: String,
    /// Where the data is below a share.
    directory: Option<String>,
    /// The directory of the share on the server's machine.
    pub share: Option<PathBuf>,
}

impl DataNode {
    /// That of a target; `status` is what the server reports of itself.
    pub fn find(api: &ServerApi, status: &Value, target: &Target) -> Option<Self> {
        if let Some(number) = target.unit() {
            return unit(api, number);
        }
        let url = target.to_string();
        let path = path_of(&url)?;
        let shares = status["shares"].as_array()?;
        let (share, below) = share_of(shares, path)?;
        let name = share["name"].as_str()?;
        let projects = api.get("/api/v1/nodes/shares")?;
        let has = |project: &&str| {
            let above = format!("/api/v1/nodes/shares/{}", encoded(project));
            api.get(&above).is_some_and(|node| names(&node).any(|one| one == name))
        };
        let project = names(&projects).find(has)?.to_owned();
        Some(Self {
            node: format!("shares/{}/{}", encoded(&project), encoded(name)),
            directory: (!below.is_empty()).then(|| below.to_owned()),
            share: share["dir"].as_str().map(PathBuf::from),
        })
    }

    /// The directory that the target is, below that of the share.
    pub fn directory(&self) -> &Path {
        Path::new(self.directory.as_deref().unwrap_or_default())
    }

    /// The same below a folder of it.
    pub fn in_folder(mut self, name: &str) -> Self {
        if self.share.is_some() {
            let below = self.directory.take().map_or(String::new(), |dir| format!("{dir}/"));
            self.directory = Some(format!("{below}{name}"));
        }
        self
    }

    /// Drops what is cached of it, and waits for the result.
    ///
    /// # Errors
    /// Why not, as the server reports it.
    pub fn drop_cache(&self, api: &ServerApi) -> Result<Value, String> {
        let path = format!("/api/v1/nodes/{}/actions/drop_cache", self.node);
        let mut parameters = json!({ "seconds": 20 });
        if let Some(directory) = &self.directory {
            parameters["directory"] = json!(directory);
        }
        let body = json!({ "parameters": parameters });
        let deadline = Deadline::after(DROP_MAX);
        loop {
            let found = api.post(&path, &body, ANSWER_WITHIN)?["result"].take();
            if found["running"] != true || deadline.passed() {
                return Ok(found);
            }
        }
    }
}

/// The node of a logical unit, by its number: no two of a server have the same.
fn unit(api: &ServerApi, number: u16) -> Option<DataNode> {
    let projects = api.get("/api/v1/nodes/shares")?;
    names(&projects).find_map(|project| {
        let above = format!("shares/{}/luns", encoded(project));
        let node = api.get(&format!("/api/v1/nodes/{above}?depth=1"))?;
        let units = node["items"].as_array()?;
        let is_it = |unit: &&Value| {
            let mut properties = unit["properties"].as_array().into_iter().flatten();
            properties.any(|one| one["name"] == "number" && one["value"] == number)
        };
        let name = units.iter().find(is_it)?["name"].as_str()?;
        let node = format!("{above}/{}", encoded(name));
        Some(DataNode { node, directory: None, share: None })
    })
}

/// Names of a node's items.
fn names(node: &Value) -> impl Iterator<Item = &str> {
    node["items"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The path of a URL.
fn path_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let path = rest.get(rest.find('/')?..)?;
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    Some(path.trim_end_matches('/'))
}

/// The share that has a path, and the rest of the path.
fn share_of<'a, 'b>(shares: &'a [Value], path: &'b str) -> Option<(&'a Value, &'b str)> {
    let urls = shares.iter().flat_map(|share| {
        let all = share["access"].as_array().into_iter().flatten();
        all.filter_map(move |access| Some((share, path_of(access["url"].as_str()?)?)))
    });
    let below = urls.filter_map(|(share, root)| {
        let rest = path.strip_prefix(root)?;
        let whole = rest.is_empty() || rest.starts_with('/');
        (whole && !root.is_empty()).then(|| (root.len(), share, rest.trim_start_matches('/')))
    });
    below.max_by_key(|(length, ..)| *length).map(|(_, share, rest)| (share, rest))
}

/// A name as a part of a path of the API.
fn encoded(name: &str) -> String {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-_.".contains(b);
    let one = |b: u8| if plain(&b) { char::from(b).to_string() } else { format!("%{b:02X}") };
    name.bytes().map(one).collect()
}

#[cfg(test)]
mod tests;
