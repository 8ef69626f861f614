//! What can be configured and seen of logical units, in the words of the appliance that they are
//! modelled on: `/shares/PROJECT/luns`.

use crate::cache_drop::{DROPPED, WAIT};
use base::limits::{ISCSI_NAME_MAX, ISCSI_SESSIONS_MAX, LUN_NAME_MAX, LUN_SIZE_MAX, LUNS_MAX};
use base::node::{Action, Context, Default, Items, Kind, Property, Shape};

/// The name of the node below a project.
pub const NAME: &str = "luns";
/// The choices of `backing`.
pub const BACKINGS: [&str; 3] = ["project", "file", "device"];

/// `/shares/PROJECT/luns`.
pub static NODE: Context = Context::new(
    NAME,
    "LUNs",
    "Logical units of the project, served over iSCSI. The initiator group of a LUN controls \
     access; without a group, the CHAP secret of /configuration/san.",
    SCOPE,
)
.properties(&[Property::setting(
    "directory",
    "Directory",
    PATH,
    Default::None,
    "Directory for the files of new LUNs, in a folder .plimsoll-luns that is hidden from clients. \
     Not set: the state directory of the server.",
)
.guarded()
.example("/srv/projects")])
.items(&Items::configured("LUN", "LUNs", &LUN_NAME, LUNS_MAX, &LUN));

const SCOPE: &str = "shares";

static LUN_NAME: Kind = Kind::Text { max: LUN_NAME_MAX, shape: Shape::Name };

static LUN: Context = Context::new(
    "lun",
    "LUN",
    "A logical unit, used by iSCSI initiators as a disk. Destroying it deletes its content, unless \
     the backing is a file or device. Renaming it does not affect initiators.",
    SCOPE,
)
.properties(&PROPERTIES)
.actions(&[
    Action::new(
        "snapshot",
        "Snapshot",
        "Creates a read-only LUN with the current content. It uses space only for later \
         differences. Requires a file system that can clone files, for example XFS or btrfs.",
        "Path of the new LUN.",
    )
    .parameters(&[NEW_NAME]),
    Action::new(
        "clone",
        "Clone",
        "As snapshot, but the new LUN is writable.",
        "Path of the new LUN.",
    )
    .parameters(&[NEW_NAME]),
    Action::new(
        "clear_reservations",
        "Clear reservations",
        "Removes all reservations and registrations of initiators, and notifies the initiators. A \
         cluster that still uses the LUN is no longer protected.",
        "Nothing.",
    )
    .destructive(),
    Action::new(
        "drop_cache",
        "Drop cached data",
        "Writes back the LUN and drops it from memory, so that the next reads come from the disk.",
        DROPPED,
    )
    .parameters(&[WAIT]),
])
.statistics(&["iscsi.ops[lun]", "iscsi.bytes[lun]"]);

const NEW_NAME: Property = Property::setting(
    "name",
    "Name",
    Kind::Text { max: LUN_NAME_MAX, shape: Shape::Name },
    Default::None,
    "Name of the new LUN, in the same project.",
)
.required()
.example("monday");

const PROPERTIES: [Property; 22] = [
    Property::setting(
        "volsize",
        "Size",
        Kind::Bytes { min: 1 << 20, max: LUN_SIZE_MAX },
        Default::None,
        "Size, a multiple of 4096 bytes. It can be increased while the LUN is in use, never \
         decreased. An existing file or device keeps its size.",
    )
    .example("10G"),
    Property::setting(
        "sparse",
        "Sparse",
        Kind::Bool,
        Default::Bool(true),
        "Allocate blocks at their first write. Off: allocate all blocks at creation.",
    )
    .at_create(),
    Property::setting(
        "volblocksize",
        "Block size",
        Kind::Choice(&[
            ("512", "Supported by all initiators."),
            ("4096", "Efficient for file systems with blocks of this size."),
        ]),
        Default::Text("512"),
        "Logical block size in bytes.",
    )
    .at_create(),
    Property::setting(
        "backing",
        "Backing",
        Kind::Choice(&[
            ("project", "A file managed by the server."),
            ("file", "The file in path."),
            ("device", "The block device in path."),
        ]),
        Default::Text("project"),
        "Storage of the content.",
    )
    .at_create(),
    Property::setting(
        "path",
        "Path",
        PATH,
        Default::None,
        "The file, created with this size if it does not exist, or the block device. The file is \
         hidden in shares while it is a LUN.",
    )
    .at_create()
    .guarded()
    .only_if("backing", &["file", "device"])
    .example("/dev/vg0/disk"),
    Property::setting(
        "assignednumber",
        "Assigned number",
        Kind::Integer { min: 0, max: LUNS_MAX as i64 - 1 },
        Default::None,
        "Logical unit number at its targets, unique. Not set: the lowest free number at creation.",
    )
    .example("3"),
    Property::setting(
        "initiatorgroup",
        "Initiator group",
        GROUP,
        Default::None,
        "Group of initiators with access. Not set: initiators that sign in with the secret of \
         /configuration/san and have none of their own.",
    )
    .items_of("/configuration/san/initiator-groups")
    .example("cluster"),
    Property::setting(
        "targetgroup",
        "Target group",
        GROUP,
        Default::None,
        "Targets at which the LUN is visible. Not set: the target of the server.",
    )
    .items_of("/configuration/san/target-groups")
    .example("fast"),
    Property::setting(
        "writecache",
        "Write cache",
        Kind::Bool,
        Default::Bool(true),
        "Volatile write cache: writes are on disk when the initiator flushes, as file systems do. \
         Off: each write is on disk before its status is returned.",
    ),
    Property::setting(
        "read_only",
        "Read only",
        Kind::Bool,
        Default::Inherited,
        "Reject all writes by initiators.",
    ),
    Property::setting(
        "status",
        "Status",
        Kind::Choice(&[
            ("online", "Available to initiators."),
            ("offline", "Hidden from initiators; the content is retained."),
        ]),
        Default::Text("online"),
        "Whether the LUN is to be served.",
    ),
    Property::state(
        "state",
        "State",
        Kind::Choice(&[("online", "It is served."), ("offline", "It is not served.")]),
        "Whether the LUN is served.",
    ),
    Property::state("reason", "Reason", LINE, "Why the LUN is offline, or the problem with it."),
    Property::state("number", "Number", COUNT, "Logical unit number at its targets."),
    Property::state(
        "lunguid",
        "GUID",
        LINE,
        "Unique identifier for initiators (NAA, VPD page 83h). It does not change when the LUN is \
         renamed, the server restarts, or the state directory moves.",
    ),
    Property::state("size", "Size now", BYTES, "Current size."),
    Property::state("allocated", "Allocated", BYTES, "Space used on the file system."),
    Property::state(
        "targets",
        "Targets",
        Kind::List { of: &LINE, max: LUNS_MAX },
        "Names of the targets at which the LUN is visible.",
    ),
    Property::state(
        "connect",
        "Connect",
        Kind::List { of: &LINE, max: 16 },
        "Commands for initiators. USER and SECRET are the CHAP name and secret.",
    ),
    Property::state(
        "initiators",
        "Initiators",
        Kind::List { of: &LINE, max: ISCSI_SESSIONS_MAX },
        "Connected initiators.",
    ),
    Property::state(
        "reservations",
        "Reservations",
        Kind::List { of: &LINE, max: 512 },
        "Persistent reservations and registered keys of initiators.",
    ),
    Property::state(
        "flush_failures",
        "Failed flushes",
        COUNT,
        "Failed flushes since the LUN was opened. Data written before a failed flush may be lost.",
    ),
];

const GROUP: Kind = Kind::Text { max: ISCSI_NAME_MAX, shape: Shape::Name };
const LINE: Kind = Kind::Text { max: 4_096, shape: Shape::Line };
const PATH: Kind = Kind::Text { max: 4_096, shape: Shape::Path };
const BYTES: Kind = Kind::Bytes { min: 0, max: u64::MAX };
const COUNT: Kind = Kind::Integer { min: 0, max: i64::MAX };
