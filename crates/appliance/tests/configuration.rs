//! The configuration of the real program: it outlives a kill, goes from one server to another as a
//! file, and the command line decides over it.

use crate::harness;
use crate::harness::{Scratch, Server, address, arg, run};
use control::client::{Client, ClientError};
use serde_json::{Value, json};

const NFS: &str = "/configuration/services/nfs";

fn client(scratch: &Scratch) -> Client {
    Client::local(&scratch.state().join("plimsoll.sock"))
}

fn get(client: &Client, path: &str) -> Value {
    serde_json::from_slice(&client.get(&format!("/api/v1{path}")).unwrap()).unwrap()
}

fn set(client: &Client, property: &str, value: &str) -> Result<Value, (u16, String)> {
    let change = json!({ "set": NFS, "property": property, "value": value });
    let body = json!({ "changes": [change] }).to_string();
    match client.post("/api/v1/changes", &body) {
        Ok(answer) => Ok(serde_json::from_slice(&answer).unwrap()),
        Err(ClientError::Refused { status, failed, .. }) => Err((status, failed)),
        Err(e) => panic!("{e}"),
    }
}

/// A property of NFS: its value and its source.
fn nfs(client: &Client, name: &str) -> (Value, Value) {
    let node = get(client, &format!("/nodes{NFS}"));
    let found = node["properties"].as_array().unwrap().iter().find(|p| p["name"] == name).unwrap();
    (found["value"].clone(), found["source"].clone())
}

fn export(client: &Client) -> String {
    String::from_utf8(client.get("/api/v1/configuration").unwrap()).unwrap()
}

fn without_comments(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_was_acknowledged_outlives_a_kill() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, address(), None);
    let local = client(&scratch);
    let done = set(&local, "lease", "1m").unwrap();
    assert!(done["notes"][0].as_str().unwrap().contains("when the service restarts"));
    let (status, failed) = set(&local, "lease", "0").unwrap_err();
    assert_eq!((status, failed.as_str()), (400, "lease: 0 is too small; the minimum is 1 second"));
    let (status, failed) = set(&local, "tls_certificate", "/nowhere.pem").unwrap_err();
    assert_eq!(
        (status, failed.as_str()),
        (
            400,
            "tls_certificate and tls_key must be set \
        together"
        )
    );
    // Dropped, it is killed.
    drop(server);

    let _server = Server::start(&scratch, address(), None);
    let local = client(&scratch);
    assert_eq!(nfs(&local, "lease"), (json!(60), json!("set")));
    assert_eq!(nfs(&local, "state").0, "online");
    let rows = get(&local, "/audit?path=/configuration/services");
    assert_eq!(
        (&rows["rows"][0]["property"], &rows["rows"][0]["after"]),
        (&json!("lease"), &json!(60))
    );
    let current = scratch.state().join("configuration/current.toml");
    let inspected = run(&["inspect", "--json", arg(&current)]);
    let value: Value = serde_json::from_slice(&inspected.stdout).unwrap();
    assert_eq!(value["nodes"][NFS]["lease"], 60);
    let log = run(&["inspect", arg(&scratch.state().join("audit.log"))]);
    assert!(
        String::from_utf8(log.stdout).unwrap().contains("set /configuration/services/nfs lease")
    );
}

#[test]
fn a_configuration_goes_to_another_server_and_options_decide_over_it() {
    let (first, second) = (Scratch::new(), Scratch::new());
    let one = Server::start(&first, address(), None);
    set(&client(&first), "lease", "60").unwrap();
    set(&client(&first), "delegations", "off").unwrap();
    let exported = export(&client(&first));
    let file = first.state().join("exported.toml");
    std::fs::write(&file, &exported).unwrap();

    let more = ["--config", arg(&file), "--nfs-lease", "30"];
    let _two = Server::start_with(&second, address(), None, &more);
    let local = client(&second);
    assert_eq!(nfs(&local, "delegations"), (json!(false), json!("set")));
    assert_eq!(nfs(&local, "lease"), (json!(30), json!("command line")));
    let (status, failed) = set(&local, "lease", "20").unwrap_err();
    assert_eq!(
        (status, failed.as_str()),
        (409, "lease is overridden by the command line in this run")
    );
    let history = get(&local, "/configuration/history");
    let newest = history.as_array().unwrap().iter().find(|one| one["who"] == "serve --config");
    assert_eq!(newest.unwrap()["comment"], "import");
    assert!(
        without_comments(&export(&local)).contains("lease = 60"),
        "the file's, not the option's"
    );
    drop(one);

    std::fs::write(&file, "format = 1\n[\"/configuration/services/nfs\"]\nlease = 0\n").unwrap();
    let third = Scratch::new();
    let refused = harness::serve_command(&third, address(), &["--config", arg(&file)]).output();
    let refused = refused.unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("lease: 0 is too small; the minimum is 1 second"), "{said}");
}
