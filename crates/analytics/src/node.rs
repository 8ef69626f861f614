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
pub static ANALYTICS: Context = Context::new(
    "analytics",
    "Analytics",
    "What is kept of the statistics, and worksheets that were saved.",
    SCOPE,
)
.children(&[&DATASETS, &WORKSHEETS]);

/// `/analytics/datasets`.
pub static DATASETS: Context = Context::new(
    "datasets",
    "Datasets",
    "What is kept on disk: every statistic with each of its breakdowns and the pairs in \
     schema/breakdowns.toml, by the second, the minute and the hour. When it grows too large the \
     oldest seconds go first. Datasets are statistics narrowed further than that, kept because \
     somebody, or an alert, has asked for it.",
    SCOPE,
)
.properties(&[
    keep(
        "keep_seconds",
        "Keep seconds",
        KEEP_SECONDS_S,
        "How long values of each second are kept.",
    )
    .example("7d"),
    keep(
        "keep_minutes",
        "Keep minutes",
        KEEP_MINUTES_S,
        "How long values of each minute are kept.",
    )
    .example("90d"),
    keep("keep_hours", "Keep hours", KEEP_HOURS_S, "How long values of each hour are kept.")
        .example("730d"),
    Property::setting(
        "size_max",
        "Size at most",
        Kind::Bytes { min: STORE_BYTES_RANGE.0, max: STORE_BYTES_RANGE.1 },
        Default::Integer(STORE_BYTES_MAX as i64),
        "Bytes on disk, all together.",
    )
    .example("2G"),
    Property::state("size", "Size", BYTES, "Bytes on disk now, all together."),
    Property::state("seconds_size", "Size of seconds", BYTES, "Bytes on disk of the seconds."),
    Property::state("minutes_size", "Size of minutes", BYTES, "Bytes on disk of the minutes."),
    Property::state("hours_size", "Size of hours", BYTES, "Bytes on disk of the hours."),
    Property::state("seconds_since", "Seconds since", Kind::Time, "The oldest second on disk.")
        .absent("none yet"),
    Property::state("minutes_since", "Minutes since", Kind::Time, "The oldest minute on disk.")
        .absent("none yet"),
    Property::state("hours_since", "Hours since", Kind::Time, "The oldest hour on disk.")
        .absent("none yet"),
])
.actions(&[Action::new(
    "keep",
    "Start keeping",
    "Keeps a statistic by the second from now on, for some time: one that is narrowed so far that \
     it is not kept anyway.",
    "The name of the dataset.",
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
        "A statistic id, as graphs have it in their address.",
    )
    .required()
    .example("nfs3.ops[op=read][share=data][file]"),
    kept_for("for", "For", "How long it is kept."),
];

/// How long a dataset is kept that somebody, or an alert, asks for.
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
    "A statistic that is kept by the second beside what is kept anyway. What was kept stays as \
     long as other seconds, minutes and hours.",
    SCOPE,
)
.properties(&[
    Property::state("statistic", "Statistic", LINE_KIND, "What is kept."),
    Property::state(
        "state",
        "State",
        Kind::Choice(&[("keeping", "it is being kept"), ("ended", "its time is over")]),
        "Whether it goes on.",
    ),
    Property::state("by", "By", LINE_KIND, "Who made it: a user, or an alert."),
    Property::state("since", "Since", Kind::Time, "The first second."),
    Property::state("until", "Until", Kind::Time, "When it ends, or has ended."),
])
.actions(&[
    Action::new("stop", "Stop", "Ends it now. What was kept stays.", "Nothing.").destructive(),
    Action::new("destroy", "Destroy", "Ends it, and forgets what was kept of it.", "Nothing.")
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
    "Graphs that belong together, under a name. Everyone who may see statistics can open them.",
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
        "What people read; without one, its name.",
    )
    .example("Who is on it"),
    Property::setting(
        "panels",
        "Panels",
        Kind::List { of: &LINE, max: WORKSHEET_PANELS_MAX },
        Default::List(&[]),
        "A statistic id each, from top to bottom, with what the address of the page adds to it: \
         !line, !crop=PERCENT, !hl=KEY,KEY.",
    )
    .example("nfs.ops[client], nfs.ops[latency]!crop=1"),
    Property::setting(
        "span",
        "Span",
        Kind::Seconds { min: 10, max: KEEP_RANGE_S.1 },
        Default::Integer(60),
        "How much time it shows, up to now.",
    )
    .unit("s")
    .example("1h"),
    Property::state(
        "address",
        "Address",
        Kind::Text { max: 1 << 16, shape: Shape::Line },
        "The page that shows it.",
    ),
]);
