//! A network with all kinds of links of a guest, made and removed by the command line, the API and
//! the browser.

use e2e::browser::{Browser, PASSWORD};
use e2e::netns::Namespace;
use serde_json::{Map, Value, json};

const NETWORK: &str = "/configuration/network";
/// The administration in the guest, seen from its namespace.
const URL: &str = "https://10.0.2.15:215";

/// Its items: each is made of those before it.
pub fn wanted() -> Vec<(&'static str, &'static str, Value)> {
    let device = || json!({ "class": "device" });
    let mut all: Vec<_> = ["l0", "l1", "g0", "g1", "eth1"]
        .into_iter()
        .map(|name| ("datalinks", name, device()))
        .collect();
    all.extend([
        ("datalinks", "a0", json!({ "class": "device", "mtu": 1400 })),
        ("datalinks", "a1", json!({ "class": "device", "mtu": 1400 })),
        (
            "datalinks",
            "trunk0",
            json!({ "class": "aggregation", "links": ["a0", "a1"], "mode": "active-backup",
                    "primary": "a1", "mtu": 1400 }),
        ),
        ("datalinks", "trunk0.10", json!({ "class": "vlan", "link": "trunk0", "id": 10 })),
        (
            "datalinks",
            "lag0",
            json!({ "class": "aggregation", "links": ["l0", "l1"], "mode": "lacp",
                    "policy": "l34", "timer": "fast" }),
        ),
        (
            "interfaces",
            "lan",
            json!({ "links": ["trunk0.10"], "v4addrs": ["10.10.0.1/24", "10.11.0.1/16"],
                    "v6addrs": ["2001:db8:10::1/64"] }),
        ),
        ("interfaces", "lag", json!({ "links": ["lag0"], "v4addrs": ["10.4.0.1/24"] })),
        (
            "interfaces",
            "store",
            json!({ "links": ["g0", "g1"], "standbys": ["g1"], "probes": ["10.3.0.2"],
                    "v4addrs": ["10.3.0.1/24"] }),
        ),
        ("interfaces", "wan", json!({ "links": ["eth1"], "v4dhcp": true })),
        (
            "routes",
            "far",
            json!({ "destination": "10.99.0.0/16", "gateway": "10.10.0.9", "metric": 7 }),
        ),
    ]);
    all
}

fn command_line(lines: &[String]) -> String {
    let lines = lines.join("\n");
    format!(
        "plimsoll cli --state $STATE <<'END'\nconfiguration network\n{lines}\ncommit\nEND\n\
         plimsoll cli --state $STATE -c 'configuration network confirm'"
    )
}

fn word(value: &Value) -> String {
    match value {
        Value::Array(all) => all.iter().map(word).collect::<Vec<_>>().join(","),
        Value::Bool(on) => if *on { "on" } else { "off" }.to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A script that makes all of it by the command line, and confirms it.
pub fn made_by_command_line() -> String {
    let line = |(list, name, properties): (&str, &str, Value)| {
        let all = properties.as_object().cloned().unwrap_or_default();
        let all: String =
            all.iter().map(|(name, value)| format!(" {name}={}", word(value))).collect();
        format!("{list} create {name}{all}")
    };
    command_line(&wanted().into_iter().map(line).collect::<Vec<_>>())
}

/// One that removes it.
pub fn removed_by_command_line() -> String {
    let line = |(list, name, _): (&str, &str, Value)| format!("{list} destroy {name} --yes");
    command_line(&wanted().into_iter().rev().map(line).collect::<Vec<_>>())
}

fn over_the_api(changes: &[Value]) -> String {
    format!("change '{}'\nwaits\nact confirm", json!({ "changes": changes }))
}

/// A script that makes all of it in one request to the API, and confirms it.
pub fn made_over_the_api() -> String {
    let create = |(list, name, properties): (&str, &str, Value)| {
        let path = format!("{NETWORK}/{list}");
        json!({ "create": path, "name": name, "properties": properties })
    };
    over_the_api(&wanted().into_iter().map(create).collect::<Vec<_>>())
}

/// One that removes it.
pub fn removed_over_the_api() -> String {
    let destroy = |(list, name, _): (&str, &str, Value)| {
        let path = format!("{NETWORK}/{list}/{name}");
        json!({ "destroy": path, "confirm": true })
    };
    over_the_api(&wanted().into_iter().rev().map(destroy).collect::<Vec<_>>())
}

/// A browser next to the guest that is signed in.
pub struct Page {
    browser: Browser,
    /// What the nodes of the network declare.
    declared: Value,
}

impl Page {
    pub fn open(namespace: &Namespace, tree: &Value) -> Self {
        let mut browser = Browser::within(namespace);
        browser.open_at(URL, "admin", PASSWORD);
        let child = |of: &Value, name: &str| {
            let all = of["children"].as_array().cloned().unwrap_or_default();
            all.into_iter().find(|child| child["name"] == name).expect("a node")
        };
        let declared = child(&child(tree, "configuration"), "network");
        Self { browser, declared }
    }

    /// Properties of an item as the page has them: their declarations, and the values.
    fn fields(items: &Value, properties: &Map<String, Value>) -> Vec<Value> {
        let declared = items["context"]["properties"].as_array().expect("properties");
        let of = |one: &Value| {
            let value = properties.get(one["name"].as_str()?)?;
            let mut field = one.clone();
            field["value"] = value.clone();
            Some(field)
        };
        declared.iter().filter_map(of).collect()
    }

    fn ask(&mut self, request: &Value) {
        self.browser.ask(request).unwrap_or_else(|why| panic!("{request}: {why}"));
    }

    /// Makes all of it, an item after the other, and confirms it.
    pub fn makes(&mut self) {
        for (list, name, properties) in wanted() {
            let children = self.declared["children"].as_array().expect("children");
            let items = children.iter().find(|child| child["name"] == list).expect(list);
            let items = items["items"].clone();
            let fields = Self::fields(&items, properties.as_object().expect("properties"));
            assert_eq!(Some(fields.len()), properties.as_object().map(Map::len), "{name}");
            self.ask(&json!({ "do": "create", "path": format!("{NETWORK}/{list}"),
                "noun": items["noun"], "name": name, "properties": fields }));
        }
        self.confirms();
    }

    /// Removes it.
    pub fn removes(&mut self) {
        for (list, name, _) in wanted().into_iter().rev() {
            self.ask(&json!({ "do": "destroy", "path": format!("{NETWORK}/{list}/{name}") }));
        }
        self.confirms();
    }

    fn confirms(&mut self) {
        let actions = self.declared["actions"].as_array().expect("actions");
        let action = actions.iter().find(|one| one["name"] == "confirm").expect("an action");
        let act = json!({ "do": "act", "path": NETWORK, "action": action, "invoke": true });
        self.ask(&act);
        let complaints = self.browser.ask(&json!({ "do": "complaints" }));
        assert_eq!(complaints, Ok(json!([])));
    }
}
