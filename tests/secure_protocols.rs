//! The comparison of protocols on a share of the real server, by its one command: an obstacle is
//! reported with its remedy; then every protocol has its results, the server has counted the same
//! bytes, and the report states the results in sentences.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use e2e::api::{Api, now};
use e2e::scene::Scene as BaseScene;
use e2e::server::{Server, binary};
use e2e::{lab, process};
use serde_json::{Value, json};

/// How long a comparison of small files may take on a busy machine.
const RUN: Duration = e2e::patience(180);
const PASSWORD: &str = "correct horse & \"battery\"";
/// As they are compared: name, scheme, group of statistics, number of the plain one.
const PROTOCOLS: [(&str, &str, &str, Option<u64>); 7] = [
    ("FTP", "ftp", "ftp", None),
    ("FTPS", "ftps", "ftp", Some(0)),
    ("SFTP", "sftp", "sftp", None),
    ("HTTP", "http", "http", None),
    ("HTTPS", "https", "http", Some(3)),
    ("WebDAV", "webdav", "http", None),
    ("WebDAV with TLS", "webdavs", "http", Some(5)),
];
const FILES: u64 = 4;
const FILE_SIZE: u64 = 512 << 10;
/// The least that have an interval.
const ROUNDS: u64 = 6;

struct Scene {
    place: BaseScene,
    server: Server,
    api: Api,
    /// Before its start.
    begun: i64,
}

impl Scene {
    /// A server with default settings, with a user anna that may write into the share `box`.
    fn new(name: &str) -> Self {
        let (place, begun) = (BaseScene::new(name), now() - 1);
        let (server, api) = place.start_for_anna(PASSWORD, &[]);
        Self { place, server, api, begun }
    }

    fn out(&self) -> PathBuf {
        self.place.scratch.path().join("out")
    }

    /// `plimsoll lab run secure-protocols --share SHARE` as anna, with more arguments.
    fn command(&self, share: &str, more: &[&str]) -> Command {
        let mut command = lab::command();
        command.args(["run", "secure-protocols", "--share", share, "--user", "anna"]);
        command.arg("--state").arg(&self.place.state).arg("--out").arg(self.out()).args(more);
        for setting in [format!("files={FILES}"), format!("file_size={FILE_SIZE}")] {
            command.args(["--set", &setting]);
        }
        command.env_remove("PLIMSOLL_LAB_PASSWORD");
        command
    }

    fn run(&self, share: &str, password: &str, more: &[&str]) -> Output {
        let mut command = self.command(share, more);
        process::run(command.env("PLIMSOLL_LAB_PASSWORD", password), RUN)
    }

    /// The output when it does not even begin.
    fn refused(&self, share: &str, password: &str, more: &[&str]) -> String {
        let output = self.run(share, password, more);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(!self.out().exists() && output.stdout.is_empty(), "it has not begun");
        assert!(!said.contains(password), "{said}");
        said
    }

    fn result(&self) -> Value {
        let text = fs::read_to_string(self.out().join("result.json")).expect("result.json");
        serde_json::from_str(&text).expect("JSON")
    }

    fn set(&self, service: &str, property: &str, value: &Value) {
        let at = format!("/configuration/services/{service}");
        let change = json!({"set": at, "property": property, "value": value});
        let (code, done) = self.api.post("/api/v1/changes", &json!({ "changes": [change] }));
        assert_eq!(code, 200, "{done}");
    }

    /// Runs the commands in a message, the lines that begin with `plimsoll`; how many.
    fn obey(message: &str) -> usize {
        let lines = message.lines().filter_map(|line| line.trim().strip_prefix("plimsoll "));
        let done = lines.map(|line| {
            let program = binary().display();
            process::succeed(Command::new("sh").arg("-c").arg(format!("{program} {line}")));
        });
        done.count()
    }

    /// Figures of one way of one line.
    fn check_direction(way: &Value, secure: bool, has_plain: bool, what: &str) {
        for figure in ["bytes_s", "client_cpu_s_gb", "server_cpu_s_gb"] {
            let of = |end: &str| way[figure][end].as_f64().unwrap_or(-1.0);
            let (low, median, high) = (of("low"), of("median"), of("high"));
            // The kernel counts a server's processor time in hundredths of a second: a short
            // transfer can take none.
            let least =
                if figure == "server_cpu_s_gb" { 0.0..=median } else { f64::MIN_POSITIVE..=median };
            assert!(least.contains(&low) && 0.0 < median, "{what} {figure}: {way}");
            assert!(median <= high, "{what} {figure}: {way}");
            assert!(of("coverage") >= 0.95, "{what} {figure}: {way}");
        }
        assert_eq!(way["to_plain"]["median"].as_f64().is_some(), has_plain, "{what}: {way}");
        assert!(secure || !has_plain);
    }
}

#[test]
fn one_command_compares_all_protocols_on_a_share() {
    let mut scene = Scene::new("secure-protocols");
    let said = scene.refused("box", PASSWORD, &[]);
    assert!(said.contains("HTTP without TLS is off"), "{said}");
    let (there, back) = said.split_once("and restore them").expect("both ways");
    assert_eq!(Scene::obey(there), 1, "{said}");
    let rounds = format!("rounds={ROUNDS}");
    let output = scene.run("box", PASSWORD, &["--set", &rounds, "--set", "streams=2"]);
    let (told, warned) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}{warned}");

    let result = scene.result();
    let lines = result["lines"].as_array().expect("lines");
    assert_eq!(lines.len(), PROTOCOLS.len());
    let mut moved = std::collections::BTreeMap::new();
    for (line, (name, scheme, group, plain)) in lines.iter().zip(PROTOCOLS) {
        assert_eq!(line["protocol"], name);
        let target = line["target"].as_str().expect("a target");
        assert!(target.starts_with(&format!("{scheme}://anna@127.0.0.1:")), "{target}");
        let secure = !matches!(scheme, "ftp" | "http" | "webdav");
        assert_eq!(line["identity"], if secure { "pin" } else { "none" }, "{name}");
        let cipher = line["cipher"].as_str().unwrap_or_default();
        assert_eq!(cipher.starts_with("TLS 1.") || cipher.starts_with("SSH "), secure, "{cipher}");
        assert_eq!((line["plain"].as_u64(), &line["failed"]), (plain, &Value::Null), "{name}");
        assert_eq!(line["server"]["pid"], scene.server.pid());
        for (way, title) in line["ways"].as_array().expect("ways").iter().zip(["up", "down"]) {
            assert_eq!(way["way"], format!("{title}load"));
            Scene::check_direction(way, secure, plain.is_some(), name);
        }
        let samples = line["samples"].as_array().expect("samples");
        assert_eq!(samples.len() as u64, 2 * ROUNDS, "{name}");
        let bytes: u64 = samples.iter().filter_map(|sample| sample["bytes"].as_u64()).sum();
        assert_eq!(bytes, 2 * ROUNDS * FILES * FILE_SIZE);
        *moved.entry(group).or_insert(0) += bytes;
    }
    // The server has counted what the clients have.
    for (group, bytes) in moved {
        scene.api.wait_counter(&format!("{group}.bytes"), scene.begun, bytes);
    }
    check_report(&scene, &result, &told);
    let left = fs::read_dir(scene.place.dir.join("box")).expect("the share").count();
    assert_eq!(left, 0, "files were not removed");
    assert_eq!(Scene::obey(back), 1, "{said}");
    fs::remove_dir_all(scene.out()).expect("the results");
    assert_eq!(scene.refused("box", PASSWORD, &[]), said, "all is as it was");
    assert!(scene.server.stop().success());
}

/// Sentences on each way: the fastest, what each protected one takes, what a gigabyte costs; in the
/// result, in the report, on standard output, and nowhere a password.
fn check_report(scene: &Scene, result: &Value, told: &str) {
    let report = fs::read_to_string(scene.out().join("report.html")).expect("the report");
    let findings: Vec<&str> =
        result["findings"].as_array().expect("findings").iter().filter_map(Value::as_str).collect();
    for sentence in &findings {
        assert!(report.contains(sentence) && told.contains(sentence), "{sentence}");
    }
    for way in ["Uploads", "Downloads"] {
        let of = |what: &str| {
            let found = findings.iter().find(|s| s.starts_with(way) && s.contains(what));
            *found.unwrap_or_else(|| panic!("{way}, {what}: {findings:#?}"))
        };
        assert!(of(" is the fastest with ").contains("95 % interval: "));
        for (name, beside) in [
            ("FTPS with TLS 1.", " FTP"),
            ("HTTPS with TLS 1.", " HTTP"),
            ("WebDAV with TLS with TLS 1.", " WebDAV"),
            ("SFTP with SSH ", "the fastest of the plain ones"),
        ] {
            let sentence = of(&format!(": {name}"));
            let judged = sentence.contains(" slower") || sentence.contains(" faster");
            assert!(judged && sentence.contains(beside), "{sentence}");
            assert!(sentence.contains("95 % interval: "), "{sentence}");
        }
        assert!(of("CPU time per gigabyte").contains("s at the server"));
    }
    let all = format!("{result}{report}{told}");
    assert!(!all.contains("correct horse") && !all.contains("correct%20horse"));
}

#[test]
fn obstacles_to_a_comparison_are_reported_before_it_begins() {
    let scene = Scene::new("secure-protocols-refused");
    let said = scene.refused("bax", PASSWORD, &[]);
    let (why, there) = said.split_once("it serves ").expect("what there is");
    assert!(why.contains("no share has that name"), "{said}");
    assert!(there.contains("data") && there.contains("box"), "{said}");

    // There is no terminal to ask for a password.
    let secure = ["--protocols", "ftps,sftp,https"];
    let output = process::run(&mut scene.command("box", &secure), RUN);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("no password") && said.contains("--password-file"), "{said}");

    // A wrong one is tried once, not at every service.
    let said = scene.refused("box", "wrong horse", &secure);
    assert!(said.contains("cannot sign in over FTPS as anna"), "{said}");
    assert!(said.contains("check the password"), "{said}");
    scene.api.wait_counter("ftp.failures", scene.begun, 1);
    let others = ["sftp.failures", "http.failures"];
    assert!(others.iter().all(|one| scene.api.count(one, (scene.begun, now())) == 0));

    scene.set("ftp", "enabled", &json!(false));
    let said = scene.refused("box", PASSWORD, &secure);
    assert!(said.contains("FTP is disabled"), "{said}");
    assert!(said.contains("configuration services ftp set enabled=on"), "{said}");
    assert!(said.contains("or compare the others: --protocols sftp,https\n"), "{said}");

    // As the hint proposes; one round gives no interval, and that is reported too.
    let file = scene.place.scratch.path().join("password");
    fs::write(&file, format!("{PASSWORD}\n")).expect("a file");
    let file = file.to_string_lossy();
    let more = ["--protocols", "sftp,https", "--password-file", &file, "--set", "rounds=1"];
    let output = process::run(&mut scene.command("box", &more), RUN);
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let result = scene.result();
    assert_eq!(result["lines"].as_array().map(Vec::len), Some(2));
    assert!(result["degraded"][0].as_str().is_some_and(|why| why.contains("too few")));
    assert!(result["findings"][0].as_str().is_some_and(|s| s.contains("one round: no interval")));
}

#[test]
fn a_share_is_for_comparisons_alone() {
    let scene = Scene::new("secure-protocols-usage");
    let mut command = lab::command();
    command.args(["run", "iops-4k", "--share", "box", "--state"]).arg(&scene.place.state);
    let output = process::run(&mut command, RUN);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("--share requires a comparison"), "{said}");
    let mut command = scene.command("box", &["--target", "ftp://anna@127.0.0.1:1/box"]);
    assert_eq!(process::run(&mut command, RUN).status.code(), Some(2));
}
