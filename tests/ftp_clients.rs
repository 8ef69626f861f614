//! FTP and FTPS of the real server, with the programs that people use: curl, lftp, ncftp, wget and
//! the `ftp` of NetBSD.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base::random::{Random, SeededRandom};
use e2e::process::{run, succeed};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::{has, skip};

/// The user that signs in, as the harness creates it.
const USER: &str = "admin:only-for-this-test";
/// A file of several pieces, and no multiple of one.
const SIZE: usize = (3 << 20) + 12_345;
/// Where a resumed transfer begins.
const HALF: usize = 1_000_001;
/// Entries of the large directory.
const ENTRIES: usize = 50_000;
/// The sparse file.
const SPARSE: u64 = 10 << 30;
/// Names that clients stumble over.
const ODD: [&[u8]; 4] =
    [b"with space", b"with \"quotes\" 'too'", b"caf\xe9", "gr\u{fc}n".as_bytes()];

struct Scene {
    scratch: Scratch,
    server: Server,
    dir: PathBuf,
    data: Vec<u8>,
}

impl Scene {
    fn new(name: &str) -> Self {
        let scratch = Scratch::new(name);
        let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
        let server = Server::start(&Options::new(&dir, &state));
        let mut data = vec![0; SIZE];
        SeededRandom::new(21).fill(&mut data);
        fs::write(scratch.path().join("up"), &data).expect("a local file");
        fs::write(scratch.path().join("empty"), b"").expect("a local file");
        Self { scratch, server, dir, data }
    }

    fn port(&self) -> u16 {
        21 + self.server.offset
    }

    /// A path in the share, at a scheme.
    fn url(&self, scheme: &str, path: &str) -> String {
        let port = if scheme == "ftps" { 990 } else { 21 } + self.server.offset;
        format!("{scheme}://127.0.0.1:{port}/data/{path}")
    }

    fn local(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// A program that works in the local folder.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command.current_dir(self.scratch.path()).env("HOME", self.scratch.path());
        command
    }

    fn holds(&self, name: &str, data: &[u8]) {
        let path = self.dir.join(name);
        assert!(fs::read(&path).is_ok_and(|found| found == data), "{}", path.display());
    }

    fn came(&self, name: &str, data: &[u8]) {
        let path = self.local(name);
        assert!(fs::read(&path).is_ok_and(|found| found == data), "{}", path.display());
        fs::remove_file(path).expect("it was there");
    }

    fn ends(mut self) {
        assert!(self.server.stop().success(), "SIGTERM ends it cleanly");
    }
}

/// Nothing but the data that moves may be left under a name of an upload.
fn nothing_half(dir: &Path) {
    for entry in fs::read_dir(dir).expect("a directory") {
        let name = entry.expect("an entry").file_name();
        assert!(!name.as_bytes().starts_with(b".plimsoll-upload"), "{}", name.display());
    }
}

#[test]
fn curl() {
    if !has("curl") {
        skip!("ftp-curl", "curl is not installed");
    }
    let scene = Scene::new("ftp-curl");
    let curl = |args: &[&str]| {
        let mut command = scene.program("curl");
        command.args(["-sS", "-k", "--user", USER]).args(args);
        command
    };
    let up = scene.local("up").display().to_string();
    let empty = scene.local("empty").display().to_string();
    let ways: [(&str, &[&str]); 4] =
        [("ftp", &[]), ("ftp", &["--ssl-reqd"]), ("ftps", &[]), ("ftp", &["-P", "-"])];
    for (scheme, how) in ways {
        let url = scene.url(scheme, "file");
        succeed(curl(&["-T", &up, &url]).args(how));
        scene.holds("file", &scene.data);
        assert!(succeed(curl(&[&url]).args(how)) == scene.data, "{scheme} {how:?}");
        let rest = succeed(curl(&["-C", &HALF.to_string(), &url]).args(how));
        assert!(rest == scene.data[HALF..], "{scheme} {how:?}");
        succeed(curl(&["-T", &empty, &url]).args(how));
        assert_eq!(succeed(curl(&[&url]).args(how)), b"");
    }
    // What had come of an upload is gone on with.
    fs::write(scene.dir.join("part"), &scene.data[..HALF]).expect("a file");
    succeed(&mut curl(&["-C", "-", "-T", &up, &scene.url("ftp", "part")]));
    scene.holds("part", &scene.data);
    for name in ODD {
        let quoted: String = name.iter().map(|b| format!("%{b:02x}")).collect();
        let url = scene.url("ftp", &quoted);
        succeed(&mut curl(&["-T", &up, &url]));
        assert!(succeed(&mut curl(&[&url])) == scene.data);
        assert!(scene.dir.join(std::ffi::OsStr::from_bytes(name)).exists());
    }
    let base = scene.url("ftp", "");
    let rename = ["-Q", "RNFR data/part", "-Q", "RNTO data/renamed", "-Q", "DELE data/file"];
    succeed(curl(&[&base, "-o", "/dev/null"]).args(rename));
    scene.holds("renamed", &scene.data);
    assert!(!scene.dir.join("file").exists() && !scene.dir.join("part").exists());
    assert!(!run(&mut curl(&[&scene.url("ftp", "none")]), e2e::patience(20)).status.success());
    nothing_half(&scene.dir);
    scene.ends();
}

#[test]
fn an_upload_that_is_cut_off_leaves_nothing() {
    if !has("curl") {
        skip!("ftp-cut-off", "curl is not installed");
    }
    let scene = Scene::new("ftp-cut-off");
    fs::write(scene.dir.join("file"), b"before").expect("a file");
    let url = scene.url("ftp", "file");
    let mut client = scene
        .program("curl")
        .args(["-sS", "--user", USER, "--limit-rate", "200k", "-T", "-", &url])
        .stdin(Stdio::piped())
        .spawn()
        .expect("curl");
    let mut input = client.stdin.take().expect("a pipe");
    input.write_all(&scene.data[..SIZE / 2]).expect("taken");
    client.kill().expect("it runs");
    client.wait().expect("it ends");
    drop(input);
    let until = std::time::Instant::now() + e2e::patience(20);
    let left = || {
        fs::read_dir(&scene.dir)
            .expect("a directory")
            .filter(|e| e.as_ref().is_ok_and(|e| e.file_name() != "file"))
            .count()
    };
    while left() > 0 {
        assert!(std::time::Instant::now() < until, "something was left");
    }
    scene.holds("file", b"before");
    scene.ends();
}

#[test]
fn lftp() {
    if !has("lftp") {
        skip!("ftp-lftp", "lftp is not installed");
    }
    let scene = Scene::new("ftp-lftp");
    fs::write(scene.local("half"), &scene.data[..HALF]).expect("a local file");
    for (scheme, protect) in [("ftp", false), ("ftp", true), ("ftps", true)] {
        let script = format!(
            "set ssl:verify-certificate no; set ftp:ssl-allow {protect}; \
             set ftp:ssl-protect-data {protect}; set cmd:fail-exit yes; set net:max-retries 2; \
             set ftp:charset ISO-8859-1; open -u admin,only-for-this-test {}; \
             put up -o file; put empty; mkdir \"a b\"; mv file \"a b/it's \\\"it\\\"\"; \
             cd \"a b\"; cls -1; get \"it's \\\"it\\\"\" -o back; get -c \"it's \\\"it\\\"\" -o half; \
             chmod 600 \"it's \\\"it\\\"\"; rm \"it's \\\"it\\\"\"; cd ..; rmdir \"a b\"; rm empty; \
             mirror -R tree; mirror tree copy; rm -r tree; bye",
            scene.url(scheme, "")
        );
        fs::create_dir_all(scene.local("tree/below")).expect("folders");
        for name in ["one", "two words", "below/three"] {
            fs::write(scene.local("tree").join(name), name).expect("a local file");
        }
        fs::write(scene.local("half"), &scene.data[..HALF]).expect("a local file");
        let said = succeed(scene.program("lftp").args(["--norc", "-c", &script]));
        assert!(String::from_utf8_lossy(&said).contains("it's \"it\""), "{scheme} {protect}");
        scene.came("back", &scene.data);
        scene.came("half", &scene.data);
        for name in ["one", "two words", "below/three"] {
            assert_eq!(fs::read(scene.local("copy").join(name)).expect("a copy"), name.as_bytes());
        }
        fs::remove_dir_all(scene.local("copy")).expect("it was there");
        assert_eq!(fs::read_dir(&scene.dir).expect("a directory").count(), 0, "{scheme}");
    }
    scene.ends();
}

#[test]
fn ncftp() {
    if !has("ncftpput") {
        skip!("ftp-ncftp", "ncftp is not installed");
    }
    let scene = Scene::new("ftp-ncftp");
    let port = scene.port().to_string();
    let sign_in = ["-u", "admin", "-p", "only-for-this-test", "-P", &port];
    let ncftp = |name: &str, rest: &[&str]| {
        succeed(scene.program(name).args(sign_in).args(rest));
    };
    ncftp("ncftpput", &["127.0.0.1", "/data", "up", "empty"]);
    scene.holds("up", &scene.data);
    scene.holds("empty", b"");
    fs::rename(scene.dir.join("up"), scene.dir.join("up here")).expect("a name with a space");
    ncftp("ncftpget", &["127.0.0.1", ".", "/data/up here"]);
    scene.came("up here", &scene.data);
    let list = succeed(Command::new("ncftpls").args(sign_in).arg("ftp://127.0.0.1/data/"));
    assert!(String::from_utf8_lossy(&list).contains("up here"));
    scene.ends();
}

#[test]
fn wget() {
    if !has("wget") {
        skip!("ftp-wget", "wget is not installed");
    }
    let scene = Scene::new("ftp-wget");
    for name in ["with space", "file"] {
        fs::write(scene.dir.join(name), &scene.data).expect("a file");
    }
    let wget = |args: &[&str]| {
        let sign_in = ["--user=admin", "--password=only-for-this-test", "--no-check-certificate"];
        succeed(
            scene
                .program("wget")
                .args(["-nv", "--tries=2", "--timeout=20"])
                .args(sign_in)
                .args(args),
        );
    };
    wget(&[&scene.url("ftp", "file")]);
    scene.came("file", &scene.data);
    fs::write(scene.local("file"), &scene.data[..HALF]).expect("a local file");
    wget(&["-c", &scene.url("ftp", "file")]);
    scene.came("file", &scene.data);
    wget(&["--no-passive-ftp", &scene.url("ftp", "with%20space")]);
    scene.came("with space", &scene.data);
    wget(&["--ftps-implicit", &scene.url("ftps", "file")]);
    scene.came("file", &scene.data);
    wget(&[&scene.url("ftp", "file").replace("ftp://", "ftps://")]);
    scene.came("file", &scene.data);
    wget(&["-r", "-nH", "--cut-dirs=1", &scene.url("ftp", "")]);
    scene.came("file", &scene.data);
    scene.came("with space", &scene.data);
    scene.ends();
}

#[test]
fn tnftp() {
    if !has("tnftp") {
        skip!("ftp-tnftp", "tnftp is not installed");
    }
    let scene = Scene::new("ftp-tnftp");
    let script = format!(
        "open 127.0.0.1 {}\nuser admin only-for-this-test\ncd data\nbinary\nput up file\n\
         append empty file\nrename file \"new name\"\nget \"new name\" back\nmkdir dir\n\
         size \"new name\"\nls\nchmod 600 \"new name\"\nmodtime \"new name\"\nmget new*\n\
         delete \"new name\"\nrmdir dir\nascii\nput text\nquit\n",
        scene.port()
    );
    fs::write(scene.local("script"), script).expect("a local file");
    fs::write(scene.local("text"), "one\ntwo\n").expect("a local file");
    let script = File::open(scene.local("script")).expect("it was written");
    let said = scene.program("tnftp").args(["-n", "-i", "-v"]).stdin(script).output();
    let said = String::from_utf8_lossy(&said.expect("tnftp").stdout).into_owned();
    scene.came("back", &scene.data);
    scene.came("new name", &scene.data);
    scene.holds("text", b"one\ntwo\n");
    assert_eq!(fs::read_dir(&scene.dir).expect("a directory").count(), 1, "{said}");
    assert!(said.contains(&format!("new name\t{SIZE}")), "{said}");
    scene.ends();
}

#[test]
fn a_directory_of_50_000_entries_and_a_file_of_10_gib() {
    if !has("curl") {
        skip!("ftp-large", "curl is not installed");
    }
    let scene = Scene::new("ftp-large");
    let many = scene.dir.join("many");
    fs::create_dir(&many).expect("a directory");
    for n in 0..ENTRIES {
        File::create(many.join(format!("entry-{n:05}"))).expect("a file");
    }
    let url = scene.url("ftp", "many/");
    for (how, scheme) in [("-l", "ftp"), ("-sS", "ftp"), ("-l", "ftps")] {
        let url = url.replace("ftp://", &format!("{scheme}://"));
        let url = if scheme == "ftps" { scene.url("ftps", "many/") } else { url };
        let list = succeed(scene.program("curl").args(["-sS", "-k", "--user", USER, how, &url]));
        let list = String::from_utf8(list).expect("text");
        let mut names: Vec<_> = list.lines().filter_map(|line| line.rsplit(' ').next()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ENTRIES);
        assert_eq!((names[0], names[ENTRIES - 1]), ("entry-00000", "entry-49999"));
    }
    let mut sparse = File::create(scene.dir.join("sparse")).expect("a file");
    sparse.set_len(SPARSE).expect("a file system with holes");
    sparse.seek(SeekFrom::Start(SPARSE - 4)).expect("a place");
    sparse.write_all(b"last").expect("written");
    let url = scene.url("ftp", "sparse");
    let from = (SPARSE - 1_000_000).to_string();
    let tail = succeed(scene.program("curl").args(["-sS", "--user", USER, "-C", &from, &url]));
    assert_eq!((tail.len(), &tail[tail.len() - 4..]), (1_000_000, &b"last"[..]));
    // A part of an upload far behind what is there.
    let back = scene.local("back");
    fs::write(&back, b"more").expect("a local file");
    let append = ["-sS", "--user", USER, "-a", "-T"];
    succeed(scene.program("curl").args(append).arg(&back).arg(&url));
    let mut sparse = File::open(scene.dir.join("sparse")).expect("it is there");
    let mut end = String::new();
    sparse.seek(SeekFrom::Start(SPARSE - 4)).expect("a place");
    sparse.read_to_string(&mut end).expect("read");
    assert_eq!(end, "lastmore");
    scene.ends();
}
