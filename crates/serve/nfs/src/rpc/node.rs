//! NFS in the one tree: settings and state of the service. The crate `service` applies changes.

use ::base::node::{Context, Default, Kind, Property, Shape, service};

const FILE: Kind = Kind::Text { max: 4096, shape: Shape::Path };

const LINE_TEXT: Kind = Kind::Text { max: 4096, shape: Shape::Line };

static LINE: Kind = LINE_TEXT;

const COUNT: Kind = Kind::Integer { min: 0, max: i64::MAX };

/// `/configuration/services/nfs`.
pub static NODE: Context = Context::new(
    "nfs",
    "NFS",
    "Serves shares over NFS version 3, 4.0, 4.1 and 4.2, with locks, delegations and TLS.",
    "services",
)
.statistics(&[
    "nfs3.ops[op]",
    "nfs4.ops[op]",
    "nfs4.clients",
    "nfs.connections",
    "rdma.bytes[transfer]",
])
.actions(&[service::RESTART])
.properties(::base::service_properties![
    Property::setting(
        "lease",
        "Lease",
        Kind::Seconds { min: 1, max: 3_600 },
        Default::Integer(90),
        "NFSv4 lease time. State of a client that does not renew its lease may be revoked. Also \
         the length of the grace period after a start.",
    )
    .unit("s")
    .example("60")
    .at_service_restart(),
    Property::setting(
        "delegations",
        "Delegations",
        Kind::Bool,
        Default::Bool(true),
        "Whether to grant delegations to NFSv4 clients. A delegation is recalled when another \
         client or a local program changes the file.",
    )
    .at_service_restart(),
    Property::setting(
        "write_delegations",
        "Write delegations",
        Kind::Bool,
        Default::Bool(true),
        "Whether delegations of 4.1 and 4.2 may be for writing: a client opens, locks and writes a \
         file that no other client uses without requests.",
    )
    .at_service_restart(),
    Property::setting(
        "domain",
        "Domain of owners",
        Kind::Text { max: 253, shape: Shape::Domain },
        Default::None,
        "NFSv4 ID-mapping domain. Owners are sent as user@domain, from /etc/passwd and \
         /etc/group; without it, as numbers.",
    )
    .example("example.org"),
    Property::setting(
        "portmap",
        "Port mapper",
        Kind::Bool,
        Default::Bool(true),
        "Whether to run the port mapper, which NFSv3 clients need for locks; without it they \
         mount with nolock.",
    ),
    Property::setting(
        "rdma",
        "RDMA",
        Kind::Bool,
        Default::Bool(true),
        "Whether to serve NFS over RDMA on port 20049, if the machine has a device.",
    )
    .at_service_restart(),
    Property::state(
        "rdma_devices",
        "RDMA devices",
        Kind::List { of: &LINE, max: 64 },
        "Devices of the machine: name, driver, link layer and state.",
    ),
    Property::state(
        "rdma_connections",
        "RDMA connections",
        COUNT,
        "Number of connections over RDMA.",
    ),
    Property::state(
        "rdma_credits",
        "RDMA credits",
        COUNT,
        "Credits in use: calls in progress over RDMA.",
    ),
    Property::state(
        "rdma_problem",
        "Problem with RDMA",
        LINE_TEXT,
        "Why connections over RDMA are not accepted.",
    ),
    Property::setting(
        "certificate",
        "Certificate",
        Kind::Text { max: 64, shape: Shape::Name },
        Default::None,
        "Certificate for TLS, by name. If it is not set or not valid, tls_certificate is used, \
         and without that the certificate of the administration service.",
    )
    .items_of("/configuration/certificates")
    .example("office"),
    Property::state(
        "certificate_shown",
        "Certificate shown",
        LINE_TEXT,
        "TLS certificate in use: a name or a file.",
    ),
    Property::state(
        "certificate_problem",
        "Problem with the certificate",
        LINE_TEXT,
        "Why the configured certificate is not in use.",
    ),
    Property::setting(
        "tls_certificate",
        "TLS certificate",
        FILE,
        Default::None,
        "File with the certificate chain for TLS (PEM). Used if certificate is not set.",
    )
    .example("/etc/ssl/nas.pem"),
    Property::setting(
        "tls_key",
        "TLS key",
        FILE,
        Default::None,
        "File with the private key of tls_certificate (PEM).",
    )
    .example("/etc/ssl/private/nas.key"),
    Property::setting(
        "tls_client_ca",
        "Client CAs",
        FILE,
        Default::None,
        "File with the CA certificates accepted for client certificates (PEM). An export rule \
         with xprtsec=mtls requires a client certificate.",
    )
    .example("/etc/ssl/clients.pem"),
]);
