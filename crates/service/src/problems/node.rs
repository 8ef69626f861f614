//! Problems as nodes of the tree.

use base::limits::NODE_NAME_MAX;
use base::node::{Action, Context, Items, Kind, Property, Shape};

/// Most problems of the list; the least urgent are dropped.
pub const PROBLEMS_MAX: usize = 1_000;

static ID: Kind = Kind::Text { max: NODE_NAME_MAX, shape: Shape::Line };
const TEXT: Kind = Kind::Text { max: 4_096, shape: Shape::Line };
const COUNT: Kind = Kind::Integer { min: 0, max: PROBLEMS_MAX as i64 };

/// `/maintenance/problems`.
pub static PROBLEMS: Context = Context::new(
    "problems",
    "Problems",
    "Faults of this machine: hardware, network, fabric. An alert with the event hardware reports \
     those of the hardware and the fabric.",
    "maintenance",
)
.properties(&[Property::state("count", "Problems", COUNT, "Number of problems.")])
.items(&Items::live("problem", "problems", &ID, PROBLEMS_MAX, &PROBLEM));

static PROBLEM: Context =
    Context::new("problem", "Problem", "A fault of this machine.", "maintenance")
        .properties(&[
            Property::state(
                "severity",
                "Severity",
                Kind::Choice(&[
                    ("minor", "a further failure is survived, or nothing has failed yet"),
                    ("major", "the next failure may interrupt a service or lose data"),
                    ("critical", "a service is interrupted, or data is in danger now"),
                ]),
                "Severity by the redundancy that is left.",
            ),
            Property::state("since", "Since", Kind::Time, "When it was first seen."),
            Property::state("source", "Source", TEXT, "Part of the server that found it."),
            Property::state("what", "Problem", TEXT, "What is wrong."),
            Property::state("impact", "Impact", TEXT, "Consequences."),
            Property::state("remedy", "What to do", TEXT, "What to do."),
        ])
        .actions(&[Action::new(
            "mark_repaired",
            "Mark repaired",
            "Ends the problem if its cause no longer exists. Errors are counted from zero again; \
             an absent disk is forgotten.",
            "Confirmation.",
        )]);
