//! What every service has in the tree, declared once: its enable switch, its state, its clients,
//! its log. The crate of a service adds its own properties and invokes
//! [`service_properties!`](crate::service_properties); `service` reports the states.

use super::{Action, Default, Kind, Property, Shape};
use crate::log::Level;

/// Newest lines of its log that a service shows.
pub const LOG_SHOWN: usize = 20;

/// The states of a service, after those of the original.
pub const STATES: &[(&str, &str)] = &[
    ("online", "the service accepts clients"),
    ("disabled", "disabled by an administrator"),
    ("offline", "starting or stopping"),
    ("maintenance", "enabled but failed to start; see reason, and retry with restart"),
];

/// Whether it is to serve.
pub const ENABLED: Property = Property::setting(
    "enabled",
    "Enabled",
    Kind::Bool,
    Default::Bool(true),
    "Whether the service is enabled. Disabling it completes the requests in progress, disconnects \
     its clients and closes its ports; other services are not affected.",
);

/// How it is.
pub const STATE: Property =
    Property::state("state", "State", Kind::Choice(STATES), "State of the service.");

/// Why it is not online.
pub const REASON: Property =
    Property::state("reason", "Reason", LINE, "Why the service is not online.");

/// Since when.
pub const UPTIME: Property =
    Property::state("uptime", "Uptime", SECONDS, "Time since it went online.").unit("s");

/// Where it listens.
pub const LISTEN: Property =
    Property::state("listen", "Listens on", LINE, "Listen address and port.");

/// Connections of clients.
pub const CONNECTIONS: Property =
    Property::state("connections", "Connections", COUNT, "Current client connections.");

/// Machines with connections.
pub const CLIENTS: Property = Property::state(
    "clients",
    "Clients",
    COUNT,
    "Addresses of the connected clients; disabling the service disconnects them.",
);

/// Its log level.
pub const LOG_LEVEL: Property = Property::setting(
    "log_level",
    "Log level",
    Kind::Choice(Level::CHOICES),
    Default::Text(Level::Info.name()),
    "Log level of the service; takes effect immediately.",
)
.example("debug");

/// Its log lines.
pub const LOG: Property = Property::state(
    "log",
    "Log",
    Kind::List { of: &LINE, max: LOG_SHOWN },
    "Most recent lines of its log.",
);

/// Certificate in use.
pub const CERTIFICATE: Property = Property::setting(
    "certificate",
    "Certificate",
    Kind::Text { max: 64, shape: Shape::Name },
    Default::None,
    "Certificate for TLS, by name. If it is not set or not valid, the certificate of the \
     administration service is used.",
)
.items_of("/configuration/certificates")
.example("office");

/// What is shown.
pub const CERTIFICATE_SHOWN: Property = Property::state(
    "certificate_shown",
    "Certificate shown",
    LINE,
    "Name of the TLS certificate in use.",
);

/// Why it is another one.
pub const CERTIFICATE_PROBLEM: Property = Property::state(
    "certificate_problem",
    "Problem with the certificate",
    LINE,
    "Why the configured certificate is not in use.",
);

/// Ends it and begins it again.
pub const RESTART: Action = Action::new(
    "restart",
    "Restart",
    "Restarts the service and applies settings that need a restart; in state maintenance, \
     retries. Clients are disconnected, reconnect, and may reclaim their state.",
    "Nothing.",
)
.destructive();

/// The properties of a service: those that all have, and its own between them.
#[macro_export]
macro_rules! service_properties {
    ($($own:expr),* $(,)?) => {
        &[
            $crate::node::service::ENABLED,
            $crate::node::service::STATE,
            $crate::node::service::REASON,
            $crate::node::service::UPTIME,
            $crate::node::service::LISTEN,
            $crate::node::service::CONNECTIONS,
            $crate::node::service::CLIENTS,
            $($own,)*
            $crate::node::service::LOG_LEVEL,
            $crate::node::service::LOG,
        ]
    };
}

const SECONDS: Kind = Kind::Seconds { min: 0, max: u32::MAX as u64 };
const COUNT: Kind = Kind::Integer { min: 0, max: i64::MAX };
const LINE: Kind = Kind::Text { max: 4_096, shape: Shape::Line };
