//! Suites as actions of the lab.

use super::{FOLDER, NAME, PROTOCOL, SETTINGS, SHARE, TARGET};
use crate::suite::rows::{SOURCE_CLIENTS, SOURCE_SECONDS};
use base::limits::{IO_SIZE_MAX, LAB_JOBS_MAX, LAB_RUN_CLIENTS_MAX, LAB_STEPS_MAX};
use base::node::{Action, Default, Kind, Property};

/// Clients of `seqread`, as in the source.
pub const SEQREAD_CLIENTS: u32 = 8;

/// Runs sequential reads.
pub(super) const SEQREAD: Action = Action::new(
    "seqread",
    "Run sequential reads",
    "Queues sequential reads: a row for each block size, steps by threads of each client, a file \
     for each thread. They work in a folder that is created in the target and removed.",
    "Run id, amount of data written, and location.",
)
.parameters(SEQREAD_PARAMETERS);

/// Runs the table of Filebench workloads.
pub(super) const FILEBENCH: Action = Action::new(
    "filebench",
    "Run Filebench workloads",
    "Queues a table of Filebench workloads: streams, random reads, synchronous writes and file \
     creation, next to what a source found. They work in folders that are created in the target \
     and removed.",
    "Run id, amount of data written, and location.",
)
.parameters(FILEBENCH_PARAMETERS);

const SEQREAD_PARAMETERS: &[Property] = &[
    SHARE,
    PROTOCOL,
    TARGET,
    clients(SEQREAD_CLIENTS),
    QUICK,
    Property::setting(
        "sizes",
        "Block sizes",
        Kind::List { of: &BLOCK, max: LAB_STEPS_MAX },
        Default::None,
        "Block sizes; not set: 1 byte to 1 MB in seven rows.",
    )
    .example("1, 4K, 1M"),
    Property::setting(
        "threads",
        "Threads",
        Kind::List { of: &THREADS, max: LAB_STEPS_MAX },
        Default::None,
        "Threads of each client, a step each; not set: 1, 2, 3, 5.",
    )
    .example("1, 5"),
    size("file_size", "File size", "Size of each thread's file; not set: 8 MB, quick 1 MB."),
    FOLDER,
    SETTINGS,
];

const FILEBENCH_PARAMETERS: &[Property] = &[
    SHARE,
    PROTOCOL,
    TARGET,
    clients(SOURCE_CLIENTS),
    QUICK,
    Property::setting(
        "rows",
        "Rows",
        Kind::List { of: &NAME, max: LAB_JOBS_MAX },
        Default::None,
        "Rows; not set: all.",
    )
    .example("stream-read-1-cached, create-16"),
    size("set_size", "Set size", "Size of a set of each client; not set: 160 MB, quick 5 MB."),
    seconds("seconds", "Duration", SOURCE_SECONDS[0], "Duration of a row that reads or creates."),
    seconds("write_seconds", "Write duration", SOURCE_SECONDS[1], "Duration of a row that writes."),
    FOLDER,
    SETTINGS,
];

const QUICK: Property = Property::setting(
    "quick",
    "Quick",
    Kind::Bool,
    Default::Bool(true),
    "Whether steps last half a second, with small sets of files.",
);

const fn clients(number: u32) -> Property {
    Property::setting(
        "clients",
        "Clients",
        Kind::Integer { min: 1, max: LAB_RUN_CLIENTS_MAX as i64 },
        Default::Integer(number as i64),
        "Number of client processes on this machine.",
    )
    .example("18")
}

const fn size(name: &'static str, title: &'static str, about: &'static str) -> Property {
    let kind = Kind::Bytes { min: 1, max: 1 << 40 };
    Property::setting(name, title, kind, Default::None, about).unit("B").example("16M")
}

const fn seconds(
    name: &'static str,
    title: &'static str,
    default: u32,
    about: &'static str,
) -> Property {
    let kind = Kind::Seconds { min: 1, max: 3_600 };
    Property::setting(name, title, kind, Default::Integer(default as i64), about)
        .unit("s")
        .example("10")
}

static BLOCK: Kind = Kind::Bytes { min: 1, max: IO_SIZE_MAX as u64 };
static THREADS: Kind = Kind::Integer { min: 1, max: 256 };
