//! The notification of an alert: as a line, a mail, JSON, and a syslog message.

use std::sync::Arc;

use analytics::alert::rule::figure;
use analytics::alert::{Rule, Subject};
use base::limits::SYSLOG_MESSAGE_MAX;
use base::text::{percent, visible};
use base::units::{Civil, civil, utc, weekday};
use serde_json::{Value as Json, json};

use super::SecondSample;

/// What has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Fired,
    Again,
    Cleared,
    /// It fired, and does not watch any more, or something else: why.
    Ended(&'static str),
    Test,
}

impl Kind {
    /// As the JSON message has it.
    fn name(self) -> &'static str {
        match self {
            Self::Fired => "fired",
            Self::Again => "repeated",
            Self::Cleared | Self::Ended(_) => "cleared",
            Self::Test => "test",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Fired => "fired",
            Self::Again => "is still firing",
            Self::Cleared | Self::Ended(_) => "has cleared",
            Self::Test => "is tested",
        }
    }

    /// Severity of RFC 5424 §6.2.1: warning, notice, informational.
    fn severity(self) -> u8 {
        match self {
            Self::Fired | Self::Again => 4,
            Self::Cleared | Self::Ended(_) => 5,
            Self::Test => 6,
        }
    }
}

/// A message.
pub(super) struct Message {
    /// The host's name.
    pub appliance: String,
    /// The alert's name.
    pub alert: String,
    pub kind: Kind,
    pub rule: Arc<Rule>,
    pub seen: SecondSample,
    /// Of which second, since the epoch.
    pub second: u64,
}

/// How things stand, as a part of a sentence: `… is 12 345 ops/s (10.0.0.7)`.
pub(super) fn state(rule: &Rule, seen: &SecondSample) -> String {
    let detail = seen.detail.as_deref().map(clean);
    match (&rule.subject, seen.value) {
        (Subject::Event(event), _) => detail.unwrap_or_else(|| event.sentence()),
        (Subject::Statistic { .. }, None) => rule.condition(),
        (Subject::Statistic { .. }, Some(value)) => {
            let of = detail.map_or_else(String::new, |detail| format!(" ({detail})"));
            format!("{}: current value {}{of}", rule.condition(), figure(value, rule.unit()))
        }
    }
}

/// A text from a peer, such as the name of a file, without what could end a line.
fn clean(text: &str) -> String {
    visible(text).into_owned()
}

/// The text in ASCII, as far as that is possible without loss of meaning.
fn plain(text: &str) -> String {
    text.replace('\u{a0}', " ").replace('–', "-")
}

impl Message {
    /// One line for the log.
    pub fn line(&self) -> String {
        let state = match self.kind {
            // What cleared is what was, not what is.
            Kind::Cleared => match self.seen.value {
                Some(value) => format!("it is {}", figure(value, self.rule.unit())),
                None => "the condition has cleared".to_owned(),
            },
            Kind::Ended(why) => why.to_owned(),
            Kind::Test => "this is a test message".to_owned(),
            _ => state(&self.rule, &self.seen),
        };
        format!("alert {} {}: {state}", self.alert, self.kind.words())
    }

    /// The subject of a mail.
    pub fn subject(&self) -> String {
        plain(&format!("[{}] alert {} {}", self.appliance, self.alert, self.kind.words()))
    }

    /// The text of a mail, lines divided by `\n`.
    pub fn text(&self) -> String {
        let mut lines = vec![format!("{}.", self.line()), String::new(), self.rule.sentence()];
        lines.push(format!("Time: {} UTC", utc(self.second.cast_signed())));
        lines.push(format!("Appliance: {}", self.appliance));
        if let Some(link) = self.link() {
            lines.push(format!("Graph: {link} on the page of the appliance"));
        }
        plain(&(lines.join("\n") + "\n"))
    }

    /// The graph that shows it, below the address of the appliance.
    fn link(&self) -> Option<String> {
        let Subject::Statistic { stat, .. } = &self.rule.subject else { return None };
        let query = percent(stat.to_string().as_bytes(), b"._-[]=");
        const BEFORE: u64 = 300;
        let (from, to) = (self.second.saturating_sub(BEFORE), self.second + 60);
        Some(format!("/analytics?w={query}&from={from}&to={to}"))
    }

    /// For a webhook (`docs/howto/alerts.md` has the fields).
    pub fn json(&self) -> Json {
        let mut body = json!({
            "appliance": self.appliance,
            "alert": self.alert,
            "event": self.kind.name(),
            "sentence": self.rule.sentence(),
            "text": self.line(),
            "time": self.second,
            "link": self.link(),
            "statistic": Json::Null,
        });
        if let Subject::Statistic { stat, above, limit } = &self.rule.subject {
            body["statistic"] = json!(stat.to_string());
            body["condition"] = json!(if *above { "above" } else { "below" });
            body["limit"] = json!(limit);
            body["unit"] = json!(self.rule.unit());
            body["value"] = json!(self.seen.value);
            body["element"] = json!(self.seen.detail);
        }
        body
    }

    /// RFC 5424 §6, facility daemon.
    pub fn syslog(&self) -> String {
        const DAEMON: u8 = 3;
        let priority = DAEMON * 8 + self.kind.severity();
        let time = utc(self.second.cast_signed()).replace(' ', "T");
        let host: String =
            self.appliance.chars().filter(char::is_ascii_graphic).take(255).collect();
        let host = if host.is_empty() { "-" } else { &host };
        let (pid, text) = (std::process::id(), plain(&self.line()));
        let mut message = format!("<{priority}>1 {time}Z {host} plimsoll {pid} alert - {text}");
        while message.len() > SYSLOG_MESSAGE_MAX {
            message.pop();
        }
        message
    }

    /// RFC 5322 §3.3.
    pub fn date(&self) -> String {
        let epoch = self.second.cast_signed();
        let at = civil(epoch);
        let Civil { year, day, hour: h, minute: m, second: s, .. } = at;
        let (weekday, month) = (weekday(epoch), at.month_name());
        format!("{weekday}, {day:02} {month} {year:04} {h:02}:{m:02}:{s:02} +0000")
    }
}
