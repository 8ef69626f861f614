//! Linux' own SMB client (cifs of Debian's kernel, in User Mode Linux) in each dialect and
//! protection: it builds a C project and does what users do, random operations have the results of
//! a model, and it continues after the server was killed.
//!
//! `PLIMSOLL_CIFS_S` sets the seconds of the random operations, and has everything done in every
//! dialect.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use e2e::api::Api;
use e2e::netns::{HOST, Namespace};
use e2e::process::succeed;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::skip;
use e2e::smb::scene::{PASSWORD, SHARE, SMB, USER, set_up};
use e2e::uml::{self, Guest};

/// Memory of the guest.
const MEMORY: &str = "mem=384M";
/// What is mounted: a name, and the options for dialect and protection.
const MOUNTS: [(&str, &str); 5] = [
    ("v21", "vers=2.1"),
    ("v30seal", "vers=3.0,seal"),
    ("v311", "vers=3.1.1"),
    ("v311sign", "vers=3.1.1,sign"),
    ("v311seal", "vers=3.1.1,seal"),
];
/// Those of them over which the project is built in the gate: the oldest, and what the newest has
/// to compute most for.
const BUILT: [&str; 2] = ["v21", "v311seal"];
/// Seconds of random operations in the gate, over 3.1.1.
const RANDOM: u64 = 20;
/// Time within which a client continues after the server was killed.
const GOES_ON: Duration = Duration::from_secs(60);
/// Bytes of a block of `uml/writer.c`.
const BLOCK: usize = 4096;

struct Scene {
    guest: Guest,
    server: Option<Server>,
    offset: u16,
    share: PathBuf,
    state: PathBuf,
    namespace: Namespace,
    scratch: Scratch,
}

impl Scene {
    fn new(name: &str) -> Result<Self, String> {
        let namespace = uml::namespace(1)?;
        let scratch = Scratch::new(name);
        let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).expect("a mode");
        let server = start(&dir, &state, &namespace, None);
        let share = dir.join(SHARE);
        set_up(&Api::new(&state), &share, &[]);
        let kernel = std::ffi::OsStr::new(uml::DEBIAN);
        let guest = Guest::boot_with(kernel, MEMORY, &namespace, 0, scratch.path());
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("uml/cifs.sh");
        fs::copy(script, guest.share().join("cifs.sh")).expect("a script");
        let offset = server.offset;
        let server = Some(server);
        let mut scene = Self { guest, server, offset, share, state, namespace, scratch };
        scene.script("load");
        Ok(scene)
    }

    /// A script with what `uml/cifs.sh` needs.
    fn head(&self) -> String {
        let port = SMB + self.offset;
        format!(
            "SERVER={HOST} PORT={port} SHARE={SHARE} USER={USER} PASSWORD='{PASSWORD}'\n\
             . /mnt/host/cifs.sh\n"
        )
    }

    fn script(&mut self, script: &str) -> String {
        let script = self.head() + script;
        self.guest.run(&script)
    }

    /// Mounts the share at `/mnt/NAME`. Byte-range locks stay with the client (`nobrl`): its
    /// programs expect them to be advisory.
    fn mount(&mut self, name: &str, options: &str) {
        self.script(&format!(
            "mount_share {name} {options},nobrl || {{ dmesg | tail -20; false; }}"
        ));
    }

    /// Ends the server as a crash would, and starts it again.
    fn kill_and_start(&mut self) {
        drop(self.server.take());
        let dir = self.scratch.path().join("data");
        self.server = Some(start(&dir, &self.state, &self.namespace, Some(self.offset)));
    }

    fn stop(&mut self) {
        let server = self.server.as_mut().expect("a server");
        assert!(server.stop().success(), "SIGTERM ends it cleanly: {}", server.stderr_text());
    }
}

fn start(dir: &Path, state: &Path, namespace: &Namespace, offset: Option<u16>) -> Server {
    let mut options = Options::new(dir, state);
    options.address = HOST;
    options.namespace = Some(namespace);
    options.offset = offset;
    Server::start(&options)
}

/// Seconds of random operations in each dialect, in a long run.
fn long() -> Option<u64> {
    std::env::var("PLIMSOLL_CIFS_S").ok().and_then(|seconds| seconds.parse().ok())
}

/// Why it cannot run here.
fn unavailable() -> Option<String> {
    uml::unavailable().or_else(|| (!uml::is_debian()).then(|| "another kernel is set".to_owned()))
}

#[test]
fn linux_builds_a_c_project_over_smb() {
    if let Some(why) = unavailable() {
        skip!("kernel-smb", "{why}");
    }
    let _turn = uml::turn();
    let mut scene = match Scene::new("kernel-smb") {
        Ok(scene) => scene,
        Err(why) => skip!("kernel-smb", "{why}"),
    };
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/project");
    let archive = scene.guest.share().join("project.tar.gz");
    succeed(Command::new("tar").arg("czf").arg(archive).arg("-C").arg(project).arg("."));
    let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("uml/cifs-build.sh");
    let build = fs::read_to_string(build).expect("a script");
    for (name, options) in MOUNTS {
        if long().is_none() && !BUILT.contains(&name) {
            continue;
        }
        scene.mount(name, options);
        let shown = scene.guest.run(&format!("grep /mnt/{name} /proc/mounts"));
        println!("{name}: {}", shown.trim());
        scene.script(&format!("NAME={name}\n{build}"));
        for made in ["work/build/words", "names/c/uno", "names/hard", "open", "many/f0300"] {
            assert!(scene.share.join(made).exists(), "{name}: {made}");
        }
        let sum = scene.guest.run("cut -d' ' -f1 /tmp/big.sum");
        let there = succeed(Command::new("sha256sum").arg(scene.share.join("big")));
        let there = String::from_utf8_lossy(&there).into_owned();
        assert!(there.starts_with(sum.trim()), "{name}: the data that the host sees");
        for left in fs::read_dir(&scene.share).expect("the share") {
            let left = left.expect("an entry").path();
            if left.is_dir() { fs::remove_dir_all(left) } else { fs::remove_file(left) }
                .expect("removed");
        }
    }
    scene.stop();
}

/// Runs `uml/random.c` on a mount for a while; then every file must match its model.
fn random(scene: &mut Scene, name: &str, lasts: Duration) {
    let seed = std::env::var("PLIMSOLL_FSX_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(1u64);
    scene.guest.run(&format!("mkdir /mnt/{name}/{name}"));
    let program = format!("random {name} /mnt/{name}/{name} {seed} closed");
    let command = format!("{program} & echo $! >/tmp/{name}.pid; wait $!");
    let task = scene.guest.begin(&command);
    let until = Instant::now() + lasts;
    let mut done = String::new();
    while Instant::now() < until {
        done = scene.guest.event(name);
        assert!(done.starts_with("at "), "{name} {done}\n{}", scene.guest.said());
    }
    scene.guest.run(&format!("kill -TERM $(cat /tmp/{name}.pid)"));
    let (status, log) = scene.guest.end(&task);
    assert_eq!(status, 0, "{name}: {log}\n{}", scene.guest.said());
    println!("{name}: {done}; {}", log.trim());
    for file in ["0", "1"] {
        let model = scene.guest.share().join(format!("{name}.{file}"));
        let model = fs::read(model).expect("a model");
        let there = fs::read(scene.share.join(name).join(file)).expect("the file");
        assert!(there == model, "{name}: file {file} on the host");
    }
}

#[test]
fn random_operations_over_smb_are_as_a_model_has_them() {
    if let Some(why) = unavailable() {
        skip!("kernel-smb-random", "{why}");
    }
    let _turn = uml::turn();
    let mut scene = match Scene::new("kernel-smb-random") {
        Ok(scene) => scene,
        Err(why) => skip!("kernel-smb-random", "{why}"),
    };
    scene.guest.install("random");
    let long = long();
    for (name, options) in MOUNTS {
        if long.is_none() && name != "v311" {
            continue;
        }
        scene.mount(name, options);
        random(&mut scene, name, Duration::from_secs(long.unwrap_or(RANDOM)));
        scene.guest.run(&format!("umount /mnt/{name}"));
    }
    scene.stop();
}

/// What the server has of a writer's file is what the writer reports.
fn nothing_is_lost(scene: &mut Scene, name: &str, writer: &uml::Task) {
    let (status, log) = scene.guest.end(writer);
    assert_eq!(status, 0, "{name}: {log}\n{}", scene.guest.said());
    let wrote = log.lines().find_map(|line| line.strip_prefix("wrote "));
    let wrote: usize = wrote.and_then(|n| n.parse().ok()).expect("how many blocks");
    let data = fs::read(scene.share.join(name)).expect("its file");
    assert_eq!(data.len(), wrote * BLOCK, "{name}");
    for (n, block) in data.chunks(BLOCK).enumerate() {
        let word = (n as u64).to_le_bytes();
        assert!(block.chunks(word.len()).all(|part| part == word), "{name}: block {n}");
    }
}

#[test]
fn a_linux_client_continues_when_the_smb_server_was_killed() {
    if let Some(why) = unavailable() {
        skip!("kernel-smb-kill", "{why}");
    }
    let _turn = uml::turn();
    let mut scene = match Scene::new("kernel-smb-kill") {
        Ok(scene) => scene,
        Err(why) => skip!("kernel-smb-kill", "{why}"),
    };
    scene.guest.install("writer");
    let mounts = [MOUNTS[0], MOUNTS[2], MOUNTS[4]];
    let writers = mounts.map(|(name, options)| {
        // Without `nosharesock` all mounts of a server share a connection.
        scene.mount(name, &format!("{options},hard,nosharesock"));
        scene.guest.begin(&format!("writer {name} /mnt/{name}/{name} /tmp/stop"))
    });
    for round in 0..2 {
        for (name, _) in mounts {
            scene.guest.event(&format!("{name} at"));
        }
        scene.kill_and_start();
        let began = Instant::now();
        for (name, _) in mounts {
            // Progress from before the restart does not count.
            scene.guest.forget(&format!("{name} at"));
            scene.guest.event(&format!("{name} at"));
        }
        println!("round {round}: went on after {:?}", began.elapsed());
        e2e::took_at_most("going on", began.elapsed(), GOES_ON);
    }
    scene.guest.run(": >/tmp/stop");
    for ((name, _), writer) in mounts.iter().zip(&writers) {
        nothing_is_lost(&mut scene, name, writer);
    }
    scene.stop();
}
