//! The fabric as nodes of the tree: seen, never set.

use base::node::{Context, Items, Kind, Property, Shape};
use host_fabric::attribute::ERRORS;
use host_fabric::problem::PROBLEMS_MAX;
use host_fabric::walk::{NODES_MAX, PORTS_MAX};

const SCOPE: &str = "maintenance";
/// P_Keys that are listed: an adapter has 128 for each port.
pub(super) const PKEYS_SHOWN: usize = 512;

static LINE: Kind = Kind::Text { max: 4_096, shape: Shape::Line };
const TEXT: Kind = Kind::Text { max: 4_096, shape: Shape::Line };
const COUNT: Kind = Kind::Integer { min: 0, max: i64::MAX };

const fn text(name: &'static str, title: &'static str, help: &'static str) -> Property {
    Property::state(name, title, TEXT, help)
}

const fn count(name: &'static str, title: &'static str, help: &'static str) -> Property {
    Property::state(name, title, COUNT, help)
}

/// `/maintenance/fabric`.
pub static FABRIC: Context = Context::new(
    "fabric",
    "Fabric",
    "Nodes, ports and links of the InfiniBand fabric, read every 10 seconds.",
    SCOPE,
)
.properties(&[
    Property::state(
        "state",
        "State",
        Kind::Choice(&[
            ("observed", "the fabric is read"),
            ("partial", "part of the fabric is read; see the reason"),
            ("unavailable", "no fabric is read; see the reason"),
        ]),
        "Whether a fabric is read.",
    ),
    text("reason", "Reason", "Why no fabric or only a part is read, and remedy."),
    text("subnet_manager", "Subnet manager", "Subnet manager of each port of this machine."),
    Property::state(
        "pkeys",
        "P_Keys",
        Kind::List { of: &LINE, max: PKEYS_SHOWN },
        "P_Keys that the subnet manager has given to the ports of this machine.",
    ),
    count("nodes_found", "Nodes", "Number of nodes."),
    count("ports_linked", "Linked ports", "Number of ports with a physical link."),
    count("links_found", "Links", "Number of links."),
    Property::state(
        "problems",
        "Problems",
        Kind::List { of: &LINE, max: PROBLEMS_MAX },
        "What is wrong, with its impact and a remedy.",
    ),
    count("walk", "Walk", "Time to read nodes, ports and links.").unit("ms"),
    count("reading", "Reading", "Time to read the counters of all linked ports.").unit("ms"),
    count("ignored", "Ignored replies", "Replies that belong to no request, since the start."),
])
.children(&[&NODES, &PORTS, &LINKS])
.statistics(&["ib.kilobytes", "ib.packets", "ib.errors", "ib.wait"]);

static NODES: Context =
    Context::new("nodes", "Nodes", "Channel adapters, switches and routers.", SCOPE)
        .items(&Items::live("node", "nodes", &LINE, NODES_MAX, &NODE));

static NODE: Context = Context::new("node", "Node", "A channel adapter, switch or router.", SCOPE)
    .properties(&[
        text("kind", "Kind", "Kind of the node."),
        text("description", "Description", "NodeDescription."),
        text("guid", "GUID", "GUID of the node."),
        text("system_guid", "System GUID", "GUID of the system that it is part of."),
        count("ports", "Ports", "Number of ports."),
        count("linked", "Linked ports", "Number of ports with a physical link."),
        text("lid", "LID", "Local identifiers of its ports."),
        text("device", "Device", "Vendor, device and revision."),
        text("route", "Route", "Ports by which a directed route leaves each hop."),
    ]);

static PORTS: Context =
    Context::new("ports", "Ports", "Ports of all nodes, with their counters.", SCOPE)
        .items(&Items::live("port", "ports", &LINE, PORTS_MAX, &PORT));

static PORT: Context = Context::new("port", "Port", "A port of a node.", SCOPE)
    .properties(&[
        text("node", "Node", "Node of the port."),
        count("number", "Number", "Number of the port."),
        text("guid", "GUID", "GUID of the port of a channel adapter."),
        text("lid", "LID", "Local identifier."),
        text("state", "State", "Logical state."),
        text("physical", "Physical state", "Physical state."),
        text("width", "Width", "Lanes in use, and lanes supported."),
        text("speed", "Speed", "Speed in use, and speed supported."),
        text("peer", "Peer", "Port at the other end of the link."),
        text("counters", "Counters", "Size of the counters, or why there are none."),
        count("bytes_in", "Bytes in", "Data received since the start.").unit("B"),
        count("bytes_out", "Bytes out", "Data transmitted since the start.").unit("B"),
        count("packets_in", "Packets in", "Packets received since the start."),
        count("packets_out", "Packets out", "Packets transmitted since the start."),
        count("rate_in", "Rate in", "Data received in the last interval.").unit("B/s"),
        count("rate_out", "Rate out", "Data transmitted in the last interval.").unit("B/s"),
        Property::state(
            "errors",
            "Errors",
            Kind::List { of: &LINE, max: ERRORS.len() },
            "Error counters that are not 0, as the port has them.",
        ),
        Property::state(
            "errors_grow",
            "Errors grow",
            Kind::Bool,
            "Whether an error counter has grown in the last interval.",
        ),
        count("wait", "Wait", "Ticks in which data waited for credits, since the start."),
    ])
    .statistics(&["ib.kilobytes", "ib.packets", "ib.errors", "ib.wait"]);

static LINKS: Context =
    Context::new("links", "Links", "Links, each by the port at one of its ends.", SCOPE)
        .items(&Items::live("link", "links", &LINE, PORTS_MAX, &LINK));

static LINK: Context = Context::new("link", "Link", "A link.", SCOPE).properties(&[
    text("from", "From", "Port at one end."),
    text("to", "To", "Port at the other end."),
    text("width", "Width", "Lanes in use, and lanes that both ends support."),
    text("speed", "Speed", "Speed in use, and the best that both ends support."),
    Property::state(
        "below_maximum",
        "Below maximum",
        Kind::Bool,
        "Whether both ends support, and have enabled, more lanes or a higher speed.",
    ),
]);
