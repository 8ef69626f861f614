//! The transfer log of the real server: curl and OpenSSH's sftp take and put files, one of them is
//! disconnected, and the API, the command line and `plimsoll inspect` show the same records.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use e2e::api::{Api, wait_for};
use e2e::process::{run, succeed};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server, binary};
use e2e::{has, skip};
use serde_json::{Value, json};

/// The user that signs in, as the harness creates it.
const USER: &str = "admin:only-for-this-test";
/// A file of several pieces, and no multiple of one.
const SIZE: usize = (3 << 20) + 12_345;
const PATIENCE: Duration = e2e::patience(30);

struct Scene {
    scratch: Scratch,
    server: Server,
    api: Api,
    state: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let scratch = Scratch::new("transfer-log");
        let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).expect("a mode");
        fs::write(scratch.path().join("up"), vec![7; SIZE]).expect("a local file");
        fs::File::create(dir.join("long")).and_then(|f| f.set_len(1 << 30)).expect("a file");
        let server = Server::start(&Options::new(&dir, &state));
        let api = Api::new(&state);
        Self { scratch, server, api, state }
    }

    fn url(&self, scheme: &str, port: u16, path: &str) -> String {
        format!("{scheme}://127.0.0.1:{}/data/{path}", port + self.server.offset)
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command.current_dir(self.scratch.path()).env("HOME", self.scratch.path());
        command
    }

    fn curl(&self, arguments: &[&str]) -> Command {
        let mut command = self.program("curl");
        command.args(["-sS", "-k", "--fail", "-u", USER]).args(arguments);
        command
    }

    /// The transfers that the API finds, the newest first.
    fn found(&self, query: &str) -> Vec<Value> {
        let (code, answer) = self.api.get(&format!("/api/v1/transfers?{query}"));
        assert_eq!(code, 200, "{answer}");
        answer["rows"].as_array().expect("rows").clone()
    }

    /// The newest, with what is asked of it.
    fn newest(&self, fields: &[&str]) -> Value {
        let row = self.found("limit=1").remove(0);
        fields.iter().map(|name| row[*name].clone()).collect()
    }

    /// Puts `up` and takes it again.
    fn both_ways(&self, protocol: &str, url: &str, options: &[&str]) -> Value {
        succeed(self.curl(options).args(["-T", "up", url]));
        let fields = ["protocol", "direction", "outcome", "bytes", "path"];
        let name = url.rsplit('/').next().expect("a name");
        let told = |way: &str| json!([protocol, way, "complete", SIZE, name]);
        assert_eq!(self.newest(&fields), told("upload"));
        succeed(self.curl(options).args(["-o", "down", url]));
        assert_eq!(self.newest(&fields), told("download"));
        self.newest(&["security", "cipher", "user", "client", "share"])
    }

    /// OpenSSH's own client, with a key that is the user's.
    fn sftp(&self, lines: &str) {
        let key = self.scratch.path().join("key");
        if !key.exists() {
            succeed(
                self.program("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key),
            );
            let public = fs::read_to_string(key.with_extension("pub")).expect("a key");
            let keys = json!([public.trim()]);
            // A user given when the program starts has no keys.
            let anna = json!({"create": "/configuration/users", "name": "anna",
                "properties": {"ssh_keys": keys}});
            let (code, done) = self.api.post("/api/v1/changes", &json!({ "changes": [anna] }));
            assert_eq!(code, 200, "{done}");
        }
        fs::write(self.scratch.path().join("batch"), lines).expect("a batch");
        let port = (218 + self.server.offset).to_string();
        let mut sftp = self.program("sftp");
        sftp.args(["-q", "-b", "batch", "-i", "key", "-P", &port]);
        for option in
            ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "IdentitiesOnly=yes"]
        {
            sftp.args(["-o", option]);
        }
        succeed(sftp.arg("anna@127.0.0.1"));
    }

    fn inspect(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(binary());
        command.arg("inspect").arg(self.state.join("transfers.log")).args(arguments);
        text(&mut command)
    }
}

/// The output of a program that must succeed.
fn text(command: &mut Command) -> String {
    String::from_utf8(succeed(command)).expect("UTF-8")
}

#[test]
fn every_transfer_is_reported_once_and_the_same_everywhere() {
    for (program, of) in [("curl", "curl"), ("sftp", "openssh-client")] {
        if !has(program) {
            skip!("transfer-log", "{program} is not installed ({of})");
        }
    }
    let mut scene = Scene::new();
    let plain = scene.both_ways("ftp", &scene.url("ftp", 21, "by-ftp"), &[]);
    assert_eq!(plain, json!([null, null, "admin", "127.0.0.1", "data"]));
    let tls = scene.both_ways("ftps", &scene.url("ftp", 21, "by-ftps"), &["--ssl-reqd"]);
    assert_eq!(tls[0], "TLSv1.3");
    assert!(tls[1].as_str().is_some_and(|cipher| cipher.starts_with("TLS13_")), "{tls}");
    let tls = scene.both_ways("https", &scene.url("https", 443, "by-https"), &[]);
    assert_eq!(tls[0], "TLSv1.3");
    let fields = ["protocol", "direction", "outcome", "bytes", "path", "security"];
    scene.sftp("put up data/by-sftp\nget data/by-sftp down\n");
    let down = json!(["sftp", "download", "complete", SIZE, "by-sftp", "SSH-2.0"]);
    assert_eq!(scene.newest(&fields), down);
    let up = scene.found("protocol=sftp&direction=upload");
    assert_eq!((up.len(), &up[0]["bytes"]), (1, &json!(SIZE)));
    // A name that is no text, and a part.
    succeed(scene.curl(&["-T", "up"]).arg(scene.url("https", 443, "caf%E9%5C")));
    assert_eq!(scene.newest(&["path"]), json!(["caf\\xe9\\\\"]));
    succeed(scene.curl(&["-r", "1000-1999", "-o", "part"]).arg(scene.url("https", 443, "by-ftp")));
    assert_eq!(scene.newest(&["bytes", "offset"]), json!([1000, 1000]));
    let mut cut = scene.curl(&["--max-time", "2", "--limit-rate", "200k", "-o", "part"]);
    cut.arg(scene.url("ftp", 21, "long"));
    let cut = run(&mut cut, PATIENCE);
    assert!(!cut.status.success(), "a gigabyte in two seconds at 200 KB/s");
    let cut =
        wait_for("the transfer that was cut off", PATIENCE, || scene.found("outcome=cut").pop());
    assert_eq!((&cut["path"], &cut["direction"]), (&json!("long"), &json!("download")));
    assert!(cut["bytes"].as_u64().is_some_and(|bytes| bytes < 1 << 30), "{cut}");
    assert!(cut["reason"].as_str().is_some_and(|why| !why.is_empty()), "{cut}");
    let (code, wrong) = scene.api.get("/api/v1/transfers?protocol=nfs");
    assert_eq!(code, 400, "{wrong}");

    // The same by the command line and, when the server has ended, from the file.
    let all = scene.found("");
    let mut cli = Command::new(binary());
    let line = "maintenance logs transfers find outcome=cut";
    cli.args(["cli", "--json", "-c", line]).arg("--state").arg(&scene.state);
    let said: Value = serde_json::from_str(&text(&mut cli)).expect("JSON");
    assert_eq!(said["rows"], json!([cut]));
    assert!(scene.server.stop().success(), "SIGTERM ends it cleanly");
    let mode = fs::metadata(scene.state.join("transfers.log")).expect("the log").mode();
    assert_eq!(mode & 0o777, 0o600);
    let file: Value = serde_json::from_str(&scene.inspect(&["--json"])).expect("JSON");
    let mut told = file["transfers"].as_array().expect("transfers").clone();
    told.reverse();
    assert_eq!((told, &file["torn"]), (all.clone(), &json!(0)));
    assert!(scene.inspect(&[]).contains("sftp download complete /data/by-sftp by anna"));
    let xferlog = scene.inspect(&["--xferlog"]);
    assert_eq!(xferlog.lines().count(), all.len());
    assert!(xferlog.lines().any(|line| line.ends_with(" o r admin ftp 0 * i")), "{xferlog}");
}
