//! The cluster as nodes of the tree: seen and moved, never set; the configuration of heads is a
//! file.

use base::node::{Action, Context, Default, Items, Kind, Property, Shape};
use head::limits::{HEAD_NAME_MAX, HEAD_RESOURCES_MAX, HEADS_MAX};
use head::takeover::Cause;

const SCOPE: &str = "cluster";
static NAME: Kind = Kind::Text { max: HEAD_NAME_MAX, shape: Shape::Line };
static LINE: Kind = Kind::Text { max: 4_096, shape: Shape::Line };
const TEXT: Kind = Kind::Text { max: 4_096, shape: Shape::Line };
const COUNT: Kind = Kind::Integer { min: 0, max: i64::MAX };

const fn text(name: &'static str, title: &'static str, help: &'static str) -> Property {
    Property::state(name, title, TEXT, help)
}

const fn list(name: &'static str, title: &'static str, help: &'static str) -> Property {
    Property::state(name, title, Kind::List { of: &LINE, max: HEAD_RESOURCES_MAX }, help)
}

const fn time(name: &'static str, title: &'static str, help: &'static str) -> Property {
    Property::state(name, title, COUNT, help).unit("ms")
}

/// `/cluster`.
pub static CLUSTER: Context = Context::new(
    "cluster",
    "Cluster",
    "Heads of the cluster and the resources that they serve, as the head of this machine sees \
     them.",
    SCOPE,
)
.properties(&[
    Property::state(
        "state",
        "State",
        Kind::Choice(&[
            ("none", "this server is in no cluster"),
            ("member", "the head of this machine is a member"),
            ("draining", "the head of this machine hands over its resources"),
            ("unknown", "the head or etcd does not answer; see the reason"),
        ]),
        "State of the head of this machine.",
    ),
    text("reason", "Reason", "Why there is no cluster, or why its state is not known."),
    text("name", "Name", "Name of the cluster."),
    text("head", "Head", "Name of the head of this machine."),
])
.children(&[&HEADS, &RESOURCES]);

static HEADS: Context = Context::new("heads", "Heads", "Heads of the cluster.", SCOPE)
    .items(&Items::live("head", "heads", &NAME, HEADS_MAX, &HEAD));

static HEAD: Context = Context::new("head", "Head", "A head of the cluster.", SCOPE)
    .properties(&[
        Property::state(
            "state",
            "State",
            Kind::Choice(&[
                ("member", "its lease is valid"),
                ("draining", "it hands over its resources and takes none over"),
                ("absent", "it has no valid lease"),
            ]),
            "State of the head.",
        ),
        list("owns", "Owns", "Resources that it owns."),
        list("preferred_by", "Preferred by", "Resources that a failback moves to it."),
        Property::state(
            "this_machine",
            "This machine",
            Kind::Bool,
            "Whether it is the head of this machine.",
        ),
    ])
    .actions(&[
        Action::new(
            "drain",
            "Drain",
            "Hands over all resources of the head of this machine. It takes none over until the \
             drain ends.",
            "Confirmation.",
        )
        .destructive(),
        Action::new(
            "end_drain",
            "End drain",
            "Lets the head of this machine take resources over again.",
            "Confirmation.",
        ),
    ]);

static RESOURCES: Context = Context::new(
    "resources",
    "Resources",
    "Resources of the cluster.",
    SCOPE,
)
.items(&Items::live("resource", "resources", &NAME, HEAD_RESOURCES_MAX, &RESOURCE));

static RESOURCE: Context = Context::new(
    "resource",
    "Resource",
    "A directory with its state directory and its address, served by one head at a time.",
    SCOPE,
)
.properties(&PROPERTIES)
.actions(&[
    Action::new(
        "takeover",
        "Take over",
        "Moves the resource. Connections of its clients end, and they connect again.",
        "Confirmation.",
    )
    .destructive()
    .parameters(&[Property::setting(
        "to",
        "To",
        TEXT,
        Default::None,
        "Head that is to serve it; without it the head of this machine.",
    )
    .example("right")]),
    Action::new(
        "failback",
        "Fail back",
        "Moves the resource to its preferred owner. Connections of its clients end, and they \
         connect again.",
        "Confirmation.",
    )
    .destructive(),
]);

static PROPERTIES: [Property; 18] = [
    Property::state(
        "state",
        "State",
        Kind::Choice(&[
            ("served", "its owner serves it"),
            ("starting", "its owner takes it over"),
            ("handing_over", "its owner hands it over"),
            ("unowned", "no head owns it"),
            ("failed", "no head owns it, and the head of this machine cannot serve it"),
        ]),
        "State of the resource.",
    ),
    text("owner", "Owner", "Head that owns it."),
    text("preferred", "Preferred owner", "Head that a failback moves it to."),
    list("addresses", "Addresses", "Addresses of the resource."),
    Property::state(
        "takeover_at",
        "Last takeover",
        Kind::Time,
        "When it was served after the last takeover.",
    )
    .absent("never"),
    text("takeover_from", "From", "Owner before the last takeover."),
    text("takeover_to", "To", "Owner after the last takeover."),
    Property::state(
        "takeover_cause",
        "Cause",
        Kind::Choice(Cause::CHOICES),
        "Cause of the last takeover.",
    ),
    time("takeover_total", "Total", "Duration of the last takeover, as the new owner measured it."),
    time(
        "takeover_hand_over",
        "Hand-over",
        "Time in which the former owner drained connections and wrote state.",
    ),
    time("takeover_claim", "Claim", "Time from the release by the former owner to the claim."),
    time("takeover_lock", "Fence and lock", "Time to fence the former owner and take the lock."),
    time("takeover_start", "Start", "Time to start the server."),
    time("takeover_address", "Address", "Time to set and announce the address."),
    text(
        "reason",
        "Reason",
        "What is waited for, or what failed last, at the head of this machine.",
    ),
    text("target", "Target", "Head that is to own it."),
    Property::state("number", "Number", COUNT, "Number of the ownership; it only rises."),
    text("directory", "Directory", "Directory that is served, as the head of this machine has it."),
];
