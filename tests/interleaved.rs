//! Uploads, replacements, removals, reads, listings and kills, step by step in an order that a seed
//! decides, by two servers and an sshd subsystem on one directory. Whatever was acknowledged is
//! there, whole, and nothing else: no part of a file under a final name, no temporary file in a
//! listing, nothing lost to a listing or a kill; a client that has a file open, on the server or
//! over HTTP or SFTP, reads it to its end.
//!
//! `PLIMSOLL_INTERLEAVED_ROUNDS` is how many rounds there are, each from a seed of its own;
//! `PLIMSOLL_INTERLEAVED_SEED` is the first of those.

#[path = "interleaved/clients.rs"]
mod clients;
#[path = "interleaved/readers.rs"]
mod readers;

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::random::{Random, SeededRandom};
use e2e::scene::Scene;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use serde_json::{Value, json};

use clients::{Clients, Upload};
use readers::Reader;

/// Rounds in the gate.
const ROUNDS: u64 = 30;
/// Steps of one.
const STEPS: usize = 60;
/// Uploads in progress at once.
const UPLOADS_MAX: usize = 5;
/// Readers at once.
const READERS_MAX: usize = 3;
/// Bytes of the largest file: several pieces of an upload.
const SIZE_MAX: u64 = 300_000;
/// Names that are replaced repeatedly.
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const PASSWORD: &str = "only-for-this-test";
/// Begins names of what is being uploaded.
const TEMPORARY: &str = ".plimsoll-";
/// How long something may be removed behind an answer, or after a connection was lost.
const PATIENCE: Duration = e2e::patience(20);

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
}

/// HTTP without TLS, which is quicker to speak.
fn plain_http() -> [Value; 2] {
    let http = "/configuration/services/http";
    [
        json!({"set": http, "property": "plain", "value": "serve"}),
        json!({"set": http, "property": "basic_over_plain", "value": true}),
    ]
}

/// The directory, its servers, and what must be in it.
struct World {
    scene: Scene,
    dir: PathBuf,
    servers: [Option<Server>; 2],
    files: BTreeMap<String, Vec<u8>>,
    uploads: Vec<Upload>,
    readers: Vec<Reader>,
    /// Temporary files of subsystems that were killed: only their age shows that they are left
    /// over.
    orphans: Vec<String>,
}

impl World {
    fn new() -> Self {
        // In memory: what is asked here is not how fast the disk is.
        let scratch = Scratch::below(Path::new("/dev/shm"), "interleaved");
        let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
        let scene = Scene { scratch, dir, state };
        let (first, _) = scene.start_for_anna(PASSWORD, &plain_http());
        let dir = scene.dir.join("box");
        let mut world = Self {
            scene,
            dir,
            servers: [Some(first), None],
            files: BTreeMap::new(),
            uploads: Vec::new(),
            readers: Vec::new(),
            orphans: Vec::new(),
        };
        let state = world.scene.scratch.folder("state-2", None);
        let second = Server::start(&Options::new(&world.scene.dir, &state));
        let anna = json!({"create": "/configuration/users", "name": "anna",
            "properties": {"password": PASSWORD, "uid": 4321, "gid": 4322}});
        let share = json!({"create": "/shares/default", "name": "box",
            "properties": {"directory": world.dir}});
        let api = e2e::api::Api::new(&state);
        let changes = [&[anna, share], &plain_http()[..]].concat();
        let (code, done) = api.post("/api/v1/changes", &json!({ "changes": changes }));
        assert_eq!(code, 200, "{done}");
        world.servers[1] = Some(second);
        world
    }

    fn state(&self, which: usize) -> PathBuf {
        match which {
            0 => self.scene.state.clone(),
            _ => self.scene.scratch.path().join("state-2"),
        }
    }

    fn clients(&self) -> Clients<'_> {
        let server = |n: usize| self.servers[n].as_ref().expect("a server");
        Clients { servers: [server(0), server(1)], dir: &self.dir, password: PASSWORD }
    }

    /// The names that are there, temporary ones too.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.dir).expect("the directory").flatten();
        let names = entries.map(|entry| entry.file_name().into_string().expect("text"));
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    /// That every name has what was acknowledged, and there is no other.
    fn check(&self) {
        let names = self.names();
        let finals: Vec<_> = names.iter().filter(|name| !name.starts_with(TEMPORARY)).collect();
        assert_eq!(finals, self.files.keys().collect::<Vec<_>>());
        for (name, wanted) in &self.files {
            let there = fs::read(self.dir.join(name)).expect("a file");
            assert!(there == *wanted, "{name} has {} bytes of {}", there.len(), wanted.len());
        }
    }

    /// That there are no temporary files except those of uploads in progress, and those of which
    /// only the age will show that they are left over.
    fn has_no_temporary_files(&self, what: &str) {
        let count = self.uploads.len();
        let mut seen = Vec::new();
        let settled = |seen: &mut Vec<String>| {
            *seen = self.names();
            seen.retain(|name| name.starts_with(TEMPORARY) && !self.orphans.contains(name));
            seen.len() <= count
        };
        let until = std::time::Instant::now() + PATIENCE;
        while !settled(&mut seen) {
            let left = until.saturating_duration_since(std::time::Instant::now());
            assert!(!left.is_zero(), "{what}: {seen:?} with {count} uploads under way");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn step(&mut self, random: &mut SeededRandom) -> String {
        match random.below(16) {
            0..=3 if self.uploads.len() < UPLOADS_MAX => self.begin(random),
            0..=6 => self.continue_upload(random),
            7..=9 => self.finish(random),
            10 => self.lose(random),
            11 | 12 => self.list(random),
            13 if self.readers.len() < READERS_MAX => self.open(random),
            13 | 14 => self.read(random),
            _ => self.remove(random),
        }
    }

    fn begin(&mut self, random: &mut SeededRandom) -> String {
        let name = NAMES[random.below(NAMES.len() as u64) as usize];
        // Of two at once to one name the last to end is there.
        let mut data = vec![0; random.below(SIZE_MAX) as usize + 1];
        random.fill(&mut data);
        let before = self.names();
        let mut upload = self.clients().begin(random, name, data);
        upload.temporary = self.names();
        upload.temporary.retain(|name| name.starts_with(TEMPORARY) && !before.contains(name));
        let said = format!("begin {upload}");
        self.uploads.push(upload);
        said
    }

    fn any(&self, random: &mut SeededRandom) -> Option<usize> {
        let count = self.uploads.len() as u64;
        (count > 0).then(|| random.below(count) as usize)
    }

    fn continue_upload(&mut self, random: &mut SeededRandom) -> String {
        let Some(at) = self.any(random) else { return String::new() };
        self.uploads[at].send_more(random.below(SIZE_MAX / 3) as usize);
        format!("go on {}", self.uploads[at])
    }

    fn finish(&mut self, random: &mut SeededRandom) -> String {
        let Some(at) = self.any(random) else { return String::new() };
        let upload = self.uploads.swap_remove(at);
        let said = format!("finish {upload}");
        let (name, data) = upload.finish();
        self.files.insert(name, data);
        said
    }

    /// The client goes away in the middle of its upload.
    fn lose(&mut self, random: &mut SeededRandom) -> String {
        let Some(at) = self.any(random) else { return String::new() };
        let upload = self.uploads.swap_remove(at);
        let said = format!("lose {upload}");
        // If its process was killed, only the age of its temporary file shows that it is left over.
        self.orphans.extend(upload.lose());
        said
    }

    /// No listing shows a temporary file, and none removes that of an upload in progress.
    fn list(&mut self, random: &mut SeededRandom) -> String {
        let (by, mut seen) = self.clients().list(random);
        seen.sort();
        let wanted: Vec<_> = self.files.keys().cloned().collect();
        assert_eq!(seen, wanted, "as {by} lists it");
        format!("list by {by}")
    }

    fn open(&mut self, random: &mut SeededRandom) -> String {
        let Some((name, data)) = pick(&self.files, random) else { return String::new() };
        let reader = Reader::open(&self.clients(), random, (&name, data));
        let said = format!("open {name} by {reader}");
        self.readers.push(reader);
        said
    }

    /// Reads on in a file that was replaced or removed since, perhaps: all of it is there.
    fn read(&mut self, random: &mut SeededRandom) -> String {
        if self.readers.is_empty() {
            return String::new();
        }
        let at = random.below(self.readers.len() as u64) as usize;
        if self.readers[at].read(random.below(SIZE_MAX / 2) as usize + 1) {
            drop(self.readers.swap_remove(at));
        }
        "read".to_owned()
    }

    fn remove(&mut self, random: &mut SeededRandom) -> String {
        let Some((name, _)) = pick(&self.files, random) else { return String::new() };
        self.clients().remove(random, &name);
        self.files.remove(&name);
        format!("remove {name}")
    }

    /// Kills a server, as a power cut would, and starts it again.
    fn kill(&mut self, which: usize) {
        let mut server = self.servers[which].take().expect("a server");
        server.kill();
        // What was in progress there has failed.
        self.uploads.retain(|upload| upload.server() != Some(which));
        self.readers.retain(|reader| reader.server() != Some(which));
        let (state, dir, offset) = (self.state(which), self.scene.dir.clone(), server.offset);
        let mut options = Options::new(&dir, &state);
        options.offset = Some(offset);
        self.servers[which] = Some(Server::start(&options));
        // What it has left is removed by its first listing.
        self.clients().list_by(which);
        self.has_no_temporary_files("a server was killed and has listed again");
    }

    fn round(&mut self, seed: u64) {
        let mut random = SeededRandom::new(seed);
        let killed = (random.below(3) == 0).then(|| random.below(STEPS as u64) as usize);
        let mut said = vec![format!("PLIMSOLL_INTERLEAVED_SEED={seed}")];
        for step in 0..STEPS {
            let report = Report(&said);
            let line = match killed {
                Some(at) if at == step => {
                    let which = random.below(2) as usize;
                    self.kill(which);
                    format!("kill {which}")
                }
                _ => self.step(&mut random),
            };
            drop(report);
            said.push(line);
            let _report = Report(&said);
            self.check();
        }
        let report = Report(&said);
        while !self.uploads.is_empty() {
            let line = match random.below(2) {
                0 => self.finish(&mut random),
                _ => self.lose(&mut random),
            };
            self.check();
            println!("{line}");
        }
        for mut reader in std::mem::take(&mut self.readers) {
            while !reader.read(SIZE_MAX as usize) {}
        }
        self.has_no_temporary_files("all uploads have ended");
        drop(report);
        for name in std::mem::take(&mut self.orphans) {
            // A server may have made one of its own at the same moment, which it has removed.
            match fs::remove_file(self.dir.join(name)) {
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                removed => removed.expect("an orphan"),
            }
        }
    }
}

/// Prints what was done so far if the test fails.
struct Report<'a>(&'a [String]);

impl Drop for Report<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.0.join("\n"));
        }
    }
}

fn pick(files: &BTreeMap<String, Vec<u8>>, random: &mut SeededRandom) -> Option<(String, Vec<u8>)> {
    let at = random.below(files.len() as u64) as usize;
    files.iter().nth(at).map(|(name, data)| (name.clone(), data.clone()))
}

#[test]
fn acknowledged_data_is_complete_whatever_other_clients_do() {
    let rounds = setting("PLIMSOLL_INTERLEAVED_ROUNDS", ROUNDS);
    let first = setting("PLIMSOLL_INTERLEAVED_SEED", 1);
    println!("PLIMSOLL_INTERLEAVED_SEED={first} PLIMSOLL_INTERLEAVED_ROUNDS={rounds}");
    let mut world = World::new();
    for seed in first..first + rounds {
        world.round(seed);
    }
}
