//! Clients of SMB against the real server: Samba's smbclient in every version and protection, and
//! smbprotocol of PyPI where it is installed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use base::limits::SMB_IO_MAX;
use e2e::api::{Api, wait_for};
use e2e::process::run;
use e2e::scene::Scene;
use e2e::server::Server;
use e2e::{patience, skip};
use serde_json::json;

const PASSWORD: &str = "correct horse battery";
/// The standard port of SMB.
const SMB: u16 = 445;

/// A share `box`, a user anna with a password set while SMB was enabled, and the service.
struct Smb {
    scene: Scene,
    server: Server,
    api: Api,
}

impl Smb {
    fn start(name: &str, more: &[serde_json::Value]) -> Self {
        let scene = Scene::new(name);
        let smb = "/configuration/services/smb";
        let mode = fs::Permissions::from_mode(0o777);
        fs::set_permissions(&scene.dir, mode).expect("a mode");
        let server = scene.start(&[]);
        let api = Api::new(&scene.state);
        let enable = json!({"set": smb, "property": "enabled", "value": true});
        let user = json!({"create": "/configuration/users", "name": "anna",
            "properties": {"password": PASSWORD, "uid": 4321, "gid": 4322}});
        let share = json!({"create": "/shares/default", "name": "box", "properties":
            {"directory": scene.dir.join("box"), "make_directory": true, "root_mode": "777"}});
        // The hash that SMB needs is kept with passwords that are set from then on.
        for changes in [[&[enable][..], more].concat(), vec![user, share]] {
            let (code, done) = api.post("/api/v1/changes", &json!({ "changes": changes }));
            assert_eq!(code, 200, "{done}");
        }
        Self { scene, server, api }
    }

    fn share(&self) -> std::path::PathBuf {
        self.scene.dir.join("box")
    }

    /// Runs commands of smbclient.
    fn smbclient(&self, version: &str, more: &[&str], commands: &str) -> Output {
        self.smbclient_as(&format!("anna%{PASSWORD}"), version, more, commands)
    }

    fn smbclient_as(&self, user: &str, version: &str, more: &[&str], commands: &str) -> Output {
        let mut command = Command::new("smbclient");
        command
            .args(["//127.0.0.1/box", "-p", &self.server.at(SMB).port().to_string(), "-U", user])
            .arg(format!("--option=client min protocol={version}"))
            .arg(format!("--option=client max protocol={version}"))
            .args(more)
            .args(["-c", commands])
            .current_dir(self.scene.scratch.path());
        run(&mut command, patience(60))
    }

    fn file(&self, name: &str, bytes: &[u8]) {
        fs::write(self.scene.scratch.path().join(name), bytes).expect("a file");
    }
}

fn has(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|at| at.join(program).is_file()))
}

fn well(output: &Output) -> String {
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success() && !text.contains("NT_STATUS"), "{}: {text}", output.status);
    text
}

fn refused(output: &Output, status: &str) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains(status), "{text}");
}

/// Puts, lists, reads, renames, removes, and compares with what is on disk.
fn tasks(smb: &Smb, version: &str, more: &[&str]) {
    let large: Vec<u8> = (0..2 * SMB_IO_MAX + 12_345).map(|at| (at * 7 / 3) as u8).collect();
    smb.file("large", &large);
    smb.file("empty", b"");
    let commands = "put large; put empty; mkdir Folder; cd Folder; put large again; ls; \
         rename again moved; get moved back; del moved; cd ..; rmdir Folder; ls; get LARGE other";
    let said = well(&smb.smbclient(version, more, commands));
    assert!(said.contains("again") && said.contains("empty"), "{said}");
    for copy in ["back", "other"] {
        let copy = fs::read(smb.scene.scratch.path().join(copy)).expect("a copy");
        assert!(copy == large, "{version} {more:?}: {} bytes came back", copy.len());
    }
    assert!(fs::read(smb.share().join("large")).expect("a file") == large);
    assert!(!smb.share().join("Folder").exists() && smb.share().join("empty").exists());
    well(&smb.smbclient(version, more, "del large; del empty"));
    assert_eq!(fs::read_dir(smb.share()).expect("a listing").count(), 0);
}

#[test]
fn smbclient_in_every_version() {
    if !has("smbclient") {
        skip!("smbclient", "it is not installed");
    }
    let smb = Smb::start("smbclient", &[]);
    for version in ["SMB2_10", "SMB3_00", "SMB3_02", "SMB3_11"] {
        tasks(&smb, version, &["--client-protection=sign"]);
    }
    for version in ["SMB3_00", "SMB3_11"] {
        tasks(&smb, version, &["--client-protection=encrypt"]);
    }
    for cipher in ["AES-256-GCM", "AES-256-CCM", "AES-128-CCM"] {
        let option = format!("--option=client smb3 encryption algorithms={cipher}");
        tasks(&smb, "SMB3_11", &["--client-protection=encrypt", &option]);
    }
    for signing in ["AES-128-CMAC", "HMAC-SHA256"] {
        let option = format!("--option=client smb3 signing algorithms={signing}");
        tasks(&smb, "SMB3_11", &["--client-protection=sign", &option]);
    }
}

#[test]
fn smbclient_is_refused() {
    if !has("smbclient") {
        skip!("smbclient refused", "it is not installed");
    }
    let smb = Smb::start("smbclient-refused", &[]);
    let sign = ["--client-protection=sign"];
    // Whatever a client wants, it must sign.
    well(&smb.smbclient("SMB2_10", &["--client-protection=off"], "ls"));
    refused(&smb.smbclient("SMB3_11", &sign, "get ../../state/x y"), "NT_STATUS_OBJECT_PATH");
    for user in ["%", "anna%wrong", "nobody%wrong"] {
        refused(&smb.smbclient_as(user, "SMB3_11", &sign, "ls"), "NT_STATUS_LOGON_FAILURE");
    }
}

#[test]
fn the_log_has_the_reason_if_a_password_is_older_than_smb() {
    if !has("smbclient") {
        skip!("smbclient password", "it is not installed");
    }
    let smb = Smb::start("smbclient-password", &[]);
    let set = |property: &str, value: serde_json::Value| {
        let at = match property {
            "enabled" => "/configuration/services/smb",
            _ => "/configuration/users/anna",
        };
        let changes = json!({"changes": [{"set": at, "property": property, "value": value}]});
        let (code, done) = smb.api.post("/api/v1/changes", &changes);
        assert_eq!(code, 200, "{done}");
    };
    set("enabled", json!(false));
    set("password", json!(PASSWORD));
    set("enabled", json!(true));
    let sign = ["--client-protection=sign"];
    refused(&smb.smbclient("SMB3_11", &sign, "ls"), "NT_STATUS_LOGON_FAILURE");
    let (_, node) = smb.api.get("/api/v1/nodes/configuration/services/smb");
    assert!(node.to_string().contains("was set while SMB was disabled"), "{node}");
    set("password", json!(PASSWORD));
    well(&smb.smbclient("SMB3_11", &sign, "ls"));
}

#[test]
fn smbclient_lists_shares_and_keeps_names() {
    if !has("smbclient") {
        skip!("smbclient names", "it is not installed");
    }
    let smb = Smb::start("smbclient-names", &[]);
    let mut list = Command::new("smbclient");
    list.args(["-L", "127.0.0.1", "-p", &smb.server.at(SMB).port().to_string()]);
    list.args(["-U", &format!("anna%{PASSWORD}"), "-m", "SMB3_11"]);
    let said = well(&run(&mut list, patience(60)));
    assert!(said.contains("box") && said.contains("IPC$"), "{said}");
    // Two names that differ only in case are both reachable, and both safe.
    fs::write(smb.share().join("Name"), b"one").expect("a file");
    fs::write(smb.share().join("nAME"), b"two").expect("a file");
    let sign = ["--client-protection=sign"];
    well(&smb.smbclient("SMB3_11", &sign, "get Name one; get nAME two; get NAME three"));
    let read = |name: &str| fs::read(smb.scene.scratch.path().join(name)).expect("a copy");
    assert_eq!((&read("one")[..], &read("two")[..]), (&b"one"[..], &b"two"[..]));
    assert_eq!(read("three"), b"one");
    wait_for("the end of all opens", patience(10), || {
        let (_, node) = smb.api.get("/api/v1/nodes/configuration/services/smb");
        let properties = node["properties"].as_array()?;
        let open = properties.iter().find(|one| one["name"] == json!("files_open"))?;
        (open["value"] == json!(0)).then_some(())
    });
}

#[test]
fn encryption_is_required() {
    if !has("smbclient") {
        skip!("smbclient encryption", "it is not installed");
    }
    let set = json!({"set": "/configuration/services/smb", "property": "encryption",
        "value": "required"});
    let smb = Smb::start("smb-encrypted", &[set]);
    tasks(&smb, "SMB3_11", &[]);
    let old = smb.smbclient("SMB2_10", &[], "ls");
    assert!(!old.status.success(), "{old:?}");
}

#[test]
fn smbprotocol_reads_and_writes() {
    let python = python();
    let probe = Command::new(&python).args(["-c", "import smbclient"]).output();
    if !probe.is_ok_and(|done| done.status.success()) {
        skip!("smbprotocol", "it is not installed (pip install smbprotocol)");
    }
    let smb = Smb::start("smbprotocol", &[]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/smb_protocol.py");
    let mut command = Command::new(python);
    command.arg(script).arg(smb.server.at(SMB).port().to_string()).arg(PASSWORD);
    let done = run(&mut command, patience(120));
    let said = String::from_utf8_lossy(&done.stdout);
    let wrong = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.contains("well"), "{said}{wrong}");
}

/// The interpreter that has smbprotocol: `PLIMSOLL_PYTHON`, or the system's.
fn python() -> String {
    std::env::var("PLIMSOLL_PYTHON").unwrap_or_else(|_| "/usr/bin/python3".to_owned())
}
