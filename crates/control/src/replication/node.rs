//! Replication as nodes of the tree.

use base::limits::{
    DSYNC_PATTERN_MAX, DSYNC_STREAMS_MAX, NODE_NAME_MAX, PASSWORD_MAX, REPLICATION_ACTIONS_MAX,
    REPLICATION_EVERY_MAX, REPLICATION_EVERY_MIN, REPLICATION_EXCLUDES_MAX,
    REPLICATION_HISTORY_MAX, REPLICATION_KEY_MAX, REPLICATION_PLACE_MAX, REPLICATION_RUNS_MAX,
    REPLICATION_SHOWN, SSH_KEY_MAX,
};
use base::node::{Action, Context, Default, Items, Kind, Property, Shape};

use super::record::Outcome;

const SCOPE: &str = "replication";

static NAME: Kind = Kind::Text { max: NODE_NAME_MAX, shape: Shape::Name };
static LINE: Kind = Kind::Text { max: 4_096, shape: Shape::Line };
static PATTERN: Kind = Kind::Text { max: DSYNC_PATTERN_MAX, shape: Shape::Line };
const TEXT: Kind = Kind::Text { max: 4_096, shape: Shape::Line };
const PLACE: Kind = Kind::Text { max: REPLICATION_PLACE_MAX, shape: Shape::Line };
const COUNT: Kind = Kind::Integer { min: 0, max: i64::MAX };
const BYTES: Kind = Kind::Bytes { min: 0, max: i64::MAX as u64 };

/// `/configuration/replication`.
pub static REPLICATION: Context = Context::new(
    "replication",
    "Replication",
    "Copies a share, or a directory of a share, to or from another machine with dsync, on demand \
     or on a schedule.",
    SCOPE,
)
.properties(&[
    Property::state(
        "running",
        "Running",
        Kind::List { of: &LINE, max: REPLICATION_RUNS_MAX },
        "Current runs with their progress.",
    ),
    Property::state("problem", "Problem", TEXT, "Why results cannot be recorded."),
])
.items(&Items::configured("action", "actions", &NAME, REPLICATION_ACTIONS_MAX, &ACTION))
.statistics(&["dsync.ops[op]", "dsync.bytes[op]"]);

static ACTION: Context = Context::new(
    "action",
    "Action",
    "Source, destination, options and schedule. One run at a time; an interrupted run is resumed \
     by the next one.",
    SCOPE,
)
.properties(&PROPERTIES)
.actions(&[
    Action::new("start", "Start", "Starts a run now.", "Confirmation."),
    Action::new("stop", "Stop", "Stops the current run; the next run resumes it.", "Nothing."),
    Action::new(
        "runs",
        "Results",
        "Shows the results of recent runs, newest first.",
        "The results.",
    )
    .reading()
    .parameters(&[Property::setting(
        "limit",
        "Limit",
        Kind::Integer { min: 1, max: REPLICATION_HISTORY_MAX as i64 },
        Default::Integer(REPLICATION_SHOWN as i64),
        "Maximum number of entries.",
    )]),
]);

static PROPERTIES: [Property; 38] = [
    Property::state(
        "state",
        "State",
        Kind::Choice(&[
            ("idle", "no run in progress"),
            ("running", "a run is in progress"),
            ("stopping", "the run is being stopped"),
            ("waiting", "a run is due and waits for a free slot"),
        ]),
        "State of the action.",
    ),
    Property::state(
        "last_outcome",
        "Last outcome",
        Kind::Choice(Outcome::CHOICES),
        "Outcome of the last run.",
    ),
    Property::state("next", "Next run", Kind::Time, "Next scheduled run.").absent("not scheduled"),
    SOURCE,
    DESTINATION,
    PASSWORD,
    KEY,
    HOST_KEY,
    SCHEDULE,
    EVERY,
    AT,
    Property::setting(
        "enabled",
        "Enabled",
        Kind::Bool,
        Default::Bool(true),
        "Whether the schedule is active; the action start works in any case.",
    ),
    switch("delete", "Delete", false, "Delete destination entries that the source does not have."),
    switch(
        "checksum",
        "Checksum",
        false,
        "Compare files by BLAKE3 checksum instead of size and modification time.",
    ),
    switch("compress", "Compress", true, "Compress data while the network is the bottleneck."),
    Property::setting(
        "bandwidth",
        "Bandwidth",
        BYTES,
        Default::Integer(0),
        "Bandwidth limit to or from the other machine, in bytes per second; 0: unlimited.",
    )
    .example("10M"),
    Property::setting(
        "streams",
        "Streams",
        Kind::Integer { min: 0, max: DSYNC_STREAMS_MAX as i64 },
        Default::None,
        "Data streams in parallel to ssh, 0 for none; not set: added while throughput grows.",
    )
    .example("4"),
    OWNERS,
    switch("xattrs", "Attributes", true, "Preserve extended attributes and ACLs."),
    switch(
        "devices",
        "Devices",
        false,
        "Accept device nodes from a source on another machine; otherwise they are skipped, listed \
         and counted. Device nodes of local shares are always copied.",
    ),
    switch(
        "set_id",
        "Set-ID",
        false,
        "Accept set-user-id, set-group-id and file capabilities from a source on another machine; \
         otherwise they are dropped, listed and counted.",
    ),
    EXCLUDE,
    Property::setting(
        "remote_program",
        "Remote program",
        TEXT,
        Default::Text("plimsoll"),
        "Command that starts plimsoll on the other machine; only for ssh://.",
    )
    .example("/usr/local/bin/plimsoll"),
    Property::state("progress", "Progress", TEXT, "Progress of the run."),
    Property::state("began", "Began", Kind::Time, "Start of the run.").absent("not now"),
    Property::state("by", "By", TEXT, "Initiator of the run."),
    Property::state("entries", "Entries", COUNT, "Entries examined."),
    Property::state("files", "Files", COUNT, "Files to copy, as far as known."),
    Property::state("files_done", "Files done", COUNT, "Files copied."),
    Property::state("size", "Size", BYTES, "Bytes to copy."),
    Property::state("size_done", "Size done", BYTES, "Bytes copied."),
    Property::state("rate", "Rate", BYTES, "Current rate in bytes per second.").unit("B/s"),
    Property::state(
        "time_left",
        "Time left",
        Kind::Seconds { min: 0, max: u32::MAX as u64 },
        "Estimated time remaining.",
    )
    .unit("s"),
    Property::state("limiter", "Limited by", TEXT, "Current bottleneck."),
    Property::state("last", "Last run", Kind::Time, "End of the last run.").absent("never"),
    Property::state("last_reason", "Last reason", TEXT, "Why the last run did not complete."),
    Property::state(
        "last_failed",
        "Last failed",
        Kind::List { of: &LINE, max: base::limits::REPLICATION_FAILED_SHOWN },
        "First entries that the last run could not copy, each with the reason.",
    ),
    Property::state(
        "recent",
        "Recent",
        Kind::List { of: &LINE, max: REPLICATION_SHOWN },
        "Results of recent runs, newest first, times in UTC.",
    ),
];

const fn switch(name: &'static str, title: &'static str, on: bool, help: &'static str) -> Property {
    Property::setting(name, title, Kind::Bool, Default::Bool(on), help)
}

const SOURCE: Property = Property::setting(
    "source",
    "Source",
    PLACE,
    Default::None,
    "Source: SHARE/PATH of this server, or dsync://[USER@]HOST[:PORT]/SHARE/PATH or \
     ssh://[USER@]HOST[:PORT]/PATH of another machine.",
)
.required()
.example("projects/site");

const DESTINATION: Property = Property::setting(
    "destination",
    "Destination",
    PLACE,
    Default::None,
    "Destination; one of the two must be on this server. A missing directory is created, its \
     parent is not.",
)
.required()
.example("dsync://copy@backup.example.org/projects/site");

const PASSWORD: Property = Property::secret(
    "password",
    "Password",
    Kind::Text { max: PASSWORD_MAX, shape: Shape::Line },
    "Password of the user on the other machine.",
);

const KEY: Property = Property::secret(
    "key",
    "Private key",
    Kind::Text { max: REPLICATION_KEY_MAX, shape: Shape::Pem },
    "SSH private key of that user (ssh-keygen format, no passphrase). Only this key and the \
     password are tried, not the keys of the server's own account.",
);

const HOST_KEY: Property = Property::setting(
    "host_key",
    "Host key",
    Kind::Text { max: SSH_KEY_MAX, shape: Shape::SshKey },
    Default::None,
    "Expected SSH host key of the other machine. Not set: the key of the first connection is \
     pinned.",
);

const SCHEDULE: Property = Property::setting(
    "schedule",
    "Schedule",
    Kind::Choice(&[
        ("off", "on demand only"),
        ("every", "periodically"),
        ("daily", "daily at a fixed time"),
    ]),
    Default::Text("off"),
    "Schedule of runs. A time that falls into a run in progress is skipped; after a downtime, one \
     missed run is made up.",
)
.example("daily");

const EVERY: Property = Property::setting(
    "every",
    "Every",
    Kind::Seconds { min: REPLICATION_EVERY_MIN, max: REPLICATION_EVERY_MAX },
    Default::Integer(3_600),
    "Period; runs start at multiples of it, so 1h means every full hour (UTC).",
)
.unit("s")
.only_if("schedule", &["every"])
.example("15m");

const AT: Property = Property::setting(
    "at",
    "At",
    TEXT,
    Default::Text("02:00"),
    "Time of day, in the time zone of the server.",
)
.only_if("schedule", &["daily"])
.example("23:30");

const OWNERS: Property = Property::setting(
    "owners",
    "Owners",
    Kind::Choice(&[
        ("names", "by name, if the destination has that name"),
        ("numbers", "by number"),
        ("none", "not preserved"),
    ]),
    Default::Text("names"),
    "How to preserve owner and group; needs root at the destination.",
)
.example("numbers");

const EXCLUDE: Property = Property::setting(
    "exclude",
    "Exclude",
    Kind::List { of: &PATTERN, max: REPLICATION_EXCLUDES_MAX },
    Default::List(&[]),
    "Exclude patterns for both sides (rsync syntax): /a anchored at the top, a/ directories only, \
     * within a name, ** across names.",
)
.example("*.tmp");
