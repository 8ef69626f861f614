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
    "Keeps a share, or a directory of one, the same as a directory of another machine: runs of \
     dsync that somebody starts, or a schedule.",
    SCOPE,
)
.properties(&[
    Property::state(
        "running",
        "Running",
        Kind::List { of: &LINE, max: REPLICATION_RUNS_MAX },
        "Runs that are under way, each with how far it is.",
    ),
    Property::state("problem", "Problem", TEXT, "Why results cannot be written down now."),
])
.items(&Items::configured("action", "actions", &NAME, REPLICATION_ACTIONS_MAX, &ACTION))
.statistics(&["dsync.ops[op]", "dsync.bytes[op]"]);

static ACTION: Context = Context::new(
    "action",
    "Action",
    "From where to where, what is carried, and when. One run at once; what a run that broke off \
     has carried is not carried again.",
    SCOPE,
)
.properties(&PROPERTIES)
.actions(&[
    Action::new("start", "Start", "Starts a run now.", "That it has begun."),
    Action::new(
        "stop",
        "Stop",
        "Ends the run that is under way; the next one goes on from where it was.",
        "Nothing.",
    ),
    Action::new(
        "runs",
        "Results",
        "Shows what came of the newest runs, the newest first.",
        "The results.",
    )
    .reading()
    .parameters(&[Property::setting(
        "limit",
        "Limit",
        Kind::Integer { min: 1, max: REPLICATION_HISTORY_MAX as i64 },
        Default::Integer(REPLICATION_SHOWN as i64),
        "At most so many.",
    )]),
]);

static PROPERTIES: [Property; 38] = [
    Property::state(
        "state",
        "State",
        Kind::Choice(&[
            ("idle", "no run is under way"),
            ("running", "a run is under way"),
            ("stopping", "a run is being ended"),
            ("waiting", "a run is due, and as many as may be are under way"),
        ]),
        "What it does now.",
    ),
    Property::state(
        "last_outcome",
        "Last outcome",
        Kind::Choice(Outcome::CHOICES),
        "How the last run ended.",
    ),
    Property::state("next", "Next run", Kind::Time, "When a run is due.").absent("not scheduled"),
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
        "Whether the schedule starts runs; start does in any case.",
    ),
    switch("delete", "Delete", false, "Take away what the source does not have."),
    switch(
        "checksum",
        "Checksum",
        false,
        "Compare files by BLAKE3 of their content, not by size and time.",
    ),
    switch("compress", "Compress", true, "Compress what shrinks while the link is what limits."),
    Property::setting(
        "bandwidth",
        "Bandwidth",
        BYTES,
        Default::Integer(0),
        "Most bytes per second to or from another machine; 0 is no limit.",
    )
    .example("10M"),
    Property::setting(
        "streams",
        "Streams",
        Kind::Integer { min: 0, max: DSYNC_STREAMS_MAX as i64 },
        Default::None,
        "Streams for data beside ssh, 0 for none; not set: as many as bring something.",
    )
    .example("4"),
    OWNERS,
    switch("xattrs", "Attributes", true, "Keep extended attributes and access control lists."),
    switch(
        "devices",
        "Devices",
        false,
        "Make device nodes that a source on another machine has; otherwise each is skipped, named \
         and counted. Those of a share of this server are always made.",
    ),
    switch(
        "set_id",
        "Set-ID",
        false,
        "Keep set-user-id, set-group-id and capabilities of files of a source on another machine; \
         otherwise each such file is carried without, named and counted.",
    ),
    EXCLUDE,
    Property::setting(
        "remote_program",
        "Remote program",
        TEXT,
        Default::Text("plimsoll"),
        "Plimsoll on the other machine, as the shell there takes it; only for ssh://.",
    )
    .example("/usr/local/bin/plimsoll"),
    Property::state("progress", "Progress", TEXT, "How far the run is."),
    Property::state("began", "Began", Kind::Time, "When the run began.").absent("not now"),
    Property::state("by", "By", TEXT, "Who started the run."),
    Property::state("entries", "Entries", COUNT, "Entries that the run has looked at."),
    Property::state("files", "Files", COUNT, "Files that the run is to carry, as far as is known."),
    Property::state("files_done", "Files done", COUNT, "Those of them that are there."),
    Property::state("size", "Size", BYTES, "Bytes of the files that the run is to carry."),
    Property::state("size_done", "Size done", BYTES, "Bytes of those that are there."),
    Property::state("rate", "Rate", BYTES, "Bytes in a second, now.").unit("B/s"),
    Property::state(
        "time_left",
        "Time left",
        Kind::Seconds { min: 0, max: u32::MAX as u64 },
        "How long the run will still take.",
    )
    .unit("s"),
    Property::state("limiter", "Limited by", TEXT, "What limits the run now."),
    Property::state("last", "Last run", Kind::Time, "When the last run ended.").absent("never"),
    Property::state("last_reason", "Last reason", TEXT, "Why the last run is not done."),
    Property::state(
        "last_failed",
        "Last failed",
        Kind::List { of: &LINE, max: base::limits::REPLICATION_FAILED_SHOWN },
        "The first entries that the last run could not carry, each with why.",
    ),
    Property::state(
        "recent",
        "Recent",
        Kind::List { of: &LINE, max: REPLICATION_SHOWN },
        "What came of the newest runs, the newest first, times in UTC.",
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
    "What is read: SHARE/PATH of this server, or dsync://[USER@]HOST[:PORT]/SHARE/PATH or \
     ssh://[USER@]HOST[:PORT]/PATH of another.",
)
.required()
.example("projects/site");

const DESTINATION: Property = Property::setting(
    "destination",
    "Destination",
    PLACE,
    Default::None,
    "What becomes the same; one of the two is of this server. It is made if it is missing, but not \
     what it lies in.",
)
.required()
.example("dsync://copy@backup.example.org/projects/site");

const PASSWORD: Property = Property::secret(
    "password",
    "Password",
    Kind::Text { max: PASSWORD_MAX, shape: Shape::Line },
    "The password of the user on the other machine.",
);

const KEY: Property = Property::secret(
    "key",
    "Private key",
    Kind::Text { max: REPLICATION_KEY_MAX, shape: Shape::Pem },
    "The SSH private key of that user, as ssh-keygen writes it, without a passphrase. It and \
     the password are all that is tried: keys of the user that the server runs as are not.",
);

const HOST_KEY: Property = Property::setting(
    "host_key",
    "Host key",
    Kind::Text { max: SSH_KEY_MAX, shape: Shape::SshKey },
    Default::None,
    "The public key that the other machine must show. Not set: the one of the first contact is \
     kept, and another is refused from then on.",
);

const SCHEDULE: Property = Property::setting(
    "schedule",
    "Schedule",
    Kind::Choice(&[
        ("off", "when somebody starts it"),
        ("every", "again and again"),
        ("daily", "each day at one time"),
    ]),
    Default::Text("off"),
    "When runs begin. A time that comes while a run is under way is skipped; of those that passed \
     while the server did not run, one is made up for.",
)
.example("daily");

const EVERY: Property = Property::setting(
    "every",
    "Every",
    Kind::Seconds { min: REPLICATION_EVERY_MIN, max: REPLICATION_EVERY_MAX },
    Default::Integer(3_600),
    "How often: each time that is a multiple of it, 1h is at every full hour (UTC).",
)
.unit("s")
.only_if("schedule", &["every"])
.example("15m");

const AT: Property = Property::setting(
    "at",
    "At",
    TEXT,
    Default::Text("02:00"),
    "The time of day, in the time zone of the server.",
)
.only_if("schedule", &["daily"])
.example("23:30");

const OWNERS: Property = Property::setting(
    "owners",
    "Owners",
    Kind::Choice(&[
        ("names", "by name, where the destination has that name"),
        ("numbers", "by number"),
        ("none", "not kept"),
    ]),
    Default::Text("names"),
    "How owner and group are kept, where the destination is written by root.",
)
.example("numbers");

const EXCLUDE: Property = Property::setting(
    "exclude",
    "Exclude",
    Kind::List { of: &PATTERN, max: REPLICATION_EXCLUDES_MAX },
    Default::List(&[]),
    "What is left out at both sides, in rsync's patterns: /a from the top, a/ directories only, * \
     within a name, ** across names.",
)
.example("*.tmp");
