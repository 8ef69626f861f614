//! A state directory that an older version has written opens: configuration, users, settings and
//! what was recorded are as they were. The fixture and how it was made: `fixtures/state-7f3f289`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use e2e::ftp::Ftp;
use e2e::process::succeed;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server, binary};
use e2e::tcp::HERE;

/// Where the older version had its share.
const OLD_ROOT: &str = "/tmp/plimsoll-fixture";

struct Opened {
    server: Server,
    state: PathBuf,
    root: String,
    _scratch: Scratch,
}

impl Opened {
    /// The fixture, its share elsewhere, with a server of this version on it.
    fn new() -> Self {
        let scratch = Scratch::new("old-state");
        let share = scratch.folder("share", None);
        fs::create_dir(share.join("sub")).expect("a folder");
        fs::write(share.join("f"), "old\n").expect("a file");
        let archive = fixture("state.tar.gz");
        succeed(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(scratch.path()));
        let state = scratch.path().join("state");
        let root = scratch.path().to_str().expect("a name of letters").to_owned();
        for file in fs::read_dir(state.join("configuration")).expect("revisions") {
            let path = file.expect("a revision").path();
            let text = fs::read_to_string(&path).expect("TOML").replace(OLD_ROOT, &root);
            fs::write(&path, text).expect("a revision");
        }
        let mut options = Options::new(&share, &state);
        options.env.push(("TZ", "UTC".to_owned()));
        Self { server: Server::start(&options), state, root, _scratch: scratch }
    }

    fn run(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(binary());
        command.args(arguments).arg("--state").arg(&self.state).env("TZ", "UTC");
        String::from_utf8(succeed(&mut command)).expect("text")
    }
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/state-7f3f289").join(name)
}

fn expected(name: &str) -> String {
    fs::read_to_string(fixture(name)).expect("a fixture")
}

/// Text without its comments, in which the revision and the machine are.
fn settings(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with('#')).collect()
}

#[test]
fn configuration_is_as_it_was() {
    let opened = Opened::new();
    let export = opened.run(&["cli", "-c", "export"]).replace(&opened.root, OLD_ROOT);
    assert_eq!(settings(&export), settings(&expected("export.txt")));
    let share = opened.run(&["cli", "-c", "shares default sub get state read_only"]);
    assert!(share.contains("online"), "{share}");
}

#[test]
fn users_sign_in_with_their_passwords() {
    let opened = Opened::new();
    opened.run(&["cli", "-c", "configuration services ftp set tls=offered"]);
    for (name, password, code) in [
        ("dt", "Data-pass-12345", 230),
        ("dt", "Data-pass-54321", 530),
        ("nobody-else", "Data-pass-12345", 530),
    ] {
        let mut ftp = Ftp::connect(HERE, opened.server.at(21)).expect("a connection");
        let replied = ftp.sign_in(name, password).expect("a reply");
        assert_eq!(replied, code, "{name} with {password}");
    }
}

#[test]
fn what_was_recorded_is_shown() {
    let opened = Opened::new();
    let expected = expected("recorded.csv");
    let times: Vec<u64> = expected
        .lines()
        .filter_map(|line| line.split(',').next().and_then(|time| time.parse().ok()))
        .collect();
    let [first, .., last] = times[..] else { panic!("no times: {expected}") };
    let (first, end) = (first.to_string(), (last + 1).to_string());
    let shown = opened.run(&[
        "analytics",
        "show",
        "nfs3.ops[op]",
        "--csv",
        "--step",
        "1",
        "--from",
        &first,
        "--to",
        &end,
    ]);
    // Lines of CSV end with CR LF (RFC 4180 §2).
    assert_eq!(shown, expected.replace('\n', "\r\n"));
}
