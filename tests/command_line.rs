//! `plimsoll cli` on a real server: the output of every context, transcripts of commands, and that
//! the command line reaches all nodes of the tree. `UPDATE_GOLDEN=1` rewrites the transcripts in
//! `tests/golden/cli`; look at the difference before you commit it.

#[path = "command_line/contexts.rs"]
mod contexts;
#[path = "command_line/ends.rs"]
mod ends;
#[path = "command_line/transcripts.rs"]
mod transcripts;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use e2e::scratch::Scratch;
use e2e::server::{Options, Server, binary};
use e2e::tls::Authority;

/// A server with its share and its state, which go with it.
struct Scene {
    server: Server,
    scratch: Scratch,
}

impl Scene {
    /// A server of one small directory that is called `lab`, as an ordinary user or as root.
    fn new(name: &str) -> Self {
        let scratch = Scratch::with_space(name);
        let (dir, state) = (scratch.path().join("lab"), scratch.path().join("state"));
        fs::create_dir(&dir).expect("the share");
        fs::write(dir.join("a"), b"a").expect("a file");
        fs::write(scratch.path().join("secret"), "correct-horse-battery\n").expect("a password");
        Authority::new("office").sign().write(scratch.path(), "office");
        let mut options = Options::new(&dir, &state);
        options.args.push("--no-portmap".into());
        Self { server: Server::start(&options), scratch }
    }

    fn state(&self) -> PathBuf {
        self.scratch.path().join("state")
    }

    /// The command with these arguments, in a folder of its own.
    fn cli(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command
            .arg("cli")
            .args(arguments)
            .arg("--state")
            .arg(self.state())
            .current_dir(self.scratch.path())
            .env("XDG_STATE_HOME", self.scratch.path().join("home"))
            .env("TZ", "UTC")
            .stdin(Stdio::null());
        command
    }

    /// Runs a script; its output, its errors, and its exit code.
    fn run(&self, arguments: &[&str], script: &str) -> (String, String, i32) {
        let path = self.scratch.path().join("script");
        fs::write(&path, script).expect("the script");
        let mut all: Vec<&str> = arguments.to_vec();
        let path = path.to_string_lossy();
        all.push(&path);
        let out = self.cli(&all).output().expect("the program starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        (text(out.stdout), text(out.stderr), out.status.code().unwrap_or(-1))
    }

    /// A text without what differs from run to run.
    fn settled(&self, text: &str) -> String {
        let scratch = self.scratch.path().to_string_lossy();
        let mut text = text.replace(&*scratch, "/scratch");
        // A table may have cut it off.
        for end in (2..scratch.len()).rev() {
            text = text.replace(&format!("{}…", &scratch[..end]), "/scratch…");
        }
        // Further lines of a value stand behind its equals sign.
        let (mut lines, mut masked, mut behind) = (String::new(), false, 33);
        for line in text.lines().filter(|line| !line.is_empty()) {
            let further = line.starts_with(&" ".repeat(behind));
            if further && masked {
                continue;
            }
            if !further {
                let named = line.split_once(" = ").map(|(name, _)| name);
                masked = named.is_some_and(volatile);
                behind = named.map_or(33, |name| name.len() + 3);
            }
            lines += &(settled(line, self.server.offset) + "\n");
        }
        lines
    }
}

/// Properties with a different value in each run.
const VOLATILE: [&str; 33] = [
    "machine_problems",
    "fingerprint",
    "host_keys",
    "names_in_it",
    "issuer",
    "authority",
    "chain",
    "total",
    "available",
    "used",
    "uptime",
    "started",
    "pid",
    "listen",
    "host",
    "version",
    "acting_as",
    "since",
    "connections",
    "space_used",
    "space_available",
    "problems",
    "lines",
    "recent",
    "size",
    "seconds_size",
    "minutes_size",
    "hours_size",
    "seconds_since",
    "minutes_since",
    "hours_since",
    "log",
    "socket",
];

/// Whether a property has another value in each run.
fn volatile(name: &str) -> bool {
    VOLATILE.contains(&name.trim().trim_start_matches('<').trim_end_matches('>'))
}

/// A line without times, ports and the values of [`VOLATILE`].
fn settled(line: &str, offset: u16) -> String {
    if let Some((name, _)) = line.split_once(" = ").filter(|(name, _)| volatile(name)) {
        return format!("{name} = …");
    }
    // The head of an exported file: host, user, time.
    if line.starts_with("# ") && line.contains(": revision ") {
        return "# …".to_owned();
    }
    let mut line = line.to_owned();
    for port in [21_u16, 80, 215, 218, 443, 990, 2049] {
        for before in [":", "=", "-P "] {
            let (here, there) = (format!("{before}{}", port + offset), format!("{before}{port}"));
            line = line.replace(&here, &there);
        }
    }
    let line = masked_user(&times(&line));
    // Records of the audit log: the user column has the account that runs the test, and its width.
    let record = line.contains("0000-00-00") && !line.contains(" = ");
    if record || line.contains("WHEN (UTC)") {
        let words: Vec<&str> = line.split("  ").filter(|word| !word.trim().is_empty()).collect();
        let user = |at: usize| words.get(at + 1).is_some_and(|from| from.trim() == "local");
        let word =
            |(at, word): (usize, &&str)| if user(at) { "USER" } else { word.trim() }.to_owned();
        return words.iter().enumerate().map(word).collect::<Vec<_>>().join("  ");
    }
    line
}

/// Replaces the account that disabled a service: it is the one that runs the test.
fn masked_user(line: &str) -> String {
    const BY: &str = "disabled by ";
    let at = line.find(BY).map(|at| at + BY.len());
    let parts = at.and_then(|at| Some((&line[..at], line[at..].split_once(" at ")?.1)));
    parts.map_or_else(|| line.to_owned(), |(before, after)| format!("{before}USER at {after}"))
}

/// Points of time, `2026-11-20 23:59:59`, are all the same one.
fn times(line: &str) -> String {
    const SHAPE: &str = "0000-00-00 00:00:00";
    let mut letters: Vec<char> = line.chars().collect();
    for start in 0..letters.len().saturating_sub(SHAPE.len() - 1) {
        let fits = |(at, shape): (usize, char)| match shape {
            '0' => letters[start + at].is_ascii_digit(),
            other => letters[start + at] == other,
        };
        if SHAPE.chars().enumerate().all(fits) {
            for (at, shape) in SHAPE.chars().enumerate() {
                letters[start + at] = shape;
            }
        }
    }
    letters.into_iter().collect()
}

/// Compares with a golden file, or writes it; what differs is added to `wrong`.
fn compare(name: &str, text: &str, wrong: &mut Vec<String>) {
    let path = golden().join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().expect("a folder")).expect("the folder");
        fs::write(&path, text).expect("the golden file");
    } else if fs::read_to_string(&path).unwrap_or_default() != text {
        wrong.push(format!("{name}:\n{text}"));
    }
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/cli")
}

/// Fails with all that differs.
fn same(wrong: &[String]) {
    assert!(wrong.is_empty(), "differs; UPDATE_GOLDEN=1 accepts it:\n{}", wrong.join("\n"));
}

#[test]
fn times_are_settled() {
    assert_eq!(times("at 2026-11-20 23:59:59, x"), "at 0000-00-00 00:00:00, x");
    assert_eq!(settled("  <uptime> = 5s", 0), "  <uptime> = …");
}
