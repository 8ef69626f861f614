//! The state of a run, from the events that `plimsoll dsync --json` prints, one to a line.

use std::io::{self, BufRead, Read};

use base::limits::{
    REPLICATION_EVENT_MAX, REPLICATION_FAILED_SHOWN, REPLICATION_REASON_MAX, REPLICATION_SAID_MAX,
};
use base::units;
use serde_json::Value;

/// How far a run is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    /// Entries that were looked at.
    pub entries: u64,
    /// Those that were changed.
    pub changes: u64,
    /// Files that are to be carried, as far as is known.
    pub files: u64,
    /// Those that are there.
    pub files_done: u64,
    /// Bytes of the files that are to be carried.
    pub bytes: u64,
    /// Bytes of those that are there.
    pub bytes_done: u64,
    /// Bytes of content that were sent, before compression.
    pub sent: u64,
    /// Those of them that were sent before the connection broke.
    pub sent_before: u64,
    /// Bytes per second of the last time.
    pub rate: u64,
    /// Seconds left, once they can be estimated.
    pub left: Option<u64>,
    /// What limits it.
    pub limiter: Option<String>,
    /// Device nodes that were skipped.
    pub devices_skipped: u64,
    /// Files that were carried without set-id bits and capabilities.
    pub set_id_dropped: u64,
    /// Entries that could not be carried.
    pub failures: u64,
    /// The first of them, each with why.
    pub failed: Vec<String>,
}

impl Progress {
    /// Processes a line of a run's output. A line that is not an event is ignored.
    pub fn take(&mut self, line: &[u8]) {
        let Ok(event) = serde_json::from_slice::<Value>(line) else { return };
        match event["event"].as_str() {
            Some("progress" | "done") => self.counts(&event),
            Some("again") => self.sent_before = self.sent,
            Some("failure") => {
                let text = |name: &str| event[name].as_str().unwrap_or_default();
                let path = if text("path").is_empty() { "." } else { text("path") };
                if self.failed.len() < REPLICATION_FAILED_SHOWN {
                    self.failed.push(one_line(&format!("{path}: {}", text("text"))));
                }
                self.failures = self.failures.max(self.failed.len() as u64);
            }
            _ => {}
        }
    }

    fn counts(&mut self, event: &Value) {
        let count = |name: &str| event[name].as_u64().unwrap_or_default();
        self.entries = count("entries");
        self.changes = count("changes");
        self.files = count("files");
        self.files_done = count("files_done");
        self.bytes = count("bytes");
        self.bytes_done = count("bytes_done");
        self.sent = self.sent_before + count("bytes_received");
        self.devices_skipped = count("devices_skipped");
        self.set_id_dropped = count("set_id_dropped");
        self.failures = count("failures");
        self.rate = count("rate");
        self.left = event["left_seconds"].as_f64().map(|seconds| seconds.ceil() as u64);
        self.limiter = event["limiter"].as_str().map(one_line);
    }

    /// For people, on one line.
    pub fn sentence(&self) -> String {
        let mut text = format!(
            "{} entries, {} of {} files, {}, {}/s",
            self.entries,
            self.files_done,
            self.files,
            units::bytes(self.bytes_done as f64),
            units::bytes(self.rate as f64)
        );
        if let Some(left) = self.left {
            text += &format!(", {left} s left");
        }
        if let Some(limiter) = &self.limiter {
            text += &format!(", limited by {limiter}");
        }
        text
    }
}

/// Passes on each line of a run's output; one that is too long is skipped.
///
/// # Errors
/// It cannot be read any more.
pub fn lines(read: impl Read, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let mut read = io::BufReader::new(read);
    let mut line = Vec::new();
    let mut whole = true;
    loop {
        line.clear();
        let most = REPLICATION_EVENT_MAX as u64;
        if (&mut read).take(most).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let ends = line.last() == Some(&b'\n');
        if whole && ends {
            each(&line);
        }
        whole = ends;
    }
}

/// The end of a run's standard error.
///
/// # Errors
/// It cannot be read any more.
pub fn tail(mut read: impl Read) -> io::Result<String> {
    let (mut kept, mut piece) = (Vec::new(), [0; 1_024]);
    loop {
        let count = read.read(&mut piece)?;
        let Some(new) = piece.get(..count).filter(|new| !new.is_empty()) else { break };
        kept.extend_from_slice(new);
        let over = kept.len().saturating_sub(REPLICATION_SAID_MAX);
        kept.drain(..over);
    }
    Ok(String::from_utf8_lossy(&kept).into_owned())
}

/// A text on one line that is not too long.
pub fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let joined = lines.join("; ");
    let plain =
        joined.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c });
    plain.take(REPLICATION_REASON_MAX).collect()
}

/// Why a run failed, from its standard error and that of ssh; the cause comes first.
pub fn reason(said: &str, host: Option<&str>) -> String {
    const HEAD: &str = "plimsoll: cannot synchronise the directories: ";
    // Indented lines are hints for a command in a terminal.
    let lines = said.lines().filter(|line| !line.starts_with("  "));
    let lines: Vec<&str> = lines.map(|line| line.strip_prefix(HEAD).unwrap_or(line)).collect();
    let said = match one_line(&lines.join("\n")) {
        said if said.is_empty() => "it exited without a message".to_owned(),
        said => said,
    };
    let Some(host) = host else { return said };
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let fault = match () {
        () if has(&["Host key verification failed", "IDENTIFICATION HAS CHANGED"]) => {
            format!("{host} presented a host key that differs from the known one")
        }
        () if refused(&said) || has(&["Too many authentication failures"]) => {
            format!("{host} rejected the user, password or key of this action")
        }
        () if has(&["ssh: connect to host", "ssh: Could not resolve", "Connection timed out"]) => {
            format!("{host} cannot be reached")
        }
        () => return said,
    };
    one_line(&format!("{fault}: {said}"))
}

/// Whether the last message of ssh is that authentication failed: it names the methods that it has
/// tried, where a system that denies a file has a number.
fn refused(said: &str) -> bool {
    said.split("Permission denied (").skip(1).any(|ways| !ways.starts_with("os error"))
}
