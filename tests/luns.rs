//! Logical units as nodes of the tree: made by `--lun`, grown, renamed, exported and destroyed by
//! the API, the same over a restart.

use e2e::api::Api;
use e2e::iscsi::{Access, BLOCK, Initiator, io};
use e2e::scene::Scene;
use serde_json::{Value, json};
use wire::scsi::Cdb;
use wire::scsi::lun::{Lun, report};

const DISK: &str = "/api/v1/nodes/shares/default/luns/disk";

/// The value of a property of a node.
fn property_of(api: &Api, path: &str, property: &str) -> Value {
    let (code, node) = api.get(path);
    assert_eq!(code, 200, "{path}: {node}");
    let properties = node["properties"].as_array().cloned().unwrap_or_default();
    let found = properties.into_iter().find(|one| one["name"] == property);
    found.map_or(Value::Null, |one| one["value"].clone())
}

fn change(api: &Api, changes: Value) {
    let (code, answer) = api.post("/api/v1/changes", &json!({ "changes": changes }));
    assert_eq!(code, 200, "{changes}: {answer}");
}

#[test]
fn units_are_nodes_of_the_tree() {
    let scene = Scene::new("luns");
    let server = scene.start(&["--lun", "disk=16M"]);
    let api = Api::new(&scene.state);
    let guid = property_of(&api, DISK, "lunguid");
    assert_eq!(property_of(&api, DISK, "state"), "online");
    assert_eq!(property_of(&api, DISK, "size"), json!(16 << 20));
    let secret = std::fs::read_to_string(scene.state.join("luns/secret")).expect("it is made");
    let (_, node) = api.get(DISK);
    assert!(!node.to_string().contains(secret.trim()), "the secret is in no answer");
    let portals = |value: &str| {
        let set = json!({ "set": "/configuration/services/iscsi", "property": "portals",
            "value": [value] });
        api.post("/api/v1/changes", &json!({ "changes": [set] }))
    };
    let (code, answer) = portals("gateway");
    assert!(code == 400 && answer.to_string().contains("not an address"), "{code}: {answer}");
    let (code, answer) = portals("192.0.2.7:860");
    assert_eq!(code, 200, "{answer}");
    let connect = property_of(&api, DISK, "connect").to_string();
    assert!(connect.contains("-p 192.0.2.7:860"), "{connect}");
    let at = "/shares/default/luns/disk";
    let set = |value: &str| json!([{ "set": at, "property": "volsize", "value": value }]);
    change(&api, set("32M"));
    assert_eq!(property_of(&api, DISK, "size"), json!(32 << 20));
    let (code, answer) = api.post("/api/v1/changes", &json!({ "changes": set("8M") }));
    assert_eq!(code, 409, "{answer}");
    let destroy = json!([{ "destroy": "/shares/default/luns/disk" }]);
    let (code, answer) = api.post("/api/v1/changes", &json!({ "changes": destroy }));
    assert!(code == 409 && answer.to_string().contains("are removed"), "{answer}");
    let (_, text) = api.text("/api/v1/configuration");
    assert!(text.contains("luns/disk") || text.contains("disk"), "{text}");
    drop(server);

    let _again = scene.start(&["--lun", "disk=1G", "--lun", "more=1M"]);
    let api = Api::new(&scene.state);
    assert_eq!(property_of(&api, DISK, "lunguid"), guid);
    assert_eq!(property_of(&api, DISK, "size"), json!(32 << 20), "it is as it was");
    change(&api, json!([{ "rename": "/shares/default/luns/disk", "to": "other" }]));
    let other = "/api/v1/nodes/shares/default/luns/other";
    assert_eq!(property_of(&api, other, "lunguid"), guid);
    change(&api, json!([{ "destroy": "/shares/default/luns/other", "confirm": true }]));
    let gone = e2e::api::wait_for("its file is removed", e2e::patience(10), || {
        (!scene.state.join("luns/disk.lun").exists()).then_some(true)
    });
    assert!(gone && scene.state.join("luns/more.lun").exists());
}

/// Numbers above 255 are addressed in the flat space format (SAM-5 §4.7.7.5).
#[test]
fn a_unit_with_a_number_above_255_is_listed_read_and_written() {
    const PORT: u16 = 3260;
    let scene = Scene::new("luns-flat");
    let server = scene.start(&["--lun", "disk=16M"]);
    let api = Api::new(&scene.state);
    let create = |number: u16| {
        let create = json!({"create": "/shares/default/luns", "name": format!("number-{number}"),
            "properties": {"volsize": "16M", "assignednumber": number}});
        api.post("/api/v1/changes", &json!({ "changes": [create] }))
    };
    assert_eq!(create(700).0, 200);
    let (code, answer) = create(1_024);
    assert!(code == 400 && answer.to_string().contains("1023"), "{code}: {answer}");
    let access = Access::of(&scene.state);
    let mut initiator = Initiator::connect(server.at(PORT), &access, 1).expect("a session");
    let list = Cdb::ReportLuns { select: 0, allocation: 4096 };
    let listed = initiator.good(&list, &[], 4096);
    assert_eq!(report(&listed), Ok((vec![Lun(0), Lun(0x42bc << 48)], 24)));
    initiator.select(700).expect("the unit");
    initiator.good(&Cdb::Write(io(3, 1, true)), &[7; BLOCK], 0);
    assert_eq!(initiator.good(&Cdb::Read(io(3, 1, false)), &[], 512), [7; BLOCK]);
    initiator.select(0).expect("the other unit");
    assert_eq!(initiator.good(&Cdb::Read(io(3, 1, false)), &[], 512), [0; BLOCK]);
}
