//! Replication between two real servers, through OpenSSH's client: what an action copies, what its
//! schedule starts, what is reported of a run that fails, and that no run outlives its server.

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use e2e::api::{Api, wait_for};
use e2e::link::SERVER;
use e2e::process::{DEADLINE, succeed};
use e2e::scene::Scene;
use e2e::server::{Options, Server, binary};
use e2e::sshd::Sshd;
use e2e::tree::{assert_same, plant};
use e2e::{skip, ssh_for_users};
use serde_json::{Value, json};

/// What anna signs in with at the other server; it must be seen nowhere.
const PASSWORD: &str = "correct-horse-of-replication";
/// Bytes of a file that takes a while where the rate is limited.
const LARGE: usize = 6 << 20;
/// Where actions are.
const ACTIONS: &str = "/configuration/replication";

/// The actions of a server.
struct Actions(Api);

impl Actions {
    fn change(&self, change: Value) {
        let (code, done) = self.0.post("/api/v1/changes", &json!({ "changes": [change] }));
        assert_eq!(code, 200, "{done}");
    }

    fn create(&self, name: &str, properties: Value) {
        self.change(json!({"create": ACTIONS, "name": name, "properties": properties}));
    }

    fn set(&self, name: &str, property: &str, value: Value) {
        let path = format!("{ACTIONS}/{name}");
        self.change(json!({"set": path, "property": property, "value": value}));
    }

    fn act(&self, name: &str, action: &str) -> (u16, Value) {
        let path = format!("/api/v1/nodes{ACTIONS}/{name}/actions/{action}");
        self.0.post(&path, &json!({"parameters": {}}))
    }

    fn start(&self, name: &str) {
        let (code, done) = self.act(name, "start");
        assert_eq!(code, 200, "{done}");
    }

    /// A property of an action.
    fn property(&self, name: &str, property: &str) -> Value {
        let (code, node) = self.0.get(&format!("/api/v1/nodes{ACTIONS}/{name}"));
        assert_eq!(code, 200, "{node}");
        let all = node["properties"].as_array().expect("properties");
        let found = all.iter().find(|one| one["name"] == property);
        found.unwrap_or_else(|| panic!("{property}"))["value"].clone()
    }

    fn results(&self, name: &str) -> Vec<Value> {
        let (code, done) = self.act(name, "runs");
        assert_eq!(code, 200, "{done}");
        done["result"]["rows"].as_array().expect("rows").clone()
    }

    /// Waits until there are `count` results; the newest.
    fn result(&self, name: &str, count: usize) -> Value {
        let there = || self.results(name).get(..count).map(|rows| rows[0].clone());
        wait_for("the result of a run", DEADLINE, there)
    }

    /// Starts a run and waits for its end.
    fn go(&self, name: &str) -> Value {
        let before = self.results(name).len();
        self.start(name);
        self.result(name, before + 1)
    }

    /// As [`Actions::go`], of a run that fails: why.
    fn fails(&self, name: &str) -> String {
        let done = self.go(name);
        assert_eq!(done["outcome"], "failed", "{done}");
        done["reason"].as_str().expect("a reason").to_owned()
    }
}

/// The server that makes runs, and another one with a share `box` that is anna's.
struct Two {
    here: Scene,
    server: Server,
    actions: Actions,
    there: Scene,
    other: Server,
}

impl Deref for Two {
    type Target = Actions;

    fn deref(&self) -> &Actions {
        &self.actions
    }
}

impl Two {
    /// `None` if something is missing here; the reason is printed.
    fn new(name: &'static str) -> Option<Self> {
        if !ssh_for_users(name) {
            return None;
        }
        let (here, there) = (Scene::new(name), Scene::new(&format!("{name}-there")));
        let (other, _) = there.start_for_anna(PASSWORD, &[]);
        let server = here.start(&[]);
        let actions = Actions(Api::new(&here.state));
        Some(Self { here, server, actions, there, other })
    }

    fn url(&self, path: &str) -> String {
        format!("dsync://anna@127.0.0.1:{}/{path}", 218 + self.other.offset)
    }

    /// A directory of the share here.
    fn folder(&self, name: &str) -> PathBuf {
        let folder = self.here.dir.join(name);
        fs::create_dir(&folder).expect("a folder");
        folder
    }

    /// A path in the share of the other server.
    fn copied(&self, path: &str) -> PathBuf {
        self.there.dir.join("box").join(path)
    }

    /// Makes an action from a directory of the share here to one of the share there.
    fn action(&self, name: &str, (from, to): (&str, &str), more: Value) {
        let mut all = json!({"source": format!("data/{from}"), "destination": self.url(to),
            "password": PASSWORD});
        let more = more.as_object().expect("properties").clone();
        all.as_object_mut().expect("properties").extend(more);
        self.create(name, all);
    }

    /// Waits until a run has found what takes a while; its process.
    fn running_process(&self, name: &str) -> u32 {
        let far = || self.property(name, "size").as_u64().filter(|size| *size >= LARGE as u64);
        wait_for("a run to get somewhere", DEADLINE, far);
        let found = processes().into_iter().find(|(_, parent, arguments)| {
            *parent == self.server.pid() && arguments.contains("dsync\0--json")
        });
        found.expect("the process of the run").0
    }

    /// Files of runs that are in the state directory now.
    fn left(&self) -> Vec<String> {
        let folder = fs::read_dir(self.here.state.join("replication")).expect("a folder");
        let names = folder.map(|entry| entry.expect("one").file_name());
        let names = names.map(|name| name.to_string_lossy().into_owned());
        names.filter(|name| name != "known_hosts").collect()
    }
}

/// All processes: number, parent, arguments.
fn processes() -> Vec<(u32, u32, String)> {
    let one = |entry: fs::DirEntry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        let arguments = fs::read(entry.path().join("cmdline")).ok()?;
        let arguments = String::from_utf8_lossy(&arguments).into_owned();
        Some((pid, parent.trim().parse().ok()?, arguments))
    };
    fs::read_dir("/proc").expect("/proc").flatten().filter_map(one).collect()
}

/// Waits until a process is gone, or is a zombie.
fn gone(pid: u32) {
    let gone = || {
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        arguments.is_empty().then_some(())
    };
    wait_for("the end of a run's process", DEADLINE, gone);
}

#[test]
fn a_directory_is_kept_the_same_on_another_server() {
    let Some(mut two) = Two::new("replication") else { return };
    let from = two.folder("site");
    plant(&from, 40);
    fs::write(from.join("left.tmp"), b"not wanted").expect("a file");
    let more = json!({"delete": true, "exclude": ["*.tmp"], "streams": 1});
    two.action("site", ("site", "box/site"), more);
    let done = two.go("site");
    assert_eq!((&done["outcome"], &done["by"]), (&json!("done"), &json!("root")), "{done}");
    assert!(done["files"].as_u64() > Some(30) && done["bytes"].as_u64() > Some(0), "{done}");
    assert!(!two.copied("site/left.tmp").exists());
    fs::remove_file(from.join("left.tmp")).expect("taking it away");
    fs::remove_file(from.join("again")).expect("taking it away");
    let done = two.go("site");
    assert_eq!(done["outcome"], "done", "{done}");
    assert_same(&from, &two.copied("site"));
    let idle = ["state", "last_outcome"].map(|name| two.property("site", name));
    assert_eq!(idle, [json!("idle"), json!("done")]);
    assert_eq!(two.left(), Vec::<String>::new());
    // The other way, to a directory that is not there yet.
    let back = json!({"source": two.url("box/site"), "destination": "data/back"});
    two.action("back", ("", ""), back);
    let done = two.go("back");
    assert_eq!(done["outcome"], "done", "{done}");
    assert_same(&from, &two.here.dir.join("back"));
    // Results outlive the server, under another name too, and can be read without it.
    two.change(json!({"rename": format!("{ACTIONS}/site"), "to": "web"}));
    let before = two.results("web");
    assert_eq!(before.len(), 2);
    two.server.stop();
    let file = two.here.state.join("replication.log");
    let said = succeed(Command::new(binary()).arg("inspect").arg(&file));
    assert!(String::from_utf8_lossy(&said).contains("  web done by root: "), "{said:?}");
    two.server = two.here.start(&[]);
    assert_eq!(two.results("web"), before);
    let said = fs::read_to_string(&file).expect("the history");
    assert!(!said.contains(PASSWORD));
}

#[test]
fn a_schedule_starts_runs_and_only_while_it_is_on() {
    let Some(two) = Two::new("replication-schedule") else { return };
    let from = two.folder("site");
    plant(&from, 3);
    two.action("often", ("site", "box/site"), json!({"schedule": "every", "every": 10}));
    let done = two.result("often", 1);
    assert_eq!((&done["outcome"], &done["by"]), (&json!("done"), &json!("schedule")), "{done}");
    assert_eq!(done["when"].as_u64().map(|second| second % 10 < 5), Some(true), "{done}");
    assert_same(&from, &two.copied("site"));
    assert!(two.property("often", "next").as_u64() > Some(0));
    two.set("often", "enabled", json!(false));
    assert_eq!(two.property("often", "next"), 0);
}

#[test]
fn a_run_that_fails_names_the_side_at_fault() {
    let Some(two) = Two::new("replication-fails") else { return };
    two.folder("site");
    symlink("/etc", two.here.dir.join("out")).expect("a link");
    let fails = |name: &str, (from, to), more: Value, why: &[&str]| {
        two.action(name, (from, to), more);
        let reason = two.fails(name);
        assert!(why.iter().all(|part| reason.contains(part)), "{reason}");
        assert!(!two.results(name)[0].to_string().contains(PASSWORD));
        assert_eq!(two.property(name, "last_reason"), reason);
    };
    let good = ("site", "box/site");
    let wrong = json!({"password": "not-the-password"});
    fails("password", good, wrong, &["anna@127.0.0.1", "rejected the user"]);
    // Another server's key than the one that it must be.
    let key = two.here.scratch.path().join("key");
    succeed(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key));
    let public = fs::read_to_string(key.with_extension("pub")).expect("a key");
    let pinned = json!({"host_key": public.trim()});
    fails("key", good, pinned, &["127.0.0.1", "presented a host key"]);
    let nobody = json!({"destination": "dsync://anna@127.0.0.1:1/box/site"});
    fails("nobody", good, nobody, &["cannot be reached", "refused"]);
    fails("share", ("site", "none/site"), json!({}), &["No such file"]);
    fails("source", ("none", "box/site"), json!({}), &["data/none does not exist"]);
    fails("link", ("out", "box/site"), json!({}), &["data/out", "symbolic link"]);
    let share = json!({"source": "nothing/site"});
    fails("served", good, share, &["the share \"nothing\" is not served"]);
    assert_eq!(two.left(), Vec::<String>::new());
}

#[test]
fn no_run_outlives_its_action() {
    let Some(mut two) = Two::new("replication-stop") else { return };
    let from = two.folder("site");
    fs::write(from.join("a"), b"first").expect("a file");
    fs::write(from.join("large"), vec![7; LARGE]).expect("a file");
    let slow = json!({"bandwidth": 1_000_000, "compress": false});
    two.action("slow", ("site", "box/site"), slow);
    two.start("slow");
    let pid = two.running_process("slow");
    for name in ["cmdline", "environ"] {
        let text = fs::read(format!("/proc/{pid}/{name}")).expect("a process");
        assert!(!String::from_utf8_lossy(&text).contains(PASSWORD), "{name}");
    }
    let all = processes();
    assert!(all.iter().all(|(.., arguments)| !arguments.contains(PASSWORD)));
    assert_eq!(two.property("slow", "state"), "running");
    let (code, again) = two.act("slow", "start");
    assert_eq!(code, 409, "{again}");
    assert_eq!(two.act("slow", "stop").0, 200);
    let done = two.result("slow", 1);
    assert_eq!(done["outcome"], "stopped", "{done}");
    assert_eq!(done["reason"], "root stopped it");
    gone(pid);
    // The server ends in order, and its run with it.
    two.start("slow");
    let pid = two.running_process("slow");
    two.server.stop();
    gone(pid);
    two.server = two.here.start(&[]);
    assert_eq!(two.result("slow", 2)["reason"], "the server ended");
    // It is killed.
    two.start("slow");
    let pid = two.running_process("slow");
    two.server.kill();
    gone(pid);
    two.server = two.here.start(&[]);
    assert_eq!(two.left(), Vec::<String>::new());
    assert_eq!(two.results("slow").len(), 2);
    two.set("slow", "bandwidth", json!(0));
    let again = Duration::from_secs(60);
    let done = wait_for("the directory of the run that was killed", again, || {
        let done = two.go("slow");
        // The other server may not have noticed yet that the writer is gone.
        let busy = done["reason"].as_str().is_some_and(|why| why.contains("another dsync"));
        (!busy).then_some(done)
    });
    assert_eq!(done["outcome"], "done", "{done}");
    assert_same(&from, &two.copied("site"));
}

#[test]
fn a_machine_that_has_sshd_alone_takes_a_key() {
    let sshd = match Sshd::start() {
        Ok(sshd) => sshd,
        Err(why) => skip!("replication-key", "{why}"),
    };
    let scene = Scene::new("replication-key");
    let mut options = Options::new(&scene.dir, &scene.state);
    options.namespace = Some(&sshd.link.clients);
    let _server = Server::start(&options);
    let actions = Actions(Api::new(&scene.state));
    let (from, there) = (scene.dir.join("site"), scene.scratch.folder("there", None));
    fs::create_dir(&from).expect("a folder");
    plant(&from, 20);
    let to = there.join("site");
    let (right, wrong) = (sshd.text("key"), sshd.text("wrong-key"));
    let properties = json!({"source": "data/site", "key": wrong, "remote_program": binary(),
        "destination": format!("ssh://root@{SERVER}{}", to.display())});
    actions.create("site", properties);
    let why = actions.fails("site");
    assert!(why.contains(SERVER) && why.contains("rejected the user"), "{why}");
    actions.set("site", "key", json!(right));
    actions.set("site", "host_key", json!(sshd.text("wrong-key.pub").trim()));
    let why = actions.fails("site");
    assert!(why.contains("presented a host key"), "{why}");
    actions.set("site", "host_key", json!(sshd.text("host-key.pub").trim()));
    actions.set("site", "remote_program", json!("/nowhere/plimsoll"));
    let why = actions.fails("site");
    assert!(why.contains("/nowhere/plimsoll"), "{why}");
    assert!(!to.exists());
    actions.set("site", "remote_program", json!(binary()));
    let done = actions.go("site");
    assert_eq!(done["outcome"], "done", "{done}");
    assert_same(&from, &to);
    // From there, into a share here.
    let back = json!({"source": format!("ssh://root@{SERVER}{}", to.display()), "key": right,
        "destination": "data/back", "remote_program": binary()});
    actions.create("back", back);
    let done = actions.go("back");
    assert_eq!(done["outcome"], "done", "{done}");
    assert_same(&from, &scene.dir.join("back"));
    for file in ["replication.log", "configuration/current.toml"] {
        let text = fs::read_to_string(scene.state.join(file)).expect(file);
        assert!(text.contains("site") && !text.contains("PRIVATE KEY"), "{file}");
    }
}

#[test]
fn the_state_directory_stays_where_it_is() {
    let scene = Scene::new("replication-state");
    let (state, copy) = (scene.dir.join("state"), scene.scratch.folder("copy", None));
    fs::create_dir(&state).expect("a folder");
    let mut server = Server::start(&Options::new(&scene.dir, &state));
    let actions = Actions(Api::new(&state));
    actions.change(json!({"create": "/shares/default", "name": "copy",
        "properties": {"directory": copy}}));
    for name in ["kept", "state.txt"] {
        fs::write(scene.dir.join(name), name).expect("a file");
    }
    actions.create("out", json!({"source": "data", "destination": "copy/all", "delete": true}));
    let done = actions.go("out");
    assert_eq!(done["outcome"], "done", "{done}");
    let names = || {
        let all = fs::read_dir(copy.join("all")).expect("a folder");
        let mut all: Vec<_> = all.map(|entry| entry.expect("one").file_name()).collect();
        all.sort();
        all
    };
    assert_eq!(names(), ["kept", "state.txt"]);
    // What the source does not have is deleted at the destination, except the state directory.
    fs::remove_file(copy.join("all/kept")).expect("taking it away");
    actions.create("in", json!({"source": "copy/all", "destination": "data", "delete": true}));
    let done = actions.go("in");
    assert_eq!(done["outcome"], "done", "{done}");
    assert!(!scene.dir.join("kept").exists() && state.join("plimsoll.sock").exists());
    actions.create("keys", json!({"source": "data/state", "destination": "copy/keys"}));
    let why = actions.fails("keys");
    assert!(why.contains("state directory"), "{why}");
    assert!(!copy.join("keys").exists());
    assert!(server.stop().success());
    let _again = Server::start(&Options::new(&scene.dir, &state));
    assert_eq!(actions.results("in").len(), 1);
}

/// The file of a logical unit lies in a share: no run takes it away, replaces it or copies it, and
/// neither does `plimsoll dsync` on the directory of the share.
#[test]
fn the_file_of_a_logical_unit_is_no_file_of_its_share() {
    let scene = Scene::new("replication-lun");
    let _server = scene.start(&[]);
    let actions = Actions(Api::new(&scene.state));
    let [from, with, copy] = ["from", "with", "copy"].map(|name| {
        let folder = scene.scratch.folder(name, None);
        actions.change(json!({"create": "/shares/default", "name": name,
            "properties": {"directory": folder}}));
        folder
    });
    let (disk, content) = (with.join("disk.img"), vec![0xa5; 3 << 20]);
    fs::write(&disk, &content).expect("a file");
    fs::write(from.join("a"), "a").expect("a file");
    for name in ["old", "other"] {
        fs::write(with.join(name), name).expect("a file");
    }
    actions.change(json!({"create": "/shares/default/luns", "name": "disk",
        "properties": {"backing": "file", "path": disk}}));
    let online = || {
        let (_, node) = actions.0.get("/api/v1/nodes/shares/default/luns/disk");
        let all = node["properties"].as_array().expect("properties").clone();
        all.into_iter().any(|one| one["name"] == "state" && one["value"] == "online")
    };
    assert!(online());
    actions.create("out", json!({"source": "with", "destination": "copy"}));
    assert_eq!(actions.go("out")["outcome"], "done");
    assert!(copy.join("old").exists() && !copy.join("disk.img").exists());

    // Neither as something that the source does not have, nor as something that it has, too.
    actions.create("in", json!({"source": "from", "destination": "with", "delete": true}));
    let done = actions.go("in");
    assert_eq!(done["outcome"], "done", "{done}");
    assert!(with.join("a").exists() && !with.join("old").exists());
    assert_eq!(fs::read(&disk).expect("the unit"), content);
    fs::write(from.join("disk.img"), "something else").expect("a file");
    assert_eq!(actions.go("in")["outcome"], "partial");
    assert_eq!(fs::read(&disk).expect("the unit"), content);

    let dsync = |from: &PathBuf, to: &PathBuf| {
        let mut command = Command::new(binary());
        command.args(["dsync", "--delete"]).arg(from).arg(to);
        command.output().expect("dsync").status.code()
    };
    assert_eq!(dsync(&from, &with), Some(3));
    assert_eq!(fs::read(&disk).expect("the unit"), content);
    assert_eq!(dsync(&with, &copy), Some(3));
    assert!(!copy.join("disk.img").exists());
    assert!(online());
}
