//! Alerts as nodes of the tree.

use base::limits::{
    ALERT_CERTIFICATE_DAYS, ALERT_MAIL_MAX, ALERT_NAME_MAX, ALERT_RECENT_MAX, ALERT_TEXT_MAX,
    ALERT_TIME_MAX_S, ALERTS_MAX,
};
use base::node::{Action, Context, Default, Items, Kind, Property, Shape};

use crate::node::{LINE_KIND, kept_for};

const SCOPE: &str = "analytics";

static NAME: Kind = Kind::Text { max: ALERT_NAME_MAX, shape: Shape::Name };
static LINE: Kind = LINE_KIND;
static EMAIL: Kind = Kind::Text { max: ALERT_TEXT_MAX, shape: Shape::Email };
const COUNT: Kind = Kind::Integer { min: 0, max: i64::MAX };
const SPAN: Kind = Kind::Seconds { min: 1, max: ALERT_TIME_MAX_S };

/// `/configuration/alerts`.
pub static ALERTS: Context = Context::new(
    "alerts",
    "Alerts",
    "Tells people when a statistic crosses a limit or something is wrong: by mail, webhook or \
     syslog, and always in the log.",
    SCOPE,
)
.properties(&[
    Property::state(
        "firing",
        "Firing",
        Kind::List { of: &LINE, max: ALERTS_MAX },
        "Alerts whose condition is met now, each with its last value.",
    ),
    Property::state(
        "recent",
        "Recent",
        Kind::List { of: &LINE, max: ALERT_RECENT_MAX },
        "What happened since the server started, the newest first, times in UTC.",
    ),
    Property::setting(
        "smtp_host",
        "Mail server",
        Kind::Text { max: ALERT_TEXT_MAX, shape: Shape::Host },
        Default::None,
        "The server that takes mail from us (RFC 5321).",
    )
    .example("mail.example.org"),
    Property::setting(
        "smtp_port",
        "Mail port",
        Kind::Integer { min: 1, max: 65_535 },
        Default::Integer(587),
        "Its port: 587 for submission, 465 for submission over TLS, 25 inside a site.",
    )
    .example("587"),
    Property::setting(
        "smtp_security",
        "Mail security",
        Kind::Choice(&[
            ("starttls", "begins in the clear and must change to TLS (RFC 3207)"),
            ("tls", "TLS from the first byte (RFC 8314)"),
            ("none", "in the clear; passwords are not sent"),
        ]),
        Default::Text("starttls"),
        "How the connection to the mail server is protected.",
    )
    .example("tls"),
    Property::setting(
        "smtp_user",
        "Mail user",
        LINE_KIND,
        Default::Text(""),
        "The name to sign in to the mail server with; empty: it takes mail without.",
    )
    .example("plimsoll"),
    Property::secret("smtp_password", "Mail password", LINE_KIND, "The password of that user."),
    Property::setting(
        "mail_from",
        "Mail from",
        EMAIL_KIND,
        Default::None,
        "The sender of the mails.",
    )
    .example("plimsoll@example.org"),
    Property::setting(
        "trusted_certificates",
        "Trusted certificates",
        Kind::Text { max: ALERT_TEXT_MAX, shape: Shape::Path },
        Default::None,
        "A PEM file of authorities that mail and web servers are trusted by, beside those of this \
         machine.",
    )
    .example("/etc/ssl/our-ca.pem"),
])
.items(&Items::configured("alert", "alerts", &NAME, ALERTS_MAX, &ALERT));

const EMAIL_KIND: Kind = Kind::Text { max: ALERT_TEXT_MAX, shape: Shape::Email };

static ALERT: Context = Context::new(
    "alert",
    "Alert",
    "A condition, how long it must last, when it counts, and what to do. It fires once each time \
     the condition comes to be met, and again after it has cleared.",
    SCOPE,
)
.properties(&PROPERTIES)
.actions(&[Action::new(
    "test",
    "Test",
    "Sends a trial message to everyone whom the alert would tell, now.",
    "Where it arrived, as {\"delivered\"}.",
)]);

static PROPERTIES: [Property; 28] = [
    Property::state("sentence", "Sentence", LINE_KIND, "The alert as a sentence."),
    Property::state(
        "state",
        "State",
        LINE_KIND,
        "How it stands: quiet, waiting, firing, or disabled.",
    ),
    Property::state("last_fired", "Last fired", Kind::Time, "When it fired last.").absent("never"),
    WHEN,
    Property::setting(
        "statistic",
        "Statistic",
        LINE_KIND,
        Default::None,
        "A statistic id, narrowed as far as you like. With a breakdown at its end, as \
         nfs.ops[client], any one of the elements counts.",
    )
    .required()
    .only_if("when", ON_STATISTIC)
    .example("nfs3.ops[op=read]"),
    Property::setting(
        "condition",
        "Condition",
        Kind::Choice(&[("above", "above the limit"), ("below", "below the limit")]),
        Default::Text("above"),
        "On which side of the limit it is bad.",
    )
    .only_if("when", ON_STATISTIC)
    .example("above"),
    Property::setting(
        "limit",
        "Limit",
        COUNT,
        Default::None,
        "The limit, in the unit of the statistic.",
    )
    .required()
    .only_if("when", ON_STATISTIC)
    .example("10000"),
    Property::setting(
        "days_left",
        "Days left",
        Kind::Integer { min: 1, max: 365 },
        Default::Integer(ALERT_CERTIFICATE_DAYS),
        "How many days before a certificate ends it is time to be told.",
    )
    .unit("days")
    .only_if("when", &["certificate"])
    .example("30"),
    Property::setting(
        "for",
        "For",
        SPAN,
        Default::Integer(30),
        "How long the condition must last before the alert fires.",
    )
    .unit("s")
    .example("5m"),
    Property::setting(
        "clear_for",
        "Clear for",
        SPAN,
        Default::Integer(30),
        "How long the condition must be gone before the alert has cleared and can fire again.",
    )
    .unit("s")
    .example("5m"),
    Property::setting(
        "repeat",
        "Repeat every",
        Kind::Seconds { min: 0, max: ALERT_TIME_MAX_S },
        Default::Integer(0),
        "How often it is told again while it lasts; 0: once is enough.",
    )
    .unit("s")
    .example("1h"),
    Property::setting(
        "days",
        "Days",
        Kind::Choice(&[
            ("all", "every day"),
            ("weekdays", "Monday to Friday"),
            ("weekends", "Saturday and Sunday"),
        ]),
        Default::Text("all"),
        "Days on which it may fire, in the time zone of the server.",
    )
    .example("weekdays"),
    Property::setting(
        "from",
        "From",
        LINE_KIND,
        Default::Text("00:00"),
        "The time of day from which on it may fire, in the time zone of the server.",
    )
    .example("08:00"),
    Property::setting(
        "until",
        "Until",
        LINE_KIND,
        Default::Text("24:00"),
        "The time of day until which it may fire; earlier than from: over midnight.",
    )
    .example("18:00"),
    Property::setting(
        "mail",
        "Mail to",
        Kind::List { of: &EMAIL, max: ALERT_MAIL_MAX },
        Default::List(&[]),
        "Who gets a mail; the mail server is set in configuration/alerts.",
    )
    .example("ops@example.org"),
    Property::setting(
        "webhook",
        "Webhook",
        LINE_OR_URL,
        Default::None,
        "A URL that a JSON message is posted to.",
    )
    .example("https://chat.example.org/hooks/storage"),
    Property::secret(
        "webhook_secret",
        "Webhook secret",
        LINE_KIND,
        "With it, a message has a header X-Plimsoll-Signature: sha256=HEX, the HMAC-SHA256 of its \
         body.",
    ),
    Property::setting(
        "syslog",
        "Syslog to",
        LINE_KIND,
        Default::Text(""),
        "Where a message of RFC 5424 goes: udp://HOST:514, tcp://HOST:514 or unix:/dev/log.",
    )
    .example("udp://10.0.0.5:514"),
    Property::setting(
        "keep",
        "Start keeping",
        LINE_KIND,
        Default::Text(""),
        "A statistic that is kept by the second from then on, with its breakdown: one that is \
         narrowed so far that it is not kept anyway. analytics/datasets shows it.",
    )
    .example("nfs3.ops[op=read][share=data][file]"),
    kept_for(
        "keep_for",
        "Keep for",
        "How long it is kept by the second after the alert has fired last.",
    ),
    Property::setting(
        "enabled",
        "Enabled",
        Kind::Bool,
        Default::Bool(true),
        "Whether it is watched.",
    )
    .example("true"),
    Property::state("value", "Value", LINE_KIND, "The value of the last second, with its unit."),
    Property::state("since", "Since", Kind::Time, "Since when it is firing.").absent("not now"),
    Property::state("fired", "Fired", COUNT, "How often it fired since the server started."),
    Property::state("delivered", "Delivered", COUNT, "Messages that arrived since then."),
    Property::state("waiting", "Waiting", COUNT, "Messages that are to be sent or sent again."),
    Property::state(
        "delivery_error",
        "Delivery error",
        LINE_KIND,
        "Why the last message that did not arrive did not; empty once one arrives there.",
    ),
    Property::state(
        "keep_error",
        "Keep error",
        LINE_KIND,
        "Why the statistic could not be kept when it fired last.",
    ),
];

const LINE_OR_URL: Kind = Kind::Text { max: ALERT_TEXT_MAX, shape: Shape::Url };

/// What only an alert on a statistic has.
const ON_STATISTIC: &[&str] = &["statistic"];

const WHEN: Property = Property::setting(
    "when",
    "When",
    Kind::Choice(&[
        ("statistic", "a statistic crosses its limit"),
        ("service", "a service is not online"),
        ("dropped", "operations go uncounted"),
        ("store", "statistics cannot be kept"),
        ("space", "the file system of the state directory is nearly full"),
        ("certificate", "a certificate ends soon, or cannot be had or renewed"),
        ("replication", "a replication action has failed when it ran last"),
        ("fault", "requests fail by a fault of the server"),
    ]),
    Default::Text("statistic"),
    "What is watched. All but the first are events and take no statistic and no limit.",
)
.example("statistic");
