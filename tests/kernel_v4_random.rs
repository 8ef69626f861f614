//! Random operations of a real Linux client, over 3, 4.0 and 4.2 at once, held against a model in
//! its memory, while the server is killed and started again: nothing is lost, nothing fails.
//!
//! `PLIMSOLL_FSX_SEED` and `PLIMSOLL_FSX_ROUNDS` repeat or lengthen a run.

use std::fs;

use e2e::netns::HOST;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::skip;
use e2e::uml::{self, Guest};

/// How often the server is killed.
const ROUNDS: u64 = 4;
/// Operations over each version between two kills.
const BETWEEN: u64 = 400;
/// The versions: a name, and the options of the mount.
const VERSIONS: [(&str, &str); 3] =
    [("v3", "vers=3,nolock,mountproto=tcp"), ("v40", "vers=4.0"), ("v42", "vers=4.2")];

/// A number from the environment.
fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
}

/// How many operations the program of this name has done, once that is `least` at least.
fn progress(guest: &mut Guest, name: &str, least: u64) -> u64 {
    loop {
        let words = guest.event(name);
        let at = words.strip_prefix("at ").and_then(|at| at.parse().ok());
        let at: u64 = at.unwrap_or_else(|| panic!("{name} {words}\n{}", guest.said()));
        if at >= least {
            return at;
        }
    }
}

#[test]
fn nothing_is_lost_when_the_server_is_killed() {
    if let Some(why) = uml::unavailable() {
        skip!("kernel-v4-random", "{why}");
    }
    let _turn = uml::turn();
    let namespace = match uml::namespace(1) {
        Ok(namespace) => namespace,
        Err(why) => skip!("kernel-v4-random", "{why}"),
    };
    let seed = setting("PLIMSOLL_FSX_SEED", 1);
    println!("PLIMSOLL_FSX_SEED={seed}");
    let scratch = Scratch::new("kernel-v4-random");
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let mut options = Options::new(&dir, &state);
    options.address = HOST;
    options.namespace = Some(&namespace);
    // A client needs some seconds to connect again, and must do so within the grace period.
    options.args = ["--nfs-lease", "8"].map(Into::into).to_vec();
    let mut server = Server::start(&options);
    options.offset = Some(server.offset);

    let mut guest = Guest::boot(&namespace, 0, scratch.path());
    guest.install("random");
    let port = server.nfs_port();
    let programs = VERSIONS.map(|(name, mount)| {
        let mount = mount.replace("mountproto", &format!("mountport={port},mountproto"));
        guest.mount(name, port, &server.export(), &mount);
        guest.run(&format!("mkdir /mnt/{name}/{name}"));
        let program = format!("random {name} /mnt/{name}/{name} {seed}");
        guest.begin(&format!("{program} & echo $! >/tmp/{name}.pid; wait $!"))
    });
    for round in 0..setting("PLIMSOLL_FSX_ROUNDS", ROUNDS) {
        for (name, _) in VERSIONS {
            // Progress from before the restart does not count.
            guest.forget(name);
            let now = progress(&mut guest, name, 0);
            progress(&mut guest, name, now + BETWEEN);
        }
        println!("round {round}");
        server.kill();
        server = Server::start(&options);
    }
    for ((name, _), program) in VERSIONS.iter().zip(&programs) {
        let now = progress(&mut guest, name, 0);
        progress(&mut guest, name, now + BETWEEN);
        guest.run(&format!("kill -TERM $(cat /tmp/{name}.pid)"));
        let (status, log) = guest.end(program);
        assert_eq!(status, 0, "{name}: {log}\n{}", guest.said());
        println!("{name}: {}", log.trim());
        for file in ["0", "1"] {
            let wanted = fs::read(guest.share().join(format!("{name}.{file}"))).expect("a model");
            let there = fs::read(dir.join(name).join(file)).expect("the file");
            assert!(there == wanted, "{name}: file {file} on the host");
        }
    }
    assert!(server.stop().success(), "SIGTERM ends it cleanly");
}
