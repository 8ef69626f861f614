//! A real browser on the administration's pages, driven by `ui/tests/browser/drive.mjs`: one
//! request and one answer to a line.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use serde_json::{Value, json};

use crate::netns::Namespace;
use crate::server::Server;
use crate::{NOBODY, has, process};

/// How long the browser may take over one thing; its own timeouts are shorter.
const ANSWER: Duration = crate::patience(90);
/// What the harness gives every server.
pub const PASSWORD: &str = "only-for-this-test";

/// Where the browser interface has its sources.
pub fn ui() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ui")
}

/// Why there is no browser here, if there is none.
pub fn missing() -> Option<String> {
    // SAFETY: no arguments, cannot fail.
    if unsafe { libc::geteuid() } == NOBODY {
        return Some("user nobody has no home for a browser".into());
    }
    let chromium = std::env::var("CHROMIUM").unwrap_or("/usr/bin/chromium".into());
    if !has("node") {
        return Some("node is not installed".into());
    }
    if !Path::new(&chromium).exists() {
        return Some(format!("{chromium} is not installed (apt-get install chromium)"));
    }
    let modules = ui().join("node_modules/playwright-core");
    (!modules.exists()).then(|| "ui/node_modules is missing (npm ci in ui/)".into())
}

/// A browser. It ends with the value.
pub struct Browser {
    child: Child,
    to: Option<ChildStdin>,
    from: Receiver<String>,
}

impl Browser {
    /// Starts one; it shows nothing yet.
    ///
    /// # Panics
    /// When node does not start.
    pub fn start() -> Self {
        Self::with("tests/browser/drive.mjs")
    }

    /// Starts one that does what this file of `ui` knows.
    ///
    /// # Panics
    /// When node does not start.
    pub fn with(what: &str) -> Self {
        Self::spawn(what, None)
    }

    /// Starts one in a namespace of the network.
    ///
    /// # Panics
    /// When node does not start.
    pub fn within(namespace: &Namespace) -> Self {
        Self::spawn("tests/browser/drive.mjs", Some(namespace))
    }

    fn spawn(what: &str, namespace: Option<&Namespace>) -> Self {
        let mut command = Command::new("node");
        if let Some(namespace) = namespace {
            namespace.enter(&mut command);
        }
        command.args(["--import", "./tests/register.mjs", what]);
        command.current_dir(ui()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("node starts");
        let (to, out) = (child.stdin.take(), child.stdout.take().expect("its output"));
        let (say, from) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if say.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, to, from }
    }

    /// Signs `user` in at a server, in a window without anything from before.
    ///
    /// # Panics
    /// When that fails.
    pub fn open(&mut self, server: &Server, user: &str, password: &str) {
        let url = server.announced["admin"].as_str().expect("where the interface is");
        self.open_at(url, user, password);
    }

    /// The same at a URL.
    ///
    /// # Panics
    /// When that fails.
    pub fn open_at(&mut self, url: &str, user: &str, password: &str) {
        let open = json!({"do": "open", "url": url, "user": user, "password": password});
        self.ask(&open).unwrap_or_else(|why| panic!("signing {user} in: {why}"));
    }

    /// Has something done; its answer, or why it could not be done.
    ///
    /// # Errors
    /// The error on the page, or what was missing there.
    ///
    /// # Panics
    /// When the browser itself is gone.
    pub fn ask(&mut self, request: &Value) -> Result<Value, String> {
        let to = self.to.as_mut().expect("an open browser");
        writeln!(to, "{request}").expect("a browser that listens");
        let line = self.from.recv_timeout(ANSWER);
        let line = line.unwrap_or_else(|e| panic!("{request}: no answer ({e})"));
        let mut answer: Value = serde_json::from_str(&line).expect("an answer");
        match answer["error"].take() {
            Value::String(why) => Err(why),
            _ => Ok(answer["ok"].take()),
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The end of its input is its end.
        drop(self.to.take());
        if process::wait(&mut self.child, Duration::from_secs(5)).is_none() {
            let _gone = self.child.kill();
            let _reaped = self.child.wait();
        }
    }
}
