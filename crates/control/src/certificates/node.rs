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
/// Where public certificates come from if nothing else is said.
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
    "What this server shows to browsers, to the command line, and to NFS clients that ask for TLS. \
     Its own is there from the first start; others are supplied, or come from an authority (ACME).",
    SCOPE,
)
.properties(&[
    Property::state("shown", "Shown now", NAME, "Which certificate is shown."),
    Property::state(
        "fingerprint",
        "Fingerprint",
        LINE,
        "SHA-256 of the certificate that is shown; a browser tells the same, or somebody is in \
         between.",
    ),
    Property::state("ends", "Ends", Kind::Time, "When the certificate that is shown ends."),
    Property::state("problem", "Problem", LINE, "What is wrong with it, and what to do."),
    Property::setting(
        "in_use",
        "In use",
        Kind::Text { max: 64, shape: Shape::Name },
        Default::Text(OWN),
        "The certificate to be shown, to connections that begin from then on. NFS shows it too, \
         unless it has one of its own. As long as it cannot be used the server's own is shown.",
    )
    .items_of(AT)
    .example("office"),
    Property::setting(
        "names",
        "Other names",
        Kind::List { of: &HOST, max: 32 },
        Default::List(&[]),
        "Names and addresses by which clients reach this host, beside its name and its addresses: \
         all are in its own certificate.",
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
    "A certificate with its key: the server's own, one that is supplied as chain and key, or one \
     that an authority gives by ACME.",
    SCOPE,
)
.properties(PROPERTIES)
.actions(&[Action::new(
    "renew",
    "Renew",
    "Has a new certificate made now: the server's own, or one by ACME. It does so by itself when \
     two thirds of the time are over.",
    "That it was begun; the state tells how it goes.",
)]);

static PROPERTIES: &[Property] = &[
    Property::state(
        "state",
        "State",
        Kind::Choice(&[
            ("good", "it can be used"),
            ("ending", "less than a fifth of its time is left"),
            ("ended", "its time is over"),
            ("incomplete", "the chain or the key is missing"),
            ("waiting", "the authority has not given it yet"),
            ("failed", "it cannot be had or renewed; the reason says why"),
        ]),
        "Whether it can be used.",
    ),
    Property::state("ends", "Ends", Kind::Time, "When it ends."),
    Property::setting(
        "source",
        "Source",
        Kind::Choice(&[
            ("supplied", "set as chain and key"),
            ("acme", "given by an authority, by ACME (RFC 8555)"),
            (OWN, "made by the server itself; there is one"),
        ]),
        Default::Text("supplied"),
        "Where it comes from.",
    )
    .at_create()
    .example("acme"),
    Property::state("reason", "Reason", LINE, "What there is to know of its state."),
    Property::state("in_use", "In use", Kind::Bool, "Whether it is the one that is shown."),
    Property::state(
        "names_in_it",
        "Names",
        Kind::List { of: &HOST, max: CERTIFICATE_NAMES_MAX },
        "Names and addresses that it is for.",
    ),
    Property::state("issuer", "Issuer", LINE, "Who has signed it."),
    Property::state("begins", "Begins", Kind::Time, "When it begins."),
    Property::state("fingerprint", "Fingerprint", LINE, "SHA-256 of it."),
    Property::state("renews", "Renews", Kind::Time, "When it is renewed, or tried again.")
        .only_if("source", &["acme", OWN]),
    Property::state(
        "authority",
        "Authority",
        CHAIN,
        "Who has signed the server's own certificate: trust this once, and browsers and NFS \
         clients take each certificate that the server makes for itself.",
    )
    .only_if("source", &[OWN]),
    Property::setting(
        "chain",
        "Chain",
        CHAIN,
        Default::None,
        "If supplied: the host's certificate, and behind it each that has signed the one before; \
         PEM.",
    )
    .only_if("source", &["supplied"]),
    Property::secret(
        "key",
        "Key",
        Kind::Text { max: CERTIFICATE_KEY_MAX, shape: Shape::Pem },
        "If supplied: the private key of the host's certificate; PEM without a password.",
    )
    .only_if("source", &["supplied"]),
    Property::setting(
        "domains",
        "Domains",
        Kind::List { of: &HOST, max: CERTIFICATE_NAMES_MAX },
        Default::None,
        "By ACME: the names that it is to be for. The authority must reach this host by each.",
    )
    .required()
    .only_if("source", BY_ACME)
    .example("nas.example.org"),
    Property::setting(
        "directory",
        "ACME directory",
        Kind::Text { max: 1_024, shape: Shape::Url },
        Default::Text(LETS_ENCRYPT),
        "By ACME: where the authority's directory is; https.",
    )
    .only_if("source", BY_ACME)
    .example("https://ca.example.org/acme/directory"),
    Property::setting(
        "terms_agreed",
        "Terms agreed",
        Kind::Bool,
        Default::Bool(false),
        "By ACME: that you agree to the authority's terms of service; without that nothing is \
         asked of it.",
    )
    .only_if("source", BY_ACME),
    Property::setting(
        "contacts",
        "Contacts",
        Kind::List { of: &EMAIL, max: ACME_CONTACTS_MAX },
        Default::List(&[]),
        "By ACME: whom the authority may write to when the account is made.",
    )
    .only_if("source", BY_ACME)
    .example("admin@example.org"),
    Property::setting(
        "challenge",
        "Proof",
        Kind::Choice(&[
            ("tls-alpn-01", "over TLS: the authority's port 443 must lead to the administration"),
            ("http-01", "over HTTP: the authority's port 80 must lead to http_port"),
        ]),
        Default::Text("tls-alpn-01"),
        "By ACME: how the names are proved to be this host's.",
    )
    .only_if("source", BY_ACME)
    .example("http-01"),
    Property::setting(
        "http_port",
        "Port for proofs",
        Kind::Integer { min: 1, max: 65_535 },
        Default::Integer(80),
        "By ACME with http-01: the port that is opened while a proof is looked for.",
    )
    .only_if("source", BY_ACME)
    .example("8080"),
    Property::setting(
        "authorities",
        "Authorities of the directory",
        CHAIN,
        Default::None,
        "By ACME: who has signed the certificate of the directory's own server, if that is none \
         that this machine trusts; PEM.",
    )
    .only_if("source", BY_ACME),
];

/// What only a certificate by ACME has.
const BY_ACME: &[&str] = &["acme"];
