//! Echo in the one tree: settings and state of the service. The crate `service` applies changes.

use ::base::limits::ECHO_IDLE;
use ::base::node::{Context, Default, Kind, Property, service};

/// `/configuration/services/echo`.
pub static NODE: Context = Context::new(
    "echo",
    "Echo",
    "Sends back what comes, to users by their passwords. For tests only.",
    "services",
)
.statistics(&["echo.ops[op]", "echo.ops[user]"])
.actions(&[service::RESTART])
.properties(::base::service_properties![
    Property::setting(
        "idle",
        "Idle",
        Kind::Seconds { min: 1, max: 86_400 },
        Default::Integer(ECHO_IDLE.as_secs() as i64),
        "Time without a line after which a connection is closed.",
    )
    .unit("s")
    .example("120"),
]);
