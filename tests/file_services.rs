//! FTP and HTTP as services of the program: users access files with their uids, share modes and
//! passwords change while clients are connected, a service is disabled, restarted and kept from its
//! port while the others continue.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use e2e::api::{Api, now, wait_for};
use e2e::ftp::Ftp;
use e2e::http::Http;
use e2e::is_root;
use e2e::scene::Scene as BaseScene;
use e2e::scratch::Scratch;
use e2e::server::Server;
use e2e::tcp::HERE;
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
    /// A server with a user anna, uid 4321.
    fn new(name: &str) -> Self {
        let place = BaseScene::new(name);
        let (server, api) = place.start_for_anna(PASSWORD, &[]);
        let BaseScene { dir, scratch, .. } = place;
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

    /// A connection on which anna sends a password, and the reply code.
    fn tried(&self, password: &str) -> (Ftp, u16) {
        let mut ftp = Ftp::connect(HERE, self.server.at(21)).expect("FTP");
        let code = ftp.sign_in("anna", password).expect("FTP");
        (ftp, code)
    }

    /// Anna, signed in.
    fn anna(&self) -> Ftp {
        let (ftp, code) = self.tried(PASSWORD);
        assert_eq!(code, 230);
        ftp
    }
}

/// STOR; the code at its end.
fn store(ftp: &mut Ftp, path: &str, data: &[u8]) -> u16 {
    ftp.data(format!("STOR {path}"), Some(data)).expect("FTP").0
}

/// A GET over plain HTTP: its status and body.
fn get(at: SocketAddr, path: &str, user: &str, password: &str) -> (u16, Vec<u8>) {
    let mut http = Http::connect(HERE, at, (user, password)).expect("HTTP");
    let (status, _, body) = http.ask(("GET", path.as_bytes()), b"", b"").expect("an answer");
    (status, body)
}

#[test]
fn users_act_by_their_numbers_and_as_far_as_the_share_lets_them() {
    let scene = Scene::new("file-services-users");
    scene.change(&json!([
        {"set": HTTP, "property": "plain", "value": "serve"},
        {"set": HTTP, "property": "basic_over_plain", "value": true},
    ]));
    let mut ftp = scene.anna();
    assert_eq!(store(&mut ftp, "/box/one", b"0123456789"), 226);
    let made = fs::metadata(scene.dir.join("box/one")).expect("the file");
    if is_root() {
        assert_eq!((made.uid(), made.gid()), (4321, 4322));
    }
    let http = scene.server.at(80);
    assert_eq!(get(http, "/box/one", "anna", PASSWORD), (200, b"0123456789".to_vec()));

    // Each service separately, and from the next command on.
    scene.set("/shares/default/box", "ftp", json!("ro"));
    assert_ne!(store(&mut ftp, "/box/two", b"x"), 226);
    assert!(!scene.dir.join("box/two").exists());
    scene.set("/shares/default/box", "http_exceptions", json!(["127.0.0.0/8(none)"]));
    let refused = get(http, "/box/one", "anna", PASSWORD).0;
    assert!((400..500).contains(&refused), "{refused}");
    scene.set("/shares/default/box", "ftp", json!("rw"));
    assert_eq!(store(&mut ftp, "/box/two", b"x"), 226, "the connection has gone on");
    assert_eq!(ftp.say("SIZE /box/one").expect("FTP").1, "10");
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
fn a_changed_password_ends_sessions_of_all_services() {
    let scene = Scene::new("file-services-password");
    let mut ftp = scene.anna();
    assert_eq!(ftp.code("PWD"), 257);
    scene.set(ANNA, "full_name", json!("Anna Berg"));
    assert_eq!(ftp.code("PWD"), 257, "that is nobody's business");
    scene.set(ANNA, "password", json!("another horse"));
    assert_ne!(ftp.code("PWD"), 257);
    assert_eq!(scene.tried(PASSWORD).1, 530);
    assert_eq!(scene.tried("another horse").1, 230);
    scene.set(ANNA, "enabled", json!(false));
    assert_eq!(scene.tried("another horse").1, 530);
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
            assert_ne!(scene.tried("wrong horse").1, 230);
        } else {
            assert_ne!(get(scene.server.at(80), "/box/", "anna", "wrong horse").0, 200);
        }
    }
    assert_ne!(scene.tried(PASSWORD).1, 230, "its turn has not come yet");
    wait_for("the end of the wait", PATIENCE, || (scene.tried(PASSWORD).1 == 230).then_some(()));
}

#[test]
fn a_service_is_disabled_restarted_and_kept_from_its_port_alone() {
    let scene = Scene::new("file-services-states");
    let at = scene.server.at(21);
    let mut ftp = scene.anna();
    wait_for("the connection", PATIENCE, || (scene.get(FTP, "clients") == 1).then_some(()));
    scene.set(FTP, "enabled", json!(false));
    assert_eq!(ftp.code("NOOP") / 100 * 100 % 400, 0, "421, or nothing");
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
    assert_eq!(scene.anna().code("NOOP"), 200);

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
