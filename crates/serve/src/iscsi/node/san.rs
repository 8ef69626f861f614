//! `/configuration/san`: targets, initiators, and their groups.

use ::base::limits::{
    ISCSI_GROUP_MAX, ISCSI_GROUPS_MAX, ISCSI_INITIATORS_MAX, ISCSI_NAME_MAX, ISCSI_SESSIONS_MAX,
    ISCSI_TARGETS_MAX, LUN_NAME_MAX,
};
use ::base::node::{Action, Context, Default, Items, Kind, Property, Shape};
use wire::iscsi::chap::SECRET_MAX;

const SCOPE: &str = "services";

/// `/configuration/san`.
pub static SAN: Context = Context::new(
    "san",
    "SAN",
    "Who may use logical units over iSCSI, and at which targets. A LUN without an initiator group \
     is for initiators that sign in with the secret here; nobody gets in without a secret unless \
     a target says so.",
    SCOPE,
)
.properties(&[
    Property::setting(
        "chapuser",
        "CHAP user",
        NAME,
        Default::Text("plimsoll"),
        "The name that initiators sign in with that have no secret of their own, also for \
         discovery.",
    ),
    Property::secret(
        "chapsecret",
        "CHAP secret",
        SECRET,
        "What they sign in with, at least 12 characters. Without it, what the server has made for \
         itself, in the file luns/secret of its state directory.",
    ),
    Property::setting(
        "targetchapuser",
        "CHAP user of the target",
        NAME,
        Default::Text("plimsoll-target"),
        "The name with which the target of the server proves itself to initiators that ask for it.",
    ),
    Property::secret(
        "targetchapsecret",
        "CHAP secret of the target",
        SECRET,
        "What it proves itself with, at least 12 characters, and not the secret of an initiator. \
         Without it, what the server has made for itself, in the file luns/target-secret.",
    ),
    Property::state(
        "target",
        "Target",
        LINE,
        "The iSCSI name of the target of LUNs without a target group.",
    ),
])
.children(&[&TARGETS, &TARGET_GROUPS, &INITIATORS, &INITIATOR_GROUPS, &SESSIONS]);

static KEY: Kind = Kind::Text { max: LUN_NAME_MAX, shape: Shape::Name };

static TARGETS: Context = Context::new(
    "targets",
    "Targets",
    "Additional targets, for LUNs whose target group names them.",
    SCOPE,
)
.items(&Items::configured("target", "targets", &KEY, ISCSI_TARGETS_MAX, &TARGET));

static TARGET: Context = Context::new(
    "target",
    "Target",
    "A name under which initiators find LUNs, and how they sign in there.",
    SCOPE,
)
.properties(&[
    Property::setting(
        "iqn",
        "iSCSI name",
        NODE_NAME,
        Default::None,
        "The name that initiators know it by, which no other target has. Without it, that of the \
         server with the name of the target appended.",
    )
    .example("iqn.2026-01.org.example:fast"),
    Property::setting(
        "auth",
        "Authentication",
        Kind::Choice(&[
            ("chap", "Initiators sign in with their secret."),
            ("none", "Initiators of the groups of its LUNs get in by their names alone."),
        ]),
        Default::Text("chap"),
        "How initiators sign in. With none, LUNs without an initiator group are not found at it.",
    ),
    Property::setting(
        "targetchapuser",
        "CHAP user of the target",
        NAME,
        Default::None,
        "The name with which the target proves itself to initiators that ask for it; without it, \
         its iSCSI name.",
    )
    .example("fast"),
    Property::secret(
        "targetchapsecret",
        "CHAP secret of the target",
        SECRET,
        "What the target proves itself with, at least 12 characters, and not the secret of an \
         initiator. Without it, initiators that ask for it do not get in.",
    ),
])
.statistics(&["iscsi.ops[target]"]);

static TARGET_GROUPS: Context = Context::new(
    "target-groups",
    "Target groups",
    "Targets at which the same LUNs are found.",
    SCOPE,
)
.items(&Items::configured("target group", "target groups", &KEY, ISCSI_GROUPS_MAX, &TARGET_GROUP));

static TARGET_GROUP: Context = Context::new(
    "target-group",
    "Target group",
    "Targets at which the same LUNs are found.",
    SCOPE,
)
.properties(&[Property::setting(
    "targets",
    "Targets",
    MEMBERS,
    Default::List(&[]),
    "The targets, by their names here.",
)
.items_of("/configuration/san/targets")]);

static INITIATORS: Context = Context::new(
    "initiators",
    "Initiators",
    "Machines that use LUNs, each with a secret of its own if it is to have one.",
    SCOPE,
)
.items(&Items::configured("initiator", "initiators", &KEY, ISCSI_INITIATORS_MAX, &INITIATOR));

static INITIATOR: Context = Context::new(
    "initiator",
    "Initiator",
    "A machine that uses LUNs. With a secret of its own it finds only LUNs of its groups.",
    SCOPE,
)
.properties(&[
    Property::setting(
        "initiator",
        "iSCSI name",
        NODE_NAME,
        Default::None,
        "The name by which it introduces itself; on Linux in /etc/iscsi/initiatorname.iscsi.",
    )
    .required()
    .example("iqn.1993-08.org.debian:01:anna"),
    Property::setting(
        "chapuser",
        "CHAP user",
        NAME,
        Default::None,
        "The name that it signs in with; without it, its iSCSI name.",
    )
    .example("anna"),
    Property::secret(
        "chapsecret",
        "CHAP secret",
        SECRET,
        "What it signs in with, at least 12 characters. Without it, the secret of the server.",
    ),
])
.statistics(&["iscsi.ops[initiator]"]);

static INITIATOR_GROUPS: Context = Context::new(
    "initiator-groups",
    "Initiator groups",
    "Initiators that may use the same LUNs.",
    SCOPE,
)
.items(&Items::configured(
    "initiator group",
    "initiator groups",
    &KEY,
    ISCSI_GROUPS_MAX,
    &INITIATOR_GROUP,
));

static INITIATOR_GROUP: Context =
    Context::new("initiator-group", "Initiator group", "Who may use the same LUNs.", SCOPE)
        .properties(&[Property::setting(
            "initiators",
            "Initiators",
            MEMBERS,
            Default::List(&[]),
            "The initiators, by their names here.",
        )
        .items_of("/configuration/san/initiators")]);

static SESSIONS: Context = Context::new(
    "sessions",
    "Sessions",
    "Initiators that are logged in. One with two paths has two sessions.",
    "clients",
)
.items(&Items::live("session", "sessions", &KEY, ISCSI_SESSIONS_MAX, &SESSION));

static SESSION: Context =
    Context::new("session", "Session", "One login of an initiator.", "clients")
        .properties(&[
            Property::state("initiator", "Initiator", LINE, "Its iSCSI name."),
            Property::state("address", "Address", LINE, "Its address and port."),
            Property::state("target", "Target", LINE, "The target; none for discovery."),
            Property::state("isid", "ISID", LINE, "Distinguishes sessions of an initiator."),
            Property::state("since", "Since", Kind::Time, "Time of the login."),
        ])
        .actions(&[Action::new(
            "end",
            "End",
            "Asks the initiator to log out, and ends the session if it does not. Most come back at \
         once: take its secret or its group away first.",
            "Nothing.",
        )
        .destructive()]);

static MEMBER: Kind = Kind::Text { max: LUN_NAME_MAX, shape: Shape::Name };
const MEMBERS: Kind = Kind::List { of: &MEMBER, max: ISCSI_GROUP_MAX };
const NAME: Kind = Kind::Text { max: ISCSI_NAME_MAX, shape: Shape::Line };
const NODE_NAME: Kind = Kind::Text { max: ISCSI_NAME_MAX, shape: Shape::Line };
const SECRET: Kind = Kind::Text { max: SECRET_MAX, shape: Shape::Line };
const LINE: Kind = Kind::Text { max: 4_096, shape: Shape::Line };
