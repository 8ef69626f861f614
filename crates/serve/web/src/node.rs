//! HTTP in the one tree: settings and state of the service. The crate `service` applies changes.

use ::base::limits::HTTP_SESSION_IDLE;
use ::base::node::{Context, Default, Kind, Property, service};

use files::settings::UMASK;

/// `/configuration/services/http`.
pub static NODE: Context = Context::new(
    "http",
    "HTTP",
    "Serves shares over HTTP and HTTPS to browsers, programs and WebDAV clients.",
    "services",
)
.statistics(&["http.ops[op]", "http.bytes[client]"])
.actions(&[service::RESTART])
.properties(::base::service_properties![
    Property::setting(
        "plain",
        "Without TLS",
        Kind::Choice(&[
            ("serve", "Serves files, like the TLS port."),
            ("redirect", "Redirects clients to the TLS port."),
            ("off", "Closed."),
        ]),
        Default::Text("redirect"),
        "Behaviour of the port without TLS. Opening or closing it requires a restart of the \
         service.",
    )
    .at_service_restart(),
    Property::setting(
        "sign_in",
        "Sign-in",
        Kind::Choice(&[
            ("required", "Sign-in is required."),
            ("optional", "Clients that do not sign in act as nobody (65534)."),
            ("none", "No sign-in; all clients act as nobody (65534)."),
        ]),
        Default::Text("required"),
        "Whether clients must sign in.",
    ),
    Property::setting(
        "basic_over_plain",
        "Passwords without TLS",
        Kind::Bool,
        Default::Bool(false),
        "Whether to accept passwords without TLS. They are then sent in clear text.",
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
        "Whether browsers may upload in parts and resume after a broken connection.",
    ),
    Property::setting(
        "idle",
        "Idle",
        Kind::Seconds { min: 5, max: 86_400 },
        Default::Integer(120),
        "Idle timeout of a connection.",
    )
    .unit("s")
    .example("60"),
    Property::setting(
        "session_idle",
        "Idle sessions",
        Kind::Seconds { min: 60, max: 30 * 86_400 },
        Default::Integer(HTTP_SESSION_IDLE.as_secs() as i64),
        "Idle timeout of a browser session.",
    )
    .unit("s")
    .example("3600"),
    UMASK,
    Property::state(
        "locks",
        "WebDAV locks",
        Kind::Integer { min: 0, max: i64::MAX },
        "Current WebDAV locks; list them with: plimsoll http locks.",
    ),
    service::CERTIFICATE,
    service::CERTIFICATE_SHOWN,
    service::CERTIFICATE_PROBLEM,
]);
