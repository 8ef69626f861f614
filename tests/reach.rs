//! Every property and every action of every node is within reach of the command line, the API and
//! the browser. The nodes come from `GET /tree`; a value for each property is derived from its
//! declaration, set one way, read another way, and restored; items are created, renamed and
//! destroyed each way; actions are done, or started up to their confirmation.

#[path = "reach/plan.rs"]
mod plan;
#[path = "reach/walk.rs"]
mod walk;
#[path = "reach/ways.rs"]
mod ways;

use std::collections::BTreeSet;
use std::fs;
use std::time::Instant;

use e2e::api::Api;
use e2e::browser::{self, Browser, PASSWORD};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::tls::Authority;
use e2e::{has, is_root, netns, skip};
use serde_json::{Value, json};

use plan::{Given, World};
use walk::Walk;
use ways::{Interface, OnCommandLine, OverApi};

#[test]
fn configuration_is_in_reach_each_way() {
    is_in_reach_each_way("configuration", true);
}

#[test]
fn services_are_in_reach_each_way() {
    is_in_reach_each_way("services", false);
}

#[test]
fn accounts_are_in_reach_each_way() {
    is_in_reach_each_way("accounts", false);
}

#[test]
fn shares_are_in_reach_each_way() {
    is_in_reach_each_way("shares", false);
}

#[test]
fn the_network_is_in_reach_each_way() {
    if !is_root() || !has("ip") {
        skip!("reach-network", "needs root and ip");
    }
    let scratch = Scratch::new("reach-machine");
    let etc = scratch.path().join("etc").display().to_string();
    let devices: String = DEVICES
        .iter()
        .enumerate()
        .map(|(at, name)| {
            format!(
                "ip link add {name} type veth peer name far{at}\nip link set far{at} up\n\
                 ip link set {name} up\n"
            )
        })
        .collect();
    // Its own name servers, and no helper that runs on this machine.
    let own = format!(
        "cp -a /etc {etc}\nrm -f {etc}/resolv.conf\nmount --bind {etc} /etc\n\
         mount -t tmpfs tmpfs /run\n{devices}"
    );
    if let Err(why) = netns::isolate(&own) {
        skip!("reach-network", "{why}");
    }
    is_in_reach_each_way(walk::NETWORK, false);
}

/// Devices of the machine for the walk through its network: those that it makes datalinks of,
/// by their names, and those of [`with_a_network`].
const DEVICES: [&str; 11] = [
    "reach",
    "reach-command-l",
    "reach-command-2",
    "reach-by-api",
    "reach-by-api-2",
    "reach-browser",
    "reach-browser-2",
    "spare",
    "lan",
    "wan",
    "near",
];

/// Datalinks and an interface that others are made on; what the walk changes waits for an hour.
fn with_a_network(api: &Api) {
    let datalinks = ["spare", "lan", "wan", "near"].map(|name| {
        json!({"create": "/configuration/network/datalinks", "name": name,
            "properties": {"class": "device"}})
    });
    let more = [
        json!({"set": "/configuration/network", "property": "confirm_within", "value": 3_600}),
        json!({"create": "/configuration/network/interfaces", "name": "near",
            "properties": {"links": ["near"], "v4addrs": ["198.51.100.10/24"]}}),
    ];
    let changes: Vec<&Value> = datalinks.iter().chain(&more).collect();
    let (code, answer) = api.post("/api/v1/changes", &json!({"changes": changes}));
    assert_eq!(code, 200, "{answer}");
    let confirm = "/api/v1/nodes/configuration/network/actions/confirm";
    assert_eq!(api.post(confirm, &json!({})).0, 200);
}

#[test]
fn the_rest_of_the_tree_is_in_reach_each_way() {
    is_in_reach_each_way(walk::REST_OF_THE_TREE, false);
}

/// The parts have a test each, or some nodes would be walked by none.
#[test]
fn each_part_has_a_test() {
    let parts: BTreeSet<&str> = walk::PARTS.iter().map(|(_, name)| *name).collect();
    let wanted = ["accounts", "configuration", walk::NETWORK, "services", "shares"];
    assert_eq!(Vec::from_iter(parts), wanted);
}

/// Walks through a part of the tree; with `plants`, also what no server has.
fn is_in_reach_each_way(part: &'static str, plants: bool) {
    if let Some(what) = browser::missing() {
        skip!("reach", "{what}");
    }
    let begin = Instant::now();
    let scratch = Scratch::new("reach");
    let (dir, state) = (scratch.folder("lab", None), scratch.path().join("state"));
    let server = Server::start(&Options::new(&dir, &state));
    let mut browser = Browser::start();
    browser.open(&server, "admin", PASSWORD);
    let api = Api::new(&state);
    // A setting that names a certificate has a choice.
    let pair = Authority::new("reach").sign();
    let properties = json!({"chain": pair.certificate, "key": pair.key});
    let office = json!({"create": "/configuration/certificates", "name": "office",
        "properties": properties});
    assert_eq!(api.post("/api/v1/changes", &json!({"changes": [office]})).0, 200);
    if part == walk::NETWORK {
        with_a_network(&api);
    }
    let tree = api.get("/api/v1/tree").1;
    let ways: Vec<Box<dyn Interface>> = vec![
        Box::new(OnCommandLine::new(&state, scratch.path())),
        Box::new(OverApi(api.clone())),
        Box::new(browser),
    ];
    let mut walk = Walk::new(part, api, ways, World::new(&scratch));
    walk.node(String::new(), &tree);
    println!("reach {part}: {} in {:.1} s", walk.counts, begin.elapsed().as_secs_f64());
    walk.notes.iter().for_each(|note| println!("reach: refused alike: {note}"));
    let unknown: Vec<&String> = walk.notes.iter().filter(|note| !plan::is_refused(note)).collect();
    assert!(unknown.is_empty(), "no good value is known: {unknown:#?}");
    assert!(walk.missing.is_empty(), "out of reach:\n{}", walk.missing.join("\n"));
    assert!(walk.counts.nodes > 0 && walk.counts.set + walk.counts.items > 0);
    if plants {
        assert!(walk.counts.set > 15 && walk.counts.items > 1 && walk.counts.actions > 2);
        planted(&mut walk, &tree);
    }
    assert_eq!(walk.browser_complaints(), Vec::<String>::new());
}

/// What no server has is missed each way, or the walk proves nothing.
fn planted(walk: &mut Walk, tree: &Value) {
    let path = "/configuration/preferences";
    let declared = plan::declared(tree, path).expect("the preferences");
    let mut planted = declared.clone();
    planted["properties"] = json!([{
        "name": "planted", "title": "Planted", "kind": {"type": "bool"}, "role": "setting",
        "default": false, "required": false, "example": ""
    }]);
    planted["actions"] =
        json!([{"name": "plant", "title": "Plant", "destructive": false, "parameters": []}]);
    walk.node(path.to_owned(), &planted);
    let missing = std::mem::take(&mut walk.missing);
    for what in ["planted", "plant "] {
        for way in ["command line", "API", "browser"] {
            let told = |line: &&String| line.contains(way) && line.contains(what);
            let found = missing.iter().any(|line| told(&line));
            assert!(found, "nobody misses {what:?} of the {way}: {missing:#?}");
        }
    }
}

#[test]
fn an_unknown_kind_has_no_value() {
    let scratch = Scratch::new("reach-plan");
    let world = World::new(&scratch);
    let property = |kind: Value| json!({"name": "p", "kind": kind, "example": ""});
    let known = [
        (json!({"type": "bool"}), json!(true), json!(false)),
        (json!({"type": "integer", "min": 1, "max": 2}), json!(1), json!(2)),
        (json!({"type": "integer", "min": 1, "max": 2}), json!(2), json!(1)),
        (json!({"type": "seconds", "min": 0, "max": 9}), Value::Null, json!(0)),
    ];
    for (kind, now, other) in known {
        assert_eq!(plan::other(&property(kind.clone()), &now, &world), Ok(other), "{kind}");
    }
    let text = |shape: &str| property(json!({"type": "text", "shape": shape, "max_length": 99}));
    let first = plan::other(&text("name"), &Value::Null, &world).expect("a name");
    let second = plan::other(&text("name"), &first, &world).expect("another name");
    assert_ne!(first, second);
    plan::other(&property(json!({"type": "teapot"})), &Value::Null, &world).unwrap_err();
    plan::other(&text("teapot"), &Value::Null, &world).unwrap_err();
    let given = Given::of("/shares/default/x", "root_owner", &world).expect("in the table");
    assert!(given.is_number(), "{given}");
    fs::metadata(scratch.path()).expect("its folder");
}
