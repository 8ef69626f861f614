//! SFTP in the one tree: settings and state of the service. The crate `service` applies changes.

use ::base::limits::{
    SFTP_AUTHORITIES_MAX, SSH_KEY_MAX, SSH_MISMATCH_BYTES_MAX, SSH_MISMATCHES_KEPT,
};
use ::base::node::{Context, Default, Kind, Property, Shape, service};

use files::settings::{LOGIN_ROOT, UMASK, UPLOADS};

static AUTHORITY: Kind = Kind::Text { max: SSH_KEY_MAX, shape: Shape::SshKey };
const LINE: Kind = Kind::Text { max: 256, shape: Shape::Line };
static SENTENCE: Kind = Kind::Text { max: 4 * SSH_MISMATCH_BYTES_MAX, shape: Shape::Line };

/// `/configuration/services/sftp`.
pub static NODE: Context = Context::new(
    "sftp",
    "SFTP",
    "Serves shares over SFTP, and to plimsoll dsync. Users sign in with a password, key or \
     certificate. No shell, no forwarding.",
    "services",
)
.statistics(&["sftp.ops[op]", "sftp.bytes[client]", "dsync.bytes[client]"])
.actions(&[service::RESTART])
.properties(::base::service_properties![
    Property::setting(
        "passwords",
        "Passwords",
        Kind::Bool,
        Default::Bool(true),
        "Whether users may sign in with their passwords.",
    ),
    Property::setting(
        "keys",
        "Keys",
        Kind::Bool,
        Default::Bool(true),
        "Whether users may sign in with public keys and with certificates of trusted CAs.",
    ),
    Property::setting(
        "authorities",
        "Trusted CAs",
        Kind::List { of: &AUTHORITY, max: SFTP_AUTHORITIES_MAX },
        Default::List(&[]),
        "Trusted CA keys for user certificates (TrustedUserCAKeys of OpenSSH), each a line of \
         authorized_keys without options. Setting them requires the permission *.",
    )
    .guarded(),
    Property::setting(
        "algorithms",
        "Algorithms",
        Kind::Choice(&[
            ("compatible", "Includes those of older clients, such as curl of Debian 12."),
            ("modern", "Excludes encrypt-and-MAC (hmac-sha2 without -etm)."),
        ]),
        Default::Text("compatible"),
        "Permitted SSH algorithms.",
    ),
    Property::setting(
        "dsync",
        "dsync",
        Kind::Bool,
        Default::Bool(true),
        "Whether to accept plimsoll dsync, with the users' permissions on the shares.",
    ),
    Property::setting(
        "dsync_ports",
        "Ports for dsync",
        LINE,
        Default::None,
        "Port range for dsync data streams, FIRST-LAST, for firewalls; clients cannot override \
         it. Not set: any port.",
    )
    .example("31000-31999"),
    UMASK,
    UPLOADS,
    LOGIN_ROOT,
    Property::setting("banner", "Banner", LINE, Default::None, "Banner shown before sign-in.",)
        .example("Files of the lab"),
    Property::state(
        "host_keys",
        "Host keys",
        Kind::List { of: &LINE, max: 4 },
        "Fingerprints of the server's host keys, as clients show them at the first connection.",
    ),
    Property::state(
        "mismatches",
        "Clients without a common algorithm",
        Kind::List { of: &SENTENCE, max: SSH_MISMATCHES_KEPT },
        "Clients without a common algorithm: what they offer, and the setting that permits it; \
         most recent last.",
    ),
]);
