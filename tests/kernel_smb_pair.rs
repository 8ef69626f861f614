//! Two Linux clients that cache the same files over SMB, and one over SMB with one over NFSv4.2:
//! each sees what the other does as soon as it is done, random operations of both are as a model
//! has them, and locks outlive a connection that is cut and a server that is killed.
//!
//! `PLIMSOLL_CIFS_S` makes the random operations last longer, in seconds, `PLIMSOLL_FSX_SEED`
//! repeats them; `PLIMSOLL_CIFS_CUTS` cuts the connection more often.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use base::random::{Random, SeededRandom};
use e2e::api::Api;
use e2e::netns::{HOST, Namespace};
use e2e::process::succeed;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::smb::scene::{PASSWORD, SHARE, SMB, USER, set_up};
use e2e::uml::{self, Guest};
use e2e::{env_number, skip};
use serde_json::json;

/// Memory of a guest.
const MEMORY: &str = "mem=256M";
/// Attributes and names are requested for each use, unless a lease covers them.
const OPTIONS: &str = "vers=3.1.1,actimeo=0";
/// Seconds of random operations in the gate, over SMB and then over SMB and NFSv4.2.
const RANDOM: u64 = 30;
/// How long a connection is cut: more than a client waits before it notices.
const CUT: Duration = Duration::from_secs(20);
/// How often, unless the environment specifies another number.
const CUTS: u64 = 1;
/// Bytes of a block, and blocks of a file, of the random operations.
const BLOCK: usize = 512;
const BLOCKS: u64 = 64;

struct Pair {
    one: Guest,
    two: Guest,
    server: Server,
    dir: PathBuf,
    state: PathBuf,
    share: PathBuf,
    namespace: Namespace,
    _scratch: Scratch,
}

fn start(dir: &Path, state: &Path, namespace: &Namespace, offset: Option<u16>) -> Server {
    let mut options = Options::new(dir, state);
    options.address = HOST;
    options.namespace = Some(namespace);
    options.offset = offset;
    options.args = ["--nfs-lease", "8"].map(Into::into).to_vec();
    Server::start(&options)
}

impl Pair {
    fn new(name: &str) -> Result<Self, String> {
        let namespace = uml::namespace(2)?;
        let scratch = Scratch::new(name);
        let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).expect("a mode");
        let server = start(&dir, &state, &namespace, None);
        let share = dir.join(SHARE);
        let api = Api::new(&state);
        set_up(&api, &share, &[]);
        let set = json!({"set": format!("/shares/default/{SHARE}"), "property": "continuous",
            "value": true});
        let (code, done) = api.post("/api/v1/changes", &json!({ "changes": [set] }));
        assert_eq!(code, 200, "{done}");
        let kernel = std::ffi::OsStr::new(uml::DEBIAN);
        let [one, two] = [0, 1].map(|number| {
            let guest = Guest::boot_with(kernel, MEMORY, &namespace, number, scratch.path());
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("uml/cifs.sh");
            fs::copy(script, guest.share().join("cifs.sh")).expect("a script");
            guest
        });
        let mut pair = Self { one, two, server, dir, state, share, namespace, _scratch: scratch };
        let head = pair.head();
        for guest in [&mut pair.one, &mut pair.two] {
            guest.run(&format!("{head}load"));
        }
        Ok(pair)
    }

    /// A script with what `uml/cifs.sh` needs.
    fn head(&self) -> String {
        let port = SMB + self.server.offset;
        format!(
            "SERVER={HOST} PORT={port} SHARE={SHARE} USER={USER} PASSWORD='{PASSWORD}'\n\
             . /mnt/host/cifs.sh\n"
        )
    }

    /// Mounts the share at `/mnt/smb` of both.
    fn mount(&mut self, options: &str) {
        let script =
            format!("{}mount_share smb {options} || {{ dmesg | tail -20; false; }}", self.head());
        for guest in [&mut self.one, &mut self.two] {
            guest.run(&script);
        }
    }

    fn guests(&mut self) -> [&mut Guest; 2] {
        [&mut self.one, &mut self.two]
    }

    /// Ends the server as a crash would, and starts it again.
    fn kill_and_start(&mut self) {
        let offset = self.server.offset;
        self.server.kill();
        self.server = start(&self.dir, &self.state, &self.namespace, Some(offset));
    }

    fn command(&self, command: &str) {
        let mut ip = Command::new("sh");
        ip.args(["-c", command]);
        self.namespace.enter(&mut ip);
        succeed(&mut ip);
    }

    /// Cuts the connections of the first guest, and loses for a while what it sends and what is
    /// sent to it. Its device stays up: User Mode Linux gives a device up for good that has refused
    /// one packet (`in_error` of `arch/um/drivers/vector_kern.c`), and the guest has no network.
    fn cut(&self) {
        self.command(
            "set -e
             ip rule add pref 10 lookup local
             ip rule del pref 0
             for way in from to; do ip rule add $way 10.0.2.15 blackhole pref 1; done
             ss -K dst 10.0.2.15 >/dev/null 2>&1 || :",
        );
        sleep(CUT);
        self.command(
            "set -e
             ip rule add pref 0 lookup local
             ip rule del pref 10
             for way in from to; do ip rule del $way 10.0.2.15 blackhole pref 1; done",
        );
    }

    fn stop(&mut self) {
        assert!(
            self.server.stop().success(),
            "SIGTERM ends it cleanly: {}",
            self.server.stderr_text()
        );
    }
}

/// Why it cannot run here.
fn unavailable() -> Option<String> {
    uml::unavailable().or_else(|| (!uml::is_debian()).then(|| "another kernel is set".to_owned()))
}

/// READs that a guest has sent.
fn reads(guest: &mut Guest) -> u64 {
    let script = "awk '$1 == \"Reads:\" { all += $2 } END { print all }' /proc/fs/cifs/Stats";
    guest.run(script).trim().parse().expect("a count")
}

/// Reads a file once, then five times; whether the later reads send no READ to the server.
fn caches(guest: &mut Guest, file: &str) -> bool {
    guest.run(&format!("cat /mnt/smb/{file} >/dev/null"));
    let before = reads(guest);
    guest.run(&format!("for i in 1 2 3 4 5; do cat /mnt/smb/{file} >/dev/null; done"));
    reads(guest) == before
}

/// What a guest does with a file `f`; by which name the other finds it then, and what it reads. As
/// long as it has a lease of the file, Linux 6.1 sends no request for a name of it that it knows.
const CHANGES: [(&str, &str, &str, &str); 3] = [
    ("a write", "echo second >>$f", "f", "first\nsecond\n"),
    ("a truncation", "truncate -s 3 $f", "f", "fir"),
    ("a rename", "mv $f to-$f", "to-f", "first\n"),
];

#[test]
fn each_linux_client_sees_what_the_other_does_at_once() {
    if let Some(why) = unavailable() {
        skip!("kernel-smb-pair", "{why}");
    }
    let _turn = uml::turn();
    let mut pair = match Pair::new("kernel-smb-pair") {
        Ok(pair) => pair,
        Err(why) => skip!("kernel-smb-pair", "{why}"),
    };
    pair.mount(OPTIONS);
    for (number, (what, change, name, content)) in CHANGES.into_iter().enumerate() {
        for is_swapped in [false, true] {
            let [mut one, mut two] = pair.guests();
            if is_swapped {
                std::mem::swap(&mut one, &mut two);
            }
            let f = format!("f{number}{is_swapped}");
            one.run(&format!("echo first >/mnt/smb/{f}"));
            for guest in [&mut *one, &mut *two] {
                // At the last close Linux forgets what it has cached.
                guest.run(&format!(
                    "mkfifo /tmp/open\n\
                     (exec </mnt/smb/{f}; echo >/tmp/open; exec sleep 600) >/dev/null 2>&1 &\n\
                     echo $! >/tmp/held; read -r _ </tmp/open; rm /tmp/open"
                ));
                assert!(caches(guest, &f), "{what}: both cache");
            }
            two.run(&format!("cd /mnt/smb; f={f}; {change}"));
            let read = one.run(&format!("cat /mnt/smb/{}", name.replace('f', &f)));
            assert_eq!(read, content, "{what}");
            for guest in [&mut *one, &mut *two] {
                guest.run("kill $(cat /tmp/held)");
            }
        }
    }
    pair.stop();
}

/// The content of a file, of which blocks are of one letter each.
#[derive(Default)]
struct Model {
    data: Vec<u8>,
}

impl Model {
    fn resize(&mut self, length: usize) {
        self.data.resize(length, 0);
    }

    /// What is done next, as a script over `$f`; both are as if it was done.
    fn change(&mut self, random: &mut SeededRandom) -> String {
        let (at, count) = (random.below(BLOCKS) as usize, 1 + random.below(8) as usize);
        if random.below(5) == 0 {
            self.resize(at * BLOCK);
            return format!("truncate -s {} $f", at * BLOCK);
        }
        let letter = b'a' + random.below(26) as u8;
        let end = (at + count) * BLOCK;
        self.resize(end.max(self.data.len()));
        self.data[at * BLOCK..end].fill(letter);
        format!(
            "head -c {} /dev/zero | tr '\\0' {} | dd of=$f bs={BLOCK} seek={at} conv=notrunc \
             iflag=fullblock 2>/dev/null",
            count * BLOCK,
            letter as char
        )
    }
}

/// Lets both guests work on the same files, one after the other, for a while: each reads what the
/// other has left. `paths` is where each has the share.
fn random_operations(pair: &mut Pair, paths: [&str; 2]) {
    let seed = env_number("PLIMSOLL_FSX_SEED", 1);
    let lasts = Duration::from_secs(env_number("PLIMSOLL_CIFS_S", RANDOM));
    let mut random = SeededRandom::new(seed);
    let mut models = [Model::default(), Model::default()];
    let until = Instant::now() + lasts;
    let mut operations = 0;
    let at = paths[0];
    pair.one.run(&format!("for n in 0 1; do : >{at}/r$n; chmod 666 {at}/r$n; done"));
    while Instant::now() < until {
        let (at, number) = (random.below(2) as usize, random.below(2) as usize);
        let model = &mut models[number];
        let mut script = format!("f={}/r{number}\n", paths[at]);
        for _ in 0..1 + random.below(3) {
            script += &format!("{}\n", model.change(&mut random));
            operations += 1;
        }
        let [one, two] = [&mut pair.one, &mut pair.two];
        let (doer, other) = if at == 0 { (one, two) } else { (two, one) };
        doer.run(&script);
        other.run(&format!("cat {}/r{number} >/mnt/host/read", paths[1 - at]));
        let read = fs::read(other.share().join("read")).expect("what was read");
        let differs = read.iter().zip(&model.data).position(|(got, wanted)| got != wanted);
        assert!(
            read == model.data,
            "seed {seed}, {operations} operations: {} bytes, not {}; byte {differs:?} differs\n\
             {script}",
            read.len(),
            model.data.len()
        );
    }
    for (number, model) in models.iter().enumerate() {
        let there = fs::read(pair.share.join(format!("r{number}"))).expect("the file");
        assert!(there == model.data, "r{number} on the host");
    }
    println!("{operations} operations, as the model has them");
}

#[test]
fn random_operations_of_two_linux_clients_are_as_a_model_has_them() {
    if let Some(why) = unavailable() {
        skip!("kernel-smb-pair-random", "{why}");
    }
    let _turn = uml::turn();
    let mut pair = match Pair::new("kernel-smb-pair-random") {
        Ok(pair) => pair,
        Err(why) => skip!("kernel-smb-pair-random", "{why}"),
    };
    pair.mount(OPTIONS);
    random_operations(&mut pair, ["/mnt/smb", "/mnt/smb"]);
    let port = pair.server.nfs_port();
    pair.two.mount("nfs", port, &format!("/export/{SHARE}"), "vers=4.2");
    pair.one.run("rm /mnt/smb/r0 /mnt/smb/r1");
    random_operations(&mut pair, ["/mnt/smb", "/mnt/nfs"]);
    pair.stop();
}

/// The kinds of locks of a guest.
const KINDS: [&str; 2] = ["fcntl", "flock"];

/// Whether another guest that requests a lock is granted it.
fn tried(guest: &mut Guest, kind: &str) -> bool {
    let task = guest.begin(&format!("locks its-{kind} {kind} write try /mnt/smb/{kind} 0 10"));
    guest.end(&task).0 == 0
}

/// The first guest locks two files, something happens, and the locks are there until they end.
fn locks_outlive(pair: &mut Pair, what: impl FnOnce(&mut Pair)) {
    let held = KINDS.map(|kind| {
        let make = format!("f=/mnt/smb/{kind}; echo data >$f; chmod 666 $f; mkfifo /tmp/{kind}");
        pair.one.run(&make);
        let command = format!("locks {kind} {kind} write until /mnt/smb/{kind} 0 10 /tmp/{kind}");
        let task = pair.one.begin(&command);
        pair.one.event(&format!("{kind} granted"));
        task
    });
    for kind in KINDS {
        assert!(!tried(&mut pair.two, kind), "{kind} before");
    }
    what(pair);
    for kind in KINDS {
        assert!(!tried(&mut pair.two, kind), "{kind} afterwards");
    }
    let begun = Instant::now();
    for (kind, task) in KINDS.iter().zip(&held) {
        pair.one.run(&format!("echo >/tmp/{kind}; rm /tmp/{kind}"));
        assert_eq!(pair.one.end(task).0, 0, "{kind}: {}", pair.one.said());
        let take = format!("locks then-{kind} {kind} write until /mnt/smb/{kind} 0 10");
        let task = pair.two.begin(&take);
        assert_eq!(pair.two.end(&task).0, 0, "{kind} is free: {}", pair.two.said());
    }
    println!("the locks were released {:?} afterwards", begun.elapsed());
}

#[test]
fn locks_of_a_linux_client_outlive_a_cut_and_a_killed_server() {
    if let Some(why) = unavailable() {
        skip!("kernel-smb-pair-locks", "{why}");
    }
    let _turn = uml::turn();
    let mut pair = match Pair::new("kernel-smb-pair-locks") {
        Ok(pair) => pair,
        Err(why) => skip!("kernel-smb-pair-locks", "{why}"),
    };
    for guest in pair.guests() {
        guest.install("locks");
    }
    pair.mount(&format!("{OPTIONS},hard"));
    let watch = format!("{}watch", pair.head());
    for guest in pair.guests() {
        // Its output is shown when something comes too late.
        let _endless = guest.begin(&watch);
    }
    for _ in 0..env_number("PLIMSOLL_CIFS_CUTS", CUTS) {
        locks_outlive(&mut pair, |pair| pair.cut());
    }
    for guest in pair.guests() {
        guest.run("umount /mnt/smb");
    }
    pair.mount(&format!("{OPTIONS},hard,persistenthandles"));
    locks_outlive(&mut pair, |pair| {
        pair.kill_and_start();
        pair.kill_and_start();
    });
    pair.stop();
}
