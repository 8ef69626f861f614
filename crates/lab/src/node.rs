//! The lab as a branch of the tree: jobs, and runs of them. `appliance` joins the declarations with
//! the [`desk`](crate::desk), and adds what is asked of the shares.

use base::limits::{
    IO_SIZE_MAX, LAB_JOB_BYTES_MAX, LAB_JOBS_MAX, LAB_QUEUE_MAX, LAB_RUN_CLIENTS_MAX,
    LAB_RUNS_KEPT, LAB_STEPS_MAX, SHARE_NAME_MAX,
};
use base::node::{Action, Context, Default, Items, Kind, Property, Shape};

/// The permission that the lab takes. Whoever may change it may have the server put load on any
/// server that it can reach.
const SCOPE: &str = "lab";

/// Clients of a run if nobody says how many: as the demo has.
pub const CLIENTS: u32 = 8;

/// `/lab`.
pub static NODE: Context = Context::new(
    "lab",
    "Lab",
    "Load jobs: how much a share can take, and what sets the limit. One run at a time.",
    SCOPE,
)
.properties(&[
    Property::state("now", "Under way", LINE, "The run that is made now."),
    Property::state("waiting", "Waiting", COUNT, "How many runs wait for their turn."),
])
.children(&[&JOBS, &RUNS]);

/// Names of the jobs that come with the program, in the order of [`crate::job::BUILT_IN`].
const FIXED: &[&str] = &[
    "dram-read-stream",
    "write-stream",
    "iops-1b",
    "iops-4k",
    "iops-8k",
    "syncwrite-4k",
    "create",
];

static JOBS: Context = Context::new(
    "jobs",
    "Jobs",
    "Experiments: what each answers, and what it puts on its target. Those that come with the \
     program are always there; others are made from their text.",
    SCOPE,
)
.items(&Items::configured("job", "jobs", &NAME, LAB_JOBS_MAX, &JOB).fixed(FIXED));

static JOB: Context = Context::new(
    "job",
    "Job",
    "An experiment: a staircase of clients and threads that ends when throughput levels.",
    SCOPE,
)
.properties(&[
    Property::setting(
        "definition",
        "Definition",
        Kind::Text { max: LAB_JOB_BYTES_MAX, shape: Shape::Lines },
        Default::None,
        "The job as TOML, as files in jobs/ of the source are: title, answers, expect, workload \
         and schedule; its name is the one it has here.",
    )
    .required(),
    Property::state("title", "Title", LINE, "Its title."),
    Property::state("answers", "Answers", LINE, "The question that it answers."),
    Property::state("expect", "Expect", LINE, "What usually sets the limit."),
    Property::state("workload", "Workload", LINE, "What each client does."),
    Property::state("block", "Block", BYTES, "Bytes of each read or write.").unit("B"),
    Property::state("files", "Files", COUNT, "Files of each client."),
    Property::state("file_size", "File size", BYTES, "Size of each file.").unit("B"),
    Property::state(
        "schedule",
        "Schedule",
        Kind::List { of: &LINES, max: LAB_STEPS_MAX },
        "The staircase: clients x threads of each.",
    ),
    Property::state("longest", "Longest", SECONDS, "What its steps take at most, with 8 clients.")
        .unit("s"),
    Property::state("space", "Space", BYTES, "What 8 clients write into their folder.").unit("B"),
])
.actions(&[Action::new(
    "run",
    "Run",
    "Queues a run. It makes a new folder on its target, works in there alone, and removes it at \
     the end, also after an abort or a restart of the server. Name a share, or a target.",
    "The run's id, what it writes and where.",
)
.parameters(PARAMETERS)]);

const PARAMETERS: &[Property] = &[
    Property::setting(
        "share",
        "Share",
        Kind::Text { max: SHARE_NAME_MAX, shape: Shape::Line },
        Default::None,
        "A share of this appliance; its clients feel the load.",
    )
    .example("data"),
    Property::setting(
        "folder",
        "Folder",
        Kind::Text { max: 4_096, shape: Shape::Line },
        Default::Text(""),
        "A folder of the share, which must be there, in which the run makes its own; none is the \
         top of the share.",
    )
    .example("scratch"),
    Property::setting(
        "protocol",
        "Protocol",
        Kind::Choice(&[("nfs3", "NFS version 3"), ("nfs4", "NFS version 4.1")]),
        Default::Text("nfs3"),
        "How the clients reach the share.",
    )
    .example("nfs4"),
    Property::setting(
        "target",
        "Target",
        Kind::Text { max: 4_096, shape: Shape::Line },
        Default::None,
        "In place of a share: a directory of another server, as nfs3://HOST:PORT/PATH or \
         nfs4://HOST:PORT/PATH; null: is what the clients can do by themselves.",
    )
    .example("nfs3://10.0.0.7:2049/export/data"),
    Property::setting(
        "clients",
        "Clients",
        Kind::Integer { min: 1, max: LAB_RUN_CLIENTS_MAX as i64 },
        Default::Integer(CLIENTS as i64),
        "Client processes on the machine of the server; steps with more clients are made with \
         these.",
    )
    .example("8"),
    Property::setting(
        "schedule",
        "Schedule",
        Kind::List { of: &STEP, max: LAB_STEPS_MAX },
        Default::None,
        "Steps as CLIENTSxTHREADS; none: those of the job.",
    )
    .example("1x1, 4x1, 8x4"),
    Property::setting(
        "block",
        "Block",
        Kind::Bytes { min: 1, max: IO_SIZE_MAX as u64 },
        Default::None,
        "Bytes of each read or write; none: as the job has it.",
    )
    .unit("B")
    .example("64K"),
    Property::setting(
        "files",
        "Files",
        Kind::Integer { min: 1, max: 10_000 },
        Default::None,
        "Files of each client; none: as the job has it.",
    )
    .example("2"),
    Property::setting(
        "file_size",
        "File size",
        Kind::Bytes { min: 1, max: 1 << 40 },
        Default::None,
        "Size of each file; none: as the job has it.",
    )
    .unit("B")
    .example("64M"),
    Property::setting(
        "step",
        "Step",
        Kind::Seconds { min: 1, max: 600 },
        Default::None,
        "How long a step may take to become steady; none: as the job has it.",
    )
    .unit("s")
    .example("4"),
];

static RUNS: Context = Context::new(
    "runs",
    "Runs",
    "Runs of jobs: those that wait, the one under way, and the newest hundred that have ended. \
     They go on when whoever asked for them leaves.",
    SCOPE,
)
.items(&Items::live("run", "runs", &NAME, LAB_RUNS_KEPT + LAB_QUEUE_MAX + 1, &RUN));

static RUN: Context = Context::new("run", "Run", "One run of a job, and what came of it.", SCOPE)
    .properties(&[
        Property::state("job", "Job", LINE, "Name of its job."),
        Property::state("title", "Title", LINE, "Title of its job."),
        Property::state(
            "state",
            "State",
            LINE,
            "One of queued, preparing, running, done, failed and aborted.",
        ),
        Property::state("message", "Now", LINE, "What it does now, or how it ended."),
        Property::state("progress", "Progress", LINE, "Steps made of those planned."),
        Property::state(
            "steps",
            "Steps",
            Kind::List { of: &LINES, max: LAB_STEPS_MAX },
            "The steps that were made: load, figure, latency.",
        ),
        Property::state("value", "Result", LINE, "The best figure."),
        Property::state("limiter", "Limit", LINE, "What set the limit."),
        Property::state("why", "Why", Kind::List { of: &LINES, max: 100 }, "What speaks for that."),
        Property::state(
            "degraded",
            "Degraded",
            Kind::List { of: &LINES, max: 100 },
            "What makes the result less than whole.",
        ),
        Property::state("by", "By", LINE, "Who started it."),
        Property::state("target", "Target", LINE, "What the load was put on."),
        Property::state("folder", "Folder", LINE, "The folder that it makes there, and removes."),
        Property::state("queued", "Queued", Kind::Time, "When it was asked for."),
        Property::state("began", "Began", Kind::Time, "When its turn came.").absent("not yet"),
        Property::state("ended", "Ended", Kind::Time, "When it ended.").absent("not yet"),
        Property::state("report", "Report", LINE, "Path of the page of its result in the API."),
        Property::state("result", "Record", LINE, "Path of its result as JSON in the API."),
    ])
    .actions(&[
        Action::new(
            "abort",
            "Abort",
            "Ends it now, without a result, and removes what it has made on its target.",
            "Nothing.",
        )
        .destructive(),
        Action::new(
            "destroy",
            "Destroy",
            "Forgets a run that has ended, with its result and report.",
            "Nothing.",
        )
        .destructive(),
    ]);

static NAME: Kind = Kind::Text { max: 64, shape: Shape::Name };
const LINE: Kind = Kind::Text { max: 4_096, shape: Shape::Line };
static LINES: Kind = LINE;
static STEP: Kind = Kind::Text { max: 32, shape: Shape::Name };
const BYTES: Kind = Kind::Bytes { min: 0, max: u64::MAX };
const COUNT: Kind = Kind::Integer { min: 0, max: i64::MAX };
const SECONDS: Kind = Kind::Seconds { min: 0, max: u32::MAX as u64 };

#[cfg(test)]
mod tests;
