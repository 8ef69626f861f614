//! Every context of the tree: how it reads, and that all in it can be reached.

use std::collections::BTreeSet;
use std::fmt::Write;

use e2e::api::Api;
use serde_json::Value;

use super::{Scene, compare, golden, same};

/// Makes one item of each kind that the tree has, where none is there from the start.
const ITEMS: &str = "\
configuration tokens create backup role=operator ends=2030-01-31
configuration alerts create reads when=store for=5m
configuration replication create nightly source=lab/from destination=dsync://nas2/copies/lab
analytics worksheets create who panels=nfs.ops[client] span=1h
";

/// Contexts with values of the machine: of those only the help is agreed.
const OF_THE_MACHINE: [&str; 5] = [
    "/configuration/network",
    "/maintenance/fabric",
    "/maintenance/hardware",
    "/maintenance/problems",
    "/storage",
];
/// The device that each machine has.
const LOOPBACK: &str = "lo";

/// The paths of all contexts that are there, items included, each with its declaration.
fn contexts(api: &Api) -> Vec<(String, Value)> {
    let (code, tree) = api.get("/api/v1/tree");
    assert_eq!(code, 200, "{tree}");
    let mut found = Vec::new();
    walk(api, String::new(), &tree, &mut found);
    found
}

fn walk(api: &Api, path: String, declared: &Value, found: &mut Vec<(String, Value)>) {
    for child in declared["children"].as_array().into_iter().flatten() {
        let name = child["name"].as_str().expect("a name");
        walk(api, format!("{path}/{name}"), child, found);
    }
    let items = &declared["items"];
    if items.is_object() {
        let (code, node) = api.get(&format!("/api/v1/nodes{path}"));
        assert_eq!(code, 200, "{path}: {node}");
        let all: Vec<&str> =
            node["items"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        // One of a kind is enough; of those of the machine the one that each has.
        let is_of_the_machine = is_of_the_machine(&path);
        let mut loopback = all.iter().filter(|name| is_of_the_machine && **name == LOOPBACK);
        if let Some(name) = loopback.next().or(all.first().filter(|_| !is_of_the_machine)) {
            walk(api, format!("{path}/{name}"), &items["context"], found);
        }
    }
    found.push((path, declared.clone()));
}

fn is_of_the_machine(path: &str) -> bool {
    OF_THE_MACHINE.iter().any(|one| path.starts_with(one))
}

fn names<'a>(declared: &'a Value, list: &str) -> impl Iterator<Item = &'a str> {
    let list = declared[list].as_array().into_iter().flatten();
    list.map(|one| one["name"].as_str().expect("a name"))
}

fn file_of(path: &str) -> String {
    let name = path.trim_start_matches('/').replace('/', "-");
    let name = if name.is_empty() { "root".to_owned() } else { name };
    format!("contexts/{name}.txt")
}

#[test]
fn every_context_reads_as_agreed() {
    let scene = Scene::new("cli-contexts");
    let (_, wrong, code) = scene.run(&[], ITEMS);
    assert_eq!(code, 0, "{wrong}");
    let contexts = contexts(&Api::new(&scene.state()));
    assert!(contexts.len() > 5, "a tree");
    let mut script = String::new();
    for (path, _) in &contexts {
        let show = if is_of_the_machine(path) { "" } else { "show\n" };
        let _infallible = writeln!(script, "cd {path}/\n{show}help");
    }
    let (said, wrong, code) = scene.run(&["--echo"], &script);
    assert_eq!(code, 0, "{wrong}");
    let said = scene.settled(&said);
    let parts: Vec<&str> = said.split("> cd ").skip(1).collect();
    assert_eq!(parts.len(), contexts.len());
    let mut differs = Vec::new();
    let mut files = BTreeSet::new();
    for ((path, _), part) in contexts.iter().zip(parts) {
        let file = file_of(path);
        compare(&file, &format!("> cd {part}"), &mut differs);
        files.insert(file);
    }
    same(&differs);
    for entry in golden().join("contexts").read_dir().expect("golden contexts") {
        let name = entry.expect("an entry").file_name();
        let name = format!("contexts/{}", name.to_string_lossy());
        assert!(files.contains(&name), "{name} is of no context any more: remove it");
    }
}

#[test]
fn every_property_and_action_is_in_reach() {
    let scene = Scene::new("cli-reach");
    let (_, wrong, code) = scene.run(&[], ITEMS);
    assert_eq!(code, 0, "{wrong}");
    let mut script = String::new();
    let mut wanted = Vec::new();
    for (path, declared) in contexts(&Api::new(&scene.state())) {
        let _infallible = writeln!(script, "cd {path}/");
        for property in names(&declared, "properties") {
            let _infallible = writeln!(script, "get {property}\nhelp {property}");
            wanted.push((path.clone(), property.to_owned()));
        }
        for action in names(&declared, "actions") {
            let _infallible = writeln!(script, "help {action}");
        }
    }
    let (said, wrong, code) = scene.run(&["--json"], &script);
    assert_eq!(code, 0, "{wrong}");
    let lines: Vec<Value> =
        said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let values: Vec<&Value> = lines.iter().filter(|line| line.get("help").is_none()).collect();
    assert_eq!(values.len(), wanted.len());
    for ((path, property), value) in wanted.iter().zip(values) {
        assert!(value.get(property).is_some(), "{path} {property}: {value}");
    }
}
