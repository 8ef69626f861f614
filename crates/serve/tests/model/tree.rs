//! A tree of files: as it is on disk, as it should be, and where a path of a client leads in it.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path as OsPath;

use base::limits::TRANSFER_LINKS_MAX;

/// A path from the top of the tree, or from the root of a share.
pub type Path = Vec<String>;

/// Shares, and their directories. They overlap.
pub const SHARES: [(&str, &[&str]); 4] =
    [("all", &[]), ("part", &["part"]), ("deep", &["part", "deep"]), ("side", &["side"])];

/// Whether a share has its root there, or below that: such directories are the administrator's.
pub fn holds_share(path: &[String]) -> bool {
    SHARES
        .iter()
        .any(|(_, root)| root.len() >= path.len() && root.iter().zip(path).all(|(a, b)| a == b))
}

/// The directory of a share.
pub fn root_of(share: &str) -> Path {
    let (_, root) = SHARES.iter().find(|(name, _)| *name == share).expect("a share");
    root.iter().map(|part| (*part).to_owned()).collect()
}

/// Something in the tree. Files and links with the same number are one, under several names.
#[derive(Debug, Clone)]
pub enum Node {
    Dir(BTreeMap<String, Node>),
    File(u64),
    Link(u64, String),
}

impl Node {
    pub fn number(&self) -> Option<u64> {
        match self {
            Self::Dir(_) => None,
            Self::File(number) | Self::Link(number, _) => Some(*number),
        }
    }
}

/// What can be seen of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Facts {
    Dir,
    /// The first path of the same file, and the data.
    File(String, String),
    /// The first path of the same link, and the target.
    Link(String, String),
}

/// A tree.
#[derive(Debug, Clone)]
pub struct Tree {
    pub top: Node,
    pub data: HashMap<u64, String>,
    next: u64,
}

/// Numbers of what is only in the model begin here.
const MODEL: u64 = 1 << 60;

impl Tree {
    /// The tree on disk.
    pub fn read(at: &OsPath) -> Self {
        let mut tree = Self { top: Node::Dir(BTreeMap::new()), data: HashMap::new(), next: MODEL };
        tree.top = tree.read_node(at).expect("the top");
        tree
    }

    /// `None` if it is gone meanwhile.
    fn read_node(&mut self, at: &OsPath) -> Option<Node> {
        let meta = fs::symlink_metadata(at).ok()?;
        if meta.is_dir() {
            let names = fs::read_dir(at).ok()?.flatten().map(|entry| entry.file_name());
            let names: Vec<_> = names.filter_map(|name| name.into_string().ok()).collect();
            let node = |name: String| Some((name.clone(), self.read_node(&at.join(name))?));
            return Some(Node::Dir(names.into_iter().filter_map(node).collect()));
        }
        if meta.is_symlink() {
            let target = fs::read_link(at).ok()?.into_os_string().into_string().ok()?;
            return Some(Node::Link(meta.ino(), target));
        }
        let data = fs::read(at).ok()?;
        self.data.insert(meta.ino(), String::from_utf8_lossy(&data).into_owned());
        Some(Node::File(meta.ino()))
    }

    /// What is at a path, where no link is followed.
    pub fn get(&self, path: &[String]) -> Option<&Node> {
        path.iter().try_fold(&self.top, |node, name| match node {
            Node::Dir(entries) => entries.get(name),
            _ => None,
        })
    }

    fn entries(&mut self, dir: &[String]) -> &mut BTreeMap<String, Node> {
        let found = dir.iter().try_fold(&mut self.top, |node, name| match node {
            Node::Dir(entries) => entries.get_mut(name),
            _ => None,
        });
        match found {
            Some(Node::Dir(entries)) => entries,
            _ => panic!("{dir:?} is no directory of the model"),
        }
    }

    /// Puts something at a path, in the place of what is there.
    pub fn put(&mut self, path: &[String], node: Node) {
        let (name, dir) = path.split_last().expect("no root");
        self.entries(dir).insert(name.clone(), node);
    }

    /// Removes what is at a path, with all that is in it.
    pub fn take(&mut self, path: &[String]) -> Node {
        let (name, dir) = path.split_last().expect("no root");
        self.entries(dir).remove(name).unwrap_or_else(|| panic!("{path:?} is not in the model"))
    }

    /// A number that nothing has.
    pub fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A copy: each file and each link in it is one of its own.
    pub fn copy(&mut self, node: &Node, deep: bool) -> Node {
        match node {
            Node::Dir(_) if !deep => Node::Dir(BTreeMap::new()),
            Node::Dir(entries) => {
                let copied = |(name, node): (&String, &Node)| (name.clone(), self.copy(node, true));
                Node::Dir(entries.iter().map(copied).collect())
            }
            Node::File(number) => {
                let (data, new) = (self.data[number].clone(), self.number());
                self.data.insert(new, data);
                Node::File(new)
            }
            Node::Link(_, target) => Node::Link(self.number(), target.clone()),
        }
    }

    /// What can be seen of it, by path.
    pub fn facts(&self) -> BTreeMap<String, Facts> {
        let (mut facts, mut firsts) = (BTreeMap::new(), HashMap::new());
        self.collect_facts(&self.top, "", &mut facts, &mut firsts);
        facts
    }

    fn collect_facts(
        &self,
        node: &Node,
        path: &str,
        facts: &mut BTreeMap<String, Facts>,
        firsts: &mut HashMap<u64, String>,
    ) {
        let mut first = |number: u64| firsts.entry(number).or_insert(path.to_owned()).clone();
        let own = match node {
            Node::Dir(entries) => {
                for (name, node) in entries {
                    self.collect_facts(node, &format!("{path}/{name}"), facts, firsts);
                }
                Facts::Dir
            }
            Node::File(number) => Facts::File(first(*number), self.data[number].clone()),
            Node::Link(number, target) => Facts::Link(first(*number), target.clone()),
        };
        facts.insert(path.to_owned(), own);
    }

    /// All paths below a directory, and whether a directory is there, or what leads to one may be.
    pub fn paths(&self, below: &[String]) -> Vec<(Path, bool)> {
        let mut paths = Vec::new();
        if let Some(node) = self.get(below) {
            collect(node, &mut Vec::new(), &mut paths);
        }
        paths
    }

    /// Where a path of a client leads, link by link, as the services resolve it: the path of an
    /// entry that exists or may be made. `None` where they refuse it.
    pub fn resolve(&self, share: &str, path: &[String], follow_last: bool) -> Option<Path> {
        let root = root_of(share);
        let mut here = root.clone();
        let mut rest: Vec<String> = path.iter().rev().cloned().collect();
        let mut links = 0;
        while let Some(name) = rest.pop() {
            if name == ".." {
                if here.len() == root.len() {
                    return None;
                }
                here.pop();
                continue;
            }
            let mut at = here.clone();
            at.push(name);
            match self.get(&at) {
                Some(Node::Link(_, target)) if !rest.is_empty() || follow_last => {
                    links += 1;
                    if links > TRANSFER_LINKS_MAX {
                        return None;
                    }
                    let parts = target.split('/').filter(|part| !part.is_empty() && *part != ".");
                    let mut parts: Vec<_> = parts.map(str::to_owned).collect();
                    if target.starts_with('/') {
                        if parts.first().is_none_or(|first| first != share) {
                            return None;
                        }
                        parts.remove(0);
                        here.clone_from(&root);
                    }
                    rest.extend(parts.into_iter().rev());
                }
                _ if rest.is_empty() => return Some(at),
                Some(Node::Dir(_)) => here = at,
                _ => return None,
            }
        }
        Some(here)
    }
}

fn collect(node: &Node, here: &mut Path, paths: &mut Vec<(Path, bool)>) {
    let Node::Dir(entries) = node else { return };
    for (name, node) in entries {
        here.push(name.clone());
        paths.push((here.clone(), !matches!(node, Node::File(_))));
        collect(node, here, paths);
        here.pop();
    }
}

/// Lines with the differences between two trees.
pub fn difference(wanted: &BTreeMap<String, Facts>, got: &BTreeMap<String, Facts>) -> String {
    let mut lines = Vec::new();
    for (path, facts) in wanted {
        match got.get(path) {
            None => lines.push(format!("{path} has disappeared: {facts:?}")),
            Some(now) if now != facts => lines.push(format!("{path} is {now:?} and not {facts:?}")),
            Some(_) => {}
        }
    }
    let new = got.iter().filter(|(path, _)| !wanted.contains_key(*path));
    lines.extend(new.map(|(path, facts)| format!("{path} should not be there: {facts:?}")));
    lines.join("\n")
}
