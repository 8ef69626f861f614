//! Declarations of all nodes of shares: projects, and the shares in them, which inherit the
//! settings of their project unless they override them.

pub mod storage;

use crate::cache_drop::{DROPPED, WAIT};
use base::limits::{EXPORT_RULES_MAX, PROJECTS_MAX, SHARE_NAME_MAX, SHARES_MAX};
use base::node::{Action, Context, Default, Items, Kind, Property, Shape};
use base::protocol::{Service, ShareMode};

/// The project that is always there.
pub const DEFAULT_PROJECT: &str = "default";

/// The property of shares that requires encryption over SMB.
pub const SMB_ENCRYPT: &str = "smb_encrypt";

/// The property of a share that is a subvolume of a pool.
pub const POOL: &str = "pool";

/// The property of shares that permits leases and oplocks over SMB.
pub const SMB_OPLOCKS: &str = "smb_oplocks";

/// The property of shares that grants persistent handles over SMB.
pub const CONTINUOUS: &str = "continuous";

/// The property of shares that shows the directory of snapshots.
pub const SNAPDIR: &str = "snapdir";

/// Its value for a directory that the root lists.
pub const VISIBLE: &str = "visible";

/// `/shares`.
pub static NODE: Context = Context::new(
    "shares",
    "Shares",
    "Directories served to clients, grouped into projects.",
    SCOPE,
)
.items(&PROJECTS);

const SCOPE: &str = "shares";

static PROJECTS: Items =
    Items::configured("project", "projects", &PROJECT_NAME, PROJECTS_MAX, &PROJECT)
        .fixed(&[DEFAULT_PROJECT]);

static PROJECT_NAME: Kind = Kind::Text { max: SHARE_NAME_MAX, shape: Shape::Name };

static PROJECT: Context = Context::new(
    "project",
    "Project",
    "A group of shares. Shares inherit the settings of their project unless they override them.",
    SCOPE,
)
.properties(&PROJECT_PROPERTIES)
.children(&[&crate::lun::node::NODE])
.items(&SHARES);

static PROJECT_PROPERTIES: [Property; 5 + ACCESS] = joined([
    &[read_only(Default::Bool(false))],
    &[],
    &access(Default::Text("rw"), Default::List(&[])),
    &[
        smb_encrypt(Default::Bool(false)),
        smb_oplocks(Default::Bool(true)),
        continuous(Default::Bool(false)),
    ],
    &[snapdir(Default::Text("hidden"))],
]);

static SHARES: Items = Items::configured("share", "shares", &SHARE_NAME, SHARES_MAX, &SHARE);

/// The directory given on the command line names its share, and may hold spaces.
static SHARE_NAME: Kind = Kind::Text { max: SHARE_NAME_MAX, shape: Shape::Line };

static SHARE: Context = Context::new(
    "share",
    "Share",
    "A directory served to clients as /export/NAME. Destroying a share stops serving it; the \
     files are kept, and NFS clients get stale handles. After a rename, clients must mount the \
     new name.",
    SCOPE,
)
.properties(&SHARE_PROPERTIES)
.actions(&[
    Action::new(
        "drop_cache",
        "Drop cached data",
        "Writes back the files of the share and drops them from memory, so that the next reads \
         come from the disk. Clients are slower until the data is read again. Symbolic links and \
         other file systems are not followed.",
        DROPPED,
    )
    .parameters(&[
        Property::setting(
            "directory",
            "Directory",
            LINE,
            Default::None,
            "Drop only files below this directory of the share.",
        )
        .example("projects/old"),
        WAIT,
    ]),
    Action::new(
        "stop_drop_cache",
        "Stop dropping",
        "Stops drop_cache after the current file.",
        "Nothing.",
    ),
])
.statistics(&["nfs3.ops[share]", "nfs4.ops[share]"]);

static SHARE_PROPERTIES: [Property; SHARE_COUNT] = joined([
    &OWN,
    &storage::PROPERTIES,
    &access(Default::Inherited, Default::Inherited),
    &[
        smb_encrypt(Default::Inherited),
        smb_oplocks(Default::Inherited),
        continuous(Default::Inherited),
        snapdir(Default::Inherited),
    ],
    &STATES,
]);

/// Properties of a share.
const SHARE_COUNT: usize = OWN.len() + storage::PROPERTIES.len() + ACCESS + 4 + STATES.len();

/// What a share is made with, and does not take over from its project but for `read_only`.
const OWN: [Property; 7] = [
    Property::setting(
        "directory",
        "Directory",
        PATH,
        Default::None,
        "Directory to serve; required without a pool. Shares may be nested; a share cannot be \
         inside the state directory.",
    )
    .at_create()
    .example("/srv/projects"),
    Property::setting(
        POOL,
        "Pool",
        Kind::Text { max: SHARE_NAME_MAX, shape: Shape::Name },
        Default::None,
        "Pool on which the share is created, as a subvolume with its name, instead of a directory.",
    )
    .at_create()
    .items_of("/storage/pools")
    .example("tank"),
    Property::setting(
        "make_directory",
        "Create directory",
        Kind::Bool,
        Default::Bool(false),
        "Create the directory if it does not exist; its parent must exist.",
    )
    .at_create(),
    Property::setting(
        "root_owner",
        "Owner of the directory",
        ID,
        Default::None,
        "Owner (uid) to set on the directory when the share is created.",
    )
    .at_create()
    .example("1000"),
    Property::setting(
        "root_group",
        "Group of the directory",
        ID,
        Default::None,
        "Group (gid) to set on the directory when the share is created.",
    )
    .at_create()
    .example("100"),
    Property::setting(
        "root_mode",
        "Mode of the directory",
        Kind::Text { max: 4, shape: Shape::Name },
        Default::None,
        "Mode to set on the directory when the share is created, in octal.",
    )
    .at_create()
    .example("2775"),
    read_only(Default::Inherited),
];

/// What is seen of a share.
const STATES: [Property; 9] = [
    Property::state(
        "state",
        "State",
        Kind::Choice(&[
            ("online", "Available to clients."),
            ("offline", "Not available; see reason."),
        ]),
        "State of the share.",
    ),
    Property::state("reason", "Reason", LINE, "Why the share is offline."),
    Property::state("export_path", "Export path", LINE, "Path that NFS clients mount."),
    Property::state(
        "mount",
        "Mount",
        COMMANDS,
        "Mount commands and URLs, one or more per service.",
    ),
    Property::state("total", "Size", BYTES, "Size of the file system, or the quota on a pool."),
    Property::state("available", "Available", BYTES, "Space available to clients."),
    Property::state(
        "used",
        "Used",
        BYTES,
        "Space used on the file system; of a share on a pool, the space that it uses itself.",
    ),
    Property::state(
        "holders",
        "Holders",
        Kind::List { of: &LINE, max: 10_000 },
        "Addresses of clients with open, locked or delegated files.",
    ),
    Property::state(
        "cache_drop",
        "Cached data dropped",
        LINE,
        "Progress or result of the last drop_cache.",
    ),
];

const LINE: Kind = Kind::Text { max: 4_096, shape: Shape::Line };
const PATH: Kind = Kind::Text { max: 4_096, shape: Shape::Path };
const ID: Kind = Kind::Integer { min: 0, max: u32::MAX as i64 - 1 };
const BYTES: Kind = Kind::Bytes { min: 0, max: u64::MAX };
const COMMANDS: Kind = Kind::List { of: &LINE, max: 16 };

const fn read_only(default: Default) -> Property {
    Property::setting(
        "read_only",
        "Read only",
        Kind::Bool,
        default,
        "Rejects all changes by clients, overriding all other settings.",
    )
}

const fn smb_encrypt(default: Default) -> Property {
    Property::setting(
        SMB_ENCRYPT,
        "SMB encryption",
        Kind::Bool,
        default,
        "Requires encryption of SMB requests. Clients that cannot encrypt, such as those of SMB \
         2.1, are refused.",
    )
}

const fn smb_oplocks(default: Default) -> Property {
    Property::setting(
        SMB_OPLOCKS,
        "SMB oplocks",
        Kind::Bool,
        default,
        "Lets SMB clients cache files by oplocks and leases. Disable it if programs on this \
         machine change files that SMB clients have open: clients do not see that. Applies to \
         files that are opened from then on.",
    )
}

const fn continuous(default: Default) -> Property {
    Property::setting(
        CONTINUOUS,
        "Continuous availability",
        Kind::Bool,
        default,
        "Grants persistent handles to SMB 3 clients that request them: open files, share modes \
         and locks survive a restart of the server. Each open, lock and close waits for the disk \
         of the state directory. Applies to files that are opened from then on.",
    )
}

const fn snapdir(default: Default) -> Property {
    Property::setting(
        SNAPDIR,
        "Snapshot directory",
        Kind::Choice(&[
            ("hidden", "Directory listings omit it; it can be opened by name."),
            (VISIBLE, "Directory listings include it."),
        ]),
        default,
        "Visibility of the read-only directory .snapshot in the root of a share on a pool.",
    )
}

/// Settings of [`access`]: two for each service.
const ACCESS: usize = 2 * Service::SHARING.len();

/// For each service over which shares are used: what clients may do that no exception fits, and the
/// exceptions.
const fn access(rest: Default, exceptions: Default) -> [Property; ACCESS] {
    let mut all = [read_only(rest); ACCESS];
    let mut at = 0;
    while at < Service::SHARING.len() {
        let service = Service::SHARING[at];
        all[2 * at] = mode_of(service, rest);
        all[2 * at + 1] = exceptions_of(service, exceptions);
        at += 1;
    }
    all
}

const fn mode_of(service: Service, default: Default) -> Property {
    Property::setting(
        service.id(),
        service.title(),
        Kind::Choice(&[
            ("none", "No access, except for clients listed in the exceptions."),
            ("ro", "Read-only access."),
            ("rw", "Read and write access."),
        ]),
        default,
        "Access for clients that match no exception.",
    )
}

const fn exceptions_of(service: Service, default: Default) -> Property {
    let (help, example) = match service.shares() {
        // The sign-in determines the user; exceptions only restrict the access.
        Some(ShareMode::SignIn) => (
            "CLIENT(ro), CLIENT(rw) or CLIENT(none), for hosts, networks and groups. The first \
             matching entry applies.",
            "10.0.0.0/24(ro)",
        ),
        Some(ShareMode::Export) | None => (
            "Export rules in exports(5) syntax, CLIENT(OPTIONS), for hosts, networks and groups. \
             The first matching rule applies.",
            "10.0.0.0/24(rw,root_squash)",
        ),
    };
    let kind = Kind::List { of: &RULE, max: EXPORT_RULES_MAX - 1 };
    Property::setting(service.exceptions(), service.exceptions_title(), kind, default, help)
        .example(example)
}

/// The properties of a node one after the other.
const fn joined<const N: usize>(parts: [&[Property]; 5]) -> [Property; N] {
    let mut all = [read_only(Default::None); N];
    let (mut part, mut to) = (0, 0);
    while part < parts.len() {
        let mut at = 0;
        while at < parts[part].len() {
            all[to] = parts[part][at];
            to += 1;
            at += 1;
        }
        part += 1;
    }
    assert!(to == N, "all of them");
    all
}

static RULE: Kind = Kind::Text { max: 4_096, shape: Shape::ExportRule };
