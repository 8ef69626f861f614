//! An alert as it is configured: read from its properties, and as a sentence.

use base::limits::{ALERT_CERTIFICATE_DAYS, KEPT_FOR_DEFAULT_S};
use base::node::Value;
use base::text::decimal;
use base::units;
use probe::schema::schema;
use probe::stat::StatId;

use super::Timing;

/// What is wrong with an alert's properties: the administrator's fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Wrong {
    /// Which property.
    pub property: &'static str,
    /// What is wrong, one sentence.
    pub why: String,
    /// What to do.
    pub hint: String,
}

fn wrong(property: &'static str, why: impl Into<String>, hint: &str) -> Wrong {
    Wrong { property, why: why.into(), hint: hint.to_owned() }
}

/// Something that happens to the server itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// A service is not online.
    Service,
    /// Operations were not counted.
    Dropped,
    /// Statistics cannot be stored.
    Store,
    /// The file system of the state directory is nearly full.
    Space,
    /// A certificate expires within this number of days, or cannot be obtained or renewed.
    Certificate {
        /// Days.
        days: u64,
    },
    /// A replication action has failed when it ran last.
    Replication,
    /// A link of the network has no carrier, or is missing.
    Network,
    /// A fault of the hardware.
    Hardware,
    /// A resource of the cluster was taken over lately.
    Takeover,
    /// A resource of the cluster has no owner, or the cluster another fault.
    Cluster,
    /// Requests have failed by a fault of the server since it started.
    Fault,
}

impl Event {
    /// All, in the order of menus: name, sentence.
    pub const ALL: [(Self, &'static str, &'static str); 11] = [
        (Self::Service, "service", "a service is not online"),
        (Self::Dropped, "dropped", "operations are not counted"),
        (Self::Store, "store", "statistics cannot be stored"),
        (Self::Space, "space", "the file system of the state directory is nearly full"),
        (
            Self::Certificate { days: ALERT_CERTIFICATE_DAYS as u64 },
            "certificate",
            "a certificate expires soon, or issue or renewal failed",
        ),
        (Self::Replication, "replication", "the last run of a replication action failed"),
        (Self::Network, "network", "a link of the network has no carrier or is missing"),
        (Self::Hardware, "hardware", "the hardware or the fabric has a fault"),
        (
            Self::Takeover,
            "takeover",
            "a resource of the cluster was taken over in the last 5 minutes",
        ),
        (
            Self::Cluster,
            "cluster",
            "a resource of the cluster has no owner, or the cluster has another fault",
        ),
        (Self::Fault, "fault", "requests fail because of a server defect"),
    ];

    /// As a part of a sentence.
    pub fn sentence(self) -> String {
        if let Self::Certificate { days } = self {
            let ends = if days == 1 { "a day".to_owned() } else { format!("{days} days") };
            return format!("a certificate expires within {ends}, or issue or renewal failed");
        }
        let found = Self::ALL.iter().find(|(event, ..)| *event == self);
        found.map_or_else(String::new, |(.., sentence)| (*sentence).to_owned())
    }
}

/// What is watched.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// A statistic crosses a limit; with a breakdown, any one of its elements.
    Statistic {
        /// Which.
        stat: StatId,
        /// Whether above the limit is bad, or below.
        above: bool,
        /// In the unit of the statistic.
        limit: f64,
    },
    /// Something happens.
    Event(Event),
}

/// Days on which an alert may fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Days {
    /// Every day.
    All,
    /// Monday to Friday.
    Weekdays,
    /// Saturday and Sunday.
    Weekends,
}

/// A local time, as far as an alert's hours need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Local {
    /// 0 is Monday.
    pub weekday: u8,
    /// Minutes since midnight.
    pub minute: u16,
}

/// When an alert may fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hours {
    /// On which days.
    pub days: Days,
    /// From this minute of the day.
    pub from: u16,
    /// Up to this minute, not included; before `from`: over midnight; the same: always.
    pub until: u16,
}

/// Minutes of a day.
const DAY: u16 = 24 * 60;
/// Monday to Friday are the first five days.
const WEEKDAYS: u8 = 5;

impl Hours {
    /// Whether a local time lies within.
    pub fn contains(self, at: Local) -> bool {
        let day = match self.days {
            Days::All => true,
            Days::Weekdays => at.weekday < WEEKDAYS,
            Days::Weekends => at.weekday >= WEEKDAYS,
        };
        let hours = match self.from < self.until {
            true => (self.from..self.until).contains(&at.minute),
            false => self.from == self.until || at.minute >= self.from || at.minute < self.until,
        };
        day && hours
    }

    fn sentence(self) -> String {
        let days = match self.days {
            Days::All => "every day",
            Days::Weekdays => "on weekdays",
            Days::Weekends => "on weekends",
        };
        match self.from % DAY == self.until % DAY {
            true if self.days == Days::All => String::new(),
            true => format!(", {days}"),
            false => format!(", {days} {}–{}", time_of_day(self.from), time_of_day(self.until)),
        }
    }
}

fn time_of_day(minute: u16) -> String {
    format!("{:02}:{:02}", minute / 60, minute % 60)
}

/// `08:30` in minutes since midnight; `24:00` is the end of the day.
pub fn minutes(text: &str) -> Option<u16> {
    let (hour, minute) = text.split_once(':')?;
    let two = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
    if !two(hour) || !two(minute) {
        return None;
    }
    let (hour, minute): (u16, u16) = (hour.parse().ok()?, minute.parse().ok()?);
    let all = hour * 60 + minute;
    (minute < 60 && all <= DAY).then_some(all)
}

/// Where syslog messages go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Syslog {
    /// One datagram each (RFC 5426): host and port.
    Udp(String, u16),
    /// A connection with octet counting (RFC 6587 §3.4.1): host and port.
    Tcp(String, u16),
    /// A datagram socket of this machine.
    Unix(String),
}

impl Syslog {
    /// `udp://HOST:PORT`, `tcp://HOST:PORT`, `unix:/PATH`; 514 is the port if none is named.
    pub fn parse(text: &str) -> Option<Self> {
        const PORT: u16 = 514;
        if let Some(path) = text.strip_prefix("unix:") {
            return path.starts_with('/').then(|| Self::Unix(path.to_owned()));
        }
        let (scheme, rest) = text.split_once("://")?;
        let (host, port) = match rest.rsplit_once(':') {
            // An IPv6 address has its colons in brackets.
            Some((host, port)) if !port.ends_with(']') => (host, decimal(port)?),
            _ => (rest, PORT),
        };
        let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        base::node::Shape::Host.check(host).ok()?;
        match scheme {
            "udp" => Some(Self::Udp(host.to_owned(), port)),
            "tcp" => Some(Self::Tcp(host.to_owned(), port)),
            _ => None,
        }
    }
}

/// An alert.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// What is watched.
    pub subject: Subject,
    /// For how long.
    pub timing: Timing,
    /// When it may fire.
    pub hours: Hours,
    /// Whether it is watched at all.
    pub enabled: bool,
    /// Mail addresses of the recipients.
    pub mail: Vec<String>,
    /// What URL a message is posted to.
    pub webhook: Option<String>,
    /// Where a syslog message goes.
    pub syslog: Option<Syslog>,
    /// The dataset that is recorded when the alert fires, and for how many seconds.
    pub keep: Option<(StatId, u64)>,
    /// The same, as it was written.
    syslog_text: String,
}

impl Rule {
    /// Reads an alert from its effective properties.
    ///
    /// # Errors
    /// The first thing that is wrong beyond the checks of the declarations.
    pub fn read(value: &dyn Fn(&str) -> Option<Value>) -> Result<Self, Wrong> {
        let text = |name: &str| {
            let value = value(name)?;
            value.as_text().filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let seconds = |name: &str| {
            value(name).and_then(|v| v.as_integer()).and_then(|n| u64::try_from(n).ok())
        };
        let minute = |name: &'static str, otherwise: u16| match text(name) {
            None => Ok(otherwise),
            Some(text) => minutes(&text).ok_or_else(|| {
                wrong(name, format!("{text:?} is not a time of day"), "use the form 08:00")
            }),
        };
        let syslog_text = text("syslog").unwrap_or_default();
        let syslog = match syslog_text.as_str() {
            "" => None,
            text => Some(Syslog::parse(text).ok_or_else(|| {
                let hint = "use udp://HOST:514, tcp://HOST:514 or unix:/dev/log";
                wrong("syslog", format!("{text:?} is not a syslog destination"), hint)
            })?),
        };
        Ok(Self {
            subject: subject(&text, value)?,
            timing: Timing {
                lasting: seconds("for").unwrap_or(1).max(1),
                clear: seconds("clear_for").unwrap_or(1).max(1),
                repeat: seconds("repeat").unwrap_or(0),
            },
            hours: Hours {
                days: match text("days").as_deref() {
                    Some("weekdays") => Days::Weekdays,
                    Some("weekends") => Days::Weekends,
                    _ => Days::All,
                },
                from: minute("from", 0)?,
                until: minute("until", DAY)?,
            },
            enabled: value("enabled").and_then(|v| v.as_bool()).unwrap_or(true),
            mail: value("mail")
                .map(|list| list.as_texts().into_iter().map(str::to_owned).collect())
                .unwrap_or_default(),
            webhook: text("webhook"),
            syslog,
            keep: keep(text("keep"), seconds("keep_for"))?,
            syslog_text,
        })
    }

    /// Whether another rule has the same condition, timing and hours: a change of the recipients
    /// does not reset an alert.
    pub fn watches_as(&self, other: &Self) -> bool {
        self.subject == other.subject
            && self.timing == other.timing
            && self.hours == other.hours
            && self.enabled == other.enabled
    }

    /// What is watched, as a part of a sentence.
    pub fn condition(&self) -> String {
        let Subject::Statistic { stat, above, limit } = &self.subject else {
            let Subject::Event(event) = &self.subject else { unreachable!("there are two") };
            return event.sentence();
        };
        let whole = StatId { breakdown: None, ..stat.clone() };
        let title = schema().title(&whole, |_, value| value.to_owned());
        let any = stat.breakdown.as_deref().and_then(|b| schema().breakdown(b));
        let any = any.map_or_else(String::new, |b| format!(" of any one {}", b.sentence));
        let side = if *above { "above" } else { "below" };
        format!("{title}{any} is {side} {}", figure(*limit, self.unit()))
    }

    /// The unit of what is watched; nothing for events.
    pub fn unit(&self) -> &'static str {
        let Subject::Statistic { stat, .. } = &self.subject else { return "" };
        schema().statistic(&stat.group, &stat.metric).map_or("", |s| &s.unit)
    }

    /// The whole alert as a sentence.
    pub fn sentence(&self) -> String {
        let Timing { lasting, repeat, .. } = self.timing;
        let lasting = if lasting > 1 { format!(" for {}", span(lasting)) } else { String::new() };
        let mut todo = Vec::new();
        if !self.mail.is_empty() {
            todo.push(format!("mail to {}", self.mail.join(", ")));
        }
        todo.extend(self.webhook.as_ref().map(|url| format!("post to {url}")));
        if self.syslog.is_some() {
            todo.push(format!("send syslog to {}", self.syslog_text));
        }
        if let Some((stat, seconds)) = &self.keep {
            todo.push(format!("record {stat} for {}", span(*seconds)));
        }
        if todo.is_empty() {
            todo.push("log it".to_owned());
        }
        let (last, others) = todo.split_last().map_or(("", &[][..]), |(l, o)| (l.as_str(), o));
        let todo = match others.is_empty() {
            true => last.to_owned(),
            false => format!("{} and {last}", others.join(", ")),
        };
        let again = match repeat {
            0 => String::new(),
            n => format!(", every {} while firing", span(n)),
        };
        let hours = self.hours.sentence();
        format!("When {}{lasting}{hours}, {todo}{again}.", self.condition())
    }
}

/// A value with its unit.
pub fn figure(value: f64, unit: &str) -> String {
    let plain = match value.fract() == 0.0 && value.abs() < 1e15 {
        true => grouped(value as i64),
        false => units::count(value),
    };
    if unit.is_empty() { plain } else { format!("{plain} {unit}") }
}

/// `12345` as `12 345`.
fn grouped(n: i64) -> String {
    let digits = n.unsigned_abs().to_string();
    let mut text = if n < 0 { "-".to_owned() } else { String::new() };
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && digits.len() > 4 {
            text.push('\u{a0}');
        }
        text.push(digit);
    }
    text
}

/// Seconds in readable units.
fn span(seconds: u64) -> String {
    let units = [(86_400, "days"), (3_600, "h"), (60, "min")];
    let whole = units.iter().find(|(unit, _)| seconds >= *unit && seconds.is_multiple_of(*unit));
    match whole {
        Some((86_400, _)) if seconds == 86_400 => "1 day".to_owned(),
        Some((unit, name)) => format!("{} {name}", seconds / unit),
        None => format!("{seconds} s"),
    }
}

/// What an alert is to keep.
fn keep(text: Option<String>, seconds: Option<u64>) -> Result<Option<(StatId, u64)>, Wrong> {
    let Some(text) = text else { return Ok(None) };
    let stat: StatId =
        text.parse().map_err(|e: probe::stat::StatError| wrong("keep", e.to_string(), KNOWN))?;
    crate::recorded::check(&stat).map_err(|e| wrong("keep", e.to_string(), e.hint()))?;
    Ok(Some((stat, seconds.unwrap_or(KEPT_FOR_DEFAULT_S))))
}

/// Where statistics are listed.
const KNOWN: &str = "see GET /api/v1/analytics/statistics or analytics list";

fn subject(
    text: &dyn Fn(&str) -> Option<String>,
    value: &dyn Fn(&str) -> Option<Value>,
) -> Result<Subject, Wrong> {
    let when = text("when").unwrap_or_default();
    if let Some((event, ..)) = Event::ALL.iter().find(|(_, name, _)| *name == when) {
        let days = value("days_left").and_then(|v| v.as_integer());
        let days = days.and_then(|days| u64::try_from(days).ok());
        return Ok(Subject::Event(match (event, days) {
            (Event::Certificate { .. }, Some(days)) => Event::Certificate { days },
            _ => *event,
        }));
    }
    let id = text("statistic").ok_or_else(|| {
        let hint = "set statistic, as nfs3.ops[op=read], or when to an event";
        wrong("statistic", "an alert on a statistic needs one", hint)
    })?;
    let stat: StatId =
        id.parse().map_err(|e: probe::stat::StatError| wrong("statistic", e.to_string(), KNOWN))?;
    schema().check(&stat).map_err(|e| wrong("statistic", e.to_string(), KNOWN))?;
    let limit = value("limit").and_then(|v| v.as_integer()).ok_or_else(|| {
        wrong("limit", "an alert on a statistic needs a limit", "set limit, as 10000")
    })?;
    let above = text("condition").as_deref() != Some("below");
    if let Some(breakdown) = &stat.breakdown {
        if schema().is_range(breakdown) {
            let hint = "choose a range, as nfs3.ops[latency=100000000-]";
            let why = format!("{breakdown} has ranges, not elements");
            return Err(wrong("statistic", why, hint));
        }
        if !above {
            let hint = "name the element, as nfs3.ops[client=10.0.0.7], or take condition=above";
            let why = "with a breakdown, below is always true for idle elements";
            return Err(wrong("statistic", why, hint));
        }
    }
    Ok(Subject::Statistic { stat, above, limit: limit as f64 })
}
