//! What a run reports to people, or to programs as JSON.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::time::Duration;

use base::clock::{NS_PER_S, monotonic_ns};
use base::failure::Failure;
use base::out;
use base::text::visible;
use base::units;
use serde_json::{Value, json};

use super::DsyncArgs;
use crate::events::{Carried, Event};
use crate::load::Progress;
use crate::{About, Counts, Note, SyncError};

/// Reports of a run.
pub struct Reporter {
    json: bool,
    /// Whether each thing is reported that is done.
    each: bool,
    dry_run: bool,
    /// Whether progress is shown: standard error is a terminal, and the output is not JSON.
    terminal: bool,
    began_ns: u64,
    /// What carries the data, as it was reported last.
    carried: Mutex<Option<Carried>>,
    /// Columns of the line that shows how far it is.
    shown: Mutex<usize>,
}

impl Reporter {
    /// Reports as the options say.
    pub fn new(args: &DsyncArgs) -> Self {
        Self {
            json: args.json,
            each: args.verbose || args.dry_run,
            dry_run: args.dry_run,
            terminal: !args.json && std::io::stderr().is_terminal(),
            began_ns: monotonic_ns(),
            carried: Mutex::default(),
            shown: Mutex::default(),
        }
    }

    /// Reports an event.
    pub fn event(&self, event: Event) {
        match event {
            Event::Note(note) if self.json => self.line(note_json(&note)),
            Event::Progress(progress) if self.json => {
                self.line(progress_json(&progress, self.seconds()));
            }
            Event::Carried(carried) => self.carried(carried),
            Event::Lost(left) => self.lost(left),
            Event::Note(note) => self.note(&note),
            Event::Progress(progress) => self.show(&far(&progress)),
        }
    }

    /// Reports the sums at the end.
    pub fn end(&self, counts: &Counts) -> Result<(), Failure> {
        let carried = self.carried.lock().ok().and_then(|carried| carried.clone());
        if self.json {
            let mut value = counts_json("done", counts, self.seconds());
            if let Some(carried) = &carried {
                value["streams"] = carried.streams.into();
            }
            return out::print(&format!("{value}\n"));
        }
        let rate = units::bytes(counts.bytes_received as f64 / self.seconds().max(0.001));
        let way = match carried.map(|carried| carried.streams) {
            None => String::new(),
            Some(0) => " over ssh alone".to_owned(),
            Some(1) => " over 1 stream".to_owned(),
            Some(streams) => format!(" over {streams} streams"),
        };
        let size: fn(u64) -> String = |n| units::bytes(n as f64);
        let number: fn(u64) -> String = |n| n.to_string();
        let files = format!("files with {}", size(counts.bytes));
        let received = format!("were sent, {rate}/s{way}");
        let set_id = "files without set-id bits or capabilities (--no-set-id)";
        let would = if self.dry_run { "would change" } else { "changed" };
        let mut text = format!("{} entries, {} {would}", counts.entries, counts.changes);
        for (before, n, shown, what) in [
            ("; ", counts.files, number, files.as_str()),
            (", of which ", counts.bytes_received, size, &received),
            ("; ", counts.bytes_cloned, size, "are hard links or clones"),
            ("; ", counts.bytes_copied, size, "were copied by the kernel"),
            ("; ", counts.devices_skipped, number, "device nodes skipped (--no-devices)"),
            ("; ", counts.set_id_dropped, number, set_id),
            ("; ", counts.failures, number, "failed, listed above"),
        ] {
            if n > 0 {
                text += &format!("{before}{} {what}", shown(n));
            }
        }
        out::print(&(text + "\n"))
    }

    /// Takes the line away that shows how far it is.
    pub fn clear(&self) {
        self.show("");
    }

    /// Streams have come up, or none will.
    fn carried(&self, carried: Carried) {
        if self.json {
            self.line(carried_json(&carried));
        } else if carried.streams == 0 {
            let why = visible(&carried.why);
            self.warn(&format!("the data uses the ssh connection, without data streams: {why}"));
        }
        if let Ok(mut last) = self.carried.lock()
            // Several come up at once, and are reported in any order.
            && last.as_ref().is_none_or(|last| last.streams <= carried.streams)
        {
            *last = Some(carried);
        }
    }

    /// A stream has broken.
    fn lost(&self, left: usize) {
        let way = match left {
            0 => "ssh".to_owned(),
            1 => "the remaining stream".to_owned(),
            left => format!("the {left} remaining streams"),
        };
        self.print(
            json!({ "event": "stream_lost", "left": left }),
            &format!("a stream for data broke; what it carried goes over {way}"),
        );
    }

    /// The connection broke, and the run begins again after some time.
    pub fn retry(&self, why: &SyncError, wait: Duration, left: u32) {
        let (seconds, why) = (wait.as_secs_f64(), why.to_string());
        let text = format!("{}; again in {seconds} s", visible(&why));
        self.print(
            json!({ "event": "again", "why": why, "seconds": seconds, "left": left }),
            &text,
        );
    }

    fn print(&self, json: Value, text: &str) {
        if self.json { self.line(json) } else { self.warn(text) }
    }

    fn warn(&self, text: &str) {
        self.clear();
        // Without a standard error the text is lost.
        let _unread = writeln!(std::io::stderr(), "plimsoll: {text}");
    }

    fn seconds(&self) -> f64 {
        (monotonic_ns() - self.began_ns) as f64 / NS_PER_S as f64
    }

    /// A line of standard output. A reader that has closed it does not stop the run.
    fn line(&self, text: impl Display) {
        self.clear();
        let _unread = out::offer(&format!("{text}\n"));
    }

    fn note(&self, note: &Note) {
        let (path, text) = (shown(&note.path.0), String::from_utf8_lossy(&note.text.0));
        if matches!(note.about, About::FAILURE | About::NOTICE) {
            self.warn(&format!("{path}: {}", visible(&text)));
        } else if self.each {
            let to = match &*text {
                "" => String::new(),
                text => format!(" -> {}", shown(text.as_bytes())),
            };
            self.line(format!("{} {path}{to}", note.about));
        }
    }

    fn show(&self, text: &str) {
        if !self.terminal {
            return;
        }
        let Ok(mut shown) = self.shown.lock() else { return };
        if text.is_empty() && *shown == 0 {
            return;
        }
        let mut err = std::io::stderr();
        // Without a standard error the text is lost.
        let _unread = write!(err, "\r{text:<width$}\r", width = *shown).and_then(|()| err.flush());
        *shown = text.chars().count();
    }
}

/// How far it is, on one line.
fn far(progress: &Progress) -> String {
    let counts = &progress.counts;
    let mut text = format!(
        "{} entries, {} of {} files, {}, {}/s",
        counts.entries,
        counts.files_done,
        counts.files,
        units::bytes(counts.bytes_done as f64),
        units::bytes(progress.rate as f64)
    );
    if let Some(left) = progress.left_ns {
        text += &format!(", {} left", units::time_ns(left as f64));
    }
    if let Some(limiter) = progress.limiter {
        text += &format!(", limited by {limiter}");
    }
    text
}

/// A path as people can read it, on one line.
fn shown(path: &[u8]) -> String {
    if path.is_empty() {
        return ".".to_owned();
    }
    visible(&String::from_utf8_lossy(path)).into_owned()
}

fn note_json(note: &Note) -> Value {
    let path = String::from_utf8_lossy(&note.path.0);
    let mut value = json!({ "event": note.about.to_string(), "path": path });
    if std::str::from_utf8(&note.path.0).is_err() {
        value["path_base64"] = base::base64::encode(&note.path.0).into();
    }
    if !note.text.0.is_empty() {
        value["text"] = String::from_utf8_lossy(&note.text.0).into();
    }
    value
}

fn carried_json(carried: &Carried) -> Value {
    if carried.streams == 0 {
        return json!({ "event": "streams", "streams": 0, "why": carried.why });
    }
    let [here, there] = &carried.congestion;
    json!({
        "event": "streams",
        "streams": carried.streams,
        "rtt_ms": carried.rtt_ns as f64 / 1e6,
        "congestion": here,
        "congestion_there": there,
    })
}

fn progress_json(progress: &Progress, seconds: f64) -> Value {
    let mut value = counts_json("progress", &progress.counts, seconds);
    value["rate"] = progress.rate.into();
    value["left_seconds"] = progress.left_ns.map(|ns| ns as f64 / NS_PER_S as f64).into();
    value["limiter"] = progress.limiter.map(|limiter| limiter.to_string()).into();
    value
}

fn counts_json(event: &str, counts: &Counts, seconds: f64) -> Value {
    macro_rules! fields {
        ($($field:ident)*) => {
            json!({ "event": event, "seconds": seconds, $((stringify!($field)): counts.$field),* })
        };
    }
    fields!(
        entries changes files bytes files_done bytes_done bytes_received bytes_cloned bytes_copied
        devices_skipped set_id_dropped failures scanned
    )
}

#[cfg(test)]
mod tests;
