//! HTTP in the one tree: settings and state of the service. The crate `service` applies changes.

use ::base::limits::HTTP_SESSION_IDLE;
use ::base::node::{Context, Default, Kind, Property, service};

use crate::files::settings::UMASK;

/// `/configuration/services/http`.
pub static NODE: Context = Context::new(
    "http",
    "HTTP",
    "Serves shares over HTTP and HTTPS, to browsers, programs and WebDAV clients.",
    "services",
)
.statistics(&["http.ops[op]", "http.bytes[client]"])
.actions(&[service::RESTART])
.properties(::base::service_properties![
    Property::setting(
        "plain",
        "Without TLS",
        Kind::Choice(&[
            ("serve", "It serves as the one with TLS does."),
            ("redirect", "It sends clients to the one with TLS."),
            ("off", "There is none."),
        ]),
        Default::Text("redirect"),
        "What the port without TLS does. To open or close it takes a restart of the service.",
    )
    .at_service_restart(),
    Property::setting(
        "sign_in",
        "Sign-in",
        Kind::Choice(&[
            ("required", "Everybody signs in."),
            ("optional", "Who does not acts as nobody (65534)."),
            ("none", "Everybody acts as nobody (65534)."),
        ]),
        Default::Text("required"),
        "Who must sign in.",
    ),
    Property::setting(
        "basic_over_plain",
        "Passwords without TLS",
        Kind::Bool,
        Default::Bool(false),
        "Whether passwords are taken without TLS, where anybody on the way can read them.",
    ),
    Property::setting(
        "listing",
        "Listings",
        Kind::Bool,
        Default::Bool(true),
        "Whether directories are listed.",
    ),
    Property::setting(
        "webdav",
        "WebDAV",
        Kind::Bool,
        Default::Bool(true),
        "Whether clients may mount shares by WebDAV.",
    ),
    Property::setting(
        "uploads",
        "Uploads in parts",
        Kind::Bool,
        Default::Bool(true),
        "Whether browsers may upload in parts, and go on after a broken connection.",
    ),
    Property::setting(
        "idle",
        "Idle",
        Kind::Seconds { min: 5, max: 86_400 },
        Default::Integer(120),
        "How long a connection may ask for nothing until it is closed.",
    )
    .unit("s")
    .example("60"),
    Property::setting(
        "session_idle",
        "Idle sessions",
        Kind::Seconds { min: 60, max: 30 * 86_400 },
        Default::Integer(HTTP_SESSION_IDLE.as_secs() as i64),
        "How long a browser stays signed in that asks for nothing.",
    )
    .unit("s")
    .example("3600"),
    UMASK,
    Property::state(
        "locks",
        "Locks of WebDAV",
        Kind::Integer { min: 0, max: i64::MAX },
        "Locks that clients hold now (`plimsoll http locks` lists them).",
    ),
    service::CERTIFICATE,
    service::CERTIFICATE_SHOWN,
    service::CERTIFICATE_PROBLEM,
]);
