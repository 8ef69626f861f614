//! SMB in the one tree: settings and state of the service. The crate `service` applies changes.

use ::base::limits::SMB_SESSIONS_PER_CONNECTION;
use ::base::node::{Context, Default, Kind, Property, Shape, service};

use crate::files::settings::UMASK;

static LINE: Kind = Kind::Text { max: 256, shape: Shape::Line };

/// As of every service, but off unless somebody wants it: a hash of passwords that are set is kept
/// then, which is as good as the password (`docs/security.md`).
const ENABLED: Property = Property::setting(
    "enabled",
    "Enabled",
    Kind::Bool,
    Default::Bool(false),
    "Whether it is to serve. While it is, a hash that SMB needs is kept with each password that is \
     set: users from before must set theirs again.",
);

/// `/configuration/services/smb`.
pub static NODE: Context = Context::new(
    "smb",
    "SMB",
    "Serves shares over SMB 2.1 to 3.1.1, to Windows, macOS and Linux. Users sign in by NTLM \
     version 2 with passwords that were set while SMB was enabled.",
    "services",
)
.statistics(&["smb.ops[op]", "smb.bytes[client]"])
.actions(&[service::RESTART])
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
        "The name of the server, as it tells it to clients that sign in.",
    )
    .example("files"),
    Property::setting(
        "encryption",
        "Encryption",
        Kind::Choice(&[
            ("offered", "What a client encrypts."),
            ("required", "Everything. Clients of SMB 2.1 cannot connect."),
            ("off", "Nothing."),
        ]),
        Default::Text("offered"),
        "What is encrypted on the way.",
    ),
    Property::setting(
        "signing",
        "Signing",
        Kind::Choice(&[
            ("required", "Requests that are neither signed nor encrypted are refused."),
            ("offered", "What a client signs."),
        ]),
        Default::Text("required"),
        "Whether somebody on the way could change what is read and written.",
    ),
    UMASK,
    Property::state(
        "sessions",
        "Sessions",
        Kind::List { of: &LINE, max: 64 * SMB_SESSIONS_PER_CONNECTION },
        "Who is signed in, from where, by which version.",
    ),
    Property::state(
        "files_open",
        "Open files",
        Kind::Integer { min: 0, max: i64::MAX },
        "Files and directories that are open now.",
    ),
    service::LOG_LEVEL,
    service::LOG,
]);
