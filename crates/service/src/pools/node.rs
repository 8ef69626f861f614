//! Pools and disks as nodes of the tree. All of it is state and actions: nothing is configured.

use base::limits::NODE_NAME_MAX;
use base::node::{Action, Context, Default, Items, Kind, Property, Shape};
use host_pools::keeper::POOLS_MAX;
use host_pools::pool::{DISKS_MAX, NAME_MAX};
use host_pools::request::SCRUB_DAYS_MAX;
use host_pools::subvolume;
use host_pools::zfs::layout;

const SCOPE: &str = "storage";
/// Most items of a list.
const ITEMS_MAX: usize = 4_096;

static KEY: Kind = Kind::Text { max: NODE_NAME_MAX, shape: Shape::Line };
static LINE: Kind = Kind::Text { max: 4_096, shape: Shape::Line };
const TEXT: Kind = Kind::Text { max: 4_096, shape: Shape::Line };
const NAME: Kind = Kind::Text { max: NAME_MAX, shape: Shape::Name };
const SUBVOLUME: Kind = Kind::Text { max: subvolume::NAME_MAX, shape: Shape::Line };
const LINES: Kind = Kind::List { of: &LINE, max: ITEMS_MAX };
const DISKS_OF: Kind = Kind::List { of: &LINE, max: DISKS_MAX };
const COUNT: Kind = Kind::Integer { min: 0, max: i64::MAX };
const SIZE: Kind = Kind::Bytes { min: 0, max: i64::MAX as u64 };
const SECONDS: Kind = Kind::Seconds { min: 0, max: u32::MAX as u64 };
const DAYS: Kind = Kind::Integer { min: 0, max: SCRUB_DAYS_MAX as i64 };
const PROFILE: Kind = Kind::Choice(&[
    ("stripe", "data once: no disk may fail"),
    ("mirror", "data twice, on two disks: one disk may fail"),
    ("copies3", "data three times, on three disks: two disks may fail"),
    ("parity1", "ZFS, single parity: one disk of each group may fail"),
    ("parity2", "ZFS, double parity: two disks of each group may fail"),
    ("parity3", "ZFS, triple parity: three disks of each group may fail"),
]);
const LOG_PROFILE: Kind = Kind::Choice(&[
    ("stripe", "spread over all log disks"),
    ("mirror", "on all log disks: the last one may not fail"),
]);
const RECORD_SIZE: Kind = Kind::Bytes { min: layout::RECORD_MIN, max: layout::RECORD_MAX };

/// `/storage`.
pub static STORAGE: Context =
    Context::new("storage", "Storage", "Pools of disks, and the disks of this machine.", SCOPE)
        .children(&[&POOLS, &DISKS]);

static POOLS: Context = Context::new(
    "pools",
    "Pools",
    "Pools of disks with btrfs or ZFS. A pool is created or imported by an action and is part of \
     no configuration: importing or restoring one writes to no disk.",
    SCOPE,
)
.properties(&[
    Property::state("reason", "Reason", TEXT, "Why pools are not possible, and remedy."),
    Property::state("reason_btrfs", "btrfs", TEXT, "Why pools of btrfs are not possible."),
    Property::state("reason_zfs", "ZFS", TEXT, "Why pools of ZFS are not possible."),
    Property::state(
        "importable",
        "To import",
        LINES,
        "Pools on disks of this machine that are not imported.",
    ),
])
.actions(&[
    Action::new(
        "create_pool",
        "Create pool",
        "Creates a pool. All disks are checked first: one that is in use or has a signature is \
         refused, and nothing is written.",
        "Confirmation.",
    )
    .parameters(&[
        Property::setting("name", "Name", NAME, Default::None, "Name of the pool.")
            .required()
            .example("tank"),
        Property::setting(
            "kind",
            "Kind",
            Kind::Choice(&[("btrfs", "the kernel's own"), ("zfs", "with parity, log and cache")]),
            Default::Text("btrfs"),
            "File system of the pool.",
        )
        .example("zfs"),
        Property::setting(
            "profile",
            "Profile",
            PROFILE,
            Default::Text("mirror"),
            "Copies of data and the disks that may fail.",
        )
        .example("mirror"),
        Property::setting(
            "disks",
            "Disks",
            DISKS_OF,
            Default::None,
            "Disks by name in /dev/disk/by-id, or by serial number.",
        )
        .required()
        .example("wwn-0x5000c50012345678"),
        Property::setting(
            "log",
            "Log disks",
            DISKS_OF,
            Default::None,
            "ZFS: disks of the intent log, which make synchronous writes fast.",
        )
        .example("wwn-0x5000c50012345690"),
        Property::setting(
            "log_profile",
            "Log profile",
            LOG_PROFILE,
            Default::Text("stripe"),
            "ZFS: how the log is spread over its disks.",
        )
        .example("mirror"),
        Property::setting(
            "cache",
            "Cache disks",
            DISKS_OF,
            Default::None,
            "ZFS: disks of the read cache.",
        )
        .example("wwn-0x5000c50012345691"),
        Property::setting(
            "spares",
            "Spare disks",
            DISKS_OF,
            Default::None,
            "ZFS: disks that can replace a failed one at once.",
        )
        .example("wwn-0x5000c50012345692"),
        Property::setting(
            "record_size",
            "Record size",
            RECORD_SIZE,
            Default::None,
            "ZFS: record size of shares, a power of two; by default 128 KiB.",
        )
        .example("8K"),
    ]),
    Action::new(
        "import_pool",
        "Import pool",
        "Mounts a pool that is on disks of this machine, now and at each start.",
        "Confirmation.",
    )
    .parameters(&[
        Property::setting("name", "Name", TEXT, Default::None, "Name or UUID of the pool.")
            .required()
            .example("tank"),
        Property::setting(
            "degraded",
            "Without missing disks",
            Kind::Bool,
            Default::Bool(false),
            "Mount the pool although disks are missing. What is written then has fewer copies \
             until it is converted.",
        ),
    ]),
])
.items(&Items::live("pool", "pools", &KEY, POOLS_MAX, &POOL));

static POOL: Context = Context::new("pool", "Pool", "A pool of disks.", SCOPE)
    .properties(&POOL_PROPERTIES)
    .actions(&POOL_ACTIONS)
    .children(&[&MEMBERS, &SNAPSHOTS]);

const POOL_PROPERTIES: [Property; 23] = [
    Property::state(
        "state",
        "State",
        Kind::Choice(&[
            ("healthy", "all disks are there and all data has its copies"),
            ("degraded", "data has fewer copies than the profile promises"),
            ("repairing", "a repair runs, after which the pool is healthy"),
            ("failed", "data is not reachable"),
        ]),
        "State of the pool.",
    ),
    Property::state("reason", "Reason", TEXT, "Why the pool is not healthy."),
    Property::state("profile", "Profile", PROFILE, "Copies of data."),
    Property::state("capacity", "Capacity", SIZE, "Space for data on all disks."),
    Property::state("used", "Used", SIZE, "Space used by data and metadata."),
    Property::state("available", "Available", SIZE, "Space available to clients."),
    Property::state("used_data", "Used by data", SIZE, "Space used by data of files."),
    Property::state(
        "used_snapshots",
        "Used by snapshots",
        SIZE,
        "Space of data that only snapshots keep; known after account_snapshots.",
    ),
    Property::state(
        "usage",
        "Space of shares",
        LINES,
        "Space that each share uses, and its quota.",
    ),
    Property::state(
        "accounting",
        "Accounting",
        Kind::Choice(&[
            ("off", "the space of shares is not counted"),
            ("simple", "what each share has written counts, also if only a snapshot keeps it"),
            ("full", "what each share has now counts, and what each snapshot keeps"),
            ("scanning", "as full; data that was there before is being counted"),
        ]),
        "How the space of shares is counted.",
    ),
    Property::state(
        "without_copies",
        "Without copies",
        SIZE,
        "Space of data that has fewer copies than the profile.",
    ),
    Property::state(
        "task",
        "Task",
        Kind::Choice(&[
            ("scrub", "all data is read and corrected"),
            ("replace", "a disk is replaced, and data converted"),
            ("repair", "data gets its copies again"),
            ("remove", "a disk is removed"),
            ("resilver", "a disk gets the data that it lacks"),
        ]),
        "Task in progress.",
    ),
    Property::state("phase", "Phase", TEXT, "Phase of the task: scrub, replace, convert."),
    Property::state("progress", "Progress", COUNT, "Progress of the task.").unit("%"),
    Property::state("time_left", "Time left", SECONDS, "Time left in this phase.").unit("s"),
    Property::state("scrubbed", "Last scrub", Kind::Time, "End of the last complete scrub."),
    Property::state("history", "History", LINES, "Ended tasks and results, newest first."),
    Property::state("shares", "Shares", LINES, "Shares with a subvolume or dataset."),
    Property::state(
        "mount_degraded",
        "Mount degraded",
        Kind::Bool,
        "Whether the pool is mounted at a start although disks are missing.",
    ),
    Property::state(
        "scrub_every_days",
        "Scrub every",
        DAYS,
        "Days between two scrubs; 0: no schedule.",
    )
    .unit("days"),
    Property::state("directory", "Directory", TEXT, "Mount point."),
    Property::state("type", "Type", TEXT, "File system of the pool."),
    Property::state("uuid", "UUID", TEXT, "UUID of the pool, or its number in ZFS."),
];

const POOL_ACTIONS: [Action; 13] = [
    Action::new(
        "scrub",
        "Scrub",
        "Reads all data of the pool and corrects what is wrong from other copies.",
        "Confirmation.",
    ),
    Action::new("stop", "Stop task", "Stops the task in progress.", "Confirmation."),
    Action::new(
        "replace",
        "Replace disk",
        "Replaces a disk, also one that is missing, converts data that has too few copies, and \
         verifies that all data has its copies.",
        "Confirmation.",
    )
    .parameters(&[
        MEMBER,
        Property::setting(
            "disk",
            "New disk",
            TEXT,
            Default::None,
            "Disk by name in /dev/disk/by-id, or by serial number.",
        )
        .required()
        .example("wwn-0x5000c50012345678"),
    ]),
    Action::new(
        "add",
        "Add disk",
        "Adds a disk to the pool, or to a pool of ZFS a group of disks or disks of another role. A \
         missing disk is replaced instead.",
        "Confirmation.",
    )
    .parameters(&[
        Property::setting(
            "disks",
            "Disks",
            DISKS_OF,
            Default::None,
            "Disks by name in /dev/disk/by-id, or by serial number; btrfs adds one at a time.",
        )
        .required()
        .example("wwn-0x5000c50012345678"),
        Property::setting(
            "role",
            "Role",
            Kind::Choice(&[
                ("data", "data; a pool of ZFS gets a further group of the same width"),
                ("log", "ZFS: intent log, spread over the disks"),
                ("log_mirror", "ZFS: intent log, on all of the disks"),
                ("cache", "ZFS: read cache"),
                ("spare", "ZFS: spares"),
            ]),
            Default::Text("data"),
            "Purpose of the disks.",
        )
        .example("log"),
    ]),
    Action::new(
        "remove",
        "Remove disk",
        "Moves the data of a disk to the others, and removes the disk from the pool.",
        "Confirmation.",
    )
    .parameters(&[MEMBER]),
    Action::new(
        "offline",
        "Take disk offline",
        "Takes a disk of a pool of ZFS out of use, for example to pull it. Its data stays.",
        "Confirmation.",
    )
    .parameters(&[MEMBER]),
    Action::new(
        "online",
        "Take disk online",
        "Takes a disk of a pool of ZFS into use again, and writes to it what it has missed.",
        "Confirmation.",
    )
    .parameters(&[MEMBER]),
    Action::new(
        "configure",
        "Change settings",
        "Changes settings of the pool, which are stored on its disks.",
        "Confirmation.",
    )
    .parameters(&[
        Property::setting(
            "mount_degraded",
            "Mount degraded",
            Kind::Bool,
            Default::None,
            "Mount the pool at a start although disks are missing.",
        ),
        Property::setting(
            "scrub_every_days",
            "Scrub every",
            DAYS,
            Default::None,
            "Days between two scrubs; 0: no schedule.",
        )
        .unit("days")
        .example("30"),
    ]),
    Action::new(
        "create_snapshot",
        "Create snapshot",
        "Creates a read-only snapshot of a share.",
        "Confirmation.",
    )
    .parameters(&[
        Property::setting("share", "Share", SUBVOLUME, Default::None, "Name of the share.")
            .required()
            .example("projects"),
        Property::setting("name", "Name", SUBVOLUME, Default::None, "Name of the snapshot.")
            .required()
            .example("monday"),
    ]),
    Action::new(
        "account_snapshots",
        "Account snapshots",
        "Counts the space that snapshots keep apart from that of their shares. Reads all metadata \
         once; changes become slower with many snapshots.",
        "Confirmation.",
    ),
    Action::new(
        "mount",
        "Mount",
        "Mounts a pool that is imported and not mounted, also without missing disks.",
        "Confirmation.",
    )
    .parameters(&[Property::setting(
        "degraded",
        "Without missing disks",
        Kind::Bool,
        Default::Bool(false),
        "Mount the pool although disks are missing.",
    )]),
    Action::new(
        "export_pool",
        "Export",
        "Unmounts the pool and mounts it no more at a start. Its data stays on its disks; any \
         machine can import it.",
        "Confirmation.",
    )
    .destructive(),
    Action::new(
        "destroy_data",
        "Destroy data",
        "Destroys the pool and all data on it. This cannot be undone.",
        "Confirmation.",
    )
    .parameters(&[Property::setting(
        "confirm",
        "Name of the pool",
        TEXT,
        Default::None,
        "Name of the pool, to confirm.",
    )
    .required()
    .example("tank")])
    .destructive(),
];

const MEMBER: Property = Property::setting(
    "member",
    "Disk of the pool",
    TEXT,
    Default::None,
    "Disk of the pool by serial number, by name in /dev/disk/by-id, or by its number in the pool.",
)
.required()
.example("2");

static MEMBERS: Context = Context::new("disks", "Disks", "Disks of the pool by number.", SCOPE)
    .items(&Items::live("disk", "disks", &KEY, DISKS_MAX, &MEMBER_OF));

static MEMBER_OF: Context =
    Context::new("disk", "Disk", "A disk of the pool.", SCOPE).properties(&[
        Property::state(
            "state",
            "State",
            Kind::Choice(&[
                ("present", "the machine has it"),
                ("missing", "it is missing"),
                ("degraded", "ZFS: it has too many errors and is still used"),
                ("faulted", "ZFS: it has too many errors and is not used"),
                ("offline", "ZFS: an administrator took it offline"),
                ("available", "ZFS: a spare that is not used"),
                ("in use", "ZFS: a spare that is used"),
                ("unknown", "ZFS: not known"),
            ]),
            "State of the disk.",
        ),
        Property::state("role", "Role", TEXT, "Purpose: data, log, cache, spare or special."),
        Property::state("group", "Group", TEXT, "ZFS: groups of the disk, such as mirror-0."),
        Property::state("serial", "Serial number", TEXT, "Serial number."),
        Property::state("model", "Model", TEXT, "Model."),
        Property::state("bay", "Bay", TEXT, "Bay of the enclosure, or port of the controller."),
        Property::state("size", "Size", SIZE, "Size in the pool."),
        Property::state("allocated", "Allocated", SIZE, "Space that the pool uses of it."),
        Property::state("device", "Device", TEXT, "Kernel device name."),
        Property::state("by_id", "By ID", TEXT, "Name in /dev/disk/by-id."),
        Property::state("seen", "Last seen", Kind::Time, "When the disk was last seen."),
        Property::state("write_errors", "Write errors", COUNT, "Failed writes."),
        Property::state("read_errors", "Read errors", COUNT, "Failed reads."),
        Property::state("flush_errors", "Flush errors", COUNT, "Failed flushes."),
        Property::state(
            "corruption_errors",
            "Checksum errors",
            COUNT,
            "Blocks with a wrong checksum.",
        ),
        Property::state(
            "generation_errors",
            "Generation errors",
            COUNT,
            "Blocks that are older than the pool.",
        ),
    ]);

static SNAPSHOTS: Context =
    Context::new("snapshots", "Snapshots", "Snapshots of shares, as SHARE@NAME.", SCOPE)
        .items(&Items::live("snapshot", "snapshots", &KEY, ITEMS_MAX, &SNAPSHOT));

static SNAPSHOT: Context =
    Context::new("snapshot", "Snapshot", "A read-only snapshot of a share.", SCOPE)
        .properties(&[
            Property::state("share", "Share", TEXT, "Share of the snapshot."),
            Property::state("created", "Created", Kind::Time, "When it was created."),
        ])
        .actions(&SNAPSHOT_ACTIONS);

const SNAPSHOT_ACTIONS: [Action; 4] = [
    Action::new(
        "rollback",
        "Roll back",
        "Restores the share to the snapshot. The present state of the share becomes a snapshot, \
         before-rollback-TIME. Handles of NFS clients stay valid for files that the snapshot has; \
         open files and locks end.",
        "Confirmation.",
    )
    .parameters(&[Property::setting(
        "confirm",
        "Name of the share",
        TEXT,
        Default::None,
        "Name of the share, to confirm.",
    )
    .required()
    .example("projects")])
    .destructive(),
    Action::new(
        "clone",
        "Clone",
        "Creates a share on the pool with the files of the snapshot. Blocks are shared until they \
         change.",
        "Confirmation.",
    )
    .parameters(&[
        Property::setting("name", "Name", SUBVOLUME, Default::None, "Name of the new share.")
            .required()
            .example("projects-copy"),
        Property::setting(
            "project",
            "Project",
            SUBVOLUME,
            Default::Text("default"),
            "Project of the new share.",
        )
        .example("default"),
    ]),
    Action::new("rename_snapshot", "Rename", "Renames the snapshot.", "Confirmation.").parameters(
        &[Property::setting("name", "Name", SUBVOLUME, Default::None, "New name of the snapshot.")
            .required()
            .example("monday")],
    ),
    Action::new(
        "destroy_snapshot",
        "Destroy",
        "Destroys the snapshot. The share is not changed.",
        "Confirmation.",
    )
    .destructive(),
];

static DISKS: Context = Context::new(
    "disks",
    "Disks",
    "Disks and partitions of this machine with their content, and whether a pool can use them.",
    SCOPE,
)
.properties(&[Property::state("reason", "Reason", TEXT, "Why disks are not shown, and remedy.")])
.items(&Items::live("disk", "disks", &KEY, ITEMS_MAX, &DISK));

static DISK: Context = Context::new("disk", "Disk", "A disk or partition.", SCOPE).properties(&[
    Property::state("usable", "Usable", Kind::Bool, "Whether a pool can use it."),
    Property::state("reason", "Reason", TEXT, "Why no pool can use it."),
    Property::state("size", "Size", SIZE, "Size."),
    Property::state("model", "Model", TEXT, "Model."),
    Property::state("serial", "Serial number", TEXT, "Serial number."),
    Property::state("bay", "Bay", TEXT, "Bay of the enclosure, or port of the controller."),
    Property::state("content", "Content", TEXT, "Signature found on it."),
    Property::state("name", "Name for actions", TEXT, "Name that actions of pools accept."),
    Property::state("by_id", "By ID", LINES, "Names in /dev/disk/by-id."),
]);
