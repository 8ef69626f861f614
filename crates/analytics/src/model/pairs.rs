//! What is kept of each second: which pairs of dimensions, and how many elements of each. What
//! makes frames and what reads them go by the same list.

use base::limits::{STORED_FILES_MAX, STORED_LATENCY_PEERS_MAX, STORED_PEERS_MAX};

use super::Table;

/// The pairs of dimensions that the store keeps of operations; any other chain is answered from the
/// flight recorder. In this order, so that the first that fits a question is the exact one.
pub const PAIRS: [[&str; 2]; 16] = [
    ["share", "op"],
    ["status", "op"],
    ["client", "op"],
    ["user", "op"],
    ["op", "latency"],
    ["client", "latency"],
    ["share", "latency"],
    ["op", "size"],
    ["op", "offset"],
    ["file", "op"],
    ["lun", "op"],
    ["initiator", "op"],
    ["target", "op"],
    ["lun", "latency"],
    ["transport", "op"],
    // Its figures are parts of operations and nanoseconds.
    ["phase", "op"],
];

/// How many first keys of a table are stored.
pub(crate) fn rows_max(table: &Table) -> usize {
    match (&*table.dimensions[0], &*table.dimensions[1]) {
        ("file", _) => STORED_FILES_MAX,
        ("client" | "share" | "lun", "latency") => STORED_LATENCY_PEERS_MAX,
        _ => STORED_PEERS_MAX,
    }
}
