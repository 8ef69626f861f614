//! Configurations that are restored and imported next to pools: whatever they have, no disk changes
//! that is in no pool of this server, and a pool that is not imported is offered for import.

use std::fs;

use e2e::api::Api;
use e2e::server::{Options, Server};
use e2e::skip;
use serde_json::{Value, json};

use crate::pools::{
    Bed, MIB, POOLS, Writer, act, change, cli, done, run, unmount, value, wait_online,
};

const SHARE: &str = "/shares/default/work";
/// Quotas of two revisions.
const QUOTAS: [usize; 2] = [64 * MIB, 96 * MIB];

/// A machine with a pool on two disks, one disk of another program, and a blank one.
struct Scene {
    bed: Bed,
    pool: String,
}

impl Scene {
    /// Restores a revision: the status and the answer.
    fn restore(api: &Api, revision: u64) -> (u16, String) {
        let body = json!({ "revision": revision });
        let (code, answer) = api.post("/api/v1/configuration/restore", &body);
        (code, answer.to_string())
    }

    /// The current revision.
    fn revision(api: &Api) -> u64 {
        let (_, history) = api.get("/api/v1/configuration/history?limit=1");
        history[0]["revision"].as_u64().unwrap_or_else(|| panic!("{history}"))
    }

    /// Digests of the disks that are in no pool.
    fn others(&self) -> Vec<String> {
        self.bed.sums_from(2)
    }

    fn is_offered(&self, api: &Api) -> bool {
        let offered = value(api, POOLS, "importable").to_string();
        offered.contains(&format!("{} (UUID ", self.pool))
    }

    fn node(&self) -> String {
        format!("{POOLS}/{}", self.pool)
    }

    fn directory(&self) -> String {
        format!("/run/plimsoll-pools/{}", self.pool)
    }
}

fn role(name: &str) -> Value {
    json!({ "create": "/configuration/roles", "name": name,
        "properties": { "permissions": ["status:read"] } })
}

#[test]
fn no_configuration_changes_a_disk_that_is_in_no_pool() {
    let bed = match Bed::new(&[192, 192, 136, 136]) {
        Ok(bed) => bed,
        Err(why) => skip!("pools-configuration", "{why}"),
    };
    run("mkfs.ext4", &["-q", &bed.disk(2)]);
    let scene = Scene { bed, pool: format!("conf{}", std::process::id()) };
    let (mut server, api) = scene.bed.start();
    change(&api, &json!([role("first")]));
    let before = Scene::revision(&api);
    let disks = format!("{},{}", scene.bed.disk(0), scene.bed.disk(1));
    let create = format!("storage pools create_pool name={} disks={disks}", scene.pool);
    cli(&scene.bed, &[&create]);
    let properties = json!({ "pool": scene.pool, "root_mode": "777", "quota": QUOTAS[0] });
    let create = json!({ "create": "/shares/default", "name": "work", "properties": properties });
    change(&api, &json!([create]));
    let first = Scene::revision(&api);
    let file = Writer::new(&server, "work").write("file", 1, 4 * MIB);
    change(&api, &json!([{ "set": SHARE, "property": "quota", "value": QUOTAS[1] }]));
    let second = Scene::revision(&api);
    let (code, text) = api.text("/api/v1/configuration");
    assert_eq!(code, 200, "{text}");
    restored_while_imported(&scene, &api, (before, first), &file);
    let all = restored_while_exported(&scene, &api, before, [first, second]);
    server.stop();
    drop(server);
    imported_elsewhere(&scene, &text, &file, &all);
}

/// To other settings of a share, and to before the pool.
fn restored_while_imported(scene: &Scene, api: &Api, (before, first): (u64, u64), file: &[u8]) {
    let others = scene.others();
    let (code, answer) = Scene::restore(api, first);
    assert_eq!(code, 200, "{answer}");
    assert_eq!(value(api, SHARE, "quota"), json!(QUOTAS[0]));
    let (code, answer) = Scene::restore(api, before);
    assert_eq!(code, 200, "{answer}");
    assert_eq!(value(api, SHARE, "state"), Value::Null, "the share is still there");
    assert_eq!(value(api, &scene.node(), "state"), "healthy");
    let read = fs::read(format!("{}/work/file", scene.directory())).expect("read");
    assert!(read == file, "a file of the pool has changed");
    assert_eq!(scene.others(), others, "a disk that is in no pool was written");
}

/// The same while the pool is not imported: no disk at all changes. Gives their digests.
fn restored_while_exported(
    scene: &Scene,
    api: &Api,
    before: u64,
    with_share: [u64; 2],
) -> Vec<String> {
    done(api, &scene.node(), "export_pool", &json!({}));
    let all = scene.bed.sums_from(0);
    for revision in with_share {
        let (code, answer) = Scene::restore(api, revision);
        assert!(code != 200 && answer.contains("is not mounted"), "{code} {answer}");
    }
    change(api, &json!([role("second")]));
    let (code, answer) = Scene::restore(api, before);
    assert_eq!(code, 200, "{answer}");
    assert!(scene.is_offered(api), "the pool is not offered for import");
    assert_eq!(scene.bed.sums_from(0), all, "a disk was written");
    all
}

/// On a machine with another state directory, also over its restart; then the pool is imported.
fn imported_elsewhere(scene: &Scene, text: &str, file: &[u8], all: &[String]) {
    let folder = |name: &str| scene.bed.scratch.path().join(name);
    let (dir, state) = (folder("data"), folder("elsewhere"));
    let start = || Server::start(&Options { offset: Some(10_000), ..Options::new(&dir, &state) });
    let mut server = start();
    let api = Api::new(&state);
    let import = || api.put_text("/api/v1/configuration", text);
    let sentence = format!("the pool {} is not mounted", scene.pool);
    for _ in 0..2 {
        let (code, answer) = import();
        assert!(code == 400 && answer.to_string().contains(&sentence), "{code} {answer}");
        assert!(scene.is_offered(&api), "the pool is not offered for import");
        server.stop();
        drop(server);
        server = start();
    }
    assert_eq!(scene.bed.sums_from(0), all, "a disk was written");
    let (code, answer) = act(&api, POOLS, "import_pool", &json!({ "name": scene.pool }));
    assert_eq!(code, 200, "{answer}");
    let (code, answer) = import();
    assert_eq!(code, 200, "{answer}");
    wait_online(&api, "work");
    assert_eq!(value(&api, SHARE, "quota"), json!(QUOTAS[1]));
    Writer::new(&server, "work").reads("file", file);
    assert_eq!(scene.others(), all[2..], "a disk that is in no pool was written");
    server.stop();
    drop(server);
    unmount(&scene.directory());
}
