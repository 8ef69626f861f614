//! Trees of 2,000 levels and paths of 64 KiB: every operation on a whole tree has an answer, and
//! the stacks of the server grow no further than they do for a tree of 20 levels.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use base::limits::{DAV_TREE_DEPTH_MAX, HTTP_HEAD_MAX};
use e2e::process::{peak_stack, wait};
use e2e::server::binary;
use e2e::sftp::Came;
use e2e::tcp::HERE;
use e2e::transfer::{PASSWORD, Scene};

use wire::sftp::request::OfPath;
use wire::sftp::{PathBytes, Request};

/// Levels of the trees that are compared.
const LEVELS: [usize; 2] = [20, 2_000];
/// How much higher a stack may be at the many levels than at the few, in hundredths.
const GROWTH_MAX: u64 = 110;
/// How long one operation on a deep tree may take on a busy machine.
const DEADLINE: Duration = e2e::patience(60);
/// Bytes of the long path.
const LONG: usize = 64 << 10;

/// Makes `levels` nested directories and a file in the innermost one. Each step uses a short path,
/// since the full one may exceed PATH_MAX.
fn dig(top: &Path, levels: usize) {
    fs::create_dir(top).expect("a directory");
    let mut at = File::open(top).expect("opened");
    for _ in 0..levels {
        let inner = format!("/proc/self/fd/{}/d", at.as_raw_fd());
        fs::create_dir(&inner).expect("one more");
        at = File::open(&inner).expect("opened");
    }
    fs::write(format!("/proc/self/fd/{}/file", at.as_raw_fd()), "at the end").expect("a file");
}

/// Does `work`, and how high the stacks of the processes that `pids` names were meanwhile.
fn watched(pids: &[u32], work: impl FnOnce()) -> u64 {
    let (ended, most) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Relaxed) {
                let now = pids.iter().map(|pid| peak_stack(*pid)).max().unwrap_or(0);
                most.fetch_max(now, Relaxed);
            }
        });
        work();
        ended.store(true, Relaxed);
    });
    most.load(Relaxed)
}

/// All that can be done with a whole tree over the network; what was answered is checked.
fn over_the_network(scene: &Scene) {
    let mut http = scene.http(HERE, PASSWORD).expect("HTTP");
    let mut ask = |line: (&str, &str), fields: &str| {
        let (method, target) = line;
        let answer = http.ask((method, target.as_bytes()), fields.as_bytes(), b"");
        answer.expect("an answer")
    };
    let (status, _, body) = ask(("PROPFIND", "/box/deep/"), "depth: 1\r\n");
    assert_eq!(status, 207, "{}", String::from_utf8_lossy(&body));
    let (status, _, archive) = ask(("GET", "/box/deep/?archive"), "");
    assert_eq!((status, archive.starts_with(b"PK")), (200, true));
    assert_eq!(ask(("COPY", "/box/deep"), "destination: /box/copy\r\n").0, 201);
    assert_eq!(ask(("MOVE", "/box/copy"), "destination: /box/moved\r\n").0, 201);
    assert_eq!(ask(("GET", "/box/moved/"), "").0, 200);
    let mut ftp = scene.ftp(HERE).expect("FTP");
    assert_eq!(ftp.sign_in("anna", PASSWORD).expect("FTP"), 230);
    let list = ftp.data("MLSD /box/moved", None).expect("a list");
    assert!(list.0 == 226 && !list.1.is_empty(), "{list:?}");
    assert_eq!(ask(("DELETE", "/box/moved"), "").0, 204);
}

/// Copies the tree with `plimsoll dsync`; how high its stacks were.
fn by_dsync(scene: &Scene, levels: usize) -> u64 {
    let (from, to) = (scene.dir.join("box/all"), scene.state.join("copy"));
    // As many directories of either depth.
    fs::create_dir(&from).expect("a directory");
    for n in 0..LEVELS[1] / levels {
        dig(&from.join(n.to_string()), levels);
    }
    let mut command = Command::new(binary());
    command.arg("dsync").arg(from).arg(&to);
    let mut child = command.spawn().expect("dsync");
    let pids = [child.id()];
    let mut status = None;
    let most = watched(&pids, || status = wait(&mut child, DEADLINE));
    assert!(status.is_some_and(|status| status.success()), "{levels}: {status:?}");
    most
}

#[test]
fn stacks_do_not_grow_with_the_depth_of_a_tree() {
    assert!(DAV_TREE_DEPTH_MAX >= LEVELS[1]);
    let most = LEVELS.map(|levels| {
        let mut scene = Scene::new(&format!("hostile-depth-{levels}"));
        dig(&scene.dir.join("box/deep"), levels);
        let server = watched(&[scene.server.pid()], || over_the_network(&scene));
        let dsync = by_dsync(&scene, levels);
        assert!(scene.server.stop().success(), "{}", scene.server.stderr_text());
        [server, dsync]
    });
    println!("peak stacks of server and dsync at {LEVELS:?} levels: {most:?} bytes");
    let [few, many] = most;
    for (few, many) in few.into_iter().zip(many) {
        assert!(few > 0 && many * 100 <= few * GROWTH_MAX, "{few} and {many} bytes");
    }
}

#[test]
fn a_path_of_64_kib_is_answered() {
    let mut scene = Scene::new("hostile-long-path");
    let path = format!("/box/{}", "d/".repeat(LONG / 2));
    let refused = |status: u16| matches!(status, 400 | 404 | 414 | 431);
    for (method, fields) in [
        ("GET", String::new()),
        ("PROPFIND", "depth: 1\r\n".to_owned()),
        ("DELETE", String::new()),
        ("COPY", "destination: /box/copy\r\n".to_owned()),
        ("MOVE", "destination: /box/copy\r\n".to_owned()),
    ] {
        let mut http = scene.http(HERE, PASSWORD).expect("HTTP");
        let answer = http.ask((method, path.as_bytes()), fields.as_bytes(), b"");
        let status = answer.expect("an answer").0;
        assert!(refused(status), "{method}: {status}");
    }
    // As long as a head may be, and a destination.
    let half = format!("/box/{}", "d/".repeat(HTTP_HEAD_MAX / 5));
    let mut http = scene.http(HERE, PASSWORD).expect("HTTP");
    let fields = format!("destination: {half}\r\n");
    let status = http.ask(("COPY", b"/box"), fields.as_bytes(), b"").expect("an answer").0;
    assert!(refused(status) || status == 409, "{status}");
    let mut sftp = scene.sftp(HERE, PASSWORD).expect("SFTP");
    let came = sftp.call(&Request::Stat(OfPath { path: PathBytes(path.as_bytes()) }));
    assert!(matches!(came, Ok(Came::Status(..))), "{came:?}");
    let mut ftp = scene.ftp(HERE).expect("FTP");
    assert_eq!(ftp.sign_in("anna", PASSWORD).expect("FTP"), 230);
    assert!(matches!(ftp.code(format!("CWD {path}")), 500 | 501 | 550));
    assert!(scene.server.stop().success(), "{}", scene.server.stderr_text());
}
