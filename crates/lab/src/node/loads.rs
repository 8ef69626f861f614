//! Programs and tests of IOzone as actions of the lab.

use super::{FOLDER, LINES, PROTOCOL, SHARE, TARGET};
use base::limits::{LAB_JOB_BYTES_MAX, LAB_STEPS_MAX};
use base::node::{Action, Default, Kind, Property, Shape};

/// Runs a program.
pub(super) const PROGRAM: Action = Action::new(
    "program",
    "Run a program",
    "Queues a run of a program in the language of Filebench: threads with their operations on sets \
     of files. It works in a folder that it creates in the target and removes.",
    "Run id, amount of data written, and location.",
)
.parameters(PROGRAM_PARAMETERS);

/// Runs tests of IOzone.
pub(super) const IOZONE: Action = Action::new(
    "iozone",
    "Run IOzone's tests",
    "Queues the tests of IOzone's throughput mode: children, each with a file, begin together. \
     They work in a folder that is created in the target and removed.",
    "Run id, amount of data written, and location.",
)
.parameters(IOZONE_PARAMETERS);

const PROGRAM_PARAMETERS: &[Property] = &[
    Property::setting(
        "text",
        "Program",
        Kind::Text { max: LAB_JOB_BYTES_MAX, shape: Shape::Lines },
        Default::None,
        "Text in the workload model language of Filebench, in the dialect of version 1.4 or 1.5.",
    )
    .required(),
    SHARE,
    PROTOCOL,
    TARGET,
    Property::setting(
        "seconds",
        "Duration",
        Kind::Seconds { min: 1, max: 86_400 },
        Default::None,
        "Duration; not set: as in the text, 60 s if it has none.",
    )
    .unit("s")
    .example("30"),
    Property::setting(
        "variables",
        "Variables",
        Kind::List { of: &LINES, max: LAB_STEPS_MAX },
        Default::None,
        "Variables of the text to override, $NAME=VALUE.",
    )
    .example("$nthreads=4, $nfiles=20k"),
    FOLDER,
    Property::setting(
        "name",
        "Name",
        Kind::Text { max: 64, shape: Shape::Name },
        Default::Text("program.f"),
        "Name of the program in results and in messages.",
    )
    .example("varmail.f"),
    SEED,
];

const IOZONE_PARAMETERS: &[Property] = &[
    SHARE,
    PROTOCOL,
    TARGET,
    Property::setting(
        "children",
        "Children",
        Kind::Integer { min: 1, max: 256 },
        Default::Integer(4),
        "Children (-t), each with a file and a connection.",
    )
    .example("8"),
    Property::setting(
        "file_size",
        "File size",
        Kind::Bytes { min: 1 << 10, max: 1 << 40 },
        Default::Integer(64 << 20),
        "Size of each file (-s).",
    )
    .unit("B")
    .example("1G"),
    Property::setting(
        "record",
        "Record size",
        Kind::Bytes { min: 1 << 10, max: 64 << 20 },
        Default::Integer(64 << 10),
        "Size of each record (-r).",
    )
    .unit("B")
    .example("1M"),
    Property::setting(
        "tests",
        "Tests",
        Kind::List { of: &TEST, max: 10 },
        Default::None,
        "Tests by number (-i); not set: all.",
    )
    .example("0, 1"),
    FOLDER,
    flag("retest", "Retest", true, "Whether to rewrite and re-read (without -+n)."),
    flag("stonewall", "Stonewall", true, "Whether a test ends with its first child (without -x)."),
    flag("flush", "Include flush", false, "Whether the time includes a flush (-e)."),
    flag("close", "Include close", false, "Whether the time includes the close (-c)."),
    flag("sync", "Stable writes", false, "Whether each write is stable (-o)."),
    SEED,
];

const SEED: Property = Property::setting(
    "seed",
    "Seed",
    Kind::Integer { min: 0, max: i64::MAX },
    Default::Integer(1),
    "The same seed gives the same files and the same calls of each thread.",
)
.example("2");

static TEST: Kind = Kind::Integer { min: 0, max: 12 };

const fn flag(name: &'static str, title: &'static str, on: bool, about: &'static str) -> Property {
    Property::setting(name, title, Kind::Bool, Default::Bool(on), about)
}
