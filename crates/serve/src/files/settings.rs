//! What can be set of every service that transfers files, and how the one tree has it.

use ::base::node::{Default as Unset, Kind, Property, Shape};

/// What others see of an upload until it has come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Uploads {
    /// Nothing; then all of it, under its name. Only of uploads that begin with nothing: what goes
    /// on with a file that is there is written there.
    #[default]
    Whole,
    /// A file under its name, as far as it has come.
    InPlace,
}

/// What a user sees as `/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LoginRoot {
    /// The shares that he may use. He begins in his home directory if he has one.
    #[default]
    Shares,
    /// His home directory and what is below it. Without one he is not let in.
    Home,
}

/// `umask`, in octal.
pub const UMASK: Property = Property::setting(
    "umask",
    "Mask of new files",
    Kind::Text { max: 4, shape: Shape::Name },
    Unset::Text("022"),
    "Permissions that new files and directories do not get, in octal.",
)
.example("027");

/// `uploads`: [`Uploads`].
pub const UPLOADS: Property = Property::setting(
    "uploads",
    "Uploads",
    Kind::Choice(&[
        ("whole", "A file has its name when all of it is there."),
        ("in-place", "It is there under its name as far as it has come."),
    ]),
    Unset::Text("whole"),
    "What others see of a file while it is uploaded. Who resumes or appends writes in place.",
);

/// `login_root`: [`LoginRoot`].
pub const LOGIN_ROOT: Property = Property::setting(
    "login_root",
    "Login root",
    Kind::Choice(&[
        ("shares", "The list of shares; the user begins in his home."),
        ("home", "His home and what is below it; without one he cannot sign in."),
    ]),
    Unset::Text("shares"),
    "What a user sees as /.",
);
