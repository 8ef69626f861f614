//! SFTP in the one tree: settings and state of the service. The crate `service` applies changes.

use ::base::limits::{
    SFTP_AUTHORITIES_MAX, SSH_KEY_MAX, SSH_MISMATCH_BYTES_MAX, SSH_MISMATCHES_KEPT,
};
use ::base::node::{Context, Default, Kind, Property, Shape, service};

use crate::files::settings::{LOGIN_ROOT, UMASK, UPLOADS};

static AUTHORITY: Kind = Kind::Text { max: SSH_KEY_MAX, shape: Shape::SshKey };
const LINE: Kind = Kind::Text { max: 256, shape: Shape::Line };
static SENTENCE: Kind = Kind::Text { max: 4 * SSH_MISMATCH_BYTES_MAX, shape: Shape::Line };

/// `/configuration/services/sftp`.
pub static NODE: Context = Context::new(
    "sftp",
    "SFTP",
    "Serves shares over SFTP, and to `plimsoll dsync`, to users by their passwords, keys and \
     certificates. There is no shell and no forwarding.",
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
        "Whether users may sign in with their public keys, and with certificates of trusted \
         authorities.",
    ),
    Property::setting(
        "authorities",
        "Trusted authorities",
        Kind::List { of: &AUTHORITY, max: SFTP_AUTHORITIES_MAX },
        Default::List(&[]),
        "Keys whose certificates let the users in who are named in them (TrustedUserCAKeys of \
         OpenSSH), each a line of authorized_keys without options. Only who may change everything \
         may set them.",
    )
    .guarded(),
    Property::setting(
        "algorithms",
        "Algorithms",
        Kind::Choice(&[
            (
                "compatible",
                "What clients of supported distributions have, such as curl of Debian 12."
            ),
            ("modern", "Without MACs that are made before encryption (hmac-sha2-256, -512)."),
        ]),
        Default::Text("compatible"),
        "What connections may be protected with.",
    ),
    Property::setting(
        "dsync",
        "dsync",
        Kind::Bool,
        Default::Bool(true),
        "Whether users may synchronise directories of shares with `plimsoll dsync`, with what \
         this service and the shares grant them.",
    ),
    Property::setting(
        "dsync_ports",
        "Ports of dsync",
        LINE,
        Default::None,
        "Ports that streams for the data of dsync are opened at, FIRST-LAST, for firewalls \
         between; who synchronises has no say in it. Without it: any.",
    )
    .example("31000-31999"),
    UMASK,
    UPLOADS,
    LOGIN_ROOT,
    Property::setting(
        "banner",
        "Banner",
        LINE,
        Default::None,
        "What is shown to those who connect, before they sign in.",
    )
    .example("Files of the lab"),
    Property::state(
        "host_keys",
        "Host keys",
        Kind::List { of: &LINE, max: 4 },
        "Fingerprints of the server's keys: what clients show at their first connection.",
    ),
    Property::state(
        "mismatches",
        "Clients without a common algorithm",
        Kind::List { of: &SENTENCE, max: SSH_MISMATCHES_KEPT },
        "Who could not connect because client and service have no algorithm in common, what it \
         offers, and which setting permits that; the newest last.",
    ),
]);
