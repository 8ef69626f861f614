//! What a program on a real Linux client of NFSv4 sees of files that it opens: a file that it
//! creates exclusively has the current time; a file that it has open stays usable when it is
//! removed or replaced elsewhere, and its space is free when it is closed; a program runs that its
//! user may only execute.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use e2e::netns::{HOST, Namespace};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::skip;
use e2e::uml::{self, Guest};

/// The versions, and where each is mounted.
const MOUNTS: [(&str, &str); 3] = [("4.0", "v40"), ("4.1", "v41"), ("4.2", "v42")];
/// Seconds that a time may differ from the clock: a guest has a clock of its own.
const CLOCKS_APART: i64 = 120;
/// How long the room of a closed file may take to be free, and how often it is looked at.
const PATIENCE: Duration = e2e::patience(60);
const LOOK: Duration = Duration::from_millis(20);

/// A guest that has mounted the share by each version, and the share as the host sees it.
struct Stage {
    guest: Guest,
    server: Server,
    dir: PathBuf,
    _namespace: Namespace,
    _scratch: Scratch,
}

impl Stage {
    fn new() -> Result<Self, String> {
        let namespace = uml::namespace(1)?;
        let scratch = Scratch::new("kernel-v4-files");
        let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
        let mut options = Options::new(&dir, &state);
        options.address = HOST;
        options.namespace = Some(&namespace);
        // With one for writing a client retains a removed file for a minute after its last close.
        options.args = ["--nfs-delegations", "off"].map(Into::into).into();
        let server = Server::start(&options);
        let mut guest = Guest::boot(&namespace, 0, scratch.path());
        for (version, name) in MOUNTS {
            let options = format!("vers={version}");
            guest.mount(name, server.nfs_port(), &server.export(), &options);
        }
        Ok(Self { guest, server, dir, _namespace: namespace, _scratch: scratch })
    }
}

/// The server stores the verifier of an exclusive create in the new file's times; the client must
/// set them afterwards, and for that the server must report where the verifier is.
fn exclusive_creates_have_current_times(stage: &mut Stage) {
    for (version, mount) in MOUNTS {
        // `noclobber` makes a shell open with O_CREAT | O_EXCL.
        let script = format!("set -C; cd /mnt/{mount}; : >{mount}; stat -c '%X %Y' {mount}");
        let seen = stage.guest.run(&script);
        let there = std::fs::metadata(stage.dir.join(mount)).expect("the file");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time");
        let now = i64::try_from(now.as_secs()).expect("a time");
        let seen = seen.split_whitespace().map(|time| time.parse().expect("seconds"));
        for time in [there.atime(), there.mtime()].into_iter().chain(seen) {
            assert!((now - time).abs() < CLOCKS_APART, "{version}: {time}, now is {now}");
        }
    }
}

/// To run a program, a client's kernel reads it, even for a user without read permission.
fn programs_run_that_may_only_be_executed(stage: &mut Stage) {
    let user = "setpriv --reuid=1000 --regid=1000 --clear-groups";
    for (version, mount) in MOUNTS {
        let program = format!("/mnt/{mount}/only-run-{mount}");
        let script = format!("cp /bin/true {program}; chmod 711 {program}; {user} {program}");
        stage.guest.run(&script);
        let read = stage.guest.begin(&format!("{user} cat {program}"));
        let (status, log) = stage.guest.end(&read);
        assert!(status != 0, "{version}: the client knows that it may not be read: {log}");
    }
}

/// Files of this folder that the server has open and that have no name any more.
fn removed_but_open(stage: &Stage) -> usize {
    let fds = std::fs::read_dir(format!("/proc/{}/fd", stage.server.pid())).expect("its own");
    let links = fds.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
    let gone = |to: &PathBuf| to.to_string_lossy().ends_with(" (deleted)");
    links.filter(|to| to.starts_with(&stage.dir) && gone(to)).count()
}

fn open_files_outlive_their_names(stage: &mut Stage) {
    stage.guest.install("keeper");
    stage.guest.run("mkfifo /tmp/go");
    for (version, mount) in MOUNTS {
        for replaced in [false, true] {
            let file = stage.dir.join("kept");
            let task = stage.guest.begin(&format!("keeper /mnt/{mount}/kept /tmp/go"));
            stage.guest.event("keeper open");
            if replaced {
                std::fs::write(stage.dir.join("new"), b"new").expect("written");
                std::fs::rename(stage.dir.join("new"), &file).expect("replaced");
            } else {
                std::fs::remove_file(&file).expect("removed");
            }
            stage.guest.run("echo >/tmp/go");
            let (status, log) = stage.guest.end(&task);
            assert_eq!(status, 0, "{version}, replaced: {replaced}\n{log}");
            // A client may close a while after its program.
            let end = Instant::now() + PATIENCE;
            while removed_but_open(stage) > 0 {
                assert!(Instant::now() < end, "{version}: the room of the file is not free");
                std::thread::sleep(LOOK);
            }
            let left = std::fs::read(&file).ok();
            assert_eq!(left, replaced.then(|| b"new".to_vec()), "{version}: the other file");
            stage.guest.run(&format!("rm -f /mnt/{mount}/kept"));
        }
    }
}

#[test]
fn files_that_a_linux_client_opens() {
    if let Some(why) = uml::unavailable() {
        skip!("kernel-v4-files", "{why}");
    }
    let _turn = uml::turn();
    let mut stage = match Stage::new() {
        Ok(stage) => stage,
        Err(why) => skip!("kernel-v4-files", "{why}"),
    };
    exclusive_creates_have_current_times(&mut stage);
    programs_run_that_may_only_be_executed(&mut stage);
    open_files_outlive_their_names(&mut stage);
    assert!(stage.server.stop().success(), "SIGTERM ends it cleanly");
}
