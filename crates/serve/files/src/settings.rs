//! What can be set of every service that transfers files, and how the one tree has it.

use ::base::node::{Default as Unset, Kind, Property, Shape};

/// What others see of an upload until it has come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Uploads {
    /// The file appears under its name when it is complete. Only for uploads from the beginning:
    /// one that continues an existing file writes into it.
    #[default]
    Atomic,
    /// The file is written under its name and grows as data arrives.
    InPlace,
}

/// What a user sees as `/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LoginRoot {
    /// The shares that the user may use. The session starts in the home directory if there is one.
    #[default]
    Shares,
    /// The home directory and what is below it. A user without one is refused.
    Home,
}

/// `umask`, in octal.
pub const UMASK: Property = Property::setting(
    "umask",
    "Umask",
    Kind::Text { max: 4, shape: Shape::Name },
    Unset::Text("022"),
    "Umask of new files and directories, in octal.",
)
.example("027");

/// `uploads`: [`Uploads`].
pub const UPLOADS: Property = Property::setting(
    "uploads",
    "Uploads",
    Kind::Choice(&[
        ("whole", "The file appears under its name when the upload is complete (atomic)."),
        ("in-place", "The file is written in place and visible while it grows."),
    ]),
    Unset::Text("whole"),
    "How uploads become visible to others. Resumed and appended uploads are always written in \
     place.",
);

/// `login_root`: [`LoginRoot`].
pub const LOGIN_ROOT: Property = Property::setting(
    "login_root",
    "Login root",
    Kind::Choice(&[
        ("shares", "The list of shares; the session starts in the user's home directory."),
        ("home", "The user's home directory only; users without one cannot sign in."),
    ]),
    Unset::Text("shares"),
    "Directory that users see as /.",
);
