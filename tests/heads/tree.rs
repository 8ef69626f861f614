//! Heads and resources in the tree of administration: seen and moved at the server of any resource;
//! takeovers as alerts, and resources without owner as problems.

use std::fs;
use std::path::Path;

use e2e::api::Api;
use e2e::{is_root, process, skip};
use serde_json::{Value, json};

use super::cluster::{ACCOUNTS, Cluster, LEFT, PROJECTS, RIGHT};

/// Times of the phases of a takeover.
const PHASES: [&str; 5] =
    ["takeover_hand_over", "takeover_claim", "takeover_lock", "takeover_start", "takeover_address"];

/// A property of a node.
pub fn property(api: &Api, path: &str, name: &str) -> Value {
    let (code, node) = api.get(&format!("/api/v1/nodes{path}"));
    assert_eq!(code, 200, "{path}: {node}");
    let all = node["properties"].as_array().expect("properties");
    all.iter().find(|one| one["name"] == name).map_or(Value::Null, |one| one["value"].clone())
}

/// Does an action; the HTTP status and the answer.
pub fn act(api: &Api, path: &str, action: &str, parameters: &Value) -> (u16, Value) {
    let body = json!({ "parameters": parameters });
    api.post(&format!("/api/v1/nodes{path}/actions/{action}"), &body)
}

/// The two resources at a head each, and the API of their servers.
pub fn both() -> Result<(Cluster, Api, Api), String> {
    if !is_root() {
        return Err("network namespaces and loop devices need root".to_owned());
    }
    let cluster = Cluster::start(&[ACCOUNTS, PROJECTS])?;
    let accounts = cluster.api(ACCOUNTS);
    let (code, answer) = act(&accounts, "/cluster/resources/projects", "failback", &json!({}));
    assert_eq!(code, 200, "{answer}");
    cluster.wait_for_owner(PROJECTS, RIGHT);
    let projects = cluster.api(PROJECTS);
    Ok((cluster, accounts, projects))
}

#[test]
fn any_server_shows_and_moves_resources_and_a_takeover_is_an_alert() {
    let (mut cluster, accounts, projects) = match both() {
        Ok(all) => all,
        Err(why) => skip!("heads-tree", "{why}"),
    };
    let path = "/cluster/resources/projects";
    for (api, head) in [(&accounts, "left"), (&projects, "right")] {
        cluster.wait("the takeover is recorded", || {
            property(api, path, "takeover_cause") == "command"
        });
        assert_eq!(property(api, "/cluster", "state"), "member");
        assert_eq!(property(api, "/cluster", "head"), head);
        assert_eq!(property(api, "/cluster/resources/accounts", "owner"), "left");
        assert_eq!(property(api, "/cluster/heads/right", "owns"), json!(["projects"]));
        cluster.wait("it is served", || property(api, path, "state") == "served");
        assert_eq!(property(api, path, "owner"), "right");
        assert_eq!(property(api, path, "addresses"), json!(["10.77.0.102/24"]));
        assert_eq!(property(api, path, "takeover_from"), "left");
        let ms =
            |name: &str| property(api, path, name).as_u64().unwrap_or_else(|| panic!("{name}"));
        let phases = PHASES.map(ms);
        assert_eq!(phases.iter().sum::<u64>(), ms("takeover_total"));
        // A hand-over of nothing takes less than a millisecond.
        assert!(phases[3] > 0, "{phases:?}");
        println!("{head}: {PHASES:?} ms: {phases:?}");
    }

    // What moves is refused with the reason of the head.
    let (code, answer) = act(&accounts, path, "takeover", &json!({ "to": "nowhere" }));
    assert_eq!(code, 409, "{answer}");
    assert!(answer.to_string().contains("nowhere is not a member"), "{answer}");
    let (code, answer) = act(&projects, "/cluster/heads/left", "drain", &json!({}));
    assert_eq!(code, 409, "{answer}");
    assert!(answer.to_string().contains("not the head of this machine"), "{answer}");

    let alert = json!({ "create": "/configuration/alerts", "name": "moved",
        "properties": { "when": "takeover", "for": 1 } });
    let (code, answer) = accounts.post("/api/v1/changes", &json!({ "changes": [alert] }));
    assert_eq!(code, 200, "{answer}");
    cluster.wait("the alert fires", || {
        let firing = property(&accounts, "/configuration/alerts", "firing").to_string();
        firing.contains("projects was taken over by right from left") && firing.contains("start ")
    });
    let (_, log) = accounts.get("/api/v1/logs?service=cluster&limit=100");
    assert!(log.to_string().contains("projects: taken over by right from left"), "{log}");

    // At another head than the one that is asked.
    let (code, answer) = act(&accounts, path, "takeover", &json!({ "to": "left" }));
    assert_eq!(code, 200, "{answer}");
    cluster.wait_for_owner(PROJECTS, LEFT);
    cluster.end();
}

#[test]
fn a_head_with_two_resources_is_drained_and_a_takeover_names_its_head() {
    let (mut cluster, accounts, _) = match both() {
        Ok(all) => all,
        Err(why) => skip!("heads-drain", "{why}"),
    };
    cluster.command(LEFT, &["takeover", ACCOUNTS.name, "--to", "right"]);
    cluster.wait_for_owner(ACCOUNTS, RIGHT);

    // A head that drains takes nothing over: no other one may drain then.
    let drains =
        |head: &str| property(&accounts, &format!("/cluster/heads/{head}"), "state") == "draining";
    cluster.command(LEFT, &["drain"]);
    cluster.wait("the owner has read that the other head drains", || drains("left"));
    let refused = cluster.refused(RIGHT, &["drain"]);
    assert!(refused.contains("no other head may take accounts over"), "{refused}");
    assert!(refused.contains("the head left drains"), "{refused}");
    for resource in [ACCOUNTS, PROJECTS] {
        assert!(cluster.process(resource, RIGHT) > 0);
    }
    cluster.command(LEFT, &["drain", "--off"]);
    cluster.wait("the owner has read that the drain has ended", || !drains("left"));
    cluster.command(RIGHT, &["drain"]);
    for resource in [ACCOUNTS, PROJECTS] {
        cluster.wait_for_owner(resource, LEFT);
    }
    let projects = cluster.api(PROJECTS);
    for resource in ["accounts", "projects"] {
        let path = format!("/cluster/resources/{resource}");
        cluster.wait("the cause is recorded", || {
            property(&projects, &path, "takeover_cause") == "drain"
        });
    }
    assert_eq!(property(&projects, "/cluster/heads/right", "owns"), json!([]));

    // It takes nothing over until the drain ends.
    let refused = cluster.refused(LEFT, &["takeover", PROJECTS.name, "--to", "right"]);
    assert!(refused.contains("the head right drains"), "{refused}");
    cluster.command(RIGHT, &["drain", "--off"]);
    cluster.wait("the drain has ended", || {
        property(&projects, "/cluster/heads/right", "state") == "member"
    });
    cluster.command(LEFT, &["failback", PROJECTS.name]);
    cluster.wait_for_owner(PROJECTS, RIGHT);
    cluster.end();
}

/// Writes the version of the format into the file `owner` of a resource.
fn set_format(path: &Path, format: u64) {
    let text = fs::read_to_string(path).expect("the file");
    let mut owner: Value = serde_json::from_str(&text).expect("JSON");
    owner["format"] = json!(format);
    fs::write(path, format!("{owner:<511}\n")).expect("written");
}

#[test]
fn a_state_directory_of_a_newer_version_is_refused_and_is_a_problem_until_it_is_served() {
    let (mut cluster, accounts, _) = match both() {
        Ok(all) => all,
        Err(why) => skip!("heads-format", "{why}"),
    };
    let owner = cluster.state(PROJECTS).join("owner");
    set_format(&owner, 99);
    process::signal(cluster.process(PROJECTS, RIGHT), libc::SIGKILL);
    let problem = "/maintenance/problems/cluster-resource-projects";
    // One request for all of it: the problem may end between two.
    let shown = || match accounts.get(&format!("/api/v1/nodes{problem}")) {
        (200, node) => node["properties"].to_string(),
        _ => String::new(),
    };
    cluster.wait("the resource is a critical problem", || {
        let shown = shown();
        shown.contains("used by a newer version of plimsoll") && shown.contains("critical")
    });
    let state = property(&accounts, "/cluster/resources/projects", "state");
    assert!(state == "unowned" || state == "failed" || state == "starting", "{state}");
    // The other resource of this head is served all the time.
    assert!(cluster.process(ACCOUNTS, LEFT) > 0);

    set_format(&owner, 1);
    cluster.command(LEFT, &["takeover", PROJECTS.name]);
    cluster.wait_for_owner(PROJECTS, LEFT);
    cluster.wait("the problem ends", || shown().is_empty());
    cluster.end();
}
