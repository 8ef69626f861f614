//! `plimsoll sftp-server` in the place of OpenSSH's: OpenSSH's own client and sshfs talk to it over
//! pipes, as they would through an sshd.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use base::random::{Random, SeededRandom};
use e2e::process::{DEADLINE, run, succeed};
use e2e::scratch::Scratch;
use e2e::server::binary;
use e2e::{has, is_root, skip};

/// Bytes of the file that makes a round trip: no multiple of anything.
const SIZE: usize = (20 << 20) + 12_345;
/// Entries of the directory that is listed.
const ENTRIES: usize = 50_000;

fn random_file(path: &Path) -> Vec<u8> {
    let mut data = vec![0; SIZE];
    SeededRandom::new(7).fill(&mut data);
    fs::write(path, &data).expect("a local file");
    data
}

/// Runs lines of OpenSSH's client on a directory, shown as `/`; what it printed.
fn sftp(scratch: &Scratch, root: &Path, options: &str, lines: &str) -> Output {
    let batch = scratch.path().join("batch");
    fs::write(&batch, lines).expect("a batch");
    let server = format!("{} sftp-server --root {} {options}", binary().display(), root.display());
    let mut command = Command::new("sftp");
    command.arg("-D").arg(server).arg("-b").arg(&batch).current_dir(scratch.path());
    run(&mut command, DEADLINE)
}

fn text(output: &Output) -> String {
    let both = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&both).into_owned()
}

#[test]
fn openssh_client_round_trip() {
    if !has("sftp") {
        skip!("sftp-subsystem", "sftp is not installed (openssh-client)");
    }
    let scratch = Scratch::new("sftp-subsystem");
    let root = scratch.folder("data", None);
    let data = random_file(&scratch.path().join("local"));
    fs::write(scratch.path().join("empty"), b"").expect("a local file");
    let done = sftp(
        &scratch,
        &root,
        "-d /",
        "put local a\nput -f local synced\nput empty\nmkdir d\nput -p local \"d/odd 'name\"\n\
         rename a b\nln -s b soft\nln b hard\nchmod 600 b\ncp b copied\nget soft back\n\
         df -h\nput local gone\nrm gone\n",
    );
    assert!(done.status.success(), "{}", text(&done));
    for name in ["b", "synced", "soft", "hard", "copied", "d/odd 'name"] {
        assert!(fs::read(root.join(name)).expect("a file") == data, "{name} is another");
    }
    assert!(fs::read(scratch.path().join("back")).expect("the copy") == data);
    assert_eq!(fs::metadata(root.join("empty")).expect("a file").len(), 0);
    assert_eq!(fs::metadata(root.join("b")).expect("a file").mode() & 0o777, 0o600);
    let (local, kept) = (scratch.path().join("local"), root.join("d/odd 'name"));
    let mtime = |path: PathBuf| fs::metadata(path).expect("a file").mtime();
    assert_eq!(mtime(local), mtime(kept));
    assert!(!root.join("gone").exists());
    // Where there is a part of it, both directions resume from there.
    fs::write(root.join("part"), &data[..1_000_000]).expect("a part");
    fs::write(scratch.path().join("local.part"), &data).expect("a local file");
    fs::write(scratch.path().join("mine"), &data[..2_000_000]).expect("a part");
    let done = sftp(&scratch, &root, "-d /", "reput local.part part\nreget b mine\n");
    assert!(done.status.success(), "{}", text(&done));
    assert!(fs::read(root.join("part")).expect("a file") == data);
    assert!(fs::read(scratch.path().join("mine")).expect("a file") == data);
    // No temporary file of a transfer is left.
    let left = fs::read_dir(&root).expect("the directory").flatten();
    let left: Vec<_> = left.filter(|e| e.file_name().as_bytes().starts_with(b".")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn openssh_client_lists_many_names_and_moves_holes() {
    if !has("sftp") {
        skip!("sftp-subsystem-many", "sftp is not installed (openssh-client)");
    }
    let scratch = Scratch::below(Path::new("/dev/shm"), "sftp-many");
    let root = scratch.folder("data", None);
    let many = root.join("many");
    fs::create_dir(&many).expect("a directory");
    let odd = std::ffi::OsStr::from_bytes(b"odd \xff\xfe 'name\"");
    fs::write(many.join(odd), b"x").expect("a file");
    for n in 1..ENTRIES {
        fs::write(many.join(format!("{n:05}")), b"").expect("a file");
    }
    let done = sftp(&scratch, &root, "-d /many", "ls -1\n");
    let lines = done.stdout.split(|b| *b == b'\n').filter(|line| !line.is_empty()).count();
    // The prompt's echo of the command is a line, too.
    assert_eq!(lines, ENTRIES + 1, "{}", String::from_utf8_lossy(&done.stderr));
    // 10 GiB of which nothing but the end is there: only that is read.
    let sparse = fs::File::create(root.join("sparse")).expect("a file");
    sparse.write_all_at(b"end", (10 << 30) - 3).expect("a hole and an end");
    let local = scratch.path().join("sparse");
    let file = fs::File::create(&local).expect("a file");
    file.set_len((10 << 30) - 70_000).expect("a hole");
    let done = sftp(&scratch, &root, "-d /", "ls -l sparse\nreget sparse\n");
    assert!(done.status.success() && text(&done).contains("10737418240"), "{}", text(&done));
    let mut end = [0; 4];
    let back = fs::File::open(&local).expect("the copy");
    back.read_exact_at(&mut end, (10 << 30) - 4).expect("its end");
    assert_eq!((back.metadata().expect("the copy").len(), &end), (10 << 30, b"\0end"));
}

#[test]
fn changes_are_refused_where_they_are_to_be() {
    if !has("sftp") {
        skip!("sftp-subsystem-read-only", "sftp is not installed (openssh-client)");
    }
    let scratch = Scratch::new("sftp-read-only");
    let root = scratch.folder("data", None);
    fs::write(root.join("a"), b"there").expect("a file");
    fs::write(scratch.path().join("local"), b"new").expect("a file");
    for line in ["put local b", "rm a", "mkdir d", "rename a b", "chmod 600 a", "put local a"] {
        let done = sftp(&scratch, &root, "-R -d /", &format!("{line}\n"));
        assert!(!done.status.success(), "{line}: {}", text(&done));
        assert!(text(&done).contains("ermission denied"), "{line}: {}", text(&done));
    }
    assert_eq!(fs::read(root.join("a")).expect("a file"), b"there");
    assert!(!root.join("b").exists() && !root.join("d").exists());
    let done = sftp(&scratch, &root, "-d /", "get ../../../../etc/passwd\n");
    assert!(!done.status.success(), "no way leads out: {}", text(&done));
}

/// A directory mounted by sshfs, served by the SFTP subsystem of Plimsoll.
struct Mounted {
    at: PathBuf,
    server: Child,
    client: Child,
}

impl Mounted {
    fn start(root: &Path, at: &Path) -> Self {
        let mut server = Command::new(binary())
            .arg("sftp-server")
            .args(["-d", "/", "--root"])
            .arg(root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server");
        let (to, from) = (server.stdin.take(), server.stdout.take());
        let client = Command::new("sshfs")
            .args(["-o", "passive", "-f", "server:/"])
            .arg(at)
            .stdin(from.expect("its output"))
            .stdout(to.expect("its input"))
            .spawn()
            .expect("sshfs");
        let mounted = Self { at: at.to_owned(), server, client };
        let device = |path: &Path| fs::metadata(path).expect("a directory").dev();
        let above = device(at.parent().expect("it is in one"));
        let until = Instant::now() + DEADLINE;
        while device(at) == above {
            assert!(Instant::now() < until, "sshfs has not mounted");
            std::thread::sleep(Duration::from_millis(5));
        }
        mounted
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("fusermount3").arg("-u").arg("-z").arg(&self.at).status();
        let _ = self.client.wait();
        let _ = self.server.wait();
    }
}

#[test]
fn programs_work_on_sshfs() {
    if !has("sshfs") || !is_root() || !Path::new("/dev/fuse").exists() {
        skip!("sftp-sshfs", "needs sshfs, /dev/fuse and root");
    }
    let scratch = Scratch::new("sftp-sshfs");
    let (root, at) = (scratch.folder("data", None), scratch.folder("mount", None));
    let data = random_file(&scratch.path().join("local"));
    let mounted = Mounted::start(&root, &at);
    succeed(Command::new("cp").arg("-p").arg(scratch.path().join("local")).arg(at.join("a")));
    assert!(fs::read(root.join("a")).expect("a file") == data);
    assert!(fs::read(at.join("a")).expect("a file") == data);
    // A shell that writes, appends, reads what it has not closed, edits in place, moves, removes.
    let script = "set -e; cd \"$1\"; exec 3>log; echo one >&3; cat log | grep -q one; \
        echo two >&3; exec 3>&-; echo three >>log; [ \"$(wc -l <log)\" = 3 ]; \
        sed -i s/two/2/ log; grep -q '^2$' log; mkdir -p d/e; mv log d/e; ln -s e/log d/link; \
        cat d/link >copy; cmp copy d/e/log; chmod 640 copy; touch -d @5 copy; \
        [ \"$(stat -c '%a %Y' copy)\" = '640 5' ]; truncate -s 4 copy; \
        [ \"$(cat copy)\" = one ]; (echo kept; rm copy; echo more) >copy; [ ! -e copy ]; \
        tar cf all.tar d; tar tf all.tar | grep -q d/e/log; rm -r d; ls";
    let shell = run(Command::new("sh").args(["-c", script, "sh"]).arg(&at), DEADLINE);
    assert!(shell.status.success(), "{}", text(&shell));
    assert_eq!(String::from_utf8_lossy(&shell.stdout), "a\nall.tar\n");
    drop(mounted);
    let mut names: Vec<_> = fs::read_dir(&root).expect("names").flatten().collect();
    names.sort_by_key(fs::DirEntry::file_name);
    let names: Vec<_> = names.iter().map(fs::DirEntry::file_name).collect();
    assert_eq!(names, ["a", "all.tar"]);
}
