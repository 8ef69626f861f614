//! The address by which a browser reaches the administration is changed in the browser: server and
//! browser are in separate namespaces, joined by a pair of virtual devices. The checks in the
//! browser are in `ui/tests/browser/move.mjs`.

use std::process::Command;
use std::time::Duration;

use e2e::api::{Api, wait_for};
use e2e::browser::{PASSWORD, missing, ui};
use e2e::netns::Namespace;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::{has, is_root, process, skip};
use serde_json::json;

/// Where the browser finds the administration first.
const OLD: &str = "10.0.0.1";
/// Where it is afterwards.
const NEW: &str = "10.1.0.1";
/// The administration's port without an offset.
const ADMINISTRATION: u16 = 215;
/// How long the browser may take over everything.
const BROWSER: Duration = e2e::patience(120);
/// How long the way back may take on a busy machine, beyond its time.
const WAY_BACK: Duration = e2e::patience(10);
/// Time for a confirmation that comes, and for one that does not, in seconds.
const WITHIN: u32 = 300;
const WITHIN_UNCONFIRMED: u32 = 8;
/// The browser's machine: in the networks of both addresses.
const CLIENT: &str = "ip addr add 10.0.0.100/24 dev c0
ip addr add 10.1.0.100/24 dev c0
ip link set c0 up";

struct Bed {
    scratch: Scratch,
    client: Namespace,
    server: Namespace,
}

impl Bed {
    fn new() -> Result<Self, String> {
        if let Some(what) = missing() {
            return Err(what);
        }
        if !is_root() || !has("ip") || !has("unshare") {
            return Err("needs root, ip and unshare".to_owned());
        }
        let up = "set -e\nip link set lo up\n";
        let client = Namespace::with(up).map_err(|e| e.to_string())?;
        let pair = format!("ip link add e0 type veth peer name c0 netns {}\n", client.pid());
        let server = Namespace::with(&format!("{up}{pair}")).map_err(|e| e.to_string())?;
        let bed = Self { scratch: Scratch::new("network-browser"), client, server };
        bed.run(&bed.client, CLIENT);
        Ok(bed)
    }

    fn run(&self, namespace: &Namespace, lines: &str) -> String {
        let mut command = Command::new("sh");
        command.args(["-ec", lines]);
        namespace.enter(&mut command);
        let output = process::run(&mut command, process::DEADLINE);
        assert!(output.status.success(), "{lines}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A server that has set the old address.
    fn start(&self) -> (Server, Api) {
        let (dir, state) = (self.scratch.folder("data", None), self.scratch.path().join("state"));
        let namespace = Some(&self.server);
        let options = Options { address: "0.0.0.0", namespace, ..Options::new(&dir, &state) };
        let (server, api) = (Server::start(&options), Api::new(&state));
        let changes = json!({ "changes": [
            { "create": "/configuration/network/datalinks", "name": "e0",
              "properties": { "class": "device" } },
            { "create": "/configuration/network/interfaces", "name": "lan",
              "properties": { "links": ["e0"], "v4addrs": [format!("{OLD}/24")] } },
        ]});
        let (code, answer) = api.post("/api/v1/changes", &changes);
        assert_eq!(code, 200, "{answer:#}");
        let confirm = "/api/v1/nodes/configuration/network/actions/confirm";
        assert_eq!(api.post(confirm, &json!({})).0, 200);
        wait_for("the change is confirmed", WAY_BACK, || is_at_rest(&api).then_some(()));
        (server, api)
    }

    /// Has the browser do its part.
    fn browse(&self, server: &Server, keep: bool) {
        let url = format!("https://{OLD}:{}", ADMINISTRATION + server.offset);
        let mut command = Command::new("node");
        command.arg("tests/browser/move.mjs").current_dir(ui());
        command.env("BASE_URL", url).env("PLIMSOLL_USER", "admin");
        command.env("PLIMSOLL_PASSWORD", PASSWORD).env("ELSEWHERE", NEW).env("ITEM", "lan");
        command.env("KEEP", if keep { "1" } else { "0" });
        self.client.enter(&mut command);
        let output = process::run(&mut command, BROWSER);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("pass "), "{text}");
    }

    fn addresses(&self) -> String {
        self.run(&self.server, "ip -o -4 addr show dev e0 | awk '{ print $4 }'")
    }
}

fn set_time(api: &Api, seconds: u32) {
    let set = json!({ "set": "/configuration/network", "property": "confirm_within",
        "value": seconds });
    assert_eq!(api.post("/api/v1/changes", &json!({ "changes": [set] })).0, 200);
}

/// Whether no change waits.
fn is_at_rest(api: &Api) -> bool {
    let node = api.get("/api/v1/nodes/configuration/network").1;
    let all = node["properties"].as_array().cloned().unwrap_or_default();
    all.iter().any(|one| one["name"] == "state" && one["value"] == "changeable")
}

#[test]
fn a_browser_follows_the_administration_to_a_new_address_and_keeps_it() {
    let bed = match Bed::new() {
        Ok(bed) => bed,
        Err(why) => skip!("network-browser", "{why}"),
    };
    let (server, api) = bed.start();
    set_time(&api, WITHIN);
    bed.browse(&server, true);
    assert_eq!(bed.addresses(), format!("{NEW}/24\n"));
    assert!(is_at_rest(&api));
}

#[test]
fn a_browser_that_does_not_confirm_has_the_old_address_again() {
    let bed = match Bed::new() {
        Ok(bed) => bed,
        Err(why) => skip!("network-browser", "{why}"),
    };
    let (server, api) = bed.start();
    set_time(&api, WITHIN_UNCONFIRMED);
    bed.browse(&server, false);
    assert_eq!(bed.addresses(), format!("{OLD}/24\n"));
    assert!(is_at_rest(&api));
    let history = api.get("/api/v1/configuration/history").1.to_string();
    assert!(history.contains("not confirmed"), "{history}");
}
