//! An action as it is configured, and its options of `plimsoll dsync`.

use std::ffi::OsString;

use analytics::alert::rule::minutes;
use base::node::Path;

use super::place::Endpoint;
use super::schedule::Schedule;
use crate::tree::{Document, Problem};

/// Minutes of a day.
const DAY: u16 = 24 * 60;

/// An action as it is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// What is read.
    pub source: Endpoint,
    /// What becomes the same.
    pub destination: Endpoint,
    /// When.
    pub schedule: Schedule,
    /// Whether the schedule counts.
    pub enabled: bool,
    /// The key that the other machine must show, if it is known beforehand.
    pub host_key: Option<String>,
    /// Options of `dsync` that do not depend on where things are.
    pub options: Vec<OsString>,
}

/// The secrets of an action, which are never shown.
#[derive(Clone, Default)]
pub struct Secrets {
    /// Of the user on the other machine.
    pub password: Option<String>,
    /// The private key of that user.
    pub key: Option<String>,
}

impl Plan {
    /// Reads an action.
    ///
    /// # Errors
    /// Its problems beyond the checks of the declarations.
    pub fn read(document: &Document, at: &Path) -> Result<Self, Problem> {
        let place = |property: &'static str| {
            let text = document.text(at, property).unwrap_or_default();
            let hint = "SHARE/PATH, dsync://[USER@]HOST[:PORT]/SHARE/PATH or \
                        ssh://[USER@]HOST[:PORT]/PATH";
            Endpoint::parse(&text).map_err(|why| Problem::new(at, &why, hint).property(property))
        };
        let (source, destination) = (place("source")?, place("destination")?);
        if source.host().is_some() && destination.host().is_some() {
            let hint = "one of them is a share of this server: SHARE/PATH";
            let problem = Problem::new(at, "both are on other machines", hint);
            return Err(problem.property("destination"));
        }
        if source.overlaps(&destination) {
            let sentence = "one of them is within the other";
            return Err(Problem::new(at, sentence, "name two directories").property("destination"));
        }
        let source_is_far = source.host().is_some();
        Ok(Self {
            source,
            destination,
            schedule: schedule(document, at)?,
            enabled: document.bool(at, "enabled"),
            host_key: document.text(at, "host_key"),
            options: options(document, at, source_is_far),
        })
    }

    /// User and host of the other machine, if one has a part in it.
    pub fn host(&self) -> Option<&str> {
        self.source.host().or(self.destination.host())
    }

    /// What decides which machine receives the password of an action.
    pub fn recipient(document: &Document, at: &Path) -> Option<[Option<String>; 2]> {
        let plan = Self::read(document, at).ok()?;
        let server = plan.source.server().or(plan.destination.server());
        Some([server.map(str::to_owned), plan.host_key])
    }
}

fn schedule(document: &Document, at: &Path) -> Result<Schedule, Problem> {
    match document.text(at, "schedule").as_deref() {
        Some("every") => {
            let seconds = document.integer(at, "every").and_then(|n| u64::try_from(n).ok());
            Ok(Schedule::Every(seconds.unwrap_or(0)))
        }
        Some("daily") => {
            let text = document.text(at, "at").unwrap_or_default();
            let minute = minutes(&text).ok_or_else(|| {
                let sentence = format!("{text:?} is not a time of day");
                Problem::new(at, &sentence, "from 00:00 to 23:59, as 02:30").property("at")
            })?;
            Ok(Schedule::Daily(minute % DAY))
        }
        _ => Ok(Schedule::Off),
    }
}

/// Options of `dsync`. What a source on another machine has becomes part of this one, and is made
/// by root: it may only bring devices and privileges along if that was permitted.
fn options(document: &Document, at: &Path, source_is_far: bool) -> Vec<OsString> {
    let is = |property| document.bool(at, property);
    let owners = document.text(at, "owners").unwrap_or_default();
    let switches = [
        (is("delete"), "--delete"),
        (is("checksum"), "--checksum"),
        (!is("compress"), "--no-compress"),
        (!is("xattrs"), "--no-xattrs"),
        (source_is_far && !is("devices"), "--no-devices"),
        (source_is_far && !is("set_id"), "--no-set-id"),
        (owners == "numbers", "--numeric-ids"),
        (owners == "none", "--no-owner"),
    ];
    let on = switches.into_iter().filter(|(on, _)| *on);
    let mut options: Vec<OsString> = on.map(|(_, option)| option.into()).collect();
    let mut with = |option: &str, value: String| options.push(format!("{option}={value}").into());
    if let Some(rate) = document.integer(at, "bandwidth").filter(|rate| *rate > 0) {
        with("--bandwidth", rate.to_string());
    }
    if let Some(streams) = document.integer(at, "streams") {
        with("--streams", streams.to_string());
    }
    if let Some(program) = document.text(at, "remote_program") {
        with("--remote-program", program);
    }
    for pattern in document.texts(at, "exclude") {
        with("--exclude", pattern);
    }
    options
}
