//! A program on the server that changes a file has delegations on it called back, whichever way it
//! changes it; one that only looks has not.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use e2e::nfs4::Client;
use e2e::nfs4::files::Opened;
use e2e::process::{self, succeed};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use wire::nfs4::Stateid4;

/// Ways to change the file `f`, as a shell does them.
const CHANGES: [(&str, &str); 9] = [
    ("a write behind its end", "printf more >>f"),
    ("a write in its middle", "printf x | dd of=f bs=1 seek=2 conv=notrunc 2>/dev/null"),
    ("being emptied", ": >f"),
    ("being cut", "truncate -s 3 f"),
    ("another mode", "chmod 600 f"),
    ("another time", "touch -d 2001-02-03 f"),
    ("another name", "mv f g"),
    ("a second name", "ln f g"),
    ("being replaced", "echo other >g; mv g f"),
];
/// The last one, after which the file cannot be opened by its name.
const REMOVED: (&str, &str) = ("being removed", "rm f");

struct Scene {
    server: Server,
    client: Client,
    dir: std::path::PathBuf,
    _scratch: Scratch,
}

impl Scene {
    fn new(name: &str) -> Self {
        let scratch = Scratch::new(name);
        let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
        let server = Server::start(&Options::new(&dir, &state));
        let client = Client::connect_both_ways(server.nfs(), name).expect("a session");
        Self { server, client, dir, _scratch: scratch }
    }

    /// A folder of its own with a file `f` that the client has been given a delegation on. A file
    /// that was called back is left alone for a while, and so is, one time in thousands, another
    /// one that shares its place among the files remembered: then the next will do.
    fn held(&mut self, folder: &str) -> (String, Opened, Stateid4) {
        for folder in [folder.to_owned(), format!("{folder}-again"), format!("{folder}-and-again")]
        {
            let place = self.dir.join(&folder);
            fs::create_dir(&place).expect("a folder");
            fs::write(place.join("f"), "before").expect("a file");
            if let (file, Some(delegation)) = self.open(&folder) {
                return (folder, file, delegation);
            }
        }
        panic!("{folder}: no delegation")
    }

    fn open(&mut self, folder: &str) -> (Opened, Option<Stateid4>) {
        let path = format!("{}/{folder}", self.server.export());
        let place = self.client.walk(&path).expect("the folder");
        self.client.open_delegated(&place, "f").expect("opened")
    }
}

fn shell(place: &Path, script: &str) {
    succeed(Command::new("sh").args(["-ec", script]).current_dir(place));
}

#[test]
fn every_change_by_a_program_here_calls_it_back() {
    let mut scene = Scene::new("local-changes");
    for (n, (what, script)) in CHANGES.into_iter().chain([REMOVED]).enumerate() {
        let (folder, file, delegation) = scene.held(&format!("change{n}"));
        let place = scene.dir.join(&folder);
        let inode = fs::metadata(place.join("f")).expect("the file").ino();
        shell(&place, script);
        assert_eq!(scene.client.recalled(), Ok(delegation), "{what}");
        assert_eq!(scene.client.give_back(&file.handle, delegation), Ok(()), "{what}");
        if fs::metadata(place.join("f")).is_ok_and(|now| now.ino() == inode) {
            // The delegation was recalled just now: the next open gets none.
            assert_eq!(scene.open(&folder).1, None, "{what}");
        }
    }
    assert!(scene.server.stop().success(), "SIGTERM ends it cleanly");
}

#[test]
fn looking_at_it_calls_nothing_back() {
    let mut scene = Scene::new("local-looks");
    let (place, _, _) = scene.held("looked-at");
    shell(
        &scene.dir.join(place),
        "cat f >/dev/null; stat f >/dev/null; ls -l >/dev/null; echo x >g",
    );
    // Of two the one that is called back is the one that was changed.
    let (other, _, delegation) = scene.held("changed");
    shell(&scene.dir.join(other), "printf more >>f");
    assert_eq!(scene.client.recalled(), Ok(delegation));
    assert!(scene.server.stop().success(), "SIGTERM ends it cleanly");
}

/// A shell that holds `f` open for writing, and writes when its input ends.
fn writer(place: &Path) -> Child {
    let script = "exec 3>>f; echo open >opened.tmp; mv opened.tmp opened; read -r _ || :; \
                  printf more >&3";
    let mut command = Command::new("sh");
    command.args(["-ec", script]).current_dir(place).stdin(Stdio::piped());
    let writer = command.spawn().expect("a shell");
    e2e::api::wait_for("the shell has it open", process::DEADLINE, || {
        place.join("opened").exists().then_some(())
    });
    writer
}

#[test]
fn a_program_that_had_it_open_before_calls_it_back_as_it_writes() {
    let mut scene = Scene::new("local-open");
    let place = scene.dir.join("open");
    fs::create_dir(&place).expect("a folder");
    fs::write(place.join("f"), "before").expect("a file");
    let mut writer = writer(&place);
    let (file, delegation) = scene.open("open");
    let delegation = delegation.expect("a delegation");
    drop(writer.stdin.take());
    assert_eq!(scene.client.recalled(), Ok(delegation));
    assert_eq!(scene.client.give_back(&file.handle, delegation), Ok(()));
    assert!(process::wait(&mut writer, process::DEADLINE).is_some_and(|end| end.success()));
    assert_eq!(scene.client.read(&file, 0, 64), Ok(b"beforemore".to_vec()));
    assert!(scene.server.stop().success(), "SIGTERM ends it cleanly");
}
