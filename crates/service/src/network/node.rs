//! The network as nodes of the tree. Names of properties are those of Fishworks where it has them.

use base::node::{Action, Context, Default, Items, Kind, Property, Shape};
use host_helper::request::{CONFIRM_S_MAX, ITEMS_MAX, LIST_MAX};
use host_network::check::{NAME_MAX, PROBES_MAX};

const SCOPE: &str = "network";
/// Shortest time for a confirmation that can be set: a new connection takes part of it.
const CONFIRM_S_LEAST: u64 = 5;
/// Seconds for a confirmation unless others are set.
const CONFIRM_S: i64 = 60;
/// Steps of a change that are shown.
pub(super) const STEPS_SHOWN: usize = 1_000;

static NAME: Kind = Kind::Text { max: NAME_MAX, shape: Shape::Name };
static LINE: Kind = Kind::Text { max: 4_096, shape: Shape::Line };
static CIDR: Kind = Kind::Text { max: 64, shape: Shape::Network };
static ADDRESS: Kind = Kind::Text { max: 64, shape: Shape::Address };
static DOMAIN: Kind = Kind::Text { max: 253, shape: Shape::Domain };
const LINK: Kind = Kind::Text { max: NAME_MAX, shape: Shape::Name };
const TEXT: Kind = Kind::Text { max: 4_096, shape: Shape::Line };
const MTU: Kind = Kind::Integer { min: 0, max: 65_535 };
const SIZE: Kind = Kind::Integer { min: 0, max: u32::MAX as i64 };
const LINKS: Kind = Kind::List { of: &NAME, max: LIST_MAX };
const ADDRESSES: Kind = Kind::List { of: &CIDR, max: LIST_MAX };
const SERVERS: Kind = Kind::List { of: &ADDRESS, max: LIST_MAX };
const DOMAINS: Kind = Kind::List { of: &DOMAIN, max: LIST_MAX };
const LINES: Kind = Kind::List { of: &LINE, max: STEPS_SHOWN };
const STATE: Kind = Kind::Choice(&[
    ("up", "it exists and is up"),
    ("down", "it exists and is down"),
    ("absent", "the machine does not have it"),
    ("disabled", "it is disabled"),
]);

/// `/configuration/network`.
pub static NETWORK: Context = Context::new(
    "network",
    "Network",
    "Devices, datalinks, interfaces, routes, name servers and host name of this machine. A change \
     is reverted unless it is confirmed in time over a connection made after it.",
    SCOPE,
)
.properties(&[
    Property::setting(
        "confirm_within",
        "Confirm within",
        Kind::Seconds { min: CONFIRM_S_LEAST, max: CONFIRM_S_MAX as u64 },
        Default::Integer(CONFIRM_S),
        "Time to confirm a change; afterwards the previous state is restored.",
    )
    .unit("s")
    .example("120"),
    Property::setting(
        "administration",
        "Administration address",
        ADDRESS,
        Default::None,
        "Address by which the administration is reached after a change that removes the current \
         one.",
    )
    .example("192.0.2.10"),
    Property::state(
        "state",
        "State",
        Kind::Choice(&[
            ("changeable", "changes are possible"),
            ("unconfirmed", "a change waits for its confirmation"),
            ("read-only", "changes are not possible; see the reason"),
        ]),
        "Whether the network can be changed.",
    ),
    Property::state("reason", "Reason", TEXT, "Why the network cannot be changed, and remedy."),
    Property::state(
        "time_left",
        "Time left",
        Kind::Seconds { min: 0, max: CONFIRM_S_MAX as u64 },
        "Time left to confirm the change.",
    )
    .unit("s"),
    Property::state("steps", "Steps", LINES, "Steps of the change that waits."),
    Property::state("problem", "Problem", TEXT, "What of the network is not as configured."),
])
.actions(&[
    Action::new(
        "confirm",
        "Confirm",
        "Keeps the last change. Must be requested over a connection made after the change.",
        "Confirmation.",
    ),
    Action::new("revert", "Revert", "Restores the state before the last change now.", "Nothing."),
])
.children(&[&DEVICES, &DATALINKS, &INTERFACES, &ROUTES, &DNS, &IDENTITY]);

static DEVICES: Context =
    Context::new("devices", "Devices", "Network devices, and links of other programs.", SCOPE)
        .items(&Items::live("device", "devices", &LINE, 4_096, &DEVICE));

static DEVICE: Context =
    Context::new("device", "Device", "A network device.", SCOPE).properties(&[
        Property::state("kind", "Kind", TEXT, "Kind of the device."),
        Property::state("state", "State", STATE, "State of the device."),
        Property::state("mac", "MAC address", TEXT, "Hardware address."),
        Property::state("speed", "Speed", TEXT, "Speed and duplex."),
        Property::state("mtu", "MTU", SIZE, "Maximum packet size.").unit("B"),
        Property::state("mtu_max", "Maximum MTU", SIZE, "Maximum MTU of the driver; 0: none.")
            .unit("B"),
        Property::state("addresses", "Addresses", LINES, "IP addresses."),
        Property::state("used_by", "Used by", TEXT, "Datalink or aggregation that uses it."),
        Property::state("manager", "Manager", TEXT, "Other program that manages the device."),
        Property::state("release", "Release", TEXT, "How to release the device from its manager."),
    ]);

static DATALINKS: Context = Context::new(
    "datalinks",
    "Datalinks",
    "Devices that are used, and VLANs, aggregations and partitions made of them. The name is that \
     of the link.",
    SCOPE,
)
.properties(&[Property::state(
    "offers",
    "Offered partitions",
    LINES,
    "Partitions that the subnet manager gives to ports of this machine and no datalink uses.",
)])
.items(&Items::configured("datalink", "datalinks", &NAME, ITEMS_MAX, &DATALINK));

static DATALINK: Context =
    Context::new("datalink", "Datalink", "A device, VLAN, aggregation or partition.", SCOPE)
        .properties(&[
            Property::setting(
                "class",
                "Class",
                Kind::Choice(&[
                    ("device", "the device of this name"),
                    ("vlan", "a VLAN on another datalink (IEEE 802.1Q)"),
                    ("aggregation", "several datalinks as one"),
                    ("partition", "a partition of an InfiniBand device"),
                ]),
                Default::None,
                "Kind of the datalink.",
            )
            .required()
            .example("vlan"),
            Property::setting("link", "Link", LINK, Default::None, "Datalink or device below it.")
                .required()
                .only_if("class", &["vlan", "partition"])
                .example("eth0"),
            Property::setting(
                "id",
                "VLAN id",
                Kind::Integer { min: 1, max: 4_094 },
                Default::None,
                "VLAN id.",
            )
            .required()
            .only_if("class", &["vlan"])
            .example("10"),
            Property::setting("links", "Links", LINKS, Default::None, "Datalinks of it.")
                .required()
                .only_if("class", &["aggregation"])
                .items_of("/configuration/network/datalinks")
                .example("eth0, eth1"),
            Property::setting(
                "mode",
                "Mode",
                Kind::Choice(&[
                    ("active-backup", "one link at a time"),
                    ("lacp", "all links, negotiated with the switch (IEEE 802.1AX)"),
                ]),
                Default::Text("active-backup"),
                "Use of the links.",
            )
            .only_if("class", &["aggregation"]),
            Property::setting("primary", "Primary", LINK, Default::None, "Preferred link.")
                .only_if("mode", &["active-backup"])
                .example("eth0"),
            Property::setting(
                "policy",
                "Policy",
                Kind::Choice(&[
                    ("l2", "MAC addresses"),
                    ("l23", "MAC and IP addresses"),
                    ("l34", "IP addresses and ports"),
                ]),
                Default::Text("l34"),
                "Fields of a packet that choose its link.",
            )
            .only_if("mode", &["lacp"]),
            Property::setting(
                "timer",
                "LACP timer",
                Kind::Choice(&[("slow", "every 30 s"), ("fast", "every second")]),
                Default::Text("slow"),
                "Interval of LACP messages.",
            )
            .only_if("mode", &["lacp"]),
            Property::setting("pkey", "P_Key", TEXT, Default::None, "P_Key of the partition.")
                .required()
                .only_if("class", &["partition"])
                .example("0x8001"),
            Property::setting(
                "linkmode",
                "Link mode",
                Kind::Choice(&[("ud", "unreliable datagrams"), ("cm", "connected mode")]),
                Default::Text("ud"),
                "Transport of IP over InfiniBand.",
            )
            .only_if("class", &["partition"]),
            Property::setting("mtu", "MTU", MTU, Default::None, "Maximum packet size.")
                .unit("B")
                .example("9000"),
            Property::state("state", "State", STATE, "State of the link."),
            Property::state("found", "Found", TEXT, "The link as the machine has it."),
            Property::state("found_mtu", "Found MTU", SIZE, "MTU of the link.").unit("B"),
            Property::state("partition", "Partition", TEXT, "Partition with both its P_Keys."),
            Property::state("reason", "Reason", TEXT, "Why a partition is absent."),
        ]);

static INTERFACES: Context =
    Context::new("interfaces", "Interfaces", "IP addresses on datalinks.", SCOPE)
        .items(&Items::configured("interface", "interfaces", &NAME, ITEMS_MAX, &INTERFACE));

static INTERFACE: Context = Context::new(
    "interface",
    "Interface",
    "IP addresses on a datalink, or on a group of datalinks of which one is used at a time.",
    SCOPE,
)
.properties(&[
    Property::setting(
        "enable",
        "Enabled",
        Kind::Bool,
        Default::Bool(true),
        "Whether the addresses are set.",
    ),
    Property::setting("links", "Links", LINKS, Default::None, "Datalink; several form a group.")
        .required()
        .items_of("/configuration/network/datalinks")
        .example("eth0"),
    Property::setting(
        "standbys",
        "Standbys",
        LINKS,
        Default::List(&[]),
        "Datalinks among the links that are used only while no other is up.",
    )
    .items_of("/configuration/network/datalinks"),
    Property::setting(
        "probes",
        "Probed hosts",
        Kind::List { of: &ADDRESS, max: PROBES_MAX },
        Default::List(&[]),
        "IPv4 addresses of hosts that a link of a group must reach by ARP to be used; without \
         them a carrier is enough.",
    )
    .example("192.0.2.1"),
    Property::setting(
        "v4addrs",
        "IPv4 addresses",
        ADDRESSES,
        Default::List(&[]),
        "IPv4 addresses.",
    )
    .example("192.0.2.10/24"),
    Property::setting("v4dhcp", "IPv4 by DHCP", Kind::Bool, Default::Bool(false), "Use DHCP."),
    Property::setting(
        "v6addrs",
        "IPv6 addresses",
        ADDRESSES,
        Default::List(&[]),
        "IPv6 addresses.",
    )
    .example("2001:db8::10/64"),
    Property::setting(
        "v6auto",
        "IPv6 by router advertisements",
        Kind::Bool,
        Default::Bool(false),
        "Use router advertisements.",
    ),
    Property::state("state", "State", STATE, "State of the interface."),
    Property::state("found", "Found", LINES, "IP addresses of its link."),
    Property::state("lease", "Lease", TEXT, "IP address by DHCP."),
    Property::state("lease_server", "DHCP server", TEXT, "Server that has given the lease."),
    Property::state("lease_since", "Lease since", Kind::Time, "Start of this address.")
        .absent("no lease"),
    Property::state("lease_until", "Lease until", Kind::Time, "End of the lease unless renewed.")
        .absent("no lease, or without an end"),
    Property::state(
        "lease_state",
        "DHCP state",
        Kind::Choice(&[
            ("searching", "asks all servers for a lease"),
            ("bound", "has a lease"),
            ("renewing", "asks its server to extend the lease"),
            ("rebinding", "asks all servers to extend the lease"),
        ]),
        "State of the DHCP client.",
    ),
]);

static ROUTES: Context = Context::new("routes", "Routes", "Static routes.", SCOPE)
    .properties(&[Property::state("found", "Found", LINES, "All routes of this machine.")])
    .items(&Items::configured("route", "routes", &NAME, ITEMS_MAX, &ROUTE));

static ROUTE: Context = Context::new("route", "Route", "A static route.", SCOPE).properties(&[
    Property::setting(
        "destination",
        "Destination",
        Kind::Text { max: 64, shape: Shape::Network },
        Default::None,
        "Network that it leads to; 0.0.0.0/0 or ::/0 is the default route.",
    )
    .required()
    .example("0.0.0.0/0"),
    Property::setting(
        "gateway",
        "Gateway",
        Kind::Text { max: 64, shape: Shape::Address },
        Default::None,
        "Next router, in a network of an enabled interface.",
    )
    .required()
    .example("192.0.2.1"),
    Property::setting(
        "metric",
        "Metric",
        Kind::Integer { min: 0, max: u32::MAX as i64 },
        Default::None,
        "Lower is preferred; not set: 0, or 1024 for IPv6.",
    )
    .example("100"),
    Property::state("state", "State", STATE, "State of the route."),
]);

static DNS: Context = Context::new(
    "dns",
    "DNS",
    "Name servers; not set: those of the machine.",
    SCOPE,
)
.properties(&[
    Property::setting("servers", "Servers", SERVERS, Default::None, "Name servers.")
        .example("192.0.2.53"),
    Property::setting("domains", "Search domains", DOMAINS, Default::None, "Search domains.")
        .example("example.net"),
    Property::state("found_servers", "Found servers", LINES, "Name servers in use."),
    Property::state("found_domains", "Found domains", LINES, "Search domains in use."),
]);

static IDENTITY: Context =
    Context::new("identity", "Identity", "Host name of this machine.", SCOPE).properties(&[
        Property::setting(
            "host_name",
            "Host name",
            Kind::Text { max: 64, shape: Shape::Domain },
            Default::None,
            "Host name; not set: that of the machine.",
        )
        .example("storage1"),
        Property::state("found", "Found", TEXT, "Host name in use."),
    ]);
