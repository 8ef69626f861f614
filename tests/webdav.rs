//! WebDAV on the real server: litmus, cadaver, rclone and davfs2; locks that outlive a kill and are
//! one with those of NFSv4.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use e2e::api::{Api, now, wait_for};
use e2e::process::{run, succeed};
use e2e::scene::Scene as BaseScene;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server, binary};
use e2e::{has, http, is_root, nfs4, skip};
use serde_json::json;
use wire::nfs4::Nfsstat4;

const HTTP: &str = "/configuration/services/http";
const PASSWORD: &str = "correct-horse";
/// How long a foreign program may take.
const PATIENCE: Duration = e2e::patience(60);
/// Entries of a large directory.
const MANY: usize = 50_000;

struct Scene {
    scratch: Scratch,
    dir: PathBuf,
    state: PathBuf,
    server: Server,
}

impl Scene {
    /// A server with a share `box` that is open to anna over plain HTTP too.
    fn new(name: &str) -> Self {
        let place = BaseScene::new(name);
        let plain = json!({"set": HTTP, "property": "plain", "value": "serve"});
        let basic = json!({"set": HTTP, "property": "basic_over_plain", "value": true});
        let (server, _) = place.start_for_anna(PASSWORD, &[plain, basic]);
        let BaseScene { scratch, dir, state } = place;
        Self { scratch, dir, state, server }
    }

    /// The share over HTTP.
    fn url(&self) -> String {
        format!("http://{}/box/", self.server.at(80))
    }

    /// A folder for what clients keep, which is their home.
    fn home(&self) -> PathBuf {
        let home = self.scratch.folder("home", None);
        let netrc = format!("machine 127.0.0.1\nlogin anna\npassword {PASSWORD}\n");
        fs::write(home.join(".netrc"), netrc).expect("written");
        home
    }

    /// A request of anna: status, head and body.
    fn ask(&self, line: &str, headers: &[&str], body: &str) -> (u16, String) {
        http::ask(self.server.at(80), ("anna", PASSWORD), line, headers, body.as_bytes())
    }
}

const EXCLUSIVE: &str = "<lockinfo xmlns='DAV:'><lockscope><exclusive/></lockscope>\
    <locktype><write/></locktype><owner>anna</owner></lockinfo>";

/// The token of a lock that was given.
fn token(answer: &str) -> String {
    let after = answer.split_once("lock-token: <").unwrap_or_else(|| panic!("no token: {answer}"));
    after.1.split_once('>').expect("an end").0.to_owned()
}

#[test]
fn litmus_passes_completely() {
    if !has("litmus") {
        skip!("litmus", "it is not installed");
    }
    let scene = Scene::new("litmus");
    let secure = format!("https://localhost:{}/box/", scene.server.at(443).port());
    for url in [scene.url(), secure] {
        let mut command = Command::new("litmus");
        command.args(["-k", &url, "anna", PASSWORD]).current_dir(scene.home());
        let done = run(&mut command, PATIENCE);
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success(), "{url}: {text}");
        let summaries: Vec<&str> = text.lines().filter(|l| l.contains("summary for")).collect();
        assert!(summaries.len() == 5 && !text.contains("FAIL"), "{url}: {text}");
        assert!(summaries.iter().all(|line| line.contains(" 0 failed")), "{url}: {text}");
        assert!(!text.contains("WARNING"), "{url}: {text}");
    }
}

#[test]
fn locks_outlive_a_kill_and_bind_nfs() {
    let mut scene = Scene::new("dav-locks");
    assert_eq!(scene.ask("PUT /box/f", &[], "one").0, 201);
    let file = scene.dir.join("box/f");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("a mode");
    let timeout = ["Timeout: Second-3600", "Depth: 0"];
    let (code, answer) = scene.ask("LOCK /box/f", &timeout, EXCLUSIVE);
    assert_eq!(code, 200, "{answer}");
    let token = token(&answer);

    let mut client =
        nfs4::Client::connect(scene.server.nfs(), (0, 0), "beside", 1).expect("a session");
    client.reclaim_complete().expect("nothing to reclaim");
    let root = client.walk("/export/box").expect("the share");
    let refused = client.open(&root, "f", "owner", false).expect_err("it is locked");
    assert_eq!(
        format!("{refused:?}"),
        format!("{:?}", nfs4::Failure::Status(Nfsstat4::SHARE_DENIED))
    );
    drop(client);

    scene.server.kill();
    let inspect = |scene: &Scene| {
        let mut command = Command::new(binary());
        command.arg("inspect").arg(scene.state.join("dav-locks")).arg("--json");
        String::from_utf8(succeed(&mut command)).expect("text")
    };
    let shown = inspect(&scene);
    assert!(shown.contains(&token) && shown.contains("\"/box/f\""), "{shown}");
    scene.server = Server::start(&Options::new(&scene.dir, &scene.state));

    let find = "<propfind xmlns='DAV:'><prop><lockdiscovery/></prop></propfind>";
    let (code, answer) = scene.ask("PROPFIND /box/f", &["Depth: 0"], find);
    assert!(code == 207 && answer.contains(&token), "{answer}");
    assert_eq!(scene.ask("PUT /box/f", &[], "two").0, 423);
    let with = format!("If: (<{token}>)");
    assert_eq!(scene.ask("PUT /box/f", &[&with], "three").0, 204);
    assert_eq!(fs::read(&file).expect("on disk"), b"three");
    let end = format!("Lock-Token: <{token}>");
    assert_eq!(scene.ask("UNLOCK /box/f", &[&end], "").0, 204);
    assert!(!inspect(&scene).contains(&token));
    // The client of NFS might reclaim something of a file that is not locked any more.
    let mut client =
        nfs4::Client::connect(scene.server.nfs(), (0, 0), "beside", 1).expect("a session");
    client.reclaim_complete().expect("nothing to reclaim");
    assert_eq!(scene.ask("PUT /box/f", &[], "four").0, 204);
}

#[test]
fn the_administration_lists_locks_and_releases_one() {
    let scene = Scene::new("dav-admin");
    assert_eq!(scene.ask("PUT /box/f", &[], "one").0, 201);
    let timeout = ["Timeout: Second-3600", "Depth: 0"];
    let (code, answer) = scene.ask("LOCK /box/f", &timeout, EXCLUSIVE);
    assert_eq!(code, 200, "{answer}");
    let token = token(&answer);
    let (api, path) = (Api::new(&scene.state), "/api/v1/services/http/locks");
    let (code, all) = api.get(path);
    assert_eq!(code, 200, "{all}");
    let lock = &all["rows"][0];
    assert_eq!((&lock["user"], &lock["file"]), (&json!("anna"), &json!("/box/f")), "{all}");
    assert_eq!((&lock["client"], &lock["owner"]), (&json!("127.0.0.1"), &json!("anna")), "{all}");
    assert_eq!((&lock["scope"], &lock["depth"]), (&json!("exclusive"), &json!("0")), "{all}");
    let id = lock["id"].as_str().expect("an id").to_owned();
    assert!(token.contains(&id) && !all.to_string().contains(&token), "{all}");
    let plimsoll = |args: &[&str]| {
        let mut command = Command::new(binary());
        command.arg("http").args(args).arg("--state").arg(&scene.state);
        run(&mut command, PATIENCE)
    };
    let shown = String::from_utf8_lossy(&plimsoll(&["locks"]).stdout).into_owned();
    assert!(shown.contains(&id) && shown.contains("/box/f"), "{shown}");
    wait_for("the lock in the statistics", PATIENCE, || {
        let data = api.data("http.locks[client]", (now() - 60, now()), "");
        data.to_string().contains("127.0.0.1").then_some(())
    });
    let released = plimsoll(&["release", &id]);
    assert!(released.status.success(), "{}", String::from_utf8_lossy(&released.stderr));
    assert_eq!(plimsoll(&["release", &id]).status.code(), Some(2), "it is gone");
    assert_eq!(scene.ask("PUT /box/f", &[], "two").0, 204, "nobody is in the way");
    let with = format!("If: (<{token}>)");
    assert_eq!(scene.ask("PUT /box/f", &[&with], "three").0, 412, "its token is none any more");
    let (code, audit) = api.get("/api/v1/audit?path=/configuration/services/http&limit=1");
    assert_eq!(code, 200, "{audit}");
    let audit = audit.to_string();
    assert!(audit.contains("\"release\"") && audit.contains("/box/f"), "{audit}");
}

#[test]
fn cadaver_works() {
    if !has("cadaver") {
        skip!("cadaver", "it is not installed");
    }
    let scene = Scene::new("cadaver");
    let (home, data) = (scene.home(), scene.scratch.folder("local", None));
    let all: Vec<u8> = (0..3_000_000_u32).map(|n| (n / 7) as u8).collect();
    fs::write(data.join("big"), &all).expect("written");
    let script = "mkcol d\ncd d\nput big\nlock big\nunlock big\ncopy big big2\nmove big2 big3\n\
        propset big author anna\npropget big author\nls\nget big3 back\ndelete big\ncd ..\n\
        ls\nquit\n";
    fs::write(home.join("script"), script).expect("written");
    let mut command = Command::new("sh");
    let line = format!("cadaver {} < {}/script", scene.url(), home.display());
    command.args(["-c", &line]).env("HOME", &home).current_dir(&data);
    let said = String::from_utf8_lossy(&succeed(&mut command)).into_owned();
    assert!(!said.contains("failed"), "{said}");
    assert!(said.contains("Value of author is: anna"), "{said}");
    assert_eq!(fs::read(data.join("back")).expect("it came back"), all);
    let left = fs::read_dir(scene.dir.join("box/d")).expect("the folder");
    assert_eq!(
        left.map(|entry| entry.expect("an entry").file_name()).collect::<Vec<_>>(),
        ["big3"]
    );
}

#[test]
fn rclone_works_with_odd_names_and_many_files() {
    if !has("rclone") {
        skip!("rclone", "it is not installed");
    }
    let scene = Scene::new("rclone");
    let (home, data) = (scene.home(), scene.scratch.folder("local", None));
    let config = home.join("rclone.conf");
    let secret = succeed(Command::new("rclone").args(["obscure", PASSWORD]));
    let secret = String::from_utf8(secret).expect("text");
    let url = scene.url();
    let text =
        format!("[d]\ntype = webdav\nurl = {url}\nvendor = other\nuser = anna\npass = {secret}\n");
    fs::write(&config, text).expect("written");
    let rclone = |args: &[&str]| {
        let mut command = Command::new("rclone");
        command.arg("--config").arg(&config).args(args).env("HOME", &home).current_dir(&data);
        String::from_utf8(succeed(&mut command)).expect("text")
    };
    fs::create_dir_all(data.join("src/a b")).expect("a folder");
    for name in ["empty", "a b/ü 50% #1?.txt", "a b/'quotes\" & <tags>", "a b/+plus;=,"] {
        let size = if name == "empty" { 0 } else { 100_000 };
        fs::write(data.join("src").join(name), vec![b'x'; size]).expect("written");
    }
    rclone(&["copy", "src", "d:one"]);
    rclone(&["check", "--download", "src", "d:one"]);
    rclone(&["moveto", "d:one", "d:two"]);
    rclone(&["copy", "d:two", "back"]);
    rclone(&["check", "--download", "src", "back"]);
    rclone(&["purge", "d:two"]);
    assert_eq!(rclone(&["lsf", "d:"]), "");
    let many = scene.dir.join("box/many");
    fs::create_dir(&many).expect("a folder");
    fs::set_permissions(&many, fs::Permissions::from_mode(0o777)).expect("a mode");
    (0..MANY).for_each(|n| drop(fs::File::create(many.join(format!("f{n}"))).expect("made")));
    assert_eq!(rclone(&["lsf", "d:many"]).lines().count(), MANY);
}

/// `buf_size`: davfs2 1.6 refuses reads of directories that are as long as newer kernels make them,
/// unless its buffer is larger than usual.
#[test]
fn davfs2_works() {
    if !is_root() {
        skip!("davfs2", "needs root");
    }
    if !has("mount.davfs") || fs::File::open("/dev/fuse").is_err() {
        skip!("davfs2", "there is no davfs2 or no FUSE");
    }
    let scene = Scene::new("davfs2");
    let (home, at) = (scene.home(), scene.scratch.folder("mnt", None));
    let cache = scene.scratch.folder("cache", None);
    for folder in [scene.scratch.path(), &home, &cache] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).expect("a mode");
    }
    let secrets = home.join("secrets");
    fs::write(&secrets, format!("{} anna {PASSWORD}\n", at.display())).expect("written");
    fs::set_permissions(&secrets, fs::Permissions::from_mode(0o600)).expect("a mode");
    let config = home.join("davfs2.conf");
    let settings =
        format!("secrets {}\ncache_dir {}\nbuf_size 64\n", secrets.display(), cache.display());
    fs::write(&config, settings).expect("written");
    let script = format!(
        "set -e; mount -t davfs -o conf={} {} {at}; cd {at}; mkdir d; echo hello > 'd/a b'; \
         mv d e; ls e; cat 'e/a b'; head -c 3000000 /dev/zero > zero; sync; stat -c %s zero; rm 'e/a b'; \
         rmdir e; cd /; umount {at}",
        config.display(),
        scene.url(),
        at = at.display()
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]);
    let said = String::from_utf8_lossy(&succeed(&mut command)).into_owned();
    assert!(said.starts_with("a b\nhello\n3000000\n"), "{said}");
    assert_eq!(fs::metadata(scene.dir.join("box/zero")).expect("on disk").len(), 3_000_000);
    assert!(!scene.dir.join("box/e").exists());
}
