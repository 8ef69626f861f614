//! Every secret that the tree declares is set, set again and set wrongly on the real server; none
//! of them is then to be seen in any response, export, log, list of processes, or file but the one
//! for secrets. The declarations come from `GET /tree`.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use e2e::api::{Api, wait_for};
use e2e::process;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server, binary};
use e2e::tls::Authority;
use serde_json::{Map, Value, json};

/// How long a program may take to end, or an event to come.
const PATIENCE: Duration = e2e::patience(20);
/// The file that has them.
const KEPT: &str = "secrets.json";

/// A property that no user may read.
#[derive(Debug, Clone)]
struct Secret {
    /// Its node, or the parent node of the items that have it.
    path: String,
    of_items: bool,
    name: String,
    shape: String,
    /// Its neighbours.
    context: Value,
}

fn find(path: &str, context: &Value, of_items: bool, found: &mut Vec<Secret>) {
    let list = |name: &str| context[name].as_array().cloned().unwrap_or_default();
    for property in list("properties").iter().filter(|one| one["role"] == "secret") {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        found.push(Secret {
            path: path.to_owned(),
            of_items,
            name: text(&property["name"]),
            shape: text(&property["kind"]["shape"]),
            context: context.clone(),
        });
    }
    for child in list("children") {
        let name = child["name"].as_str().expect("a name");
        find(&format!("{path}/{name}"), &child, false, found);
    }
    if context["items"].is_object() {
        assert!(!of_items || list("properties").iter().all(|one| one["role"] != "secret"));
        find(path, &context["items"]["context"], true, found);
    }
}

/// What a secret is set to, and what must not be seen of it.
struct Given {
    value: String,
    mark: String,
    /// What must be set with it.
    with: Map<String, Value>,
}

impl Secret {
    fn given(&self, number: usize) -> Given {
        if self.shape == "pem" {
            let pair = Authority::new("secrets").sign();
            let mark = pair.key.lines().nth(1).expect("a line of the key").to_owned();
            // A key of TLS goes with its certificate.
            let properties = self.context["properties"].as_array().into_iter().flatten();
            let mut chain = properties.filter(|one| one["name"] == "chain");
            let with = chain.next().map(|_| ("chain".to_owned(), json!(pair.certificate)));
            let with = Map::from_iter(with);
            return Given { value: pair.key, mark, with };
        }
        // Long enough for tokens.
        let mark = format!("Mark-{number}-of-{}-3Zq8vT5rW1yN6bK0", self.name.replace('_', "-"));
        Given { value: mark.clone(), mark, with: Map::new() }
    }

    /// An item to set it on, created with its required properties; or the node itself.
    fn node(&self, api: &Api) -> String {
        if !self.of_items {
            return self.path.clone();
        }
        let properties = self.context["properties"].as_array().expect("properties");
        let needed = properties.iter().filter(|one| one["required"] == true);
        let mut needed: Map<String, Value> = needed
            .map(|one| (one["name"].as_str().expect("a name").to_owned(), one["example"].clone()))
            .collect();
        // Beyond what is declared.
        if self.path == "/configuration/alerts" {
            let more = json!({ "statistic": "nfs3.ops", "condition": "above", "limit": 10_000 });
            needed.extend(more.as_object().cloned().unwrap_or_default());
        }
        let name = format!("of-{}", self.name.replace('_', "-"));
        let create = json!({ "create": self.path, "name": name, "properties": needed });
        change(api, &[create]);
        format!("{}/{name}", self.path)
    }
}

fn change(api: &Api, changes: &[Value]) {
    let (code, answer) = api.post("/api/v1/changes", &json!({ "changes": changes }));
    assert_eq!(code, 200, "{changes:?}: {answer}");
}

/// Sets a secret twice, tries it a third time without doing it, and gives it wrongly. Returns what
/// must not be seen, and the answers.
fn set(api: &Api, secret: &Secret, number: &mut usize) -> (Vec<String>, Vec<String>) {
    let node = secret.node(api);
    let (mut marks, mut answers) = (Vec::new(), Vec::new());
    let mut ask = |body: Value, wanted: bool| {
        let (code, answer) = api.post("/api/v1/changes", &body);
        assert_eq!(code == 200, wanted, "{} of {node}: {answer}", secret.name);
        answers.push(answer.to_string());
    };
    for dry_run in [false, false, true] {
        *number += 1;
        let Given { value, mark, with } = secret.given(*number);
        let set =
            |name: &str, value: Value| json!({ "set": node, "property": name, "value": value });
        let mut changes = vec![set(&secret.name, json!(value))];
        changes.extend(with.into_iter().map(|(name, value)| set(&name, value)));
        ask(json!({ "dry_run": dry_run, "changes": changes }), true);
        // A control character is good nowhere; a list is no text.
        for wrong in [json!(format!("{mark}\u{7}")), json!([mark])] {
            ask(json!({ "changes": [set(&secret.name, wrong)] }), false);
        }
        marks.push(mark);
    }
    (marks, answers)
}

/// Every text that the API gives without a name to put in, and all nodes.
fn everything(api: &Api) -> Vec<(String, String)> {
    let (_, about) = api.get("/api/v1/openapi.json");
    let paths = about["paths"].as_object().expect("paths");
    let server = about["servers"][0]["url"].as_str().unwrap_or_default();
    let plain = paths.iter().filter(|(path, ways)| {
        ways["get"].is_object() && !path.contains('{') && !path.ends_with("/stream")
    });
    let mut asked: Vec<String> = plain.map(|(path, _)| format!("{server}{path}")).collect();
    assert!(asked.len() > 10, "{asked:?}");
    let (_, history) = api.get("/api/v1/configuration/history");
    let newest = history[0]["revision"].as_u64().expect("a revision");
    asked.extend((1..=newest).map(|n| format!("/api/v1/configuration/history/{n}")));
    asked.push(format!("/api/v1/configuration/compare?from=0&to={newest}"));
    asked.extend(["/api/v1/nodes?depth=9", "/api/v1/audit?limit=1000"].map(str::to_owned));
    asked.into_iter().map(|path| (path.clone(), api.text(&path).1)).collect()
}

/// Files of the state in which this is.
fn files_with(state: &Path, mark: &str) -> Vec<String> {
    let (mut left, mut found) = (vec![state.to_owned()], Vec::<PathBuf>::new());
    while let Some(at) = left.pop() {
        if at.is_dir() {
            left.extend(fs::read_dir(&at).into_iter().flatten().flatten().map(|one| one.path()));
        } else if at.is_file()
            && fs::read(&at).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(mark))
        {
            found.push(at);
        }
    }
    found.iter().map(|at| at.file_name().unwrap_or_default().display().to_string()).collect()
}

/// The content of the stream of changes, from now until the server ends.
fn follow(state: &Path) -> mpsc::Receiver<String> {
    let mut stream = UnixStream::connect(state.join("plimsoll.sock")).expect("the local socket");
    let ask = b"GET /api/v1/changes/stream HTTP/1.1\r\nHost: plimsoll\r\n\r\n";
    stream.write_all(ask).expect("the request");
    let (say, hear) = mpsc::channel();
    std::thread::spawn(move || {
        let mut all = Vec::new();
        let _end = stream.read_to_end(&mut all);
        say.send(String::from_utf8_lossy(&all).into_owned())
    });
    hear
}

#[test]
fn no_secret_of_the_tree_is_seen_again() {
    let scratch = Scratch::new("secrets");
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let mut server = Server::start(&Options::new(&dir, &state));
    let api = Api::new(&state);
    let stream = follow(&state);
    let mut secrets = Vec::new();
    find("", &api.get("/api/v1/tree").1, false, &mut secrets);
    assert!(secrets.len() >= 5, "{secrets:?}");
    // Everything is logged that can be.
    let level =
        |path: &str, property: &str| json!({ "set": path, "property": property, "value": "debug" });
    change(
        &api,
        &[
            level("/maintenance/logs", "level"),
            level("/configuration/services/nfs", "log_level"),
            level("/configuration/services/administration", "log_level"),
        ],
    );

    let (mut marks, mut number) = (Vec::new(), 0);
    for secret in &secrets {
        let (of_it, answers) = set(&api, secret, &mut number);
        let seen = |text: &String| of_it.iter().any(|mark| text.contains(mark));
        assert!(!answers.iter().any(seen), "{} of {}: {answers:?}", secret.name, secret.path);
        marks.extend(of_it);
    }
    let pid = server.pid();
    let mut texts = everything(&api);
    texts.push(("standard error".to_owned(), server.stderr_text()));
    for file in ["cmdline", "environ"] {
        let shown = fs::read(format!("/proc/{pid}/{file}")).expect(file);
        texts.push((file.to_owned(), String::from_utf8_lossy(&shown).into_owned()));
    }
    assert!(server.stop().success());
    let told = stream.recv_timeout(PATIENCE).expect("the stream ends with the server");
    assert!(told.contains("(secret)"), "{told}");
    texts.push(("the stream of changes".to_owned(), told));
    let audit = texts.iter().find(|(path, _)| path.ends_with("/audit")).expect("the audit log");
    assert!(audit.1.contains("(secret)"), "{}", audit.1);

    let mut kept = 0;
    for mark in &marks {
        for (name, text) in &texts {
            assert!(!text.contains(mark), "{mark} is in {name}: {text}");
        }
        let files = files_with(&state, mark);
        assert!(files.iter().all(|name| name == KEPT), "{mark} is in {files:?}");
        kept += files.len();
    }
    // What is kept as it is, is found there: the search would find it elsewhere, too.
    assert!(kept >= 3, "{kept}");
}

#[test]
fn a_secret_in_a_line_of_the_command_line_leaves_the_list_of_processes() {
    const PASSWORD: &str = "Mark-of-a-line-3Zq8vT5rW1yN6bK0";
    let scratch = Scratch::new("secrets-line");
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let _server = Server::start(&Options::new(&dir, &state));
    // The second line waits for a writer of the pipe.
    let pipe = scratch.path().join("pipe");
    process::succeed(Command::new("mkfifo").arg(&pipe));
    let mut command = Command::new(binary());
    command.args(["cli", "--state"]).arg(&state).stdout(Stdio::null());
    command.args(["-c", &format!("configuration users create anna password={PASSWORD}")]);
    command.args(["-c", &format!("configuration users anna set password=@{}", pipe.display())]);
    let mut child = command.spawn().expect("the program");
    // It can be opened like this once there is a reader.
    let mut open = fs::OpenOptions::new();
    open.write(true).custom_flags(libc::O_NONBLOCK);
    let mut writer = wait_for("the second line", PATIENCE, || open.open(&pipe).ok());
    let shown = fs::read(format!("/proc/{}/cmdline", child.id())).expect("its arguments");
    let shown = String::from_utf8_lossy(&shown);
    assert!(shown.contains("password=@"), "what is no secret stays: {shown}");
    assert!(!shown.contains(PASSWORD) && shown.contains("***"), "{shown}");
    writer.write_all(b"another of them").expect("the value");
    drop(writer);
    assert!(wait_for("its end", PATIENCE, || child.try_wait().expect("its status")).success());
}
