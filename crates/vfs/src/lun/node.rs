//! What can be configured and seen of logical units, in the words of the appliance that they are
//! modelled on: `/shares/PROJECT/luns`.

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
    "Logical units of the project, served over iSCSI. Access is controlled by the initiator group; \
     without a group, the secret of /configuration/san does.",
    SCOPE,
)
.properties(&[Property::setting(
    "directory",
    "Directory",
    PATH,
    Default::None,
    "Where units that are made from now on have their files, in a folder .plimsoll-luns that no \
     client sees. Without it, the state directory of the server.",
)
.guarded()
.example("/srv/projects")])
.items(&Items::configured("LUN", "LUNs", &LUN_NAME, LUNS_MAX, &LUN));

const SCOPE: &str = "shares";

static LUN_NAME: Kind = Kind::Text { max: LUN_NAME_MAX, shape: Shape::Name };

static LUN: Context = Context::new(
    "lun",
    "LUN",
    "A logical unit: a disk that initiators of iSCSI use. To destroy one removes its blocks, \
     unless they are in a file or device that was named; a new name changes nothing for \
     initiators.",
    SCOPE,
)
.properties(&PROPERTIES)
.actions(&[
    Action::new(
        "snapshot",
        "Snapshot",
        "Makes a LUN that has what this one has now, and cannot be written. It takes space only as \
         the two grow apart; where the file system cannot clone files it is refused.",
        "Path of the new LUN.",
    )
    .parameters(&[NEW_NAME]),
    Action::new(
        "clone",
        "Clone",
        "As snapshot, but the new LUN can be written.",
        "Path of the new LUN.",
    )
    .parameters(&[NEW_NAME]),
    Action::new(
        "clear_reservations",
        "Clear reservations",
        "Ends all reservations and registrations of initiators; each is informed. A cluster that \
         still uses the LUN is not protected by them any more.",
        "Nothing.",
    )
    .destructive(),
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
        "Blocks take space when they are written first. Otherwise all of it is reserved when the \
         LUN is made.",
    )
    .at_create(),
    Property::setting(
        "volblocksize",
        "Block size",
        Kind::Choice(&[
            ("512", "What all initiators can use."),
            ("4096", "Less work for file systems whose blocks are as large."),
        ]),
        Default::Text("512"),
        "Bytes of a block.",
    )
    .at_create(),
    Property::setting(
        "backing",
        "Backing",
        Kind::Choice(&[
            ("project", "A file in a folder that no client sees."),
            ("file", "A file by its name."),
            ("device", "A block device of the machine."),
        ]),
        Default::Text("project"),
        "Where its blocks are.",
    )
    .at_create(),
    Property::setting(
        "path",
        "Path",
        PATH,
        Default::None,
        "The file, which is made with this size if there is none, or the block device. No share \
         shows a file as long as it is a LUN.",
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
        "Its number (LUN) at its targets, which no other has. Without it the lowest that was free \
         when it was made.",
    )
    .example("3"),
    Property::setting(
        "initiatorgroup",
        "Initiator group",
        GROUP,
        Default::None,
        "Whose initiators may use it. Without one, those that sign in with the secret of \
         /configuration/san and have none of their own.",
    )
    .items_of("/configuration/san/initiator-groups")
    .example("cluster"),
    Property::setting(
        "targetgroup",
        "Target group",
        GROUP,
        Default::None,
        "At which targets it is found. Without one, at that of the server.",
    )
    .items_of("/configuration/san/target-groups")
    .example("fast"),
    Property::setting(
        "writecache",
        "Write cache",
        Kind::Bool,
        Default::Bool(true),
        "Writes may stay in memory until the initiator flushes, as every file system on a disk \
         does. Without it each write is on disk before it is answered.",
    ),
    Property::setting(
        "read_only",
        "Read only",
        Kind::Bool,
        Default::Inherited,
        "Refuses every change by initiators.",
    ),
    Property::setting(
        "status",
        "Status",
        Kind::Choice(&[
            ("online", "Initiators can use it."),
            ("offline", "No initiator finds it; nothing of it changes."),
        ]),
        Default::Text("online"),
        "Whether it is to be served.",
    ),
    Property::state(
        "state",
        "State",
        Kind::Choice(&[("online", "It is served."), ("offline", "It is not served.")]),
        "Whether it is served.",
    ),
    Property::state("reason", "Reason", LINE, "Why it is offline, or what is wrong with it."),
    Property::state("number", "Number", COUNT, "Its number (LUN) at its targets."),
    Property::state(
        "lunguid",
        "GUID",
        LINE,
        "The identifier by which initiators know it (NAA, VPD page 83h). It stays under another \
         name, over restarts, and when the state directory is moved.",
    ),
    Property::state("size", "Size now", BYTES, "How large it is for initiators now."),
    Property::state("allocated", "Allocated", BYTES, "What it takes on the file system."),
    Property::state(
        "targets",
        "Targets",
        Kind::List { of: &LINE, max: LUNS_MAX },
        "Names of the targets at which it is found.",
    ),
    Property::state(
        "connect",
        "Connect",
        Kind::List { of: &LINE, max: 16 },
        "Commands that use it.",
    ),
    Property::state(
        "initiators",
        "Initiators",
        Kind::List { of: &LINE, max: ISCSI_SESSIONS_MAX },
        "Initiators that use it now.",
    ),
    Property::state(
        "reservations",
        "Reservations",
        Kind::List { of: &LINE, max: 512 },
        "Who has reserved it, and who is registered with which key.",
    ),
    Property::state(
        "flush_failures",
        "Failed flushes",
        COUNT,
        "Flushes that failed since it was opened: what was written before each may be lost.",
    ),
];

const GROUP: Kind = Kind::Text { max: ISCSI_NAME_MAX, shape: Shape::Name };
const LINE: Kind = Kind::Text { max: 4_096, shape: Shape::Line };
const PATH: Kind = Kind::Text { max: 4_096, shape: Shape::Path };
const BYTES: Kind = Kind::Bytes { min: 0, max: u64::MAX };
const COUNT: Kind = Kind::Integer { min: 0, max: i64::MAX };
