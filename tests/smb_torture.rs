//! Samba's smbtorture against the real server: the suites that take seconds, side by side, each on
//! a share of its own. What does not pass is listed in `tests/conformance/smbtorture.toml`, as for
//! `make conformance SUITE=smbtorture`, which runs all suites.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use e2e::api::{Api, wait_for};
use e2e::process::run;
use e2e::scene::Scene;
use e2e::server::Server;
use e2e::{is_root, patience, skip};
use serde_json::json;

const PASSWORD: &str = "correct horse battery";
/// The standard port of SMB.
const SMB: u16 = 445;
/// Suites that take no more than some seconds. `create`, `dir`, `timestamps` and `compound_find`
/// sleep, or make thousands of files.
const SUITES: &[&str] = &[
    "lock",
    "rename",
    "session",
    "ioctl",
    "compound",
    "getinfo",
    "connect",
    "rw",
    "read",
    "sharemode",
    "credits",
    "delete-on-close-perms",
    "fileid",
    "tcon",
    "deny",
    "charset",
];
/// Suites that run at once: they mostly wait for the server.
const AT_ONCE: usize = 4;
/// Runs of `durable-open` at once: clients that are gone for each other's connections.
const BESIDE: usize = 36;

/// Suite and case → outcome, of what does not pass.
type Outcomes = BTreeMap<(String, String), String>;

fn listed() -> Outcomes {
    let text = include_str!("conformance/smbtorture.toml");
    let list: toml::Table = toml::from_str(text).expect("a list");
    let mut outcomes = Outcomes::new();
    for case in list["case"].as_array().expect("cases") {
        let text = |key: &str| case[key].as_str().expect("text").to_owned();
        for name in case["names"].as_array().expect("names") {
            let name = name.as_str().expect("a name").to_owned();
            outcomes.insert((text("run"), name), text("outcome"));
        }
    }
    outcomes
}

/// What a suite came to: cases that did not pass, and the outcome of each that ran.
fn outcomes(suite: &str, output: &str) -> Outcomes {
    let mut outcomes = Outcomes::new();
    for line in output.lines() {
        let outcome = match line.split_once(": ") {
            Some(("success", name)) => Some((name, "passed")),
            Some(("failure" | "error", name)) => Some((name, "failed")),
            Some(("skip", name)) => Some((name, "skipped")),
            _ => None,
        };
        if let Some((name, outcome)) = outcome {
            let name = name.trim_end_matches(" [").replace(' ', "_");
            outcomes.insert((suite.to_owned(), name), outcome.to_owned());
        }
    }
    outcomes
}

/// The share of a suite: `rename` and others without a prefix are not valid as names of shares.
fn share_of(suite: &str) -> String {
    format!("suite-{suite}")
}

/// Runs a suite on a share.
fn torture((suite, share): (&str, &str), port: u16) -> (Outcomes, String) {
    let mut command = Command::new("smbtorture");
    command.args(["-p", &port.to_string(), &format!("//127.0.0.1/{share}")]).args([
        "-U",
        &format!("anna%{PASSWORD}"),
        &format!("smb2.{suite}"),
    ]);
    let output = run(&mut command, patience(120));
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    (outcomes(suite, &text), text)
}

/// How a run of a suite differs from what is listed; what it has written if it does.
fn differs(listed: &Outcomes, suite: &str, (found, text): (Outcomes, String)) -> String {
    let of_suite = |(run, _): &(String, String)| run == suite;
    let mut expected = listed.iter().filter(|(case, _)| of_suite(case));
    let not_run = expected.any(|(case, _)| !found.contains_key(case));
    let passed = |case| listed.get(case).map_or("passed", String::as_str);
    let differs: Vec<_> =
        found.iter().filter(|(case, was)| passed(*case) != was.as_str()).collect();
    match found.is_empty() || not_run || !differs.is_empty() {
        true => format!("{suite}: {differs:?}\n{text}\n"),
        false => String::new(),
    }
}

/// Why it cannot run here, with the name of what is skipped.
fn unavailable() -> Option<(&'static str, &'static str)> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|at| at.join("smbtorture").is_file()) {
        return Some(("smbtorture", "it is not installed"));
    }
    (!is_root()).then_some(("smbtorture as a user", "its users are those of the machine"))
}

/// Shares of these names on a real file system; a memory file system keeps no attributes of Windows
/// before Linux 6.6.
fn share(api: &Api, place: &Path, names: &[String]) {
    let enable = json!({"set": "/configuration/services/smb",
        "property": "enabled", "value": true});
    let plain = json!({"set": "/configuration/services/smb",
        "property": "signing", "value": "offered"});
    let binds = json!({"set": "/configuration/services/smb",
        "property": "multichannel", "value": true});
    let user = json!({"create": "/configuration/users", "name": "anna",
        "properties": {"password": PASSWORD, "uid": 4321, "gid": 4322}});
    let share = |name: &String| {
        json!({"create": "/shares/default", "name": name, "properties":
            {"directory": place.join(name), "make_directory": true, "root_mode": "777"}})
    };
    let mut shares: Vec<_> = names.iter().map(share).collect();
    // Cases of `ioctl` need one that no user may access.
    let closed = place.join("noperm");
    fs::create_dir(&closed).expect("a folder");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).expect("a mode");
    shares.push(json!({"create": "/shares/default", "name": "noperm",
        "properties": {"directory": closed}}));
    for changes in [vec![enable, plain, binds], vec![user], shares] {
        let (code, done) = api.post("/api/v1/changes", &json!({ "changes": changes }));
        assert_eq!(code, 200, "{done}");
    }
}

/// A server with these shares, and the port of SMB.
fn serve(name: &str, shares: &[String]) -> (Server, u16, Scene) {
    let scene = Scene::new(name);
    fs::set_permissions(&scene.dir, fs::Permissions::from_mode(0o777)).expect("a mode");
    let server = scene.start(&[]);
    share(&Api::new(&scene.state), &scene.dir, shares);
    let port = server.at(SMB).port();
    wait_for("the service", patience(20), || {
        std::net::TcpStream::connect(("127.0.0.1", port)).ok()
    });
    (server, port, scene)
}

#[test]
fn short_suites_of_smbtorture() {
    if let Some((what, why)) = unavailable() {
        skip!(what, "{why}");
    }
    let shares: Vec<_> = SUITES.iter().map(|suite| share_of(suite)).collect();
    let (_server, port, _scene) = serve("smbtorture", &shares);
    let (listed, left) = (listed(), Mutex::new(SUITES.iter()));
    let wrong = Mutex::new(String::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(suite) = left.lock().expect("no panic").next() else { return };
                    let ran = torture((suite, &share_of(suite)), port);
                    let what = differs(&listed, suite, ran);
                    wrong.lock().expect("no panic").push_str(&what);
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no panic");
    assert!(wrong.is_empty(), "not as tests/conformance/smbtorture.toml lists it:\n{wrong}");
}

#[test]
fn durable_open_passes_in_many_runs_side_by_side() {
    if let Some((what, why)) = unavailable() {
        skip!(what, "{why}");
    }
    let shares: Vec<_> = (0..BESIDE).map(|number| format!("run{number}")).collect();
    let (_server, port, _scene) = serve("smbtorture-many", &shares);
    let (suite, listed) = ("durable-open", listed());
    let run = &|share: &String| differs(&listed, suite, torture((suite, share), port));
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let runs: Vec<_> = shares.iter().map(|share| scope.spawn(move || run(share))).collect();
        runs.into_iter().map(|run| run.join().expect("no panic")).collect()
    });
    let wrong: Vec<_> = wrong.into_iter().filter(|what| !what.is_empty()).collect();
    assert!(wrong.is_empty(), "{} of {BESIDE} runs differ:\n{}", wrong.len(), wrong.concat());
    println!("{BESIDE} runs of {suite} side by side, as listed");
}
