//! NFS in the one tree: settings and state of the service. The crate `service` applies changes.

use ::base::node::{Context, Default, Kind, Property, Shape, service};

const FILE: Kind = Kind::Text { max: 4096, shape: Shape::Path };

const LINE: Kind = Kind::Text { max: 4096, shape: Shape::Line };

/// `/configuration/services/nfs`.
pub static NODE: Context = Context::new(
    "nfs",
    "NFS",
    "Serves shares over NFS version 3, 4.0, 4.1 and 4.2, with locks, delegations and TLS.",
    "services",
)
.statistics(&["nfs3.ops[op]", "nfs4.ops[op]", "nfs4.clients", "nfs.connections"])
.actions(&[service::RESTART])
.properties(::base::service_properties![
    Property::setting(
        "lease",
        "Lease",
        Kind::Seconds { min: 1, max: 3_600 },
        Default::Integer(90),
        "How long an NFSv4 client may be silent before others may take what it holds; as long \
         after a start clients may reclaim.",
    )
    .unit("s")
    .example("60")
    .at_service_restart(),
    Property::setting(
        "delegations",
        "Delegations",
        Kind::Bool,
        Default::Bool(true),
        "Whether NFSv4 clients may be told that nobody else changes a file, so that they need not \
         ask; they are called back when somebody does.",
    )
    .at_service_restart(),
    Property::setting(
        "domain",
        "Domain of owners",
        Kind::Text { max: 253, shape: Shape::Domain },
        Default::None,
        "Owners of files are names in this domain for NFSv4 clients (user@domain), as /etc/passwd \
         and /etc/group have them. Without it they are numbers.",
    )
    .example("example.org"),
    Property::setting(
        "portmap",
        "Port mapper",
        Kind::Bool,
        Default::Bool(true),
        "Whether the port mapper runs, where NFSv3 clients look for locks; without it they mount \
         with nolock.",
    ),
    Property::setting(
        "certificate",
        "Certificate",
        Kind::Text { max: 64, shape: Shape::Name },
        Default::None,
        "Which certificate of the configuration is shown to clients that ask for TLS. Without it \
         the files are, and without those what the administration shows; also as long as it cannot \
         be used.",
    )
    .items_of("/configuration/certificates")
    .example("office"),
    Property::state(
        "certificate_shown",
        "Certificate shown",
        LINE,
        "What is shown to clients that ask for TLS: the name of a certificate, or a file.",
    ),
    Property::state(
        "certificate_problem",
        "Problem with the certificate",
        LINE,
        "Why it is not the one that is named.",
    ),
    Property::setting(
        "tls_certificate",
        "TLS certificate",
        FILE,
        Default::None,
        "A file with the certificate for clients that ask for TLS, and those between it and a \
         root; PEM. It is shown if certificate is not set.",
    )
    .example("/etc/ssl/nas.pem"),
    Property::setting(
        "tls_key",
        "TLS key",
        FILE,
        Default::None,
        "A file with the certificate's private key; PEM.",
    )
    .example("/etc/ssl/private/nas.key"),
    Property::setting(
        "tls_client_ca",
        "Authorities of clients",
        FILE,
        Default::None,
        "A file with the authorities whose certificates clients may show; a share asks for one \
         with xprtsec=mtls in its rules. PEM.",
    )
    .example("/etc/ssl/clients.pem"),
]);
