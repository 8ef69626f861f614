//! Users, roles and API tokens as nodes of the tree.

use base::limits::{
    FULL_NAME_MAX, PASSWORD_MAX, ROLE_PERMISSIONS_MAX, ROLES_MAX, SSH_KEY_MAX, TOKENS_MAX,
    USER_GROUPS_MAX, USER_HOME_MAX, USER_NAME_MAX, USER_ROLES_MAX, USER_SSH_KEYS_MAX, USERS_MAX,
};
use base::node::{Action, Context, Default, Items, Kind, Property, Shape};

/// The permission that these nodes take. Whoever has it grants no more than they have themselves
/// (`people::grants`).
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
    "Who may use shares by name and password or key, and who may administer. Users of the command \
     line are shown too, for as long as the server runs.",
    SCOPE,
)
.items(&Items::configured("user", "users", &NAME, USERS_MAX, &USER));

static USER: Context = Context::new(
    "user",
    "User",
    "A local user. A new password ends all sessions of the user, and so does disabling.",
    SCOPE,
)
.properties(&[
    Property::setting(
        "full_name",
        "Full name",
        LINE,
        Default::Text(""),
        "What people call the user.",
    )
    .example("Anna Berg"),
    Property::setting(
        "kind",
        "Kind",
        Kind::Choice(&[
            ("data", "uses shares, may not sign in here"),
            ("administrator", "may sign in here, as far as the roles go"),
        ]),
        Default::Text("data"),
        "What the user is for.",
    )
    .example("administrator"),
    Property::setting(
        "roles",
        "Roles",
        Kind::List { of: &NAME, max: USER_ROLES_MAX },
        Default::List(&[]),
        "Names of roles below configuration/roles; what they permit adds up. An administrator has \
         at least one.",
    )
    .items_of(ROLES_AT)
    .example("operator"),
    Property::setting(
        "enabled",
        "Enabled",
        Kind::Bool,
        Default::Bool(true),
        "Whether the user may sign in, to whatever service.",
    )
    .example("true"),
    Property::secret(
        "password",
        "Password",
        Kind::Text { max: PASSWORD_MAX, shape: Shape::Line },
        "At least 8 characters. Kept as an Argon2id hash; without one no password is right.",
    ),
    Property::setting(
        "ssh_keys",
        "SSH public keys",
        Kind::List { of: &SSH_KEY, max: USER_SSH_KEYS_MAX },
        Default::List(&[]),
        "Keys that open SFTP for the user, each a line of authorized_keys without options.",
    ),
    Property::state("sessions", "Sessions", COUNT, "How often the user is signed in here now."),
    Property::setting(
        "uid",
        "User number",
        ID,
        Default::None,
        "As whom the user reads and writes files over FTP, SFTP and HTTP. Without it: as the \
         account of that name on this machine, unless that is the superuser's or the server's; \
         without an account, as the server if the roles permit to change everything, and as \
         nobody (65534) otherwise.",
    )
    .example("1000"),
    Property::setting(
        "gid",
        "Group number",
        ID,
        Default::None,
        "The group of files that the user makes. Without it: the account's; without an account of \
         that number, nobody's (65534).",
    )
    .example("100"),
    Property::setting(
        "groups",
        "Other groups",
        Kind::List { of: &ID, max: USER_GROUPS_MAX },
        Default::List(&[]),
        "Numbers of groups whose rights the user has too. Without any: the account's.",
    )
    .example("50, 107"),
    Property::setting(
        "home",
        "Home",
        HOME,
        Default::None,
        "Where the user begins over FTP and SFTP, as a path within the shares: /SHARE or a folder \
         in it. Without it, or while there is no such folder: the list of shares.",
    )
    .example("/projects/anna"),
])
.actions(&[Action::new(
    "end_sessions",
    "End sessions",
    "Signs the user out everywhere.",
    "How many sessions have ended.",
)
.destructive()]);

const COUNT: Kind = Kind::Integer { min: 0, max: i64::MAX };

/// `/configuration/roles`.
pub static ROLES: Context = Context::new(
    "roles",
    "Roles",
    "What administrators and API tokens may do. Three are built in: administrator may do \
     everything; operator sees everything and ends sessions and clients; data may do nothing here.",
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
            "What the role is for.",
        )
        .example("looks after the shares"),
        Property::setting(
            "permissions",
            "Permissions",
            Kind::List { of: &PERMISSION, max: ROLE_PERMISSIONS_MAX },
            Default::List(&[]),
            "SCOPE:read or SCOPE:change, which includes reading; * is everything. Scopes are \
             analytics, clients, configuration, lab, maintenance, preferences, services, \
             sessions, shares, status, users.",
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
    "Secrets for programs: each may do what its role permits, until it ends. The token in the \
     file api-token of the state directory is not among them and may do everything.",
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
                "The name of a role below configuration/roles.",
            )
            .items_of(ROLES_AT)
            .required()
            .example("operator"),
            Property::setting(
                "ends",
                "Ends",
                Kind::Time,
                Default::None,
                "When it stops working, seconds since the epoch. Without it, it works until it is \
                 destroyed.",
            )
            .absent("never")
            .example("1798761600"),
            Property::secret(
                "secret",
                "Secret",
                Kind::Text { max: PASSWORD_MAX, shape: Shape::Line },
                "Made by the action issue. Only its digest is kept.",
            ),
            Property::state(
                "valid",
                "Valid",
                Kind::Bool,
                "Whether it has a secret and has not ended.",
            ),
        ])
        .actions(&[Action::new(
            "issue",
            "Issue",
            "Makes the secret of the token and shows it this once. The one before stops working.",
            "The secret, as {\"token\"}.",
        )
        .destructive()]);
