//! Certificates as nodes of the tree.

use base::limits::{
    ACME_CONTACTS_MAX, CERTIFICATE_CHAIN_MAX, CERTIFICATE_KEY_MAX, CERTIFICATE_NAMES_MAX,
    CERTIFICATES_MAX,
};
use base::node::{Action, Context, Default, Items, Kind, Property, Shape};

/// What TLS shows is a part of the services.
const SCOPE: &str = "services";

/// Where they are.
const AT: &str = "/configuration/certificates";
/// The certificate that is always there.
pub const OWN: &str = "self-signed";
/// The default ACME directory for public certificates.
const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";
/// Bytes of a host's name.
const HOST_MAX: usize = 253;

static NAME: Kind = Kind::Text { max: 64, shape: Shape::Name };
static HOST: Kind = Kind::Text { max: HOST_MAX, shape: Shape::Host };
static EMAIL: Kind = Kind::Text { max: 254, shape: Shape::Email };
const LINE: Kind = Kind::Text { max: 4_096, shape: Shape::Line };
const CHAIN: Kind = Kind::Text { max: CERTIFICATE_CHAIN_MAX, shape: Shape::Pem };

/// `/configuration/certificates`.
pub static CERTIFICATES: Context = Context::new(
    "certificates",
    "Certificates",
    "TLS certificates of this server. A self-signed one is created at the first start; others are \
     supplied, or issued by a CA with ACME.",
    SCOPE,
)
.properties(&[
    Property::state("shown", "Shown now", NAME, "Certificate in use."),
    Property::state(
        "fingerprint",
        "Fingerprint",
        LINE,
        "SHA-256 fingerprint of the certificate in use. Compare it with the one in the browser to \
         rule out a man in the middle.",
    ),
    Property::state("ends", "Ends", Kind::Time, "Expiry of the certificate in use."),
    Property::state("problem", "Problem", LINE, "Problem with the certificate, and the remedy."),
    Property::setting(
        "in_use",
        "In use",
        Kind::Text { max: 64, shape: Shape::Name },
        Default::Text(OWN),
        "Certificate for new connections, also of services without one of their own. While it is \
         not valid, the self-signed one is used.",
    )
    .items_of(AT)
    .example("office"),
    Property::setting(
        "names",
        "Other names",
        Kind::List { of: &HOST, max: 32 },
        Default::List(&[]),
        "Additional names and addresses of this host for the self-signed certificate.",
    )
    .example("nas.example.org"),
])
.items(
    &Items::configured("certificate", "certificates", &NAME, CERTIFICATES_MAX, &CERTIFICATE)
        .fixed(&[OWN]),
);

static CERTIFICATE: Context = Context::new(
    "certificate",
    "Certificate",
    "A certificate with its private key: self-signed, supplied, or issued with ACME.",
    SCOPE,
)
.properties(PROPERTIES)
.actions(&[Action::new(
    "renew",
    "Renew",
    "Renews the certificate now (self-signed or ACME). Automatic renewal happens after two thirds \
     of the lifetime.",
    "Confirmation; the property state shows the progress.",
)]);

static PROPERTIES: &[Property] = &[
    Property::state(
        "state",
        "State",
        Kind::Choice(&[
            ("good", "valid"),
            ("ending", "less than a fifth of the lifetime is left"),
            ("ended", "expired"),
            ("incomplete", "chain or key missing"),
            ("waiting", "not yet issued by the CA"),
            ("failed", "issue or renewal failed; see reason"),
        ]),
        "State of the certificate.",
    ),
    Property::state("ends", "Ends", Kind::Time, "Expiry."),
    Property::setting(
        "source",
        "Source",
        Kind::Choice(&[
            ("supplied", "supplied as chain and key"),
            ("acme", "issued by a CA with ACME (RFC 8555)"),
            (OWN, "created by the server; exactly one exists"),
        ]),
        Default::Text("supplied"),
        "Origin of the certificate.",
    )
    .at_create()
    .example("acme"),
    Property::state("reason", "Reason", LINE, "Details of the state."),
    Property::state("in_use", "In use", Kind::Bool, "Whether it is in use."),
    Property::state(
        "names_in_it",
        "Names",
        Kind::List { of: &HOST, max: CERTIFICATE_NAMES_MAX },
        "Subject alternative names.",
    ),
    Property::state("issuer", "Issuer", LINE, "Issuer."),
    Property::state("begins", "Begins", Kind::Time, "Start of validity."),
    Property::state("fingerprint", "Fingerprint", LINE, "SHA-256 fingerprint."),
    Property::state("renews", "Renews", Kind::Time, "Next renewal or retry.")
        .only_if("source", &["acme", OWN]),
    Property::state(
        "authority",
        "Authority",
        CHAIN,
        "CA certificate of the self-signed certificates. Trust it once, and browsers and NFS \
         clients accept every certificate that this server creates.",
    )
    .only_if("source", &[OWN]),
    Property::setting(
        "chain",
        "Chain",
        CHAIN,
        Default::None,
        "Certificate chain (PEM): the host's certificate first, then each issuer.",
    )
    .only_if("source", &["supplied"]),
    Property::secret(
        "key",
        "Key",
        Kind::Text { max: CERTIFICATE_KEY_MAX, shape: Shape::Pem },
        "Private key (PEM, unencrypted).",
    )
    .only_if("source", &["supplied"]),
    Property::setting(
        "domains",
        "Domains",
        Kind::List { of: &HOST, max: CERTIFICATE_NAMES_MAX },
        Default::None,
        "Host names to include. The CA must reach this host by each of them.",
    )
    .required()
    .only_if("source", BY_ACME)
    .example("nas.example.org"),
    Property::setting(
        "directory",
        "ACME directory",
        Kind::Text { max: 1_024, shape: Shape::Url },
        Default::Text(LETS_ENCRYPT),
        "ACME directory URL; https.",
    )
    .only_if("source", BY_ACME)
    .example("https://ca.example.org/acme/directory"),
    Property::setting(
        "terms_agreed",
        "Terms agreed",
        Kind::Bool,
        Default::Bool(false),
        "Agreement to the CA's terms of service; required before a certificate is ordered.",
    )
    .only_if("source", BY_ACME),
    Property::setting(
        "contacts",
        "Contacts",
        Kind::List { of: &EMAIL, max: ACME_CONTACTS_MAX },
        Default::List(&[]),
        "Contact addresses of the ACME account.",
    )
    .only_if("source", BY_ACME)
    .example("admin@example.org"),
    Property::setting(
        "challenge",
        "Proof",
        Kind::Choice(&[
            (
                "tls-alpn-01",
                "over TLS: port 443 of the host names must lead to the administration port",
            ),
            ("http-01", "over HTTP: port 80 of the host names must lead to http_port"),
        ]),
        Default::Text("tls-alpn-01"),
        "ACME challenge type.",
    )
    .only_if("source", BY_ACME)
    .example("http-01"),
    Property::setting(
        "http_port",
        "Challenge port",
        Kind::Integer { min: 1, max: 65_535 },
        Default::Integer(80),
        "Port opened during an http-01 challenge.",
    )
    .only_if("source", BY_ACME)
    .example("8080"),
    Property::setting(
        "authorities",
        "CAs of the directory",
        CHAIN,
        Default::None,
        "CA certificates (PEM) of the ACME server, if this machine does not trust it already.",
    )
    .only_if("source", BY_ACME),
];

/// What only a certificate by ACME has.
const BY_ACME: &[&str] = &["acme"];
