//! The story of README, three times against the real program: on the command line and over the API
//! by the very lines of the documents, and in a browser. What they leave must be the same.

#[path = "story/lines.rs"]
mod lines;
#[path = "story/people.rs"]
mod people;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use e2e::api::{Api, wait_for};
use e2e::browser::{self, Browser, PASSWORD};
use e2e::nfs3::Client;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::{skip, took_at_most};
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};
use wire::nfs3::{CreateHow, Sattr3, StableHow};

/// Clients of the network to which the share is restricted, and not of it.
const INSIDE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 7);
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(127, 0, 1, 7);
/// What a client writes into the share.
const PHOTO: &[u8] = b"a photo";
/// A way may take this long here; a newcomer has ten minutes.
const WAY: Duration = e2e::patience(120);

/// A directory with what is served, and room for the states of servers.
struct Scene {
    scratch: Scratch,
}

impl Scene {
    fn new(name: &str) -> Self {
        let scratch = Scratch::new(name);
        scratch.folder("lab", None);
        Self { scratch }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// An instance that serves `lab`, with its state below the folder of one way.
    fn serve(&self, way: &str, state: &str) -> Server {
        let (dir, state) = (self.path("lab"), self.path(way).join(state));
        fs::create_dir_all(self.path(way)).expect("the folder of a way");
        let mut options = Options::new(&dir, &state);
        options.args.push("--no-portmap".into());
        Server::start(&options)
    }

    /// One way from beginning to end, on a first instance and on a second one. The configuration
    /// that is left, without its heading.
    fn run(&self, way: &str, mut steps: impl Steps) -> String {
        let begin = Instant::now();
        let first = self.serve(way, "first");
        steps.set_up(self, &first);
        use_it(&first);
        let api = Api::new(&self.path(way).join("first"));
        let share = || {
            let rows = api.data("nfs.ops[share]", (-60, -1), "")["rows"].take();
            rows.as_array()?.iter().any(|row| row["label"] == "photos").then_some(())
        };
        wait_for("the share in the statistics", Duration::from_secs(20), share);
        steps.look(self, &first);
        let taken = steps.export(self, &first);
        let second = self.serve(way, "second");
        steps.restore(self, &second, &taken);
        let settings = settings_of(&taken);
        assert_eq!(
            settings,
            exported(&self.path(way).join("second")),
            "{way}: the second instance"
        );
        is_served(&second);
        let took = begin.elapsed();
        println!("story: {way} took {:.1} s", took.as_secs_f64());
        took_at_most(way, took, WAY);
        settings
    }
}

/// What the ways differ in.
trait Steps {
    /// A share, restricted to a network, and a user.
    fn set_up(&mut self, scene: &Scene, first: &Server);
    /// What a client did is seen.
    fn look(&mut self, scene: &Scene, first: &Server);
    /// The configuration as a file.
    fn export(&mut self, scene: &Scene, first: &Server) -> String;
    /// The same on another instance, and the password that is not in it.
    fn restore(&mut self, scene: &Scene, second: &Server, taken: &str);
}

/// A client of the share that calls from an address.
fn client(server: &Server, from: Ipv4Addr) -> Client {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from((from, 0)).into()).expect("an address of this machine");
    socket.connect(&server.nfs().into()).expect("a connection");
    Client::over(TcpStream::from(socket), 0, 0).expect("a client")
}

/// A client of the network writes and reads; another one is refused.
fn use_it(server: &Server) {
    let mut inside = client(server, INSIDE);
    let root = inside.mnt("/export/photos").expect("a client of the network mounts it");
    let name = "photo";
    let old = inside.lookup(&root, name).map(|made| made.handle);
    let file = old.unwrap_or_else(|_| {
        inside.create(&root, name, CreateHow::Unchecked(Sattr3::default())).expect("CREATE").handle
    });
    inside.write(&file, 0, PHOTO, StableHow::FILE_SYNC).expect("WRITE");
    assert_eq!(inside.read_all(&file).expect("READ"), PHOTO);
    client(server, OUTSIDE).mnt("/export/photos").expect_err("another network is refused");
}

/// The second instance serves the share to the network, and to no other client.
fn is_served(server: &Server) {
    let mut inside = client(server, INSIDE);
    let root = inside.mnt("/export/photos").expect("the second instance serves it");
    let file = inside.lookup(&root, "photo").expect("LOOKUP").handle;
    assert_eq!(inside.read_all(&file).expect("READ"), PHOTO);
    client(server, OUTSIDE).mnt("/export/photos").expect_err("to the network only");
}

/// A configuration without its heading, which has its author and its time.
fn settings_of(text: &str) -> String {
    let at = text.find("format = 1").unwrap_or_else(|| panic!("a configuration: {text}"));
    text[at..].trim_end().to_owned()
}

fn exported(state: &Path) -> String {
    let (code, text) = Api::new(state).text("/api/v1/configuration");
    assert_eq!(code, 200, "{text}");
    settings_of(&text)
}

/// Links, fields and buttons.
struct InBrowser(Browser);

/// A property as the browser needs to know it.
fn field(name: &str, title: &str, kind: Value, value: Value) -> Value {
    json!({"name": name, "title": title, "kind": kind, "role": "setting", "value": value})
}

fn text(name: &str, title: &str, value: &str) -> Value {
    field(name, title, json!({"type": "text"}), json!(value))
}

fn choice(name: &str, title: &str, value: &str) -> Value {
    field(name, title, json!({"type": "choice"}), json!(value))
}

fn list(name: &str, title: &str, values: &[&str]) -> Value {
    field(name, title, json!({"type": "list", "of": {"type": "text"}}), json!(values))
}

impl InBrowser {
    fn ask(&mut self, request: &Value) -> Value {
        self.0.ask(request).unwrap_or_else(|why| panic!("{request}: {why}"))
    }
}

impl Steps for InBrowser {
    fn set_up(&mut self, scene: &Scene, first: &Server) {
        self.0.open(first, "admin", PASSWORD);
        let photos = scene.path("photos").display().to_string();
        let made =
            field("make_directory", "Create directory", json!({"type": "bool"}), json!(true));
        let mode = text("root_mode", "Mode of the directory", "1777");
        let share = [text("directory", "Directory", &photos), made, mode];
        self.ask(&json!({"do": "create", "path": "/shares/default", "noun": "share",
            "name": "photos", "properties": share}));
        let rules = [
            choice("nfs", "NFS", "none"),
            list("nfs_exceptions", "NFS exceptions", &["127.0.0.0/24(rw)"]),
        ];
        self.ask(&json!({"do": "set", "path": "/shares/default/photos", "properties": rules}));
        let user = [
            text("password", "Password", lines::SECRET),
            choice("kind", "Kind", "administrator"),
            list("roles", "Roles", &["operator"]),
        ];
        self.ask(&json!({"do": "create", "path": "/configuration/users", "noun": "user",
            "name": "anna", "properties": user}));
    }

    fn look(&mut self, _: &Scene, _: &Server) {
        self.ask(&json!({"do": "seen", "sheet": "w=nfs.ops[share]", "words": ["photos"]}));
    }

    fn export(&mut self, _: &Scene, _: &Server) -> String {
        let text = self.ask(&json!({"do": "export"}));
        text.as_str().expect("a text").to_owned()
    }

    fn restore(&mut self, _: &Scene, second: &Server, taken: &str) {
        self.0.open(second, "admin", PASSWORD);
        self.ask(&json!({"do": "import", "text": taken}));
        let mut password = text("password", "Password", lines::SECRET);
        password["role"] = json!("secret");
        self.ask(
            &json!({"do": "set", "path": "/configuration/users/anna", "properties": [password]}),
        );
        let complaints = self.ask(&json!({"do": "complaints"}));
        assert_eq!(complaints, json!([]), "the pages complain about nothing");
    }
}

#[test]
fn three_ways_leave_one_configuration() {
    if let Some(what) = browser::missing() {
        skip!("story", "{what}");
    }
    let scene = Scene::new("story");
    let by_lines = scene.run("command line", lines::OnCommandLine::new());
    let by_api = scene.run("API", lines::OverApi::new());
    let by_browser = scene.run("browser", InBrowser(Browser::start()));
    assert!(by_lines.contains("127.0.0.0/24(rw)") && by_lines.contains("anna"), "{by_lines}");
    assert_eq!(by_lines, by_api, "command line and API");
    assert_eq!(by_lines, by_browser, "command line and browser");
}

#[test]
fn common_tasks_are_accepted() {
    let scene = Scene::new("story-tasks");
    let server = scene.serve("tasks", "first");
    lines::run_tasks(&scene, &server);
}
