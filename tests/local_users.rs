//! Another user of the machine, against a server, agents and runs of root: whatever is tried at
//! sockets, processes, files and folders gains nothing. The attempts follow from a seed.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::random::{Random, SeededRandom};
use e2e::process::{DEADLINE, wait};
use e2e::scene::Scene;
use e2e::server::binary;
use e2e::tls::{Authority, careless};
use e2e::{NOBODY, is_root, skip};
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use serde_json::{Value, json};

/// What the attempts follow from.
const SEED: u64 = 36;
/// How many there are.
const ATTEMPTS: u32 = 10_000;
/// Bytes of the file that is to be overwritten, and of a file of a run.
const VICTIM: usize = 1 << 20;
const FILE: u64 = 65_536;
/// Silent connections that are kept at a time.
const SILENT: usize = 100;
/// Clients of a run.
const CLIENTS: u32 = 3;

/// What is attacked.
struct Aim {
    victim: PathBuf,
    /// A folder of root without anything in it.
    private: PathBuf,
    /// A folder that all users may write, in which runs of root work.
    open: PathBuf,
    state: PathBuf,
    /// Where an agent of root listens.
    agent: u16,
    /// A certificate of another user.
    tls: Arc<ClientConfig>,
}

/// Another user: the thread alone has its identity.
struct Stranger {
    aim: Arc<Aim>,
    random: SeededRandom,
    silent: Vec<TcpStream>,
    gains: Vec<String>,
}

fn become_unprivileged() {
    let none: [u32; 0] = [];
    // SAFETY: the system calls change the credentials of this thread alone; those of libc would
    // change those of all.
    let done = unsafe {
        [
            libc::syscall(libc::SYS_setgroups, 0, none.as_ptr()),
            libc::syscall(libc::SYS_setresgid, NOBODY, NOBODY, NOBODY),
            libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY),
        ]
    };
    assert_eq!(done, [0; 3], "{}", std::io::Error::last_os_error());
}

/// The inodes of sockets that listen.
fn listening() -> Vec<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let text = tables.map(|table| fs::read_to_string(table).unwrap_or_default()).concat();
    let inode = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (words.get(3) == Some(&"0A")).then(|| words.get(9).map(|inode| format!("socket:[{inode}]")))
    };
    text.lines().filter_map(inode).flatten().collect()
}

/// Whether a process, or one that it descends from, was started by this one.
fn is_ours(pid: u32) -> bool {
    let (mut at, me) = (pid, std::process::id());
    for _ in 0..8 {
        let stat = fs::read_to_string(format!("/proc/{at}/stat")).unwrap_or_default();
        let after = stat.rsplit(')').next().unwrap_or_default();
        match after.split_whitespace().nth(1).and_then(|pid| pid.parse().ok()) {
            Some(parent) if parent == me => return true,
            Some(parent) if parent > 1 => at = parent,
            _ => return false,
        }
    }
    false
}

/// Processes of runs of this test that listen: there must be none.
fn listening_runs() -> Vec<String> {
    let line = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = |pid: &u32| line(pid).replace('\0', " ");
    let is_run = |pid: &u32| words(pid).contains("lab run") || words(pid).contains("--inherited");
    let runs: Vec<u32> = processes().into_iter().filter(|p| is_run(p) && is_ours(*p)).collect();
    let sockets = listening();
    let listens = |pid: &u32| {
        let fds = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut links = fds.filter_map(|fd| fs::read_link(fd.path()).ok());
        links.any(|link| sockets.contains(&link.to_string_lossy().into_owned()))
    };
    runs.iter().filter(|pid| listens(pid)).map(words).collect()
}

/// Processes of the program.
fn processes() -> Vec<u32> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let ours = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|b| *b == 0).next().is_some_and(|word| word.ends_with(b"plimsoll"))
    };
    pids.filter(ours).collect()
}

impl Stranger {
    fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    fn gained(&mut self, what: String) {
        if self.gains.len() < 20 {
            self.gains.push(what);
        }
    }

    fn attempt(&mut self) {
        match self.below(6) {
            0 => self.control_an_agent(),
            1 => self.hold_an_agent(),
            2 => self.use_a_local_socket(),
            3 => self.plant(),
            4 => self.look_into_a_process(),
            _ => self.enter_a_folder(),
        }
    }

    fn connect(&self) -> Option<TcpStream> {
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, self.aim.agent));
        let stream = TcpStream::connect_timeout(&at, Duration::from_secs(1)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
        Some(stream)
    }

    fn control_an_agent(&mut self) {
        let Some(mut stream) = self.connect() else { return };
        let proof = match self.below(4) {
            0 => Value::Null,
            1 => json!(""),
            2 => json!(format!("{:064x}", self.random.next_u64())),
            _ => json!([1, 2]),
        };
        let low = self.below(4);
        let hello = match self.below(2) {
            0 => json!({"type": "hello", "versions": [low, 9], "token": proof}),
            _ => json!({"role": "controller", "program": "", "versions": [low, 9], "proof": proof}),
        };
        // In plain text, as versions before TLS did, or through TLS without a code.
        if self.below(4) == 0 {
            return self.join_an_agent(stream, &hello);
        }
        let target = match self.below(3) {
            0 => format!("block:{}", self.aim.victim.display()),
            1 => format!("path:{}", self.aim.private.display()),
            _ => "null:".to_owned(),
        };
        let shape = json!({"kind": "seqread", "block": 4096, "files": 1, "file_size": FILE});
        let prepare = json!({"type": "prepare", "target": target, "client": 0, "bind": null,
            "shape": shape, "seed": 1, "check_one_in": 1, "slots": 1});
        // Also without a greeting, or with two.
        let messages = match self.below(3) {
            0 => vec![&prepare],
            1 => vec![&hello, &prepare],
            _ => vec![&hello, &hello, &prepare],
        };
        for message in messages {
            let text = message.to_string();
            let _refused = stream
                .write_all(&(text.len() as u32).to_be_bytes())
                .and_then(|()| stream.write_all(text.as_bytes()));
        }
        let mut answer = Vec::new();
        let _cut = stream.take(64 << 10).read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        if answer.contains("\"hello\"") || answer.contains("prepared") {
            self.gained(format!("the agent obeys: {answer}"));
        }
    }

    /// A message through TLS, with a certificate and without the join code.
    fn join_an_agent(&mut self, stream: TcpStream, message: &Value) {
        let name = "plimsoll-lab".try_into().expect("a name");
        let tls = ClientConnection::new(Arc::clone(&self.aim.tls), name).expect("TLS");
        let mut stream = StreamOwned::new(tls, stream);
        let text = message.to_string();
        let _refused = stream
            .write_all(&(text.len() as u32).to_be_bytes())
            .and_then(|()| stream.write_all(text.as_bytes()));
        let mut answer = Vec::new();
        let _cut = stream.take(64 << 10).read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        if answer.contains("welcome") {
            self.gained(format!("the agent admits: {answer}"));
        }
    }

    fn hold_an_agent(&mut self) {
        let Some(mut stream) = self.connect() else { return };
        // Of a handshake, or of a message of a version before TLS.
        let first = if self.below(2) == 0 { 22 } else { 0 };
        let bytes: Vec<u8> = (0..self.below(6)).map(|_| first).collect();
        let _gone = stream.write_all(&bytes);
        if self.silent.len() >= SILENT {
            let at = self.below(SILENT as u64) as usize;
            drop(self.silent.swap_remove(at));
        }
        self.silent.push(stream);
    }

    fn use_a_local_socket(&mut self) {
        let text = fs::read_to_string("/proc/net/unix").unwrap_or_default();
        let mut paths: Vec<PathBuf> = text
            .lines()
            .filter_map(|line| line.split_whitespace().nth(7))
            .filter(|path| path.starts_with(&*self.aim.state.to_string_lossy()))
            .map(PathBuf::from)
            .collect();
        paths.push(self.aim.state.join("plimsoll.sock"));
        let path = paths[self.below(paths.len() as u64) as usize].clone();
        let Ok(mut stream) = UnixStream::connect(&path) else { return };
        let _timeout = stream.set_read_timeout(Some(Duration::from_secs(10)));
        let _sent = stream.write_all(b"GET /api/v1/status HTTP/1.0\r\nHost: localhost\r\n\r\n");
        let mut answer = [0; 64];
        if matches!(stream.read(&mut answer), Ok(1..)) {
            let answer = String::from_utf8_lossy(&answer).into_owned();
            self.gained(format!("{} answers: {answer}", path.display()));
        }
    }

    /// Puts a link to what is root's where a run of root may write.
    fn plant(&mut self) {
        let (open, private) = (self.aim.open.clone(), self.aim.private.clone());
        let client = open.join(format!("plimsoll-lab.{}", self.below(u64::from(CLIENTS))));
        let number = self.below(3);
        let made = match self.below(6) {
            0 => symlink(&private, &client),
            1 => fs::create_dir(&client),
            2 => symlink(&self.aim.victim, client.join(format!("f{number}.{FILE}"))),
            3 => fs::hard_link(&self.aim.victim, client.join(format!("f{number}.{FILE}"))),
            4 => {
                let out = open.join("out");
                let which = [".result.json.new", "result.json", "report.html"];
                let name = which[number as usize];
                symlink(&private, &out)
                    .or_else(|_| fs::create_dir(&out))
                    .or_else(|_| symlink(private.join("new"), out.join(name)))
            }
            _ => {
                let _not_ours = fs::remove_file(&client);
                fs::remove_dir_all(&client).or_else(|_| fs::remove_file(open.join("out")))
            }
        };
        // That it is there already is as good.
        drop(made);
    }

    fn look_into_a_process(&mut self) {
        let pids = processes();
        if pids.is_empty() {
            return;
        }
        let pid = pids[self.below(pids.len() as u64) as usize];
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        if line.contains("secret-of-the-test") {
            self.gained(format!("the arguments of {pid} have a secret"));
        }
        let what = ["environ", "mem", "fd/0", "maps"][self.below(4) as usize];
        let path = format!("/proc/{pid}/{what}");
        let is_roots = fs::metadata(format!("/proc/{pid}")).is_ok_and(|meta| meta.uid() == 0);
        let mut byte = [0];
        if is_roots && File::open(&path).is_ok_and(|mut f| matches!(f.read(&mut byte), Ok(1..))) {
            self.gained(format!("{path} can be read"));
        }
    }

    /// Writes into a folder of root's: of the server, of a run, of the demo.
    fn enter_a_folder(&mut self) {
        let mut folders = vec![self.aim.state.clone(), self.aim.private.clone()];
        folders.push(PathBuf::from("/run/plimsoll"));
        let temporary = fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
        let is_ours = |path: &PathBuf| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            let known = ["plimsoll-demo", "plimsoll-sweep", "plimsoll-link"];
            name.is_some_and(|name| known.iter().any(|begin| name.starts_with(begin)))
        };
        folders.extend(temporary.map(|entry| entry.path()).filter(is_ours));
        let folder = folders[self.below(folders.len() as u64) as usize].clone();
        let is_roots = fs::symlink_metadata(&folder).is_ok_and(|meta| meta.uid() == 0);
        let made =
            OpenOptions::new().write(true).create_new(true).open(folder.join("of-another-user"));
        if is_roots && made.is_ok() {
            self.gained(format!("{} can be written", folder.display()));
        }
        for file in ["api-token", "secrets.json", "handle-secret", "lock"] {
            if File::open(self.aim.state.join(file)).is_ok() {
                self.gained(format!("{file} can be read"));
            }
        }
    }
}

/// An agent that listens; it ends with this value.
struct Agent {
    child: Child,
    port: u16,
    code: String,
}

impl Agent {
    fn start() -> Self {
        let mut command = Command::new(binary());
        command.args(["lab", "agent", "--listen", "127.0.0.1:0", "--announce", "json"]);
        command.env_remove("PLIMSOLL_AGENT_CODE_FILE").stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("an agent");
        let mut line = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let announced: Value = serde_json::from_str(&line).expect("JSON");
        let listen: SocketAddr = announced["listen"].as_str().unwrap().parse().expect("an address");
        Self { child, port: listen.port(), code: announced["code"].as_str().unwrap().to_owned() }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// A short run; its exit code.
fn lab(out: &Path, target: &str, more: &[&str]) -> i32 {
    let mut command = Command::new(binary());
    command.args(["lab", "run", "iops-4k", "--target", target, "--quiet"]).args(more);
    command.args(["--retries", "0"]).arg("--out").arg(out);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(Stdio::null());
    let size = format!("file_size={FILE}");
    for set in ["schedule=[[3,1],[3,2]]", &size, "step_max_ms=600", "warmup_ms=50", "window_ms=50"]
    {
        command.args(["--set", set]);
    }
    let mut child = command.spawn().expect("a run");
    wait(&mut child, DEADLINE).expect("its end").code().unwrap_or(-1)
}

fn stamp(path: &Path) -> (Vec<u8>, i64, i64) {
    let meta = fs::metadata(path).expect("metadata");
    (fs::read(path).expect("content"), meta.mtime(), meta.mtime_nsec())
}

#[test]
fn another_user_of_the_machine_gains_nothing() {
    if !is_root() {
        skip!("local-users", "needs root");
    }
    let scene = Scene::new("local-users");
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
    };
    mode(scene.scratch.path(), 0o755);
    let [private, open] = ["private", "open"].map(|name| scene.scratch.folder(name, None));
    let victim = scene.scratch.path().join("victim");
    fs::write(&victim, vec![0x5a; VICTIM]).expect("a file");
    mode(&victim, 0o600);
    mode(&private, 0o755);
    // As a share that all users may write: without the sticky bit.
    mode(&open, 0o777);
    let _server = scene.start(&[]);
    let agent = Agent::start();
    let aim = Arc::new(Aim {
        victim: victim.clone(),
        private: private.clone(),
        open: open.clone(),
        state: scene.state.clone(),
        agent: agent.port,
        tls: Arc::new(careless(&Authority::new("stranger").sign())),
    });
    let before = stamp(&victim);
    let (gains, over) = (Arc::new(Mutex::new(None)), Arc::new(AtomicBool::new(false)));
    let (found, ended) = (Arc::clone(&gains), Arc::clone(&over));
    let attack = std::thread::spawn(move || {
        become_unprivileged();
        let random = SeededRandom::new(SEED);
        let (silent, gains) = (Vec::new(), Vec::new());
        let mut stranger = Stranger { aim, random, silent, gains };
        (0..ATTEMPTS).for_each(|_| stranger.attempt());
        *found.lock().unwrap() = Some((stranger.gains, stranger.silent));
        ended.store(true, Ordering::SeqCst);
    });
    let target = format!("path:{}", open.display());
    let clients = CLIENTS.to_string();
    let (watched, listens) = (Arc::clone(&over), Arc::new(Mutex::new(Vec::new())));
    let seen = Arc::clone(&listens);
    let watch = std::thread::spawn(move || {
        while !watched.load(Ordering::SeqCst) {
            seen.lock().unwrap().extend(listening_runs());
        }
    });
    while !over.load(Ordering::SeqCst) && !attack.is_finished() {
        // It may fail because of what was planted; it may not be led elsewhere.
        lab(&open.join("out"), &target, &["--clients", &clients]);
    }
    over.store(true, Ordering::SeqCst);
    watch.join().expect("the watch");
    assert_eq!(*listens.lock().unwrap(), Vec::<String>::new(), "agents of a run listen");
    attack.join().expect("the attempts");
    let (gains, _silent) = gains.lock().unwrap().take().expect("the attempts");
    assert_eq!(gains, Vec::<String>::new());
    assert!(stamp(&victim) == before, "a file of root was changed");
    assert_eq!(fs::read_dir(&private).expect("a folder").count(), 0, "a link was followed");
    // With all these connections a controller is served.
    let agents = format!("127.0.0.1:{}", agent.port);
    let out = scene.scratch.path().join("result");
    let file = scene.scratch.path().join("code");
    fs::write(&file, &agent.code).expect("a file");
    let file = file.display().to_string();
    let code = lab(&out, "null:", &["--agents", &agents, "--code-file", &file]);
    assert!([0, 3].contains(&code), "{code}");
}
