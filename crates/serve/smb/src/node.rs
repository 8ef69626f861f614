//! SMB in the one tree: settings and state of the service. The crate `service` applies changes.

use ::base::limits::{SMB_IDLE, SMB_SESSIONS_PER_CONNECTION};
use ::base::node::{Action, Context, Default, Kind, Property, Shape, service};

use files::settings::UMASK;

static LINES: Kind = LINE;
const LINE: Kind = Kind::Text { max: 256, shape: Shape::Line };

/// Durable handles that are listed, of [`SMB_PARKED_MAX`](::base::limits::SMB_PARKED_MAX).
pub const PARKED_SHOWN_MAX: usize = 256;

/// Addresses of which the leases are listed.
pub const CACHING_SHOWN_MAX: usize = 1_024;

/// As of every service, but off by default: with it a hash of passwords that are set is stored
/// then, which is as good as the password (`docs/security.md`).
const ENABLED: Property = Property::setting(
    "enabled",
    "Enabled",
    Kind::Bool,
    Default::Bool(false),
    "Whether the service runs. While it is enabled, passwords are also stored as the NT hash that \
     SMB requires: existing users must set theirs again.",
);

/// `/configuration/services/smb`.
pub static NODE: Context = Context::new(
    "smb",
    "SMB",
    "Serves shares over SMB 2.0.2 to 3.1.1 to Windows, macOS and Linux. Users sign in with NTLM \
     version 2 and passwords that were set while SMB was enabled.",
    "services",
)
.statistics(&["smb.ops[op]", "smb.bytes[client]", "smb.leases[client]", "smb.breaks[outcome]"])
.actions(&[
    service::RESTART,
    Action::new(
        "end_session",
        "End session",
        "Ends a session, or all sessions of a user: open files are closed, locks released. Clients \
         may sign in again; disable the user to prevent that.",
        "Nothing.",
    )
    .parameters(&[Property::setting(
        "session",
        "Session",
        LINE,
        Default::None,
        "Number of the session, as shown in sessions, or name of the user.",
    )
    .required()
    .example("anna")])
    .destructive(),
])
.properties(&[
    ENABLED,
    service::STATE,
    service::REASON,
    service::UPTIME,
    service::LISTEN,
    service::CONNECTIONS,
    service::CLIENTS,
    Property::setting(
        "name",
        "Name",
        Kind::Text { max: 15, shape: Shape::Name },
        Default::Text("plimsoll"),
        "Name of the server, shown to clients that sign in.",
    )
    .example("files"),
    Property::setting(
        "encryption",
        "Encryption",
        Kind::Choice(&[
            ("offered", "Encrypted if the client requests it."),
            ("required", "Always. Clients of SMB 2.0.2 and 2.1 cannot connect."),
            ("off", "Never."),
        ]),
        Default::Text("offered"),
        "Encryption of connections.",
    ),
    Property::setting(
        "signing",
        "Signing",
        Kind::Choice(&[
            ("required", "Refuse requests that are neither signed nor encrypted."),
            ("offered", "Signed if the client requests it."),
        ]),
        Default::Text("required"),
        "Integrity protection of requests and responses.",
    ),
    Property::setting(
        "anonymous",
        "Anonymous",
        Kind::Bool,
        Default::Bool(false),
        "Whether clients may sign in without a user name. Such sessions can connect to IPC$ and \
         request the addresses of the server; they cannot access shares or list them. Not with \
         encryption=required.",
    ),
    Property::setting(
        "multichannel",
        "Multichannel",
        Kind::Bool,
        Default::Bool(false),
        "Permit several connections of a client in one session. Set encryption=required as well: \
         with AES-GMAC, a client that binds connections signs several messages with one nonce, \
         from which the signing key can be computed.",
    ),
    Property::setting(
        "idle",
        "Idle",
        Kind::Seconds { min: 2, max: 86_400 },
        Default::Integer(SMB_IDLE.as_secs() as i64),
        "Idle timeout of connections without open files. Clients reconnect when needed.",
    )
    .unit("s")
    .example("3600"),
    UMASK,
    Property::state(
        "sessions",
        "Sessions",
        Kind::List { of: &LINES, max: 64 * SMB_SESSIONS_PER_CONNECTION },
        "Signed-in users, with the number of the session, address and dialect.",
    ),
    Property::state(
        "files_open",
        "Open files",
        Kind::Integer { min: 0, max: i64::MAX },
        "Number of open files and directories.",
    ),
    Property::state(
        "caching",
        "Caching",
        Kind::List { of: &LINES, max: CACHING_SHOWN_MAX },
        "Leases and oplocks of each client, breaks that wait for its acknowledgement, and its \
         durable handles without a connection.",
    ),
    Property::state(
        "durable_handles",
        "Durable handles",
        Kind::List { of: &LINES, max: PARKED_SHOWN_MAX },
        "Open files of clients that have lost their connection, and how long they are retained.",
    ),
    service::LOG_LEVEL,
    service::LOG,
]);
