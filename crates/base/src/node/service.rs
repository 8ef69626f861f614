//! What every service has in the tree, declared once: whether it is to serve, how it is, whom it
//! serves, what it tells. A service's room adds its own and says
//! [`service_properties!`](crate::service_properties); `service` reports the states.

use super::{Action, Default, Kind, Property, Shape};
use crate::log::Level;

/// Newest lines of its log that a service shows.
pub const LOG_SHOWN: usize = 20;

/// The states of a service, after those of the original.
pub const STATES: &[(&str, &str)] = &[
    ("online", "it serves"),
    ("disabled", "somebody wants it so"),
    ("offline", "it is on its way up or down"),
    ("maintenance", "it should serve and cannot; reason says why, restart tries again"),
];

/// Whether it is to serve.
pub const ENABLED: Property = Property::setting(
    "enabled",
    "Enabled",
    Kind::Bool,
    Default::Bool(true),
    "Whether it is to serve. Disabled, it answers what it has taken, cuts its clients off, and \
     listens no more; everything else goes on.",
);

/// How it is.
pub const STATE: Property =
    Property::state("state", "State", Kind::Choice(STATES), "Whether it serves.");

/// Why it is not online.
pub const REASON: Property =
    Property::state("reason", "Reason", LINE, "Why it is not online, if it is not.");

/// Since when.
pub const UPTIME: Property =
    Property::state("uptime", "Uptime", SECONDS, "How long it has been online.").unit("s");

/// Where it listens.
pub const LISTEN: Property = Property::state("listen", "Listens on", LINE, "Address and port.");

/// Connections of clients.
pub const CONNECTIONS: Property =
    Property::state("connections", "Connections", COUNT, "Connections of clients now.");

/// Machines with connections.
pub const CLIENTS: Property = Property::state(
    "clients",
    "Clients",
    COUNT,
    "Addresses from which there are connections now: whom it would cut off to disable the service.",
);

/// How much it tells.
pub const LOG_LEVEL: Property = Property::setting(
    "log_level",
    "Log level",
    Kind::Choice(Level::CHOICES),
    Default::Text(Level::Info.name()),
    "How much the service tells in its log, from now on.",
)
.example("debug");

/// What it told.
pub const LOG: Property = Property::state(
    "log",
    "Log",
    Kind::List { of: &LINE, max: LOG_SHOWN },
    "The newest lines of its log.",
);

/// Which certificate is shown.
pub const CERTIFICATE: Property = Property::setting(
    "certificate",
    "Certificate",
    Kind::Text { max: 64, shape: Shape::Name },
    Default::None,
    "Which certificate of the configuration is shown to clients that ask for TLS. Without it, and \
     as long as it cannot be used, it is what the administration shows.",
)
.items_of("/configuration/certificates")
.example("office");

/// What is shown.
pub const CERTIFICATE_SHOWN: Property = Property::state(
    "certificate_shown",
    "Certificate shown",
    LINE,
    "The name of the certificate that is shown to clients that ask for TLS.",
);

/// Why it is another one.
pub const CERTIFICATE_PROBLEM: Property = Property::state(
    "certificate_problem",
    "Problem with the certificate",
    LINE,
    "Why it is not the one that is named.",
);

/// Ends it and begins it again.
pub const RESTART: Action = Action::new(
    "restart",
    "Restart",
    "Ends the service and begins it again, with settings that wait for that; also tries again when \
     it is in maintenance. Clients are cut off, come back, and may reclaim what they held.",
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
