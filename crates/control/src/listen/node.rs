//! The administration as a service, in the tree: its address, its sessions, its log level.

use base::node::{Context, Kind, Property, Shape, service};

/// Its name, in the tree and in the log.
pub const ADMINISTRATION: &str = "administration";

/// `/configuration/services/administration`. It cannot be disabled: there would be no way to enable
/// it again.
pub static NODE: Context = Context::new(
    ADMINISTRATION,
    "Administration",
    "Browser interface, API and command line. Always enabled.",
    "services",
)
.properties(&[
    service::STATE,
    service::UPTIME,
    service::LISTEN,
    Property::state("socket", "Local socket", PATH, "Local socket for commands on this machine."),
    Property::state(
        "connections",
        "Connections",
        COUNT,
        "Current network connections of browsers and programs.",
    ),
    Property::state(
        "connections_ended",
        "Connections ended",
        COUNT,
        "Network connections refused because of the limit, or closed before sign-in to make room \
         for newer ones.",
    ),
    Property::state("sessions", "Sessions", COUNT, "Signed-in browser sessions."),
    service::LOG_LEVEL,
    service::LOG,
]);

const COUNT: Kind = Kind::Integer { min: 0, max: i64::MAX };
const PATH: Kind = Kind::Text { max: 4_096, shape: Shape::Path };
