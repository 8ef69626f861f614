//! smbprotocol of PyPI over takeovers, where it is installed: it reads all the time, and finds its
//! durable handle continued or refused.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Instant;

use e2e::smb::scene::{PASSWORD, USER};
use e2e::{is_root, patience, process, skip};

use super::cluster::{ACCOUNTS, Cluster, LEFT, RIGHT};
use super::smb::set_up;

const SCRIPT: &str = include_str!("smbprotocol_client.py");
/// STATUS_OBJECT_NAME_NOT_FOUND: no such handle is known (MS-SMB2 3.3.5.9.12).
const NOT_FOUND: &str = "refused 0xc0000034";

/// The program, and the lines that it prints.
struct Reader {
    child: Child,
    lines: Receiver<String>,
}

impl Reader {
    fn start(cluster: &Cluster, python: &str) -> Self {
        let mut command = Command::new(python);
        let host = ACCOUNTS.address().ip().to_string();
        command.args(["-c", SCRIPT, &host, USER, PASSWORD, ACCOUNTS.name]);
        cluster.switch.enter(&mut command);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("an interpreter");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            let sent = output.lines().map_while(Result::ok).map(|line| sender.send(line));
            sent.take_while(Result::is_ok).count()
        });
        Self { child, lines }
    }

    /// Its next line; it may hang no longer than the server is away.
    fn line(&self, what: &str) -> String {
        self.lines.recv_timeout(patience(60)).unwrap_or_else(|e| panic!("{what}: {e}"))
    }

    /// It reads, its server is taken over, and it reads again.
    fn over(&self, what: &str, takeover: impl FnOnce()) {
        assert_eq!(self.line(what), "reading", "{what}");
        let began = Instant::now();
        takeover();
        let became = self.line(what);
        println!("{what}: {became} after {} ms", began.elapsed().as_millis());
        assert!(["continued", NOT_FOUND].contains(&became.as_str()), "{what}: {became}");
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

#[test]
fn it_does_not_hang_and_its_handle_is_continued_or_refused() {
    if !is_root() {
        skip!("heads-smbprotocol", "network namespaces and loop devices need root");
    }
    let python = std::env::var("PLIMSOLL_PYTHON");
    let python = python.unwrap_or_else(|_| "/usr/bin/python3".to_owned());
    let probe = Command::new(&python).args(["-c", "import smbprotocol"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        skip!("heads-smbprotocol", "it is not installed (pip install smbprotocol)");
    }
    let mut cluster = match Cluster::start(&[ACCOUNTS]) {
        Ok(cluster) => cluster,
        Err(why) => skip!("heads-smbprotocol", "{why}"),
    };
    set_up(&cluster.api(ACCOUNTS));
    let directory = cluster.directory(ACCOUNTS);
    fs::set_permissions(directory, fs::Permissions::from_mode(0o777)).expect("a mode");

    let reader = Reader::start(&cluster, &python);
    reader.over("planned", || cluster.command(RIGHT, &["takeover", ACCOUNTS.name]));
    let server = cluster.process(ACCOUNTS, RIGHT);
    reader.over("kill -9", || {
        cluster.kill(RIGHT);
        process::signal(server, libc::SIGKILL);
        cluster.wait_for_owner(ACCOUNTS, LEFT);
    });
    assert_eq!(reader.line("at the end"), "reading");
    drop(reader);
    cluster.start_head(RIGHT);
    cluster.wait_for_member(LEFT, RIGHT);
    cluster.end();
}
