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
    "Notifications for statistics that cross a limit and for failures: mail, webhook, syslog, and \
     always the log.",
    SCOPE,
)
.properties(&[
    Property::state(
        "firing",
        "Firing",
        Kind::List { of: &LINE, max: ALERTS_MAX },
        "Firing alerts, each with its last value.",
    ),
    Property::state(
        "recent",
        "Recent",
        Kind::List { of: &LINE, max: ALERT_RECENT_MAX },
        "Events since the server started, newest first, times in UTC.",
    ),
    Property::setting(
        "smtp_host",
        "Mail server",
        Kind::Text { max: ALERT_TEXT_MAX, shape: Shape::Host },
        Default::None,
        "Outgoing mail server (RFC 5321).",
    )
    .example("mail.example.org"),
    Property::setting(
        "smtp_port",
        "Mail port",
        Kind::Integer { min: 1, max: 65_535 },
        Default::Integer(587),
        "Port of the mail server: 587 for submission, 465 for submission over TLS, 25 within a \
         site.",
    )
    .example("587"),
    Property::setting(
        "smtp_security",
        "Mail security",
        Kind::Choice(&[
            ("starttls", "upgrade to TLS, required (RFC 3207)"),
            ("tls", "TLS from the first byte (RFC 8314)"),
            ("none", "no encryption; passwords are not sent"),
        ]),
        Default::Text("starttls"),
        "Encryption of the connection to the mail server.",
    )
    .example("tls"),
    Property::setting(
        "smtp_user",
        "Mail user",
        LINE_KIND,
        Default::Text(""),
        "User name for the mail server; empty: no authentication.",
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
        "PEM file of additional CA certificates for mail and web servers.",
    )
    .example("/etc/ssl/our-ca.pem"),
])
.items(&Items::configured("alert", "alerts", &NAME, ALERTS_MAX, &ALERT));

const EMAIL_KIND: Kind = Kind::Text { max: ALERT_TEXT_MAX, shape: Shape::Email };

static ALERT: Context = Context::new(
    "alert",
    "Alert",
    "A condition, its minimum duration, a schedule, and notifications. An alert fires once when \
     its condition is met, and can fire again after it has cleared.",
    SCOPE,
)
.properties(&PROPERTIES)
.actions(&[Action::new(
    "test",
    "Test",
    "Sends a test message to all recipients of the alert.",
    "Successful deliveries, as {\"delivered\"}.",
)]);

static PROPERTIES: [Property; 28] = [
    Property::state("sentence", "Sentence", LINE_KIND, "The alert as a sentence."),
    Property::state("state", "State", LINE_KIND, "State: quiet, waiting, firing or disabled."),
    Property::state("last_fired", "Last fired", Kind::Time, "Last time it fired.").absent("never"),
    WHEN,
    Property::setting(
        "statistic",
        "Statistic",
        LINE_KIND,
        Default::None,
        "Statistic id, with optional filters. With a breakdown at the end, as nfs.ops[client], \
         each element is compared with the limit.",
    )
    .required()
    .only_if("when", ON_STATISTIC)
    .example("nfs3.ops[op=read]"),
    Property::setting(
        "condition",
        "Condition",
        Kind::Choice(&[("above", "above the limit"), ("below", "below the limit")]),
        Default::Text("above"),
        "Side of the limit that meets the condition.",
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
        "Days before expiry at which the alert fires.",
    )
    .unit("days")
    .only_if("when", &["certificate"])
    .example("30"),
    Property::setting(
        "for",
        "For",
        SPAN,
        Default::Integer(30),
        "Minimum duration of the condition before the alert fires.",
    )
    .unit("s")
    .example("5m"),
    Property::setting(
        "clear_for",
        "Clear for",
        SPAN,
        Default::Integer(30),
        "Minimum duration without the condition before the alert clears.",
    )
    .unit("s")
    .example("5m"),
    Property::setting(
        "repeat",
        "Repeat every",
        Kind::Seconds { min: 0, max: ALERT_TIME_MAX_S },
        Default::Integer(0),
        "Repeat interval of notifications while the alert is firing; 0: no repeats.",
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
        "Start of the time of day in which it may fire, in the time zone of the server.",
    )
    .example("08:00"),
    Property::setting(
        "until",
        "Until",
        LINE_KIND,
        Default::Text("24:00"),
        "End of the time of day in which it may fire; earlier than from: past midnight.",
    )
    .example("18:00"),
    Property::setting(
        "mail",
        "Mail to",
        Kind::List { of: &EMAIL, max: ALERT_MAIL_MAX },
        Default::List(&[]),
        "Recipients of mail; configure the mail server in configuration/alerts.",
    )
    .example("ops@example.org"),
    Property::setting(
        "webhook",
        "Webhook",
        LINE_OR_URL,
        Default::None,
        "URL to which a JSON message is posted.",
    )
    .example("https://chat.example.org/hooks/storage"),
    Property::secret(
        "webhook_secret",
        "Webhook secret",
        LINE_KIND,
        "Key for the header X-Plimsoll-Signature: sha256=HEX, the HMAC-SHA256 of the body.",
    ),
    Property::setting(
        "syslog",
        "Syslog to",
        LINE_KIND,
        Default::Text(""),
        "Destination of an RFC 5424 message: udp://HOST:514, tcp://HOST:514 or unix:/dev/log.",
    )
    .example("udp://10.0.0.5:514"),
    Property::setting(
        "keep",
        "Start recording",
        LINE_KIND,
        Default::Text(""),
        "Statistic to record at one-second resolution when the alert fires: one with more filters \
         than are always recorded. See analytics/datasets.",
    )
    .example("nfs3.ops[op=read][share=data][file]"),
    kept_for("keep_for", "Keep for", "Recording time after the alert last fired."),
    Property::setting(
        "enabled",
        "Enabled",
        Kind::Bool,
        Default::Bool(true),
        "Whether the alert is enabled.",
    )
    .example("true"),
    Property::state("value", "Value", LINE_KIND, "Current value with its unit."),
    Property::state("since", "Since", Kind::Time, "Start of firing.").absent("not now"),
    Property::state("fired", "Fired", COUNT, "Number of times it fired since the server started."),
    Property::state("delivered", "Delivered", COUNT, "Messages delivered since then."),
    Property::state("waiting", "Waiting", COUNT, "Messages queued for delivery or retry."),
    Property::state(
        "delivery_error",
        "Delivery error",
        LINE_KIND,
        "Last delivery error; cleared by the next successful delivery.",
    ),
    Property::state(
        "keep_error",
        "Keep error",
        LINE_KIND,
        "Why the last recording could not be started.",
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
        ("dropped", "operations are not counted"),
        ("store", "statistics cannot be stored"),
        ("space", "the file system of the state directory is nearly full"),
        ("certificate", "a certificate expires soon, or issue or renewal failed"),
        ("replication", "the last run of a replication action failed"),
        ("network", "a link of the network has no carrier or is missing"),
        ("hardware", "the hardware or the fabric has a fault"),
        ("takeover", "a resource of the cluster was taken over in the last 5 minutes"),
        ("cluster", "a resource of the cluster has no owner, or the cluster has another fault"),
        ("fault", "requests fail because of a server defect"),
    ]),
    Default::Text("statistic"),
    "Condition type. All but statistic are events, without statistic and limit.",
)
.example("statistic");
