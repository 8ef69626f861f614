//! The administration as a service, in the tree: where it listens, who is on it, what it tells.

use base::node::{Context, Kind, Property, Shape, service};

/// Its name, in the tree and in the log.
pub const ADMINISTRATION: &str = "administration";

/// `/configuration/services/administration`. It cannot be disabled: nobody could enable it again.
pub static NODE: Context = Context::new(
    ADMINISTRATION,
    "Administration",
    "The browser pages, the API and the command line. It is always on.",
    "services",
)
.properties(&[
    service::STATE,
    service::UPTIME,
    service::LISTEN,
    Property::state("socket", "Local socket", PATH, "Where commands on this machine reach it."),
    Property::state(
        "connections",
        "Connections",
        COUNT,
        "Connections over the network now, those of browsers and programs alike.",
    ),
    Property::state(
        "connections_ended",
        "Connections ended",
        COUNT,
        "Connections over the network that were refused because there were too many, or closed \
         before anybody had signed in on them to make room for newer ones.",
    ),
    Property::state("sessions", "Sessions", COUNT, "Browsers that are signed in."),
    service::LOG_LEVEL,
    service::LOG,
]);

const COUNT: Kind = Kind::Integer { min: 0, max: i64::MAX };
const PATH: Kind = Kind::Text { max: 4_096, shape: Shape::Path };
