//! The test service (`docs/protocols/echo.md`), in a program of its own: that a protocol which was
//! made by `docs/howto/add-a-protocol.md` has all that the others have, and is in no program that
//! is installed.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use e2e::api::{self, Api, sum, wait_for};
use e2e::browser::{self, Browser, PASSWORD};
use e2e::scene::Scene;
use e2e::server::{self, Options, Server};
use e2e::{process, skip};
use serde_json::{Value, json};

/// Its node in the tree.
const NODE: &str = "/configuration/services/echo";
/// Its port.
const PORT: u16 = 7;
/// Longest wait for an answer of the service.
const ANSWER: Duration = e2e::patience(30);
/// Longest wait for what happens soon, on a machine of its own.
const SOON: Duration = Duration::from_secs(20);
/// Files outside its folders that name it: a new protocol changes these in addition to its own.
const PLACES: [&str; 6] = [
    "crates/base/src/protocol.rs",
    "crates/lab/src/client/mod.rs",
    "crates/lab/src/client/scratch.rs",
    "crates/lab/src/client/target.rs",
    "crates/service/src/services.rs",
    "crates/wire/src/fuzz.rs",
];

/// The program with the test service, if it was built.
fn program() -> Option<PathBuf> {
    let path = server::built("plimsoll-test-services");
    path.exists().then_some(path)
}

/// The reason of the SKIP where it was not built.
const NOT_BUILT: &str = "its program is not built: cargo build --workspace --features \
                         test-program/test-services --bin plimsoll-test-services";

struct Running {
    server: Server,
    api: Api,
    program: PathBuf,
    scene: Scene,
}

impl Running {
    fn start(name: &str, program: PathBuf) -> Self {
        let scene = Scene::new(name);
        let options = Options::new(&scene.dir, &scene.state);
        let server = Server::start(&Options { program: Some(&program), ..options });
        let api = Api::new(&scene.state);
        Self { server, api, program, scene }
    }

    /// A property of the service as it is now.
    fn get(&self, property: &str) -> Value {
        let (code, node) = self.api.get(&format!("/api/v1/nodes{NODE}"));
        assert_eq!(code, 200, "{node}");
        let all = node["properties"].as_array().expect("properties");
        let one = all.iter().find(|one| one["name"] == property);
        one.map(|one| one["value"].clone()).unwrap_or_default()
    }

    /// The declaration of a property, as every interface has it.
    fn declared(&self, property: &str) -> Value {
        let mut node = self.api.get("/api/v1/tree").1;
        let named = |list: &Value, name: &str| {
            let mut all = list.as_array().into_iter().flatten();
            all.find(|one| one["name"] == name).cloned().expect("it is declared")
        };
        for name in NODE.split('/').filter(|name| !name.is_empty()) {
            node = named(&node["children"], name);
        }
        named(&node["properties"], property)
    }

    fn set(&self, property: &str, value: Value) {
        self.change(&json!({"set": NODE, "property": property, "value": value}));
    }

    fn change(&self, change: &Value) {
        let (code, done) = self.api.post("/api/v1/changes", &json!({ "changes": [change] }));
        assert_eq!(code, 200, "{done}");
    }

    fn client(&self) -> Client {
        Client::connect(&self.server).expect("it listens")
    }

    /// The output of `plimsoll cli` for a script.
    fn cli(&self, script: &str) -> String {
        let path = self.scene.scratch.path().join("script");
        fs::write(&path, script).expect("the script");
        let mut command = Command::new(&self.program);
        command.arg("cli").arg("--state").arg(&self.scene.state).arg(&path);
        String::from_utf8(process::succeed(&mut command)).expect("UTF-8")
    }
}

/// A client of the service.
struct Client(BufReader<TcpStream>);

impl Client {
    fn connect(server: &Server) -> std::io::Result<Self> {
        let stream = TcpStream::connect(server.at(PORT))?;
        stream.set_read_timeout(Some(ANSWER))?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends bytes; the line that comes back, empty at the end of the connection.
    fn exchange(&mut self, bytes: &[u8]) -> Vec<u8> {
        // A client that is disconnected meanwhile sees the end of the connection below.
        let _sent = self.0.get_mut().write_all(bytes);
        self.line()
    }

    fn line(&mut self) -> Vec<u8> {
        let mut line = Vec::new();
        match self.0.read_until(b'\n', &mut line) {
            Err(e) if e.kind() == ErrorKind::WouldBlock => panic!("nothing within {ANSWER:?}"),
            // It ended with what was not read.
            Err(_) => Vec::new(),
            Ok(_) => line,
        }
    }

    fn sign_in(self) -> Self {
        self.sign_in_as("admin")
    }

    fn sign_in_as(mut self, user: &str) -> Self {
        let first = format!("{user} {PASSWORD}\r\n");
        assert_eq!(self.exchange(first.as_bytes()), b"OK\r\n");
        self
    }
}

/// Key to sum over all seconds.
fn rows(data: &Value) -> BTreeMap<String, u64> {
    let rows = data["rows"].as_array().into_iter().flatten();
    let one =
        |row: &Value| (row["key"].as_str().unwrap_or_default().to_owned(), sum(&row["values"]));
    rows.map(one).filter(|(_, count)| *count > 0).collect()
}

#[test]
fn few_files_know_it() {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("../xtask/protocol-places.txt");
    let list =
        fs::read_to_string(list).expect("the list that `cargo xtask tidy` holds to the code");
    let head = format!("echo {}", PLACES.len());
    let own = list.lines().skip_while(|line| *line != head).skip(1);
    let places: Vec<&str> = own.take_while(|line| !line.is_empty()).map(str::trim).collect();
    assert_eq!(places, PLACES);
    assert!(places.len() <= 10);
}

#[test]
fn no_installed_program_has_it() {
    let text = |path: &Path| fs::read(path).expect("a program");
    let has = |program: &[u8]| program.windows(8).any(|bytes| bytes == b"echo.ops");
    assert!(!has(&text(server::binary())));
    if let Some(program) = program() {
        assert!(has(&text(&program)));
    }
}

#[test]
fn it_signs_in_and_sends_back() {
    let Some(program) = program() else { skip!("echo", "{NOT_BUILT}") };
    let running = Running::start("echo", program);
    let mut client = running.client().sign_in();
    assert_eq!(client.exchange(b"one\r\n"), b"one\r\n");
    // Several lines at once, the last one in two pieces.
    assert_eq!(client.exchange(b"two\nthr"), b"two\n");
    assert_eq!(client.exchange(b"ee\r\n"), b"three\r\n");
    for wrong in ["admin wrong\r\n", "nobody\r\n"] {
        let mut stranger = running.client();
        assert_eq!(stranger.exchange(wrong.as_bytes()), b"NO\r\n");
        assert_eq!(stranger.line(), b"", "closed");
    }
    let mut long = running.client().sign_in();
    assert_eq!(long.exchange(&[b'a'; 8192]), b"", "no line has so many bytes");
    // An idle client is disconnected.
    running.set("idle", json!(1));
    assert_eq!(running.client().sign_in().line(), b"", "closed after a second");
}

#[test]
fn it_starts_and_drains() {
    let Some(program) = program() else { skip!("echo", "{NOT_BUILT}") };
    let running = Running::start("echo-drain", program);
    assert_eq!(running.get("state"), "online");
    let listen = running.get("listen").to_string();
    assert!(listen.contains(&running.server.at(PORT).to_string()), "{listen}");
    let mut client = running.client().sign_in();
    assert_eq!(client.exchange(b"one\n"), b"one\n");
    wait_for("the connection", SOON, || (running.get("connections") == 1).then_some(()));

    let (code, answer) = running
        .api
        .post(&format!("/api/v1/nodes{NODE}/actions/restart"), &json!({ "parameters": {} }));
    assert_eq!(code, 200, "{answer}");
    assert_eq!(client.line(), b"", "the connection was ended");
    let log = running.get("log").to_string();
    // Connections closed by force, because they did not end in time, would be logged as a warning.
    assert!(log.contains(" info: ") && log.contains("restarts Echo"), "{log}");
    assert!(!log.contains(" warning: "), "{log}");
    assert_eq!(running.client().sign_in().exchange(b"two\n"), b"two\n");

    running.set("enabled", json!(false));
    assert_eq!(running.get("state"), "disabled");
    assert!(Client::connect(&running.server).is_err(), "it listens no more");
    running.set("enabled", json!(true));
    assert_eq!(running.client().sign_in().exchange(b"three\n"), b"three\n");
}

#[test]
fn its_operations_are_in_analytics() {
    let Some(program) = program() else { skip!("echo", "{NOT_BUILT}") };
    let running = Running::start("echo-analytics", program);
    let anna = json!({"create": "/configuration/users", "name": "anna",
        "properties": {"password": PASSWORD, "uid": 4321, "gid": 4322}});
    running.change(&anna);
    let from = api::now() + 1;
    running.api.wait_for_second(from - 1);
    let mut client = running.client().sign_in_as("anna");
    for _ in 0..10 {
        assert_eq!(client.exchange(b"0123456789\n"), b"0123456789\n");
    }
    assert_eq!(running.client().exchange(b"admin wrong\n"), b"NO\r\n");
    client.0.get_ref().shutdown(Shutdown::Both).expect("a connection");
    let to = api::now() + 1;
    running.api.wait_for_second(to);
    let rows_of = |stat: &str| rows(&running.api.data(stat, (from, to), ""));
    let by_op = [("echo".to_owned(), 10), ("sign in".to_owned(), 2)];
    assert_eq!(rows_of("echo.ops[op]"), by_op.into());
    assert_eq!(rows_of("echo.ops[client]"), [("127.0.0.1".to_owned(), 12)].into());
    let by_status = [("OK".to_owned(), 11), ("REFUSED".to_owned(), 1)];
    assert_eq!(rows_of("echo.ops[status]"), by_status.into());
    // A client that failed to sign in has no user.
    let by_user = [("4321".to_owned(), 11), ("none".to_owned(), 1)];
    assert_eq!(rows_of("echo.ops[user]"), by_user.into());
    assert_eq!(running.api.count("echo.bytes", (from, to)), 110);
    running.api.wait_counter("echo.logins", from - 1, 1);
    running.api.wait_counter("echo.failures", from - 1, 1);
}

#[test]
fn its_settings_are_in_every_interface() {
    let Some(program) = program() else { skip!("echo", "{NOT_BUILT}") };
    let running = Running::start("echo-settings", program);
    assert_eq!(running.get("idle"), 300);
    running.set("idle", json!(60));
    let shown = running.cli(&format!("cd {NODE}\nget idle\n"));
    assert!(shown.contains("idle = 60"), "{shown}");
    running.cli(&format!("{NODE} set idle=70\ncommit\n"));
    assert_eq!(running.get("idle"), 70);
    if let Some(what) = browser::missing() {
        skip!("echo-browser", "{what}");
    }
    let mut browser = Browser::start();
    browser.open(&running.server, "admin", PASSWORD);
    let mut idle = running.declared("idle");
    let read = json!({"do": "read", "path": NODE, "properties": [idle]});
    assert_eq!(browser.ask(&read).expect("its page")["idle"], 70);
    idle["value"] = json!(80);
    let set = json!({"do": "set", "path": NODE, "properties": [idle]});
    browser.ask(&set).expect("committed");
    assert_eq!(running.get("idle"), 80);
}

#[test]
fn it_has_a_client_in_the_laboratory() {
    let Some(program) = program() else { skip!("echo", "{NOT_BUILT}") };
    let running = Running::start("echo-lab", program);
    let out = running.scene.scratch.path().join("out");
    let target = format!("echo://admin@{}", running.server.at(PORT));
    let settings = ["workload=null", "warmup_ms=200", "window_ms=200", "step_max_ms=1000"];
    let mut command = Command::new(&running.program);
    command.args(["lab", "run", "iops-1b", "--target", &target, "--clients", "2", "--json"]);
    command.args(["--retries", "0"]);
    command.arg("--server-socket").arg(running.scene.state.join("plimsoll.sock"));
    command.args(settings.iter().flat_map(|s| ["--set", s])).arg("--set");
    command.arg("schedule=[[1,1],[2,1]]").arg("--out").arg(&out);
    command.env("PLIMSOLL_LAB_PASSWORD", PASSWORD);
    let output = process::run(&mut command, e2e::patience(60));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // 3: a step that was not steady changes nothing here.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}\n{said}", output.status);
    let result = fs::read_to_string(out.join("result.json")).expect("result.json");
    let result: Value = serde_json::from_str(&result).expect("JSON");
    assert_eq!(result["target"], target.as_str(), "without a password");
    let steps = result["steps"].as_array().expect("steps");
    assert!(
        steps.len() == 2 && steps.iter().all(|step| step["ops_s"].as_f64() > Some(0.0)),
        "{said}"
    );
}
