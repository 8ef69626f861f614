//! `plimsoll dsync` over a real OpenSSH, to another machine that has nothing but the binary and
//! sshd: a network namespace of its own behind a cable. As root and as an ordinary user.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{FileExt, MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use base::random::{Random, SeededRandom};
use e2e::link::SERVER;
use e2e::process::{DEADLINE, run, signal, succeed, wait};
use e2e::scratch::Scratch;
use e2e::server::binary;
use e2e::sshd::Sshd;
use e2e::tree::{assert_same, code, output_text, plant};
use e2e::{NOBODY, skip};
use serde_json::Value;

/// Bytes of a hole, and of the data after it.
const HOLE: u64 = 4 << 20;
/// Bytes that no compression makes fewer: less may be there before a stream has come up.
const LARGE: usize = 3 << 20;

/// Where something is, on the other machine.
fn there(path: &Path) -> PathBuf {
    PathBuf::from(format!("{SERVER}:{}", path.display()))
}

/// A run from this machine, as root or as the user `nobody`, that reaches the other one through
/// `ssh`, where `program` is plimsoll.
fn reaching(
    sshd: &Sshd,
    user: &str,
    (ssh, program): (&str, &Path),
    (from, to): (&Path, &Path),
) -> Command {
    let mut command = match user {
        "root" => Command::new(binary()),
        _ => {
            let number = NOBODY.to_string();
            let mut command = Command::new("setpriv");
            command.args(["--reuid", &number, "--regid", &number, "--clear-groups"]);
            command.arg(binary());
            command
        }
    };
    command.arg("dsync").args([from, to]).args(["--json", "--rsh", ssh]);
    command.arg("--remote-program").arg(program);
    sshd.link.clients.enter(&mut command);
    command
}

fn dsync(sshd: &Sshd, user: &str, ssh: &str, ends: (&Path, &Path)) -> Command {
    reaching(sshd, user, (ssh, binary()), ends)
}

fn events(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// A tree with a hole and attributes in addition to what [`plant`] makes, and for root with files
/// of another user.
fn plant_all(top: &Path, user: &str) {
    plant(top, 40);
    let holes = File::create(top.join("holes")).expect("a file");
    holes.write_all_at(b"after a hole", HOLE).expect("its end");
    let mut bytes = vec![0; LARGE];
    SeededRandom::new(6).fill(&mut bytes);
    fs::write(top.join("large"), bytes).expect("a file");
    let mut fifo = Command::new("mkfifo");
    succeed(fifo.arg(top.join("pipe")));
    let mut attribute = Command::new("setfattr");
    succeed(attribute.args(["-n", "user.colour", "-v", "blue"]).arg(top.join("holes")));
    match user {
        "root" => chown(top.join("d0/f0"), Some(4321), Some(4322)).expect("giving it away"),
        _ => {
            let mut all = Command::new("chown");
            succeed(all.args(["-R", "-h", &format!("{NOBODY}:{NOBODY}")]).arg(top));
        }
    }
}

/// What [`assert_same`] does not look at: holes, attributes, owners.
fn assert_carried(to: &Path, user: &str) {
    let holes = fs::metadata(to.join("holes")).expect("a file");
    assert!(holes.len() > HOLE && holes.blocks() * 512 < HOLE, "{} blocks", holes.blocks());
    let mut attribute = Command::new("getfattr");
    let attribute = attribute.args(["--only-values", "-n", "user.colour"]).arg(to.join("holes"));
    assert_eq!(succeed(attribute), b"blue");
    let owner = fs::metadata(to.join("d0/f0")).map(|meta| (meta.uid(), meta.gid())).expect("it");
    assert_eq!(owner, if user == "root" { (4321, 4322) } else { (NOBODY, NOBODY) });
}

fn pushes_and_pulls(name: &str, user: &str) {
    let sshd = match Sshd::start() {
        Ok(sshd) => sshd,
        Err(why) => skip!(name, "{why}"),
    };
    let scratch = Scratch::new(name);
    let place = scratch.folder("place", (user != "root").then_some(NOBODY));
    let from = place.join("from");
    fs::create_dir(&from).expect("a folder");
    plant_all(&from, user);
    let ssh = sshd.ssh(user, "key", "known");
    for (number, streams) in [None, Some("0"), Some("3")].into_iter().enumerate() {
        let (pushed, pulled) = (place.join(format!("a{number}")), place.join(format!("b{number}")));
        for (from, to, at) in [(&from, &there(&pushed), &pushed), (&there(&from), &pulled, &pulled)]
        {
            let mut command = dsync(&sshd, user, &ssh, (from, to));
            command.args(streams.map(|number| format!("--streams={number}")));
            let done = run(&mut command, DEADLINE);
            assert_eq!(code(&done), 0, "{}", output_text(&done));
            assert_same(&place.join("from"), at);
            assert_carried(at, user);
            let all = events(&done);
            let last = all.last().and_then(|done| done["streams"].as_u64()).unwrap_or(0);
            match streams {
                Some("0") => assert_eq!(last, 0, "{all:?}"),
                _ => assert!(last > 0, "nothing went beside ssh: {all:?}"),
            }
            let again = run(&mut dsync(&sshd, user, &ssh, (from, to)), DEADLINE);
            let last = events(&again).pop().expect("a last event");
            assert!(code(&again) == 0 && last["changes"] == 0, "{}", output_text(&again));
        }
    }
}

#[test]
fn root_pushes_and_pulls_over_openssh() {
    pushes_and_pulls("dsync-ssh-root", "root");
}

#[test]
fn an_ordinary_user_pushes_and_pulls_over_openssh() {
    pushes_and_pulls("dsync-ssh-user", "nobody");
}

#[test]
fn refusals_of_ssh_are_reported_in_one_sentence() {
    let sshd = match Sshd::start() {
        Ok(sshd) => sshd,
        Err(why) => skip!("dsync-ssh-refused", "{why}"),
    };
    let scratch = Scratch::new("dsync-ssh-refused");
    let (from, to) = (scratch.folder("from", None), scratch.path().join("to"));
    fs::write(from.join("file"), b"x").expect("a file");
    let right = sshd.ssh("root", "key", "known");
    // ssh's options, the program there, the output of ssh or the shell, the reported exit code.
    let cases = [
        (sshd.ssh("root", "wrong-key", "known"), binary(), "Permission denied (publickey)", 255),
        (sshd.ssh("root", "key", "known-other"), binary(), "Host key verification failed", 255),
        (right.clone(), Path::new("/nowhere/plimsoll"), "not found", 127),
        (format!("{right} -p 9"), binary(), "Connection refused", 255),
    ];
    for (ssh, program, why, status) in cases {
        let mut command = reaching(&sshd, "root", (&ssh, program), (&from, &there(&to)));
        let done = run(&mut command, DEADLINE);
        assert_eq!(code(&done), 1, "{}", output_text(&done));
        let text = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(text.contains(why), "{why}: {text}");
        let own: Vec<&str> = text.lines().filter(|line| line.starts_with("plimsoll")).collect();
        let told =
            format!("was not reached, or plimsoll is not installed there (exit code {status})");
        assert!(own.len() == 1 && own[0].contains(&told), "{text}");
        assert!(!to.exists());
    }
}

/// Starts a run into or from the other machine, and kills all sessions there when a third of the
/// file has come; its standard error, its exit code, and its events after that.
fn broken_off(sshd: &Sshd, command: &mut Command) -> (String, Option<i32>, Vec<Value>) {
    let mut child = command
        .args(["--bandwidth", "4MB/s"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a run");
    let out = BufReader::new(child.stdout.take().expect("its output"));
    let err = child.stderr.take().expect("its errors");
    let lines = out.lines().map_while(Result::ok);
    let mut told = lines.map(|line| serde_json::from_str::<Value>(&line).expect("JSON"));
    let came = told.any(|event| event["bytes_received"].as_u64() >= Some(8 << 20));
    assert!(came, "it ended before it was killed");
    let sessions = sshd.sessions();
    assert!(!sessions.is_empty(), "nobody has logged in");
    sessions.into_iter().for_each(|pid| signal(pid, libc::SIGKILL));
    let rest = told.collect();
    let status = wait(&mut child, DEADLINE).expect("it goes on after ssh has ended");
    let said: Vec<String> = BufReader::new(err).lines().map_while(Result::ok).collect();
    (said.join("\n"), status.code(), rest)
}

#[test]
fn a_run_with_a_killed_sshd_reports_it_and_the_next_continues() {
    let sshd = match Sshd::start() {
        Ok(sshd) => sshd,
        Err(why) => skip!("dsync-ssh-killed", "{why}"),
    };
    let scratch = Scratch::new("dsync-ssh-killed");
    let from = scratch.folder("from", None);
    let mut bytes = vec![0; 24 << 20];
    SeededRandom::new(5).fill(&mut bytes);
    fs::write(from.join("large"), &bytes).expect("a file");
    let ssh = sshd.ssh("root", "key", "known");
    for (number, streams) in ["--streams=0", "--streams=2"].into_iter().enumerate() {
        for push in [true, false] {
            let to = scratch.path().join(format!("to{number}{push}"));
            let (source, target) =
                if push { (from.clone(), there(&to)) } else { (there(&from), to.clone()) };
            let mut first = dsync(&sshd, "root", &ssh, (&source, &target));
            let (text, ended, _) = broken_off(&sshd, first.arg(streams));
            assert_eq!(ended, Some(1), "{text}");
            let own: Vec<&str> = text.lines().filter(|line| line.starts_with("plimsoll")).collect();
            assert!(
                own.len() == 1 && own[0].contains("closed the connection before the end"),
                "{text}"
            );
            let again = || run(&mut dsync(&sshd, "root", &ssh, (&source, &target)), DEADLINE);
            let mut done = again();
            // The other half may take a moment to see it, and holds the directory.
            let until = Instant::now() + DEADLINE;
            while output_text(&done).contains("another dsync") && Instant::now() < until {
                done = again();
            }
            assert_eq!(code(&done), 0, "{}", output_text(&done));
            assert_same(&from, &to);
            let last = events(&done).pop().expect("a last event");
            let sent = last["bytes_received"].as_u64().unwrap_or(u64::MAX);
            assert!(sent < bytes.len() as u64 - (2 << 20), "{sent} bytes again");
            assert_eq!(fs::read_dir(&to).expect("it").count(), 1, "nothing is left beside");
        }
    }
}

#[test]
fn a_run_with_a_killed_sshd_begins_again_automatically() {
    let sshd = match Sshd::start() {
        Ok(sshd) => sshd,
        Err(why) => skip!("dsync-ssh-again", "{why}"),
    };
    let scratch = Scratch::new("dsync-ssh-again");
    let (from, to) = (scratch.folder("from", None), scratch.path().join("to"));
    let mut bytes = vec![0; 24 << 20];
    SeededRandom::new(6).fill(&mut bytes);
    fs::write(from.join("large"), &bytes).expect("a file");
    let ssh = sshd.ssh("root", "key", "known");
    let mut command = dsync(&sshd, "root", &ssh, (&from, &there(&to)));
    let (text, ended, rest) = broken_off(&sshd, command.args(["--retry", "6"]));
    assert_eq!(ended, Some(0), "{text}");
    let again: Vec<_> = rest.iter().filter(|event| event["event"] == "again").collect();
    assert!(!again.is_empty() && again.iter().all(|event| event["why"].is_string()), "{again:?}");
    assert_eq!(again[0]["seconds"], 1.0);
    assert_same(&from, &to);
    let last = rest.last().expect("a last event");
    let sent = last["bytes_received"].as_u64().unwrap_or(u64::MAX);
    assert!(last["event"] == "done" && sent < bytes.len() as u64 - (2 << 20), "{last}");
    // A run that never signed in is not retried.
    let ssh = sshd.ssh("root", "wrong-key", "known");
    let mut command = dsync(&sshd, "root", &ssh, (&from, &there(&to)));
    let done = run(command.args(["--retry", "6"]), DEADLINE);
    assert_eq!(code(&done), 1, "{}", output_text(&done));
    assert!(events(&done).iter().all(|event| event["event"] != "again"));
}
