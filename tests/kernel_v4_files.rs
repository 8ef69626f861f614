//! What a program on a real Linux client of NFSv4 sees of files that it opens: a file that it
//! makes exclusively has the times of now.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use e2e::netns::{HOST, Namespace};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::skip;
use e2e::uml::{self, Guest};

/// The versions, and where each is mounted.
const MOUNTS: [(&str, &str); 3] = [("4.0", "v40"), ("4.1", "v41"), ("4.2", "v42")];
/// Seconds that a time may differ from the clock: a guest has a clock of its own.
const CLOCKS_APART: i64 = 120;

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
        let server = Server::start(&options);
        let mut guest = Guest::boot(&namespace, 0, scratch.path());
        for (version, name) in MOUNTS {
            let options = format!("vers={version}");
            guest.mount(name, server.nfs_port(), &server.export(), &options);
        }
        Ok(Self { guest, server, dir, _namespace: namespace, _scratch: scratch })
    }
}

/// The server keeps the verifier of an exclusive create in the new file's times; the client must
/// set them afterwards, and for that the server must tell where the verifier is.
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
    assert!(stage.server.stop().success(), "SIGTERM ends it cleanly");
}
