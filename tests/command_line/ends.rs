//! How it ends when something is wrong: one clear sentence and an exit code.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use e2e::process;

use super::Scene;

/// How long the shell may take to end.
const END: Duration = e2e::patience(20);

/// A shell at the other end of two pipes.
struct Piped {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Piped {
    fn start(scene: &Scene) -> Self {
        let mut command = scene.cli(&["-"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let to = child.stdin.take().expect("its input");
        let from = BufReader::new(child.stdout.take().expect("its output"));
        Self { child, to, from }
    }

    /// Says a line that has an answer of one line, and waits for that.
    fn query(&mut self, line: &str) -> String {
        writeln!(self.to, "{line}").expect("a reader");
        let mut answer = String::new();
        self.from.read_line(&mut answer).expect("an answer");
        answer
    }

    /// Says a last line; what is wrong, and the exit code.
    fn end(mut self, line: &str) -> (String, Option<i32>) {
        writeln!(self.to, "{line}").expect("a reader");
        drop(self.to);
        let status = process::wait(&mut self.child, END).expect("an end");
        let mut wrong = String::new();
        let mut err = self.child.stderr.take().expect("its errors");
        std::io::Read::read_to_string(&mut err, &mut wrong).expect("UTF-8");
        (wrong, status.code())
    }
}

#[test]
fn a_conflict_names_the_faster_client() {
    let scene = Scene::new("cli-conflict");
    let mut slow = Piped::start(&scene);
    slow.query("cd configuration/services/nfs\nset lease=60");
    let quick = scene.run(&[], "configuration services nfs set lease=70\n");
    assert_eq!(quick.2, 0, "{quick:?}");
    let (wrong, code) = slow.end("commit");
    assert_eq!(code, Some(1), "{wrong}");
    assert!(wrong.contains("run line 3"), "{wrong}");
    assert!(wrong.contains("commit --force"), "{wrong}");
    let (lease, ..) = scene.run(&["--json"], "configuration services nfs get lease\n");
    assert_eq!(lease, "{\"lease\":70}\n");
}

#[test]
fn a_lost_server_is_reported_and_nothing_is_half_done() {
    let mut scene = Scene::new("cli-lost");
    let mut shell = Piped::start(&scene);
    shell.query("cd configuration/services/nfs\nset lease=60");
    scene.server.kill();
    let (wrong, code) = shell.end("commit");
    assert_eq!(code, Some(1), "{wrong}");
    assert!(wrong.contains("cannot reach the server"), "{wrong}");
    assert_eq!(wrong.lines().count(), 2, "{wrong}");
    let (_, wrong, code) = scene.run(&[], "show\n");
    assert_eq!(code, 1, "{wrong}");
}

#[test]
fn a_script_runs_to_its_end_when_its_output_is_not_read() {
    let scene = Scene::new("cli-unread");
    let Piped { mut child, mut to, from } = Piped::start(&scene);
    drop(from);
    to.write_all(b"show\nconfiguration services nfs set lease=61\n").expect("a script");
    drop(to);
    let status = process::wait(&mut child, END).expect("an end");
    assert_eq!(status.code(), Some(0));
    let (lease, ..) = scene.run(&["--json"], "configuration services nfs get lease\n");
    assert_eq!(lease, "{\"lease\":61}\n");
}

#[test]
fn other_servers_are_reached_with_a_token() {
    let scene = Scene::new("cli-remote");
    let url = scene.server.announced["admin"].as_str().expect("a URL").trim_end_matches('/');
    let token = scene.state().join("api-token");
    let mut command = std::process::Command::new(e2e::server::binary());
    command.args(["cli", "--json", "-c", "configuration services nfs get lease", "--server", url]);
    let out = command.arg("--token-file").arg(&token).output().expect("the program starts");
    let wrong = String::from_utf8_lossy(&out.stderr);
    assert_eq!(String::from_utf8_lossy(&out.stdout), "{\"lease\":90}\n", "{wrong}");
}

#[test]
fn wrong_usage_is_two() {
    let scene = Scene::new("cli-usage");
    for (line, code) in [("shwo", 2), ("set", 2), ("cd nowhere", 1), ("status get nothing", 1)] {
        let (_, wrong, found) = scene.run(&[], &format!("{line}\n"));
        assert_eq!(found, code, "{line}: {wrong}");
        assert!(wrong.starts_with("plimsoll: cannot run line 1: "), "{wrong}");
    }
}
