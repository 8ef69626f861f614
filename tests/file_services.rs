//! FTP and HTTP as services of the program: users act by their numbers, share modes and passwords
//! change while clients are connected, a service is disabled, restarted and kept from its port
//! while the others go on.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use base::base64;
use e2e::api::{Api, now, wait_for};
use e2e::ftp::Ftp;
use e2e::is_root;
use e2e::scene::Scene as Place;
use e2e::scratch::Scratch;
use e2e::server::Server;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(20);
const FTP: &str = "/configuration/services/ftp";
const HTTP: &str = "/configuration/services/http";
const ANNA: &str = "/configuration/users/anna";
const PASSWORD: &str = "correct horse";

struct Scene {
    server: Server,
    api: Api,
    dir: PathBuf,
    _scratch: Scratch,
}

impl Scene {
    /// A server with a user anna, who is number 4321.
    fn new(name: &str) -> Self {
        let place = Place::new(name);
        let (server, api) = place.start_for_anna(PASSWORD, &[]);
        let Place { dir, scratch, .. } = place;
        Self { server, api, dir, _scratch: scratch }
    }

    fn change(&self, changes: &Value) -> String {
        let (code, done) = self.api.post("/api/v1/changes", &json!({ "changes": changes }));
        assert_eq!(code, 200, "{done}");
        done["notes"].to_string()
    }

    fn set(&self, at: &str, property: &str, value: Value) -> String {
        self.change(&json!([{"set": at, "property": property, "value": value}]))
    }

    fn get(&self, at: &str, property: &str) -> Value {
        let (code, node) = self.api.get(&format!("/api/v1/nodes{at}"));
        assert_eq!(code, 200, "{node}");
        let all = node["properties"].as_array().expect("properties");
        let one = all.iter().find(|one| one["name"] == property);
        one.map(|one| one["value"].clone()).unwrap_or_default()
    }

    fn restart(&self, at: &str) -> (u16, Value) {
        self.api.post(&format!("/api/v1/nodes{at}/actions/restart"), &json!({ "parameters": {} }))
    }

    fn ftp(&self) -> Ftp {
        Ftp::connect(self.server.at(21)).expect("FTP")
    }

    /// Anna, signed in.
    fn anna(&self) -> Ftp {
        let mut ftp = self.ftp();
        assert_eq!(ftp.sign_in("anna", PASSWORD), 230);
        ftp
    }
}

/// A GET over plain HTTP: its status and body.
fn get(at: SocketAddr, path: &str, user: &str, password: &str) -> (u16, Vec<u8>) {
    let basic = base64::encode(format!("{user}:{password}").as_bytes());
    let mut stream = TcpStream::connect(at).expect("HTTP");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let ask = format!(
        "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         authorization: Basic {basic}\r\n\r\n"
    );
    stream.write_all(ask.as_bytes()).expect("sent");
    let mut all = Vec::new();
    stream.read_to_end(&mut all).expect("an answer");
    let head = all.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    let status = std::str::from_utf8(&all[9..12]).expect("a status").parse().expect("a number");
    (status, all[head..].to_vec())
}

#[test]
fn users_act_by_their_numbers_and_as_far_as_the_share_lets_them() {
    let scene = Scene::new("file-services-users");
    scene.change(&json!([
        {"set": HTTP, "property": "plain", "value": "serve"},
        {"set": HTTP, "property": "basic_over_plain", "value": true},
    ]));
    let mut ftp = scene.anna();
    assert_eq!(ftp.store("/box/one", b"0123456789"), 226);
    let made = fs::metadata(scene.dir.join("box/one")).expect("the file");
    if is_root() {
        assert_eq!((made.uid(), made.gid()), (4321, 4322));
    }
    let http = scene.server.at(80);
    assert_eq!(get(http, "/box/one", "anna", PASSWORD), (200, b"0123456789".to_vec()));

    // Each service by itself, and from the next command on.
    scene.set("/shares/default/box", "ftp", json!("ro"));
    assert_ne!(ftp.store("/box/two", b"x"), 226);
    assert!(!scene.dir.join("box/two").exists());
    scene.set("/shares/default/box", "http_exceptions", json!(["127.0.0.0/8(none)"]));
    let refused = get(http, "/box/one", "anna", PASSWORD).0;
    assert!((400..500).contains(&refused), "{refused}");
    scene.set("/shares/default/box", "ftp", json!("rw"));
    assert_eq!(ftp.store("/box/two", b"x"), 226, "the connection has gone on");
    assert_eq!(ftp.say("SIZE /box/one").1.trim(), "10");
    for name in ["ftp", "ftps", "http", "https"] {
        let url = scene.server.announced["shares"]["data"][name].to_string();
        assert!(url.contains(&format!("{name}://127.0.0.1:")), "{name}: {url}");
    }
    let begun = now() - 60;
    wait_for("anna among the users", PATIENCE, || {
        let data = scene.api.data("ftp.ops[user]", (begun, now()), "");
        data.to_string().contains("\"anna\"").then_some(())
    });
}

#[test]
fn who_has_another_password_is_out_of_all_services() {
    let scene = Scene::new("file-services-password");
    let mut ftp = scene.anna();
    assert_eq!(ftp.say("PWD").0, 257);
    scene.set(ANNA, "full_name", json!("Anna Berg"));
    assert_eq!(ftp.say("PWD").0, 257, "that is nobody's business");
    scene.set(ANNA, "password", json!("another horse"));
    assert_ne!(ftp.say("PWD").0, 257);
    assert_eq!(scene.ftp().sign_in("anna", PASSWORD), 530);
    assert_eq!(scene.ftp().sign_in("anna", "another horse"), 230);
    scene.set(ANNA, "enabled", json!(false));
    assert_eq!(scene.ftp().sign_in("anna", "another horse"), 530);
}

#[test]
fn wrong_passwords_of_all_services_try_one_patience() {
    let scene = Scene::new("file-services-patience");
    scene.change(&json!([
        {"set": HTTP, "property": "plain", "value": "serve"},
        {"set": HTTP, "property": "basic_over_plain", "value": true},
    ]));
    for n in 0..6 {
        if n % 2 == 0 {
            assert_ne!(scene.ftp().sign_in("anna", "wrong horse"), 230);
        } else {
            assert_ne!(get(scene.server.at(80), "/box/", "anna", "wrong horse").0, 200);
        }
    }
    assert_ne!(scene.ftp().sign_in("anna", PASSWORD), 230, "its turn has not come yet");
    wait_for("the end of the wait", PATIENCE, || {
        (scene.ftp().sign_in("anna", PASSWORD) == 230).then_some(())
    });
}

#[test]
fn a_service_is_disabled_restarted_and_kept_from_its_port_alone() {
    let scene = Scene::new("file-services-states");
    let at = scene.server.at(21);
    let mut ftp = scene.anna();
    wait_for("the connection", PATIENCE, || (scene.get(FTP, "clients") == 1).then_some(()));
    scene.set(FTP, "enabled", json!(false));
    assert_eq!(ftp.say("NOOP").0 / 100 * 100 % 400, 0, "421, or nothing");
    assert!(TcpStream::connect(at).is_err());
    assert_eq!(scene.get(FTP, "state"), "disabled");
    assert!(scene.get(FTP, "reason").to_string().contains("disabled by "));
    assert_eq!(scene.restart(FTP).0, 409, "a disabled service is not restarted");
    assert_eq!((scene.get(HTTP, "state"), scene.get(FTP, "clients")), (json!("online"), json!(0)));

    let taken = TcpListener::bind(at).expect("its port");
    let told = scene.set(FTP, "enabled", json!(true));
    assert!(told.contains("in maintenance") && told.contains("in use by another"), "{told}");
    assert_eq!(scene.get(FTP, "state"), "maintenance");
    let status = scene.api.status();
    assert!(status["problems"].to_string().contains("FTP is in maintenance"), "{status}");
    drop(taken);
    let (code, done) = scene.restart(FTP);
    assert_eq!((code, scene.get(FTP, "state")), (200, json!("online")), "{done}");
    assert_eq!(scene.anna().say("NOOP").0, 200);

    // The port of FTPS goes with the setting, at a restart.
    assert!(TcpStream::connect(scene.server.at(990)).is_ok());
    scene.set(FTP, "implicit", json!(false));
    assert_eq!(scene.restart(FTP).0, 200);
    assert!(TcpStream::connect(scene.server.at(990)).is_err());
    let ways = scene.get("/shares/default/box", "mount").to_string();
    assert!(ways.contains("ftp://") && !ways.contains("ftps://"), "{ways}");
}

#[test]
fn what_is_no_setting_is_refused_at_its_place() {
    let scene = Scene::new("file-services-settings");
    for (at, property, value) in [
        (FTP, "passive_ports", "9-10"),
        (FTP, "umask", "999"),
        (FTP, "masquerade_address", "fd00::1"),
        (FTP, "certificate", "nothing"),
        (HTTP, "umask", "1777"),
        (HTTP, "certificate", "nothing"),
        ("/shares/default/box", "sftp_exceptions", "10.0.0.0/8(root_squash)"),
    ] {
        let value = if property.ends_with("exceptions") { json!([value]) } else { json!(value) };
        let change = json!({"set": at, "property": property, "value": value});
        let (code, refused) = scene.api.post("/api/v1/changes", &json!({"changes": [change]}));
        assert!(code == 400 || code == 409, "{property}: {refused}");
        assert_eq!(refused["error"]["property"], property, "{refused}");
    }
}
