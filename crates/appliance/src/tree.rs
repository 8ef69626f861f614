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
use service::cluster::node::CLUSTER;
use service::fabric::node::FABRIC;
use service::hardware::node::HARDWARE;
use service::network::node::NETWORK;
use service::pools::node::STORAGE;
use service::problems::node::PROBLEMS;
use service::tree::SERVICES;

/// The root.
pub static ROOT: Context = Context::new(
    "",
    "Plimsoll",
    "The appliance: configuration, storage, shares, statistics and status.",
    "status",
)
.children(&[
    &CONFIGURATION,
    &STORAGE,
    &vfs::share::node::NODE,
    &analytics::node::ANALYTICS,
    &CLUSTER,
    &MAINTENANCE,
    &STATUS,
    &lab::node::NODE,
]);

static CONFIGURATION: Context = Context::new(
    "configuration",
    "Configuration",
    "Settings of the appliance: services, network, users, roles, certificates, alerts and \
     replication.",
    "configuration",
)
.children(&[
    &SERVICES,
    &NETWORK,
    &serve::iscsi::node::SAN,
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
    "The machine and the running program: hardware, fabric, problems, logs, sessions, version and \
     state directory.",
    "maintenance",
)
.children(&[&HARDWARE, &FABRIC, &PROBLEMS, &LOGS, &SESSIONS, &SYSTEM]);

static LOGS: Context = Context::new(
    "logs",
    "Logs",
    "Log of the server since its start. Older lines are in the system journal; changes by \
     administrators are in the audit log.",
    "maintenance",
)
.properties(&[
    Property::setting(
        "level",
        "Level",
        Kind::Choice(Level::CHOICES),
        Default::Text(Level::Info.name()),
        "Log level of the program; takes effect immediately. Each service has its own log_level.",
    )
    .example("debug"),
    Property::state("lines", "Lines", COUNT, "Number of log lines since the start."),
    Property::state(
        "recent",
        "Recent",
        Kind::List { of: &LINE, max: LOG_SHOWN },
        "Most recent lines, each with its service.",
    ),
])
.children(&[&TRANSFERS]);

static SYSTEM: Context =
    Context::new("system", "System", "Process and state directory of the server.", "maintenance")
        .properties(&[
            Property::state("version", "Version", LINE, "Version of the program."),
            Property::state("host", "Host", LINE, "Host name of this machine."),
            Property::state("pid", "Process", COUNT, "Process id of the server."),
            Property::state("started", "Started", Kind::Time, "When the server started."),
            Property::state("uptime", "Uptime", SECONDS, "Time since the start.").unit("s"),
            Property::state("state_directory", "State directory", PATH, "State directory."),
            Property::state(
                "listen",
                "Administration",
                LINE,
                "Listen address of the administration service.",
            ),
        ]);

static STATUS: Context =
    Context::new("status", "Status", "Health of the appliance and current problems.", "status")
        .properties(&[
            Property::state("healthy", "Healthy", Kind::Bool, "Whether there are no problems."),
            Property::state(
                "problems",
                "Problems",
                Kind::List { of: &LINE, max: 1_000 },
                "Current problems, one sentence each.",
            ),
            Property::state(
                "machine_problems",
                "Problems of the machine",
                COUNT,
                "Number of problems in /maintenance/problems.",
            ),
            Property::state("acting_as", "Acts as", LINE, "Identity used for file access."),
            Property::state(
                "shares",
                "Shares",
                Kind::List { of: &LINE, max: 100_000 },
                "Served shares.",
            ),
        ]);

const LINE: Kind = Kind::Text { max: 4_096, shape: Shape::Line };
const PATH: Kind = Kind::Text { max: 4_096, shape: Shape::Path };
const COUNT: Kind = Kind::Integer { min: 0, max: i64::MAX };
const SECONDS: Kind = Kind::Seconds { min: 0, max: u32::MAX as u64 };

#[cfg(test)]
mod tests;
