//! Users, roles and API tokens as nodes of the tree.

use base::limits::{
    FULL_NAME_MAX, PASSWORD_MAX, ROLE_PERMISSIONS_MAX, ROLES_MAX, SSH_KEY_MAX, TOKENS_MAX,
    USER_GROUPS_MAX, USER_HOME_MAX, USER_NAME_MAX, USER_ROLES_MAX, USER_SSH_KEYS_MAX, USERS_MAX,
};
use base::node::{Action, Context, Default, Items, Kind, Property, Shape};

/// The permission that these nodes take. A user with this permission can grant no more than its own
/// permissions (`people::grants`).
const SCOPE: &str = "users";

/// Where roles are.
const ROLES_AT: &str = "/configuration/roles";

static NAME: Kind = Kind::Text { max: USER_NAME_MAX, shape: Shape::Name };
static PERMISSION: Kind = Kind::Text { max: USER_NAME_MAX, shape: Shape::Permission };
static SSH_KEY: Kind = Kind::Text { max: SSH_KEY_MAX, shape: Shape::SshKey };
const ID: Kind = Kind::Integer { min: 0, max: u32::MAX as i64 - 1 };
const HOME: Kind = Kind::Text { max: USER_HOME_MAX, shape: Shape::Path };
const LINE: Kind = Kind::Text { max: FULL_NAME_MAX, shape: Shape::Line };

/// `/configuration/users`.
pub static USERS: Context = Context::new(
    "users",
    "Users",
    "Accounts for file services and administration. Accounts given with serve --user are listed \
     while the server runs.",
    SCOPE,
)
.items(&Items::configured("user", "users", &NAME, USERS_MAX, &USER));

static USER: Context = Context::new(
    "user",
    "User",
    "A local user. Changing the password or disabling the user ends all sessions of the user.",
    SCOPE,
)
.properties(&[
    Property::setting("full_name", "Full name", LINE, Default::Text(""), "Full name of the user.")
        .example("Anna Berg"),
    Property::setting(
        "kind",
        "Kind",
        Kind::Choice(&[
            ("data", "file services only; no administration"),
            ("administrator", "administration, as permitted by roles"),
        ]),
        Default::Text("data"),
        "Kind of account.",
    )
    .example("administrator"),
    Property::setting(
        "roles",
        "Roles",
        Kind::List { of: &NAME, max: USER_ROLES_MAX },
        Default::List(&[]),
        "Roles from configuration/roles; their permissions add up. An administrator needs at \
         least one.",
    )
    .items_of(ROLES_AT)
    .example("operator"),
    Property::setting(
        "enabled",
        "Enabled",
        Kind::Bool,
        Default::Bool(true),
        "Whether the user may sign in to any service.",
    )
    .example("true"),
    Property::secret(
        "password",
        "Password",
        Kind::Text { max: PASSWORD_MAX, shape: Shape::Line },
        "At least 8 characters, stored as an Argon2id hash. Without one, the user cannot sign in \
         with a password.",
    ),
    Property::setting(
        "ssh_keys",
        "SSH public keys",
        Kind::List { of: &SSH_KEY, max: USER_SSH_KEYS_MAX },
        Default::List(&[]),
        "Public keys for SFTP, each a line of authorized_keys without options.",
    ),
    Property::state("sessions", "Sessions", COUNT, "Current browser sessions of the user."),
    Property::setting(
        "uid",
        "User number",
        ID,
        Default::None,
        "User id for file access over FTP, SFTP, HTTP and SMB. Not set: the system account of the \
         same name, unless it is root or the server's own; without such an account, the server's \
         id if the roles grant *, otherwise nobody (65534).",
    )
    .example("1000"),
    Property::setting(
        "gid",
        "Group number",
        ID,
        Default::None,
        "Primary group id of files created by the user. Not set: the group of the system account, \
         or nobody (65534).",
    )
    .example("100"),
    Property::setting(
        "groups",
        "Other groups",
        Kind::List { of: &ID, max: USER_GROUPS_MAX },
        Default::List(&[]),
        "Supplementary group ids. Not set: those of the system account.",
    )
    .example("50, 107"),
    Property::setting(
        "home",
        "Home",
        HOME,
        Default::None,
        "Start directory over FTP and SFTP: /SHARE or a directory below it. Not set or missing: \
         the list of shares.",
    )
    .example("/projects/anna"),
])
.actions(&[Action::new(
    "end_sessions",
    "End sessions",
    "Ends all sessions of the user.",
    "Number of sessions ended.",
)
.destructive()]);

const COUNT: Kind = Kind::Integer { min: 0, max: i64::MAX };

/// `/configuration/roles`.
pub static ROLES: Context = Context::new(
    "roles",
    "Roles",
    "Permission sets for administrators and API tokens. Built in: administrator (all \
     permissions), operator (read everything, end sessions and clients), data (no administration).",
    SCOPE,
)
.items(&Items::configured("role", "roles", &NAME, ROLES_MAX, &ROLE).fixed(&[
    "administrator",
    "operator",
    "data",
]));

static ROLE: Context = Context::new("role", "Role", "A named list of permissions.", SCOPE)
    .properties(&[
        Property::setting(
            "description",
            "Description",
            LINE,
            Default::Text(""),
            "Purpose of the role.",
        )
        .example("manages shares"),
        Property::setting(
            "permissions",
            "Permissions",
            Kind::List { of: &PERMISSION, max: ROLE_PERMISSIONS_MAX },
            Default::List(&[]),
            "SCOPE:read, or SCOPE:change, which includes read; * grants everything. Scopes are \
             analytics, clients, cluster, configuration, lab, maintenance, network, preferences, \
             replication, services, sessions, shares, status, storage, users.",
        )
        .example("shares:change, status:read"),
        Property::state(
            "holders",
            "Holders",
            Kind::List { of: &NAME, max: USERS_MAX },
            "Users and tokens with this role.",
        ),
    ]);

/// `/configuration/tokens`.
pub static TOKENS: Context = Context::new(
    "tokens",
    "API tokens",
    "Credentials for programs, with the permissions of a role and an optional expiry. The token \
     in the file api-token of the state directory is not listed and has all permissions.",
    SCOPE,
)
.items(&Items::configured("token", "tokens", &NAME, TOKENS_MAX, &TOKEN));

static TOKEN: Context =
    Context::new("token", "API token", "Sent as Authorization: Bearer TOKEN.", SCOPE)
        .properties(&[
            Property::setting(
                "role",
                "Role",
                Kind::Text { max: USER_NAME_MAX, shape: Shape::Name },
                Default::None,
                "Role from configuration/roles.",
            )
            .items_of(ROLES_AT)
            .required()
            .example("operator"),
            Property::setting(
                "ends",
                "Ends",
                Kind::Time,
                Default::None,
                "Time of expiry. Not set: no expiry.",
            )
            .absent("never")
            .example("1798761600"),
            Property::secret(
                "secret",
                "Secret",
                Kind::Text { max: PASSWORD_MAX, shape: Shape::Line },
                "Created by the action issue. Only its digest is stored.",
            ),
            Property::state(
                "valid",
                "Valid",
                Kind::Bool,
                "Whether it has a secret and has not expired.",
            ),
        ])
        .actions(&[Action::new(
            "issue",
            "Issue",
            "Creates a new secret and shows it once. The previous secret becomes invalid.",
            "The secret, as {\"token\"}.",
        )
        .destructive()]);
