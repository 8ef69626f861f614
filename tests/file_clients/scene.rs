//! One server for all clients that are tried at the same time: a user, a directory of 50 000 names,
//! a file of 10 GiB of which only the end is there.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use base::limits::HTTP_LISTING_PAGE;
use base::random::{Random, SeededRandom};
use base::text::percent;
use e2e::api::Api;
use e2e::process::{run, succeed};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use serde_json::json;

use super::tasks::{ENTRIES, SPARSE};

/// The user that signs in.
pub const USER: &str = "anna";
/// Its password.
pub const PASSWORD: &str = "correct-horse";
/// A file of several pieces, and no multiple of one.
const SIZE: usize = (1 << 20) + 12_345;

/// The server and what it serves as `/data`.
pub struct Scene {
    pub scratch: Scratch,
    pub server: Server,
    pub dir: PathBuf,
    pub state: PathBuf,
    pub data: Vec<u8>,
}

/// The scene, while a test uses it.
static SHARED: Mutex<Weak<Scene>> = Mutex::new(Weak::new());

impl Scene {
    /// The scene of tests that run at the same time, or a new one.
    pub fn shared() -> Arc<Self> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let scene = Arc::new(Self::new());
            *shared = Arc::downgrade(&scene);
            scene
        })
    }

    fn new() -> Self {
        // In memory: each program makes, and removes, 50 000 names.
        let scratch = Scratch::below(Path::new("/dev/shm"), "file-clients");
        let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
        let many = dir.join("many");
        fs::create_dir(&many).expect("a directory");
        for n in 0..ENTRIES {
            File::create(many.join(format!("entry-{n:05}"))).expect("a file");
        }
        let sparse = File::create(dir.join("sparse")).expect("a file");
        sparse.write_all_at(b"end", SPARSE - 3).expect("a hole and an end");
        let mut data = vec![0; SIZE];
        SeededRandom::new(5).fill(&mut data);
        let server = Server::start(&Options::new(&dir, &state));
        let scene = Self { scratch, server, dir, state, data };
        scene.configure();
        scene
    }

    /// Anna acts as the server itself, and plain HTTP and older MACs are for the programs that have
    /// nothing else.
    fn configure(&self) {
        let key = self.key();
        let mut make = Command::new("ssh-keygen");
        let keys = if e2e::has("ssh-keygen") {
            succeed(make.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key));
            vec![fs::read_to_string(key.with_extension("pub")).expect("its public half")]
        } else {
            Vec::new()
        };
        let keys: Vec<_> = keys.iter().map(|line| line.trim()).collect();
        let anna = json!({"create": "/configuration/users", "name": USER, "properties":
            {"kind": "administrator", "roles": ["administrator"], "password": PASSWORD,
             "ssh_keys": keys}});
        let http = "/configuration/services/http";
        let plain = json!({"set": http, "property": "plain", "value": "serve"});
        let basic = json!({"set": http, "property": "basic_over_plain", "value": true});
        let smb = json!({"set": "/configuration/services/smb", "property": "enabled",
            "value": true});
        // The hash that SMB needs is kept with passwords that are set from then on.
        for changes in [vec![smb], vec![anna, plain, basic]] {
            let changes = json!({ "changes": changes });
            let (code, done) = Api::new(&self.state).post("/api/v1/changes", &changes);
            assert_eq!(code, 200, "{done}");
        }
    }

    /// Anna's private key.
    pub fn key(&self) -> PathBuf {
        self.scratch.path().join("key")
    }

    /// The port of the service with this standard port.
    pub fn port(&self, standard: u16) -> String {
        self.server.at(standard).port().to_string()
    }
}

/// A client at work: its name, and a folder of its own at either end.
pub struct ClientSetup {
    pub scene: Arc<Scene>,
    pub name: &'static str,
    /// On this side; also its home.
    pub local: PathBuf,
    /// Of the server, on disk.
    pub there: PathBuf,
    /// Whether names are those of Windows: Unicode, and without quotes.
    pub is_of_windows: bool,
    /// Entries that a listing of the large directory shows.
    pub listed: usize,
}

impl ClientSetup {
    /// One for a client that these programs are, if they are here.
    pub fn needing(name: &'static str, programs: &[&str]) -> Option<Self> {
        if let Some(missing) = programs.iter().find(|program| !e2e::has(program)) {
            println!("SKIP clients {name}: {missing} is not installed");
            return None;
        }
        Some(Self::new(name))
    }

    pub fn new(name: &'static str) -> Self {
        let scene = Scene::shared();
        let folder = name.replace([' ', ','], "-");
        let there = scene.dir.join(&folder);
        fs::create_dir(&there).expect("a folder");
        let local = scene.scratch.folder(&format!("local-{folder}"), None);
        Self { scene, name, local, there, is_of_windows: false, listed: ENTRIES }
    }

    /// With names as Windows has them.
    pub fn of_windows(self) -> Self {
        Self { is_of_windows: true, ..self }
    }

    /// With pages of a listing in place of all of it.
    pub fn with_pages(self) -> Self {
        Self { listed: HTTP_LISTING_PAGE, ..self }
    }

    /// A program that works in the local folder, which is its home, in a locale of bytes.
    pub fn program(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.local).env("HOME", &self.local).env("LC_ALL", "C.UTF-8");
        command
    }

    /// What a program prints that reads commands from its standard input.
    pub fn fed(&self, command: &mut Command, lines: &[u8]) -> Output {
        let path = self.local.join("commands");
        fs::write(&path, lines).expect("commands");
        let line = "exec \"$@\" <commands";
        let mut shell = Command::new("sh");
        shell.args(["-c", line, "sh"]).arg(command.get_program()).args(command.get_args());
        shell.current_dir(&self.local).stdin(Stdio::null());
        for (name, value) in command.get_envs() {
            shell.env(name, value.unwrap_or_default());
        }
        run(&mut shell, e2e::process::DEADLINE)
    }
}

/// As the authority of a URL has it.
pub fn escaped(path: &[u8]) -> String {
    percent(path, b"/-_.")
}

/// In double quotes, as most command languages have them.
pub fn quoted(name: &[u8]) -> Vec<u8> {
    let mut text = vec![b'"'];
    for byte in name {
        if matches!(byte, b'"' | b'\\') {
            text.push(b'\\');
        }
        text.push(*byte);
    }
    text.push(b'"');
    text
}

/// A path's bytes in double quotes.
pub fn quoted_path(path: &Path) -> Vec<u8> {
    quoted(path.as_os_str().as_bytes())
}

/// A command line of several parts with spaces between.
pub fn line(parts: &[&[u8]]) -> Vec<u8> {
    let mut line = parts.join(&b' ');
    line.push(b'\n');
    line
}
