//! FTP in the one tree: settings and state of the service. The crate `service` applies changes.

use ::base::limits::{FTP_ATTEMPTS_MAX, FTP_CONNECTIONS_MAX, FTP_IDLE, FTP_PER_ADDRESS_MAX};
use ::base::node::{Context, Default, Kind, Property, Shape, service};

use crate::files::settings::{LOGIN_ROOT, UMASK, UPLOADS};

const LINE: Kind = Kind::Text { max: 256, shape: Shape::Line };

/// `/configuration/services/ftp`.
pub static NODE: Context = Context::new(
    "ftp",
    "FTP",
    "Serves shares over FTP and FTPS, to users by their passwords.",
    "services",
)
.statistics(&["ftp.ops[op]", "ftp.bytes[client]"])
.actions(&[service::RESTART])
.properties(::base::service_properties![
    Property::setting(
        "tls",
        "TLS for commands",
        Kind::Choice(&[
            ("off", "It is not offered; passwords can be read on the way."),
            ("offered", "Who asks for it gets it (AUTH TLS)."),
            ("required", "Nobody signs in without it."),
        ]),
        Default::Text("offered"),
        "Whether clients may or must encrypt what they say and are told.",
    ),
    Property::setting(
        "protect_data",
        "Protect data",
        Kind::Bool,
        Default::Bool(false),
        "Whether files and listings must be encrypted as well (PROT P).",
    ),
    Property::setting(
        "session_reuse",
        "Session reuse",
        Kind::Bool,
        Default::Bool(false),
        "Whether an encrypted data connection must resume the TLS session of its control \
         connection, so that nobody else can take it. Some clients cannot.",
    ),
    Property::setting(
        "implicit",
        "Implicit TLS",
        Kind::Bool,
        Default::Bool(true),
        "Whether there is a second port (990) at which TLS comes first.",
    )
    .at_service_restart(),
    Property::setting(
        "passive_ports",
        "Passive ports",
        LINE,
        Default::None,
        "Ports that data connections are opened at, FIRST-LAST, for firewalls between. Without it: \
         any.",
    )
    .example("30000-30999"),
    Property::setting(
        "masquerade_address",
        "Masquerade address",
        Kind::Text { max: 15, shape: Shape::Address },
        Default::None,
        "The IPv4 address that clients are told to open data connections to, where they reach this \
         machine by another one than its own.",
    )
    .example("192.0.2.7"),
    Property::setting(
        "connections_max",
        "Connections at most",
        Kind::Integer { min: 1, max: FTP_CONNECTIONS_MAX as i64 },
        Default::Integer(FTP_CONNECTIONS_MAX as i64),
        "How many clients may be connected at once.",
    )
    .example("100"),
    Property::setting(
        "per_address_max",
        "Connections of one address",
        Kind::Integer { min: 1, max: FTP_CONNECTIONS_MAX as i64 },
        Default::Integer(FTP_PER_ADDRESS_MAX as i64),
        "How many connections one address may have at once.",
    )
    .example("20"),
    Property::setting(
        "attempts_max",
        "Sign-ins tried",
        Kind::Integer { min: 1, max: 100 },
        Default::Integer(FTP_ATTEMPTS_MAX as i64),
        "Wrong passwords after which a connection is closed.",
    )
    .example("5"),
    Property::setting(
        "idle",
        "Idle",
        Kind::Seconds { min: 10, max: 86_400 },
        Default::Integer(FTP_IDLE.as_secs() as i64),
        "Time without a command after which a connection is closed.",
    )
    .unit("s")
    .example("120"),
    UMASK,
    UPLOADS,
    LOGIN_ROOT,
    Property::setting(
        "anonymous",
        "Anonymous",
        Kind::Bool,
        Default::Bool(false),
        "Whether anonymous and ftp are let in with any password, as nobody (65534).",
    ),
    Property::setting(
        "greeting",
        "Greeting",
        LINE,
        Default::Text("Plimsoll"),
        "What is said to those who connect.",
    )
    .example("Files of the lab"),
    service::CERTIFICATE,
    service::CERTIFICATE_SHOWN,
    service::CERTIFICATE_PROBLEM,
]);
