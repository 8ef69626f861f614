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
    "Access to logical units over iSCSI: targets, initiators and their groups. LUNs without an \
     initiator group are available to initiators that sign in with this CHAP secret.",
    SCOPE,
)
.properties(&[
    Property::setting(
        "chapuser",
        "CHAP user",
        NAME,
        Default::Text("plimsoll"),
        "CHAP name of initiators without a secret of their own, also for discovery.",
    ),
    Property::secret(
        "chapsecret",
        "CHAP secret",
        SECRET,
        "CHAP secret of these initiators, at least 12 characters. Not set: the generated secret in \
         the file luns/secret of the state directory.",
    ),
    Property::setting(
        "targetchapuser",
        "CHAP user of the target",
        NAME,
        Default::Text("plimsoll-target"),
        "CHAP name of the target for initiators that request mutual CHAP.",
    ),
    Property::secret(
        "targetchapsecret",
        "CHAP secret of the target",
        SECRET,
        "CHAP secret of the target for mutual CHAP, at least 12 characters, different from the \
         secrets of initiators. Not set: the generated secret in the file luns/target-secret.",
    ),
    Property::state(
        "target",
        "Target",
        LINE,
        "IQN (iSCSI name) of the target of LUNs without a target group.",
    ),
])
.children(&[&TARGETS, &TARGET_GROUPS, &INITIATORS, &INITIATOR_GROUPS, &SESSIONS]);

static KEY: Kind = Kind::Text { max: LUN_NAME_MAX, shape: Shape::Name };

static TARGETS: Context =
    Context::new("targets", "Targets", "Additional targets, for LUNs with a target group.", SCOPE)
        .items(&Items::configured("target", "targets", &KEY, ISCSI_TARGETS_MAX, &TARGET));

static TARGET: Context = Context::new(
    "target",
    "Target",
    "An iSCSI target: its name, and authentication of its initiators.",
    SCOPE,
)
.properties(&[
    Property::setting(
        "iqn",
        "iSCSI name",
        NODE_NAME,
        Default::None,
        "IQN (iSCSI name) of the target, unique. Not set: the name of the target of the server \
         with this name appended.",
    )
    .example("iqn.2026-01.org.example:fast"),
    Property::setting(
        "auth",
        "Authentication",
        Kind::Choice(&[
            ("chap", "Initiators sign in with CHAP."),
            ("none", "Initiators are identified by their iSCSI name only."),
        ]),
        Default::Text("chap"),
        "Authentication of initiators. With none, LUNs without an initiator group are not visible \
         at this target.",
    ),
    Property::setting(
        "targetchapuser",
        "CHAP user of the target",
        NAME,
        Default::None,
        "CHAP name of the target for mutual CHAP. Not set: its iSCSI name.",
    )
    .example("fast"),
    Property::secret(
        "targetchapsecret",
        "CHAP secret of the target",
        SECRET,
        "CHAP secret of the target for mutual CHAP, at least 12 characters, different from the \
         secrets of initiators. Not set: initiators that request mutual CHAP are refused.",
    ),
])
.statistics(&["iscsi.ops[target]"]);

static TARGET_GROUPS: Context =
    Context::new("target-groups", "Target groups", "Targets with the same LUNs.", SCOPE).items(
        &Items::configured("target group", "target groups", &KEY, ISCSI_GROUPS_MAX, &TARGET_GROUP),
    );

static TARGET_GROUP: Context =
    Context::new("target-group", "Target group", "Targets with the same LUNs.", SCOPE).properties(
        &[Property::setting(
            "targets",
            "Targets",
            MEMBERS,
            Default::List(&[]),
            "Names of the targets.",
        )
        .items_of("/configuration/san/targets")],
    );

static INITIATORS: Context = Context::new(
    "initiators",
    "Initiators",
    "Machines that use LUNs, with an optional CHAP secret for each.",
    SCOPE,
)
.items(&Items::configured("initiator", "initiators", &KEY, ISCSI_INITIATORS_MAX, &INITIATOR));

static INITIATOR: Context = Context::new(
    "initiator",
    "Initiator",
    "A machine that uses LUNs. With a secret of its own it has access only to the LUNs of its \
     groups.",
    SCOPE,
)
.properties(&[
    Property::setting(
        "initiator",
        "iSCSI name",
        NODE_NAME,
        Default::None,
        "IQN (iSCSI name) of the initiator; on Linux in /etc/iscsi/initiatorname.iscsi.",
    )
    .required()
    .example("iqn.1993-08.org.debian:01:anna"),
    Property::setting(
        "chapuser",
        "CHAP user",
        NAME,
        Default::None,
        "CHAP name. Not set: its iSCSI name.",
    )
    .example("anna"),
    Property::secret(
        "chapsecret",
        "CHAP secret",
        SECRET,
        "CHAP secret, at least 12 characters. Not set: the secret of /configuration/san.",
    ),
])
.statistics(&["iscsi.ops[initiator]"]);

static INITIATOR_GROUPS: Context = Context::new(
    "initiator-groups",
    "Initiator groups",
    "Initiators with access to the same LUNs.",
    SCOPE,
)
.items(&Items::configured(
    "initiator group",
    "initiator groups",
    &KEY,
    ISCSI_GROUPS_MAX,
    &INITIATOR_GROUP,
));

static INITIATOR_GROUP: Context = Context::new(
    "initiator-group",
    "Initiator group",
    "Initiators with access to the same LUNs.",
    SCOPE,
)
.properties(&[Property::setting(
    "initiators",
    "Initiators",
    MEMBERS,
    Default::List(&[]),
    "Names of the initiators.",
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
            "Requests a logout from the initiator, and ends the session if it does not log out. \
             Most initiators reconnect immediately: change their secret or group first.",
            "Nothing.",
        )
        .destructive()]);

static MEMBER: Kind = Kind::Text { max: LUN_NAME_MAX, shape: Shape::Name };
const MEMBERS: Kind = Kind::List { of: &MEMBER, max: ISCSI_GROUP_MAX };
const NAME: Kind = Kind::Text { max: ISCSI_NAME_MAX, shape: Shape::Line };
const NODE_NAME: Kind = Kind::Text { max: ISCSI_NAME_MAX, shape: Shape::Line };
const SECRET: Kind = Kind::Text { max: SECRET_MAX, shape: Shape::Line };
const LINE: Kind = Kind::Text { max: 4_096, shape: Shape::Line };
