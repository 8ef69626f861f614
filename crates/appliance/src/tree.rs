//! The one tree of administration: the declarations of all rooms under one root. A new node is
//! declared in its room, and named here once.

use base::log::Level;
use base::node::service::LOG_SHOWN;
use base::node::{Context, Default, Kind, Property, Shape};
use control::accounts::node;
use control::certificates::node::CERTIFICATES;
use control::replication::node::REPLICATION;
use control::sessions::node::{PREFERENCES, SESSIONS};
use control::transfers::node::TRANSFERS;
use service::tree::SERVICES;

/// The root.
pub static ROOT: Context = Context::new(
    "",
    "Plimsoll",
    "The appliance: its configuration, what it serves, and what it does now.",
    "status",
)
.children(&[
    &CONFIGURATION,
    &vfs::share::node::NODE,
    &analytics::node::ANALYTICS,
    &MAINTENANCE,
    &STATUS,
    &lab::node::NODE,
]);

static CONFIGURATION: Context = Context::new(
    "configuration",
    "Configuration",
    "What is decided once: services, and who may do what.",
    "configuration",
)
.children(&[
    &SERVICES,
    &node::USERS,
    &node::ROLES,
    &node::TOKENS,
    &CERTIFICATES,
    &analytics::alert::node::ALERTS,
    &REPLICATION,
    &PREFERENCES,
]);

static MAINTENANCE: Context = Context::new(
    "maintenance",
    "Maintenance",
    "The program itself: what runs, and where it keeps things.",
    "maintenance",
)
.children(&[&LOGS, &SESSIONS, &SYSTEM]);

static LOGS: Context = Context::new(
    "logs",
    "Logs",
    "What the server has told since its start; older lines are in the journal of the machine, and \
     who did what is in the audit log.",
    "maintenance",
)
.properties(&[
    Property::setting(
        "level",
        "Level",
        Kind::Choice(Level::CHOICES),
        Default::Text(Level::Info.name()),
        "How much the program tells of itself, from now on; services have a log_level each.",
    )
    .example("debug"),
    Property::state("lines", "Lines", COUNT, "How many lines were told since the start."),
    Property::state(
        "recent",
        "Recent",
        Kind::List { of: &LINE, max: LOG_SHOWN },
        "The newest lines, each with the service that tells it.",
    ),
])
.children(&[&TRANSFERS]);

static SYSTEM: Context =
    Context::new("system", "System", "The running program and its state directory.", "maintenance")
        .properties(&[
            Property::state("version", "Version", LINE, "Version of the program."),
            Property::state("host", "Host", LINE, "Name of this machine."),
            Property::state("pid", "Process", COUNT, "Number of the server's process."),
            Property::state("started", "Started", Kind::Time, "When the server started."),
            Property::state("uptime", "Uptime", SECONDS, "How long it has been running.").unit("s"),
            Property::state(
                "state_directory",
                "State directory",
                PATH,
                "Where it keeps its own files.",
            ),
            Property::state("listen", "Administration", LINE, "Where the administration listens."),
        ]);

static STATUS: Context =
    Context::new("status", "Status", "Whether all is well, and what is wrong if not.", "status")
        .properties(&[
            Property::state("healthy", "Healthy", Kind::Bool, "Whether nothing is wrong."),
            Property::state(
                "problems",
                "Problems",
                Kind::List { of: &LINE, max: 1_000 },
                "What is wrong, one sentence each.",
            ),
            Property::state("acting_as", "Acts as", LINE, "With whose rights files are opened."),
            Property::state(
                "shares",
                "Shares",
                Kind::List { of: &LINE, max: 100_000 },
                "What is served.",
            ),
        ]);

const LINE: Kind = Kind::Text { max: 4_096, shape: Shape::Line };
const PATH: Kind = Kind::Text { max: 4_096, shape: Shape::Path };
const COUNT: Kind = Kind::Integer { min: 0, max: i64::MAX };
const SECONDS: Kind = Kind::Seconds { min: 0, max: u32::MAX as u64 };

#[cfg(test)]
mod tests;
