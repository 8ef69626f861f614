//! Worksheets and retention through a tree of their own.

use std::sync::Arc;

use analytics::names::HubResolver;
use analytics::query::Engine;
use analytics::store::Store;
use base::clock::ManualClock;
use base::node::Context;
use probe::hub::{Hub, HubOptions};
use serde_json::json;

use super::*;
use crate::tree::Subtree;
use crate::tree::tests::disk::MemoryDisk;
use crate::tree::tests::{commit, create, path, set};

static ROOT: Context =
    Context::new("", "Test", "A tree.", "status").children(&[&analytics::node::ANALYTICS]);

fn tree() -> (Arc<Tree>, Arc<AnalyticsRoom>, crate::state::tests::Scratch) {
    let scratch = crate::state::tests::Scratch::new();
    let hub = Hub::new(HubOptions { cores: 1, recorder_bytes: 1 << 16 });
    let store = Store::open(&scratch.path().join("stats"), Retention::default()).unwrap();
    let engine = Engine::new(hub.clone(), Arc::new(HubResolver(hub)), Some(store));
    let clock = Arc::new(ManualClock::at(0));
    let datasets = Datasets::open(engine.clone(), scratch.path(), clock.clone());
    let tree = Arc::new(Tree::open(Arc::new(MemoryDisk::default()), &ROOT, clock).unwrap());
    let room = AnalyticsRoom::start(engine, datasets, &tree);
    tree.join(vec![Subtree::new(&["analytics"], room.clone())]);
    (tree, room, scratch)
}

#[test]
fn a_worksheet_has_the_address_of_its_page() {
    let (tree, room, _scratch) = tree();
    let panels = json!(["nfs.ops[client]!line", "nfs3.ops[file=a b&c][latency]!crop=1"]);
    let properties = json!({ "title": "Who", "panels": panels, "span": 3600 });
    commit(&tree, json!([create("/analytics/worksheets", "who", properties)])).unwrap();
    let state = room.state(&path("/analytics/worksheets/who"));
    let address = "/analytics?w=nfs.ops[client]!line&w=nfs3.ops[file=a%20b%26c][latency]!crop=1\
                   &span=3600";
    assert_eq!(state, [("address", Value::text(address))]);
}

#[test]
fn a_panel_that_nothing_shows_is_refused() {
    let (tree, ..) = tree();
    let crops =
        ["100", "0", "+1", "1e1", "-1", "nan", ""].map(|crop| format!("nfs3.ops!crop={crop}"));
    let others = ["nfs3.nothing", "nfs3.ops[", "nfs3.ops!pie", "nfs3.ops!"];
    for panel in crops.iter().map(String::as_str).chain(others) {
        let properties = json!({ "panels": [panel] });
        let made = commit(&tree, json!([create("/analytics/worksheets", "w", properties)]));
        let problems = made.expect_err(panel);
        assert_eq!(problems[0].property.as_deref(), Some("panels"), "{panel}: {problems:?}");
    }
    assert_eq!(
        divided("nfs3.ops[file=a!b\\]c!d][op]!line"),
        ("nfs3.ops[file=a!b\\]c!d][op]", "!line")
    );
}

#[test]
fn what_is_kept_is_a_setting() {
    let (tree, room, _scratch) = tree();
    let day = 86_400;
    commit(&tree, json!([set("/analytics/datasets", "keep_seconds", day)])).unwrap();
    let states = room.state(&path("/analytics/datasets"));
    assert!(states.iter().any(|(name, value)| *name == "size" && value.as_integer().is_some()));
    let retention = room.engine.store().unwrap().retention();
    assert_eq!(
        retention.keep,
        [day as u64, Retention::default().keep[1], Retention::default().keep[2]]
    );
    let problems = commit(&tree, json!([set("/analytics/datasets", "size_max", 1)])).unwrap_err();
    assert_eq!(problems[0].property.as_deref(), Some("size_max"));
}
