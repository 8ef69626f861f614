//! The ways with every line in a document: README's, and that of `docs/howto/first-steps.md`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use e2e::process;
use e2e::server::{Server, binary};

use super::{Scene, Steps};

/// The password of the documents.
pub const SECRET: &str = "correct horse battery";
/// A line that takes longer hangs.
const LINE: Duration = e2e::patience(60);
/// The beginnings of commands in the documents; other lines continue the one before.
const BEGINS: [&str; 5] = ["plimsoll ", "api", "echo ", "mkdir ", "curl "];
/// Makes a load of the documents a short one.
const SHORT: &str = "--clients 2 --quiet --retries 0 --set warmup_ms=200 --set window_ms=200 \
    --set step_max_ms=1000 --set file_size=1m --set 'schedule=[[1,1]]' \
    --server-socket \"$STATE\"/plimsoll.sock";

/// As root all servers of the machine are in one registry, those of other tests too; a newcomer has
/// one, and need not name it.
const ONLY_OURS: &str = "plimsoll() { case \"$*\" in
    *--state*|lab*) command plimsoll \"$@\" ;; *) command plimsoll \"$@\" --state \"$STATE\" ;;
esac; }";

/// The commands that follow a mark of the story in a document, comments left out.
struct Story {
    file: &'static str,
    commands: Vec<String>,
}

impl Story {
    fn of(file: &'static str) -> Self {
        Self::block(file, 1)
    }

    /// The commands after the mark with this number, from 1.
    fn block(file: &'static str, number: usize) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let after = text.split("<!-- story:").nth(number).expect("the mark of the story");
        let mut commands: Vec<String> = Vec::new();
        for line in after.split("```").nth(1).expect("a block of lines").trim().lines() {
            let line = line.split("  #").next().unwrap_or(line).trim_end();
            let begins = BEGINS.iter().any(|begin| line.starts_with(begin));
            match commands.last_mut().filter(|_| !begins) {
                Some(last) => *last += &format!("\n{line}"),
                None => commands.push(line.to_owned()),
            }
        }
        Self { file, commands }
    }

    /// The one command that begins so, taken out: in the end nothing must be left.
    fn take(&mut self, begin: &str) -> String {
        let at = self.commands.iter().position(|command| command.starts_with(begin));
        let at =
            at.unwrap_or_else(|| panic!("{} has no {begin:?}: {:#?}", self.file, self.commands));
        self.commands.remove(at)
    }

    /// Fails if the document has a command that was not tried.
    fn assert_complete(&self) {
        assert!(self.commands.is_empty(), "{} has more: {:#?}", self.file, self.commands);
    }
}

/// Runs lines as a person's shell would, with the places of this run; their output.
fn shell(scene: &Scene, way: &str, server: &Server, lines: &str) -> String {
    let folder = scene.path(way);
    let binary = binary().parent().expect("its folder").display().to_string();
    let path = format!("{binary}:{}", std::env::var("PATH").unwrap_or_default());
    let srv = format!("{}/", scene.scratch.path().display());
    let port = format!(":{}/", server.nfs_port());
    let lines = lines.replace("/srv/", &srv).replace(":12049/", &port);
    let lines = format!("{ONLY_OURS}\n{lines}");
    let mut command = Command::new("bash");
    command
        .args(["-euo", "pipefail", "-c", &lines])
        .current_dir(&folder)
        .env("PATH", path)
        .env("XDG_STATE_HOME", &folder)
        .env("STATE", folder.join("first"))
        .env("SECOND", folder.join("second"));
    let output = process::run(&mut command, LINE);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr);
    // 3: it is done, and was not steady, as on any busy machine.
    let good = matches!(output.status.code(), Some(0 | 3));
    assert!(good, "{way}: {}\n{lines}\n{said}{wrong}", output.status);
    said
}

/// The lines of README.
pub struct OnCommandLine(Story);

impl OnCommandLine {
    const WAY: &str = "command line";

    pub fn new() -> Self {
        let mut story = Story::of("README.md");
        // What the scene does: the directory, and the two servers.
        for done in
            ["mkdir -p /srv/lab", "plimsoll serve /srv/lab", "plimsoll serve /srv/lab --state"]
        {
            story.take(done);
        }
        Self(story)
    }

    fn run(&mut self, scene: &Scene, server: &Server, begin: &str, more: &str) -> String {
        let line = self.0.take(begin);
        let line = if more.is_empty() { line } else { format!("{line} {more}") };
        shell(scene, Self::WAY, server, &line)
    }
}

impl Steps for OnCommandLine {
    fn set_up(&mut self, scene: &Scene, first: &Server) {
        self.run(scene, first, "plimsoll cli <<'END'", "");
        self.run(scene, first, "plimsoll lab run", SHORT);
    }

    fn look(&mut self, scene: &Scene, first: &Server) {
        let said = self.run(scene, first, "plimsoll analytics show", "");
        assert!(said.contains("photos"), "{said}");
    }

    fn export(&mut self, scene: &Scene, first: &Server) -> String {
        self.run(scene, first, "plimsoll cli -c 'export", "");
        fs::read_to_string(scene.path(Self::WAY).join("lab.toml")).expect("the exported file")
    }

    fn restore(&mut self, scene: &Scene, second: &Server, _: &str) {
        self.run(scene, second, "plimsoll cli --state second", "");
        self.run(scene, second, "echo ", "");
        self.0.assert_complete();
    }
}

/// The lines of `docs/howto/first-steps.md`, for curl.
pub struct OverApi {
    story: Story,
    /// What makes them short to write.
    api: String,
}

impl OverApi {
    const WAY: &str = "API";

    pub fn new() -> Self {
        let mut story = Story::of("docs/howto/first-steps.md");
        let api = story.take("api()");
        Self { story, api }
    }

    fn run(&mut self, scene: &Scene, server: &Server, begin: &str) -> String {
        let lines = format!("{}\n{}", self.api, self.story.take(begin));
        shell(scene, Self::WAY, server, &lines)
    }
}

impl Steps for OverApi {
    fn set_up(&mut self, scene: &Scene, first: &Server) {
        self.run(scene, first, "api \"$STATE\" /changes");
    }

    fn look(&mut self, scene: &Scene, first: &Server) {
        let said = self.run(scene, first, "api \"$STATE\" '/analytics/data");
        assert!(said.contains("\"photos\""), "{said}");
    }

    fn export(&mut self, scene: &Scene, first: &Server) -> String {
        self.run(scene, first, "api \"$STATE\" /configuration");
        fs::read_to_string(scene.path(Self::WAY).join("lab.toml")).expect("the exported file")
    }

    fn restore(&mut self, scene: &Scene, second: &Server, _: &str) {
        self.run(scene, second, "api \"$SECOND\" /configuration");
        self.run(scene, second, "api \"$SECOND\" /changes");
        self.story.assert_complete();
    }
}

/// Runs the common tasks of README, and the how-tos of LUNs and SMB, on one server.
pub fn run_tasks(scene: &Scene, server: &Server) {
    let way = "tasks";
    let mut tasks = Story::block("README.md", 2);
    // These take minutes, or need another machine, a user or a terminal.
    for other in ["plimsoll lab limits", "plimsoll dsync", "curl ", "plimsoll --help"] {
        tasks.take(other);
    }
    let photos =
        "plimsoll cli -c \"/shares/default create photos directory=/srv/photos make_directory=on\"";
    shell(scene, way, server, photos);
    for command in &tasks.commands {
        shell(scene, way, server, command);
    }
    // README has created the LUN and enabled SMB.
    let delete = "plimsoll cli -c '/shares/default/luns destroy disk --yes'";
    shell(scene, way, server, delete);
    for command in Story::of("docs/howto/luns.md").commands {
        let said = shell(scene, way, server, &command);
        assert!(command.contains("create") || said.contains("iscsiadm"), "{command}: {said}");
    }
    for command in Story::of("docs/howto/smb.md").commands {
        shell(scene, way, server, &command);
    }
}
