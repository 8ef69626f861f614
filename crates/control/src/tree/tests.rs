//! The tree over declarations of the test, with rooms that record their calls and a disk with
//! simulated power cuts.

mod audit;
mod changes;
mod crash;
pub mod disk;
mod documents;
mod needs;
pub mod rooms;

use std::sync::Arc;

use base::clock::ManualClock;
use base::node::{Context, Default, Items, Kind, Path, Property, Shape};
use serde_json::{Value as Json, json};

use super::engine::Done;
use super::viewer::{Everything, Viewer};
use super::{Actor, Problem, Request, Tree};
use crate::access::{Level, Permission, Rights};
use disk::MemoryDisk;

const NAME: Kind = Kind::Text { max: 32, shape: Shape::Name };
const LINE: Kind = Kind::Text { max: 200, shape: Shape::Line };

/// A small appliance.
pub static ROOT: Context = Context::new("", "Test", "All of it.", "status")
    .children(&[&SERVICES, &SHARES, &USERS, &SESSIONS]);

static SERVICES: Context =
    Context::new("services", "Services", "What it offers.", "services").children(&[&NFS]);

static NFS: Context = Context::new("nfs", "NFS", "Serves files.", "services")
    .properties(&[
        Property::state("state", "State", LINE, "State of the service."),
        Property::setting(
            "lease",
            "Lease",
            Kind::Seconds { min: 1, max: 3_600 },
            Default::Integer(90),
            "How long a client may be silent.",
        )
        .example("60")
        .at_restart(),
        Property::setting("delegations", "D", Kind::Bool, Default::Bool(true), "Whether."),
        Property::setting(
            "window",
            "Window",
            Kind::Bytes { min: 1_024, max: 1 << 30 },
            Default::Integer(1 << 20),
            "Bytes at once.",
        ),
    ])
    .actions(&[base::node::Action::new("greet", "Greet", "Says something.", "What it says.")
        .parameters(&[
            Property::setting("name", "Name", NAME, Default::None, "Whom.").required(),
            Property::secret("word", "Word", LINE, "A secret one."),
        ])]);

static SHARES: Context = Context::new("shares", "Shares", "Served shares.", "shares")
    .items(&Items::configured("project", "projects", &NAME, 3, &PROJECT).fixed(&["default"]));

const READ_ONLY: Property =
    Property::setting("read_only", "Read only", Kind::Bool, Default::Bool(false), "No changes.");
const RULES: Kind = Kind::List { of: &Kind::Text { max: 200, shape: Shape::ExportRule }, max: 9 };

static PROJECT: Context = Context::new("project", "Project", "Shares with one mind.", "shares")
    .properties(&[
        READ_ONLY,
        Property::setting("rules", "Rules", RULES, Default::List(&["*(rw)"]), "Who may."),
    ])
    .items(&Items::configured("share", "shares", &NAME, 100, &SHARE));

static SHARE: Context = Context::new("share", "Share", "A directory.", "shares").properties(&[
    Property::setting(
        "directory",
        "Directory",
        Kind::Text { max: 200, shape: Shape::Path },
        Default::None,
        "What is behind it.",
    )
    .required()
    .example("/srv/data"),
    Property::setting("read_only", "Read only", Kind::Bool, Default::Inherited, "No changes."),
    Property::setting("rules", "Rules", RULES, Default::Inherited, "Who may."),
    Property::setting("mode", "Mode", NAME, Default::None, "At first.").at_create(),
]);

static USERS: Context = Context::new("users", "Users", "Who may come in.", "users")
    .items(&Items::configured("user", "users", &NAME, 100, &USER));

static USER: Context = Context::new("user", "User", "A person.", "users").properties(&[
    Property::setting("full_name", "Name", LINE, Default::None, "What people call him."),
    Property::secret("password", "Password", LINE, "What only he knows."),
]);

static SESSIONS: Context = Context::new("sessions", "Sessions", "Who is there.", "sessions")
    .items(&Items::live("session", "sessions", &NAME, 100, &SESSION));

static SESSION: Context = Context::new("session", "Session", "One of them.", "sessions")
    .properties(&[Property::state("user", "User", LINE, "Who.")]);

pub const NOW_S: u64 = 1_800_000_000;

pub fn path(text: &str) -> Path {
    text.parse().unwrap()
}

pub fn actor() -> Actor {
    Actor::new("anna", "10.0.0.7")
}

/// A viewer with these permissions.
pub struct Holder(pub &'static [&'static str]);

impl Viewer for Holder {
    fn may_read(&self, scope: &str) -> bool {
        self.rights().may(scope, Level::Read)
    }

    fn why_not(&self, scope: &str) -> Option<String> {
        let may = self.rights().may(scope, Level::Change);
        (!may).then(|| format!("may not change {scope}"))
    }

    fn rights(&self) -> Rights {
        Rights::of(self.0.iter().map(|text| Permission::parse(text).unwrap()))
    }
}

/// A tree on this disk, without rooms.
pub fn open(disk: &MemoryDisk) -> Tree {
    let clock = Arc::new(ManualClock::at(NOW_S * 1_000_000_000));
    Tree::open(Arc::new(disk.clone()), &ROOT, clock).unwrap()
}

/// A tree with all the rooms of the test.
pub fn tree() -> Tree {
    let tree = open(&MemoryDisk::default());
    tree.join(rooms::branches(&rooms::Recorders::default()));
    tree
}

pub fn request(changes: Json) -> Request {
    serde_json::from_value(json!({ "changes": changes })).unwrap()
}

pub fn commit(tree: &Tree, changes: Json) -> Result<Done, Vec<Problem>> {
    tree.commit(&request(changes), &actor(), &Everything)
}

pub fn set(path: &str, property: &str, value: impl Into<Json>) -> Json {
    json!({ "set": path, "property": property, "value": value.into() })
}

pub fn create(above: &str, name: &str, properties: Json) -> Json {
    json!({ "create": above, "name": name, "properties": properties })
}
