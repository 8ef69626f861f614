//! Saved worksheets and what is kept on disk, as nodes of the tree.

use base::limits::{
    ALERT_NAME_MAX, ALERT_TEXT_MAX, KEEP_HOURS_S, KEEP_MINUTES_S, KEEP_RANGE_S, KEEP_SECONDS_S,
    KEPT_DATASETS_MAX, KEPT_FOR_DEFAULT_S, KEPT_FOR_MAX_S, STORE_BYTES_MAX, STORE_BYTES_RANGE,
    WORKSHEET_PANELS_MAX, WORKSHEETS_MAX,
};
use base::node::{Action, Context, Default, Items, Kind, Property, Shape};

const SCOPE: &str = "analytics";

static NAME: Kind = Kind::Text { max: ALERT_NAME_MAX, shape: Shape::Name };
static LINE: Kind = Kind::Text { max: ALERT_TEXT_MAX, shape: Shape::Line };
const BYTES: Kind = Kind::Bytes { min: 0, max: i64::MAX as u64 };
const KEEP: Kind = Kind::Seconds { min: KEEP_RANGE_S.0, max: KEEP_RANGE_S.1 };

/// `/analytics`.
pub static ANALYTICS: Context =
    Context::new("analytics", "Analytics", "Stored statistics and saved worksheets.", SCOPE)
        .children(&[&DATASETS, &WORKSHEETS]);

/// `/analytics/datasets`.
pub static DATASETS: Context = Context::new(
    "datasets",
    "Datasets",
    "Statistics on disk. Every statistic is recorded with each of its breakdowns and the pairs in \
     schema/breakdowns.toml, at one-second, one-minute and one-hour resolution; beyond size_max \
     the oldest seconds are deleted first. A dataset records a statistic with more filters, \
     requested by a user or an alert.",
    SCOPE,
)
.properties(&[
    keep("keep_seconds", "Keep seconds", KEEP_SECONDS_S, "Retention of one-second values.")
        .example("7d"),
    keep("keep_minutes", "Keep minutes", KEEP_MINUTES_S, "Retention of one-minute values.")
        .example("90d"),
    keep("keep_hours", "Keep hours", KEEP_HOURS_S, "Retention of one-hour values.").example("730d"),
    Property::setting(
        "size_max",
        "Maximum size",
        Kind::Bytes { min: STORE_BYTES_RANGE.0, max: STORE_BYTES_RANGE.1 },
        Default::Integer(STORE_BYTES_MAX as i64),
        "Maximum total size on disk.",
    )
    .example("2G"),
    Property::state("size", "Size", BYTES, "Total size on disk."),
    Property::state("seconds_size", "Size of seconds", BYTES, "Size of the one-second values."),
    Property::state("minutes_size", "Size of minutes", BYTES, "Size of the one-minute values."),
    Property::state("hours_size", "Size of hours", BYTES, "Size of the one-hour values."),
    Property::state("seconds_since", "Seconds since", Kind::Time, "Oldest one-second value.")
        .absent("none yet"),
    Property::state("minutes_since", "Minutes since", Kind::Time, "Oldest one-minute value.")
        .absent("none yet"),
    Property::state("hours_since", "Hours since", Kind::Time, "Oldest one-hour value.")
        .absent("none yet"),
])
.actions(&[Action::new(
    "keep",
    "Start recording",
    "Starts recording a statistic at one-second resolution: one with more filters than are always \
     recorded.",
    "Name of the dataset.",
)
.parameters(KEEP_PARAMETERS)])
.items(&Items::live("dataset", "datasets", &NAME, KEPT_DATASETS_MAX, &DATASET))
.statistics(&["analytics.dropped", "analytics.missed_seconds"]);

const KEEP_PARAMETERS: &[Property] = &[
    Property::setting(
        "statistic",
        "Statistic",
        LINE_KIND,
        Default::None,
        "Statistic id, as in the address of a graph.",
    )
    .required()
    .example("nfs3.ops[op=read][share=data][file]"),
    kept_for("for", "For", "Recording time."),
];

/// The retention of a dataset that a user or an alert has requested.
pub(crate) const fn kept_for(
    name: &'static str,
    title: &'static str,
    help: &'static str,
) -> Property {
    let seconds = Kind::Seconds { min: 60, max: KEPT_FOR_MAX_S };
    let default = Default::Integer(KEPT_FOR_DEFAULT_S as i64);
    Property::setting(name, title, seconds, default, help).unit("s").example("6h")
}

static DATASET: Context = Context::new(
    "dataset",
    "Dataset",
    "A statistic recorded in addition to the standard ones. Recorded data is retained like other \
     one-second, one-minute and one-hour values.",
    SCOPE,
)
.properties(&[
    Property::state("statistic", "Statistic", LINE_KIND, "Recorded statistic."),
    Property::state(
        "state",
        "State",
        Kind::Choice(&[("keeping", "recording"), ("ended", "ended")]),
        "State of the dataset.",
    ),
    Property::state("by", "By", LINE_KIND, "Creator: a user or an alert."),
    Property::state("since", "Since", Kind::Time, "Start of recording."),
    Property::state("until", "Until", Kind::Time, "End of recording."),
])
.actions(&[
    Action::new("stop", "Stop", "Stops recording; recorded data is retained.", "Nothing.")
        .destructive(),
    Action::new("destroy", "Destroy", "Stops recording and deletes the recorded data.", "Nothing.")
        .destructive(),
]);

pub(crate) const LINE_KIND: Kind = Kind::Text { max: ALERT_TEXT_MAX, shape: Shape::Line };

const fn keep(
    name: &'static str,
    title: &'static str,
    default: u64,
    help: &'static str,
) -> Property {
    Property::setting(name, title, KEEP, Default::Integer(default as i64), help).unit("s")
}

/// `/analytics/worksheets`.
pub static WORKSHEETS: Context = Context::new(
    "worksheets",
    "Worksheets",
    "Named sets of graphs, shared by all users with permission to see statistics.",
    SCOPE,
)
.items(&Items::configured("worksheet", "worksheets", &NAME, WORKSHEETS_MAX, &WORKSHEET));

static WORKSHEET: Context = Context::new(
    "worksheet",
    "Worksheet",
    "A column of graphs on one time axis, as the Analytics page shows it.",
    SCOPE,
)
.properties(&[
    Property::setting(
        "title",
        "Title",
        Kind::Text { max: ALERT_TEXT_MAX, shape: Shape::Line },
        Default::Text(""),
        "Title; default: the name.",
    )
    .example("Active clients"),
    Property::setting(
        "panels",
        "Panels",
        Kind::List { of: &LINE, max: WORKSHEET_PANELS_MAX },
        Default::List(&[]),
        "Statistic ids from top to bottom, with optional display options: !line, !crop=PERCENT, \
         !hl=KEY,KEY.",
    )
    .example("nfs.ops[client], nfs.ops[latency]!crop=1"),
    Property::setting(
        "span",
        "Span",
        Kind::Seconds { min: 10, max: KEEP_RANGE_S.1 },
        Default::Integer(60),
        "Length of the interval shown, ending now.",
    )
    .unit("s")
    .example("1h"),
    Property::state(
        "address",
        "Address",
        Kind::Text { max: 1 << 16, shape: Shape::Line },
        "Address of the page.",
    ),
]);
