//! The lab as a branch of the tree: jobs, and runs of them. `appliance` joins the declarations with
//! the [`desk`](crate::desk), and adds what is asked of the shares.

mod loads;
pub mod suites;

use crate::job::BUILT_IN;
use base::limits::{
    IO_SIZE_MAX, LAB_JOB_BYTES_MAX, LAB_JOBS_MAX, LAB_QUEUE_MAX, LAB_ROUNDS_MAX,
    LAB_RUN_CLIENTS_MAX, LAB_RUNS_KEPT, LAB_STEPS_MAX, SHARE_NAME_MAX,
};
use base::node::{Action, Context, Default, Items, Kind, Property, Shape};

/// The permission that the lab takes. With permission to change it a user can have the server put
/// load on any server that it can reach.
const SCOPE: &str = "lab";

/// The default number of clients of a run: as the demo has.
pub const CLIENTS: u32 = 8;

/// `/lab`.
pub static NODE: Context = Context::new(
    "lab",
    "Lab",
    "Load tests: find the load limit of a share and the resource that sets it. One run at a time.",
    SCOPE,
)
.properties(&[
    Property::state("now", "Current run", LINE, "Current run."),
    Property::state("waiting", "Waiting", COUNT, "Number of queued runs."),
])
.actions(&[
    Action::new(
        "limits",
        "Summarise limits",
        "Queues a Performance Limit Summary: jobs as rows, targets as columns, a limit with its \
         reason in each cell. It works in a folder that it creates in each target and removes.",
        "Run id and location.",
    )
    .parameters(LIMITS),
    Action::new(
        "ab",
        "Compare targets",
        "Queues a comparison of two targets: run after run in the order A B B A, until the \
         interval of the ratio is narrow enough. It works in a folder that it creates in each \
         target and removes.",
        "Run id and location.",
    )
    .parameters(AB),
    loads::PROGRAM,
    loads::IOZONE,
    suites::SEQREAD,
    suites::FILEBENCH,
    Action::new(
        "net",
        "Run network profile",
        "Queues a network profile. Both ends of its connections run on this appliance.",
        "Run id and location.",
    )
    .parameters(NET),
])
.children(&[&JOBS, &RUNS]);

/// Most columns of a summary that is started here: by default each takes minutes.
pub const COLUMNS_MAX: usize = 16;

const LIMITS: &[Property] = &[
    Property::setting(
        "targets",
        "Targets",
        Kind::List { of: &LINES, max: COLUMNS_MAX },
        Default::None,
        "Columns: shares of this appliance, or directories of other servers, \
         nfs3://HOST:PORT/PATH, over RDMA nfs3+rdma://HOST:PORT/PATH, or nfs4://HOST:PORT/PATH.",
    )
    .required()
    .example("data, nfs3://10.0.0.7:2049/export/data"),
    Property::setting(
        "protocols",
        "Protocols",
        Kind::List { of: &SHARE_PROTOCOLS, max: 2 },
        Default::List(&["nfs3"]),
        "Protocols used for shares of this appliance: a column each.",
    )
    .example("nfs3, nfs4"),
    Property::setting(
        "rows",
        "Rows",
        Kind::List { of: &NAME, max: LAB_JOBS_MAX },
        Default::None,
        "Jobs; not set: those of the Performance Limit Summary.",
    )
    .example("iops-4k, write-stream"),
    Property::setting(
        "quick",
        "Quick",
        Kind::Bool,
        Default::Bool(true),
        "Whether all rows and columns take less than four minutes: shorter steps, smaller files.",
    ),
    CLIENTS_SETTING,
    SETTINGS,
    Property::setting(
        "prove",
        "Prove",
        Kind::Bool,
        Default::Bool(false),
        "Whether the limiter of each cell is proved by changing one thing at a time.",
    ),
];

const AB: &[Property] = &[
    Property::setting(
        "a",
        "A",
        LINE,
        Default::None,
        "First target: a share of this appliance, or a \
        directory of another server, nfs3://HOST:PORT/PATH or nfs4://HOST:PORT/PATH.",
    )
    .required()
    .example("data"),
    Property::setting(
        "b",
        "B",
        LINE,
        Default::None,
        "Second target, which is compared with the first.",
    )
    .required()
    .example("nfs3://10.0.0.7:2049/export/data"),
    Property::setting(
        "jobs",
        "Jobs",
        Kind::List { of: &NAME, max: LAB_JOBS_MAX },
        Default::List(&["iops-4k"]),
        "Jobs, a row each.",
    )
    .example("iops-4k, write-stream"),
    Property::setting(
        "rounds",
        "Rounds",
        Kind::Integer { min: 1, max: LAB_ROUNDS_MAX as i64 },
        Default::Integer(12),
        "Maximum number of rounds, each a run of A and a run of B. Fewer than 6 decide nothing.",
    )
    .example("12"),
    Property::setting(
        "to",
        "Width",
        Kind::Integer { min: 1, max: 100 },
        Default::Integer(3),
        "Width of the interval of the ratio, in percent, at which a row ends.",
    )
    .unit("%")
    .example("3"),
    Property::setting(
        "protocol",
        "Protocol",
        SHARE_PROTOCOL,
        Default::Text("nfs3"),
        "Protocol used for shares of this appliance.",
    )
    .example("nfs4"),
    CLIENTS_SETTING,
    SETTINGS,
];

const NET: &[Property] = &[
    Property::setting(
        "profile",
        "Profile",
        Kind::Choice(&[
            ("stream", "writes of 64 KiB over 4 connections"),
            ("request", "requests of 64 bytes, replies of 64 KiB"),
            ("connect", "connections opened and closed"),
            ("lso-stream-64k", "segments of streams with writes of 64 KiB"),
            ("lso-request", "segments of requests and replies of 64 KiB"),
            ("lso-request-1", "the same, one client"),
            ("lso-stream-1k", "segments of streams with writes of 1 KiB"),
            ("lso-many", "segments of streams over 400 connections"),
        ]),
        Default::None,
        "Built-in network profile.",
    )
    .required()
    .example("stream"),
    Property::setting(
        "settings",
        "Settings",
        Kind::List { of: &LINES, max: LAB_STEPS_MAX },
        Default::None,
        "Values of variables of the profile, NAME=VALUE.",
    )
    .example("duration=30s, threads=16"),
];

/// Values of jobs that are changed for a run.
const SETTINGS: Property = Property::setting(
    "settings",
    "Settings",
    Kind::List { of: &LINES, max: LAB_STEPS_MAX },
    Default::None,
    "Values of the jobs to override, KEY=VALUE.",
)
.example("block=8k, step_max_ms=2000");

const CLIENTS_SETTING: Property = Property::setting(
    "clients",
    "Clients",
    Kind::Integer { min: 1, max: LAB_RUN_CLIENTS_MAX as i64 },
    Default::Integer(CLIENTS as i64),
    "Number of client processes on this machine; steps with more clients use these.",
)
.example("8");

/// Protocols of shares of this appliance.
const SHARE_PROTOCOL: Kind =
    Kind::Choice(&[("nfs3", "NFS version 3"), ("nfs4", "NFS version 4.1")]);
static SHARE_PROTOCOLS: Kind = SHARE_PROTOCOL;

/// Names of the jobs that come with the program, in the order of [`BUILT_IN`].
const FIXED: &[&str] = &{
    let mut names = [""; BUILT_IN.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = BUILT_IN[at].0;
        at += 1;
    }
    names
};

static JOBS: Context =
    Context::new("jobs", "Jobs", "Load jobs: built-in ones, and others defined in TOML.", SCOPE)
        .items(&Items::configured("job", "jobs", &NAME, LAB_JOBS_MAX, &JOB).fixed(FIXED));

static JOB: Context = Context::new(
    "job",
    "Job",
    "A step test: clients and threads increase until throughput levels off.",
    SCOPE,
)
.properties(&[
    Property::setting(
        "definition",
        "Definition",
        Kind::Text { max: LAB_JOB_BYTES_MAX, shape: Shape::Lines },
        Default::None,
        "Definition in TOML, in the format of jobs/ in the source tree: title, answers, expect, \
         workload and schedule.",
    )
    .required(),
    Property::state("title", "Title", LINE, "Title."),
    Property::state("answers", "Question", LINE, "Question answered by the job."),
    Property::state("expect", "Expected limit", LINE, "Usual limiter."),
    Property::state("workload", "Workload", LINE, "Workload of each client."),
    Property::state("block", "Block", BYTES, "Block size.").unit("B"),
    Property::state("files", "Files", COUNT, "Files per client."),
    Property::state("file_size", "File size", BYTES, "File size.").unit("B"),
    Property::state(
        "schedule",
        "Schedule",
        Kind::List { of: &LINES, max: LAB_STEPS_MAX },
        "Steps: clients × threads per client.",
    ),
    Property::state(
        "longest",
        "Maximum duration",
        SECONDS,
        "Maximum duration of all steps, with 8 clients.",
    )
    .unit("s"),
    Property::state("space", "Space", BYTES, "Space needed for 8 clients.").unit("B"),
])
.actions(&[Action::new(
    "run",
    "Run",
    "Queues a run against a share or a target. The run creates a folder there, works only inside \
     it, and removes it at the end, also after an abort or a server restart.",
    "Run id, amount of data written, and location.",
)
.parameters(PARAMETERS)]);

const SHARE: Property = Property::setting(
    "share",
    "Share",
    Kind::Text { max: SHARE_NAME_MAX, shape: Shape::Line },
    Default::None,
    "Share of this appliance to load; its clients are affected.",
)
.example("data");
const FOLDER: Property = Property::setting(
    "folder",
    "Folder",
    Kind::Text { max: 4_096, shape: Shape::Line },
    Default::Text(""),
    "Existing folder of the share in which the run creates its own; not set: the top of the \
         share.",
)
.example("scratch");
const PROTOCOL: Property = Property::setting(
    "protocol",
    "Protocol",
    SHARE_PROTOCOL,
    Default::Text("nfs3"),
    "Protocol used by the clients.",
)
.example("nfs4");
const TARGET: Property = Property::setting(
    "target",
    "Target",
    Kind::Text { max: 4_096, shape: Shape::Line },
    Default::None,
    "Instead of a share: a directory of another server, nfs3://HOST:PORT/PATH, over RDMA \
         nfs3+rdma://HOST:PORT/PATH, or nfs4://HOST:PORT/PATH; null: measures the load generator \
         itself.",
)
.example("nfs3://10.0.0.7:2049/export/data");

const PARAMETERS: &[Property] = &[
    SHARE,
    FOLDER,
    PROTOCOL,
    TARGET,
    CLIENTS_SETTING,
    Property::setting(
        "schedule",
        "Schedule",
        Kind::List { of: &STEP, max: LAB_STEPS_MAX },
        Default::None,
        "Steps as CLIENTSxTHREADS; not set: as in the job.",
    )
    .example("1x1, 4x1, 8x4"),
    Property::setting(
        "block",
        "Block",
        Kind::Bytes { min: 1, max: IO_SIZE_MAX as u64 },
        Default::None,
        "Block size; not set: as in the job.",
    )
    .unit("B")
    .example("64K"),
    Property::setting(
        "files",
        "Files",
        Kind::Integer { min: 1, max: 10_000 },
        Default::None,
        "Files per client; not set: as in the job.",
    )
    .example("2"),
    Property::setting(
        "file_size",
        "File size",
        Kind::Bytes { min: 1, max: 1 << 40 },
        Default::None,
        "File size; not set: as in the job.",
    )
    .unit("B")
    .example("64M"),
    Property::setting(
        "step",
        "Step",
        Kind::Seconds { min: 1, max: 600 },
        Default::None,
        "Maximum duration of a step; not set: as in the job.",
    )
    .unit("s")
    .example("4"),
];

static RUNS: Context = Context::new(
    "runs",
    "Runs",
    "Runs of load jobs: queued, current, and the last hundred finished ones. Runs continue after \
     the browser is closed.",
    SCOPE,
)
.items(&Items::live("run", "runs", &NAME, LAB_RUNS_KEPT + LAB_QUEUE_MAX + 1, &RUN));

static RUN: Context = Context::new("run", "Run", "A run of a load job and its result.", SCOPE)
    .properties(&[
        Property::state(
            "kind",
            "Kind",
            LINE,
            "One of run, limits, ab, program, iozone, net and suite.",
        ),
        Property::state(
            "job",
            "Job",
            LINE,
            "Name of the job, suite or network profile, or limits, ab, program, iozone.",
        ),
        Property::state("title", "Title", LINE, "Title of the job."),
        Property::state(
            "state",
            "State",
            LINE,
            "One of queued, preparing, running, done, failed and aborted.",
        ),
        Property::state("message", "Now", LINE, "Current activity or final result."),
        Property::state("progress", "Progress", LINE, "Completed and planned steps."),
        Property::state(
            "steps",
            "Steps",
            Kind::List { of: &LINES, max: LAB_STEPS_MAX },
            "Completed steps: load, result, latency.",
        ),
        Property::state(
            "lines",
            "Tests",
            Kind::List { of: &LINES, max: 100 },
            "Completed tests of IOzone: throughput of all children.",
        ),
        Property::state("value", "Result", LINE, "Best result."),
        Property::state("limiter", "Limit", LINE, "Resource that set the limit."),
        Property::state(
            "why",
            "Why",
            Kind::List { of: &LINES, max: 100 },
            "Evidence for the limiter.",
        ),
        Property::state(
            "degraded",
            "Degraded",
            Kind::List { of: &LINES, max: 100 },
            "Reasons why the result is degraded.",
        ),
        Property::state("by", "By", LINE, "User who started it."),
        Property::state("target", "Target", LINE, "Target of the load."),
        Property::state("folder", "Folder", LINE, "Folder created and removed by the run."),
        Property::state("queued", "Queued", Kind::Time, "Time of the request."),
        Property::state("began", "Began", Kind::Time, "Start time.").absent("not yet"),
        Property::state("ended", "Ended", Kind::Time, "End time.").absent("not yet"),
        Property::state("report", "Report", LINE, "API path of the report."),
        Property::state("result", "Record", LINE, "API path of the result as JSON."),
    ])
    .actions(&[
        Action::new(
            "abort",
            "Abort",
            "Aborts the run without a result and removes its folder on the target.",
            "Nothing.",
        )
        .destructive(),
        Action::new(
            "destroy",
            "Destroy",
            "Deletes a finished run with its result and report.",
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
