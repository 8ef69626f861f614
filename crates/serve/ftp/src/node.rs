//! FTP in the one tree: settings and state of the service. The crate `service` applies changes.

use ::base::limits::{FTP_ATTEMPTS_MAX, FTP_CONNECTIONS_MAX, FTP_IDLE, FTP_PER_ADDRESS_MAX};
use ::base::node::{Context, Default, Kind, Property, Shape, service};

use files::settings::{LOGIN_ROOT, UMASK, UPLOADS};

const LINE: Kind = Kind::Text { max: 256, shape: Shape::Line };

/// `/configuration/services/ftp`.
pub static NODE: Context = Context::new(
    "ftp",
    "FTP",
    "Serves shares over FTP and FTPS. Users sign in with a password.",
    "services",
)
.statistics(&["ftp.ops[op]", "ftp.bytes[client]"])
.actions(&[service::RESTART])
.properties(::base::service_properties![
    Property::setting(
        "tls",
        "TLS for commands",
        Kind::Choice(&[
            ("off", "Not offered; passwords are sent in clear text."),
            ("offered", "Offered to clients that request it (AUTH TLS)."),
            ("required", "Required before sign-in."),
        ]),
        Default::Text("offered"),
        "TLS on the control connection.",
    ),
    Property::setting(
        "protect_data",
        "Protect data",
        Kind::Bool,
        Default::Bool(false),
        "Whether data connections must be encrypted (PROT P).",
    ),
    Property::setting(
        "session_reuse",
        "Session reuse",
        Kind::Bool,
        Default::Bool(false),
        "Whether an encrypted data connection must resume the TLS session of its control \
         connection. This prevents connection theft; some clients do not support it.",
    ),
    Property::setting(
        "implicit",
        "Implicit TLS",
        Kind::Bool,
        Default::Bool(true),
        "Whether to listen on port 990 for implicit TLS.",
    )
    .at_service_restart(),
    Property::setting(
        "passive_ports",
        "Passive ports",
        LINE,
        Default::None,
        "Port range for passive data connections, FIRST-LAST, for firewalls. Not set: any port.",
    )
    .example("30000-30999"),
    Property::setting(
        "masquerade_address",
        "Masquerade address",
        Kind::Text { max: 15, shape: Shape::Address },
        Default::None,
        "IPv4 address announced for passive data connections, for servers behind NAT.",
    )
    .example("192.0.2.7"),
    Property::setting(
        "connections_max",
        "Maximum connections",
        Kind::Integer { min: 1, max: FTP_CONNECTIONS_MAX as i64 },
        Default::Integer(FTP_CONNECTIONS_MAX as i64),
        "Maximum number of connected clients.",
    )
    .example("100"),
    Property::setting(
        "per_address_max",
        "Connections per address",
        Kind::Integer { min: 1, max: FTP_CONNECTIONS_MAX as i64 },
        Default::Integer(FTP_PER_ADDRESS_MAX as i64),
        "Maximum number of connections per address.",
    )
    .example("20"),
    Property::setting(
        "attempts_max",
        "Sign-in attempts",
        Kind::Integer { min: 1, max: 100 },
        Default::Integer(FTP_ATTEMPTS_MAX as i64),
        "Failed sign-ins after which a connection is closed.",
    )
    .example("5"),
    Property::setting(
        "idle",
        "Idle",
        Kind::Seconds { min: 10, max: 86_400 },
        Default::Integer(FTP_IDLE.as_secs() as i64),
        "Idle timeout of the control connection.",
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
        "Whether to accept the users anonymous and ftp with any password, as nobody (65534).",
    ),
    Property::setting(
        "greeting",
        "Greeting",
        LINE,
        Default::Text("Plimsoll"),
        "Greeting for connecting clients.",
    )
    .example("Files of the lab"),
    service::CERTIFICATE,
    service::CERTIFICATE_SHOWN,
    service::CERTIFICATE_PROBLEM,
]);
