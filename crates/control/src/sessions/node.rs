//! Sessions, and how the administration itself behaves, as nodes of the tree.

use base::limits::{
    SESSION_AGE, SESSION_AGE_RANGE_S, SESSION_IDLE, SESSION_IDLE_RANGE_S, SESSIONS_MAX,
    USER_NAME_MAX, USERS_MAX,
};
use base::node::{Action, Context, Default, Items, Kind, Property, Shape};

static ID: Kind = Kind::Text { max: USER_NAME_MAX, shape: Shape::Name };

/// `/configuration/preferences`.
pub static PREFERENCES: Context = Context::new(
    "preferences",
    "Preferences",
    "Settings of the administration interface.",
    "preferences",
)
.properties(&[
    Property::setting(
        "session_idle",
        "Session idle time",
        Kind::Seconds { min: SESSION_IDLE_RANGE_S.0, max: SESSION_IDLE_RANGE_S.1 },
        Default::Integer(SESSION_IDLE.as_secs() as i64),
        "Idle timeout of a session. Pages with live data keep a session alive.",
    )
    .unit("s")
    .example("2h"),
    Property::setting(
        "session_age",
        "Session age",
        Kind::Seconds { min: SESSION_AGE_RANGE_S.0, max: SESSION_AGE_RANGE_S.1 },
        Default::Integer(SESSION_AGE.as_secs() as i64),
        "Maximum lifetime of a session.",
    )
    .unit("s")
    .example("1d"),
    Property::setting(
        "guided",
        "Guided",
        Kind::List { of: &ID, max: USERS_MAX },
        Default::List(&[]),
        "Users who have closed the first steps on the status page.",
    )
    .example("anna"),
]);

/// `/maintenance/sessions`.
pub static SESSIONS: Context = Context::new(
    "sessions",
    "Sessions",
    "Signed-in browsers. Programs with a token and the local socket have no session.",
    "sessions",
)
.items(&Items::live("session", "sessions", &ID, SESSIONS_MAX, &SESSION));

static SESSION: Context = Context::new("session", "Session", "One signed-in browser.", "sessions")
    .properties(&[
        Property::state("user", "User", ID_TEXT, "User."),
        Property::state("address", "Address", ADDRESS, "Client address."),
        Property::state("opened", "Opened", Kind::Time, "Time of sign-in."),
        Property::state("used", "Last used", Kind::Time, "Time of the last request."),
    ])
    .actions(&[Action::new("end", "End", "Signs this browser out.", "Nothing.").destructive()]);

const ID_TEXT: Kind = Kind::Text { max: USER_NAME_MAX, shape: Shape::Line };
const ADDRESS: Kind = Kind::Text { max: USER_NAME_MAX, shape: Shape::Address };
