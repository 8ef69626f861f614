//! The table: rules, and what clients meet under them.

use super::probe::Credential::{self, Anonymous, User};
use super::probe::From::{self, At, LowPort, Mtls, Tls};
use super::probe::Meets::{self, Changes, Flavorless, Nothing, Reads, TooWeak};

/// The clients' addresses. Unless stated otherwise, a call comes from an unprivileged port.
pub const ADDRESSES: &str = "for a in 10.1.0.7/32 10.1.0.8/32 10.1.9.9/32 10.2.0.1/32; do
    ip addr add $a dev lo; done
for a in fd00:a::7/128 fd00:a::8/128 fd00:b::1/128; do ip addr add $a dev lo nodad; done";

type Client = (From, Credential, Meets);

/// An ordinary user, root, and the anonymous user.
const ANN: Credential = User(1000);
const ROOT: Credential = User(0);
const AS_ANN: Meets = Changes(1000, 1000);
const AS_ROOT: Meets = Changes(0, 0);
const AS_NOBODY: Meets = Changes(65_534, 65_534);

/// Rules, one to a line, and clients.
pub const ALL: &[(&str, &[Client])] = &[
    // By host: address, v6 address, name, the name's other address.
    (
        "10.1.0.7(rw,no_root_squash)",
        &[
            (At("10.1.0.7"), ANN, AS_ANN),
            (At("10.1.0.8"), ANN, Nothing),
            (At("10.1.0.8"), ROOT, Nothing),
            (At("fd00:a::7"), ANN, Nothing),
        ],
    ),
    ("fd00:a::7(rw)", &[(At("fd00:a::7"), ANN, AS_ANN), (At("fd00:a::8"), ANN, Nothing)]),
    (
        "alpha(rw)",
        &[
            (At("10.1.0.7"), ANN, AS_ANN),
            (At("fd00:a::7"), ANN, AS_ANN),
            (At("10.1.0.8"), ANN, Nothing),
            (At("fd00:a::8"), ANN, Nothing),
        ],
    ),
    // By network.
    (
        "10.1.0.0/24(rw)",
        &[
            (At("10.1.0.8"), ANN, AS_ANN),
            (At("10.1.9.9"), ANN, Nothing),
            (At("fd00:a::7"), ANN, Nothing),
        ],
    ),
    (
        "fd00:a::/64(rw)",
        &[
            (At("fd00:a::8"), ANN, AS_ANN),
            (At("fd00:b::1"), ANN, Nothing),
            (At("10.1.0.8"), ANN, Nothing),
        ],
    ),
    // By group of hosts, and by group in a group.
    (
        "@lab(rw)",
        &[
            (At("10.1.0.8"), ANN, AS_ANN),
            (At("10.2.0.1"), ANN, AS_ANN),
            (At("10.1.0.7"), ANN, Nothing),
            (At("fd00:a::7"), ANN, Nothing),
        ],
    ),
    // Everyone, no one, and the first rule that fits.
    ("*(rw)", &[(At("10.2.0.1"), ANN, AS_ANN), (At("fd00:b::1"), ANN, AS_ANN)]),
    ("*(noaccess)", &[(At("10.2.0.1"), ANN, Nothing), (At("fd00:b::1"), ROOT, Nothing)]),
    (
        "10.1.0.7(noaccess)\n10.1.0.0/24(ro)\n*(rw)",
        &[
            (At("10.1.0.7"), ANN, Nothing),
            (At("10.1.0.8"), ANN, Reads),
            (At("10.1.9.9"), ANN, AS_ANN),
        ],
    ),
    // How far.
    ("*(ro)", &[(At("10.1.0.7"), ANN, Reads), (At("fd00:b::1"), ROOT, Reads)]),
    // As which user.
    ("*(rw,root_squash)", &[(At("10.1.0.7"), ROOT, AS_NOBODY), (At("10.1.0.7"), ANN, AS_ANN)]),
    ("*(rw,no_root_squash)", &[(At("10.1.0.7"), ROOT, AS_ROOT), (At("10.1.0.7"), ANN, AS_ANN)]),
    ("*(rw,all_squash)", &[(At("10.1.0.7"), ROOT, AS_NOBODY), (At("10.1.0.7"), ANN, AS_NOBODY)]),
    (
        "*(rw,all_squash,no_all_squash)",
        &[(At("10.1.0.7"), ROOT, AS_NOBODY), (At("10.1.0.7"), ANN, AS_ANN)],
    ),
    (
        "*(rw,root_squash,anonuid=4321,anongid=4322)",
        &[(At("10.1.0.7"), ROOT, Changes(4321, 4322)), (At("10.1.0.7"), ANN, AS_ANN)],
    ),
    (
        "*(rw,all_squash,anonuid=4321)",
        &[
            (At("10.1.0.7"), ROOT, Changes(4321, 65_534)),
            (At("10.1.0.7"), ANN, Changes(4321, 65_534)),
        ],
    ),
    (
        "10.1.0.7(rw,no_root_squash)\n*(rw,all_squash)",
        &[(At("10.1.0.7"), ROOT, AS_ROOT), (At("10.1.0.8"), ROOT, AS_NOBODY)],
    ),
    // By flavour.
    (
        "*(rw,sec=sys)",
        &[
            (At("10.1.0.7"), ANN, AS_ANN),
            (At("10.1.0.7"), Anonymous, Flavorless),
            (At("fd00:b::1"), Anonymous, Flavorless),
        ],
    ),
    (
        "*(rw,sec=none)",
        &[(At("10.1.0.7"), Anonymous, AS_NOBODY), (At("10.1.0.7"), ANN, Flavorless)],
    ),
    (
        "*(rw,sec=sys:none)",
        &[(At("10.1.0.7"), Anonymous, AS_NOBODY), (At("10.1.0.7"), ANN, AS_ANN)],
    ),
    ("*(rw)", &[(At("10.1.0.7"), Anonymous, AS_NOBODY)]),
    ("10.1.0.7(rw,sec=sys)", &[(At("10.1.0.8"), Anonymous, Nothing)]),
    // By port.
    (
        "*(rw,secure)",
        &[
            (LowPort("10.1.0.7"), ANN, AS_ANN),
            (LowPort("fd00:b::1"), ANN, AS_ANN),
            (At("10.1.0.7"), ANN, Nothing),
            (At("fd00:b::1"), ROOT, Nothing),
        ],
    ),
    ("*(rw,secure,insecure)", &[(LowPort("10.1.0.7"), ANN, AS_ANN), (At("10.1.0.7"), ANN, AS_ANN)]),
    // By transport.
    (
        "*(rw,xprtsec=tls)",
        &[(At("10.1.0.7"), ANN, TooWeak), (Tls, ANN, AS_ANN), (Mtls, ANN, AS_ANN)],
    ),
    (
        "*(rw,xprtsec=mtls)",
        &[(At("10.1.0.7"), ANN, TooWeak), (Tls, ANN, TooWeak), (Mtls, ANN, AS_ANN)],
    ),
    ("*(rw,xprtsec=none)", &[(At("10.1.0.7"), ANN, AS_ANN), (Tls, ANN, AS_ANN)]),
    ("10.1.0.8(rw,xprtsec=tls)", &[(At("10.1.0.7"), ANN, Nothing), (Tls, ANN, Nothing)]),
];
