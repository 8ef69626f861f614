//! The declared pairs are the tables that are made, in their order.

use std::sync::Arc;

use probe::hub::{Hub, HubOptions};
use probe::op::OpRecord;

use super::*;
use crate::model::PAIRS;
use crate::names::HubResolver;

#[test]
fn the_declared_pairs_are_the_tables() {
    let hub = Hub::new(HubOptions { cores: 1, recorder_bytes: 1 << 16 });
    let names = Names::new(hub.clone(), Arc::new(HubResolver(hub.clone())));
    let mut core = hub.core(0);
    core.finish(&OpRecord { done_ns: 1, protocol: 1, ..OpRecord::default() });
    drop(core);
    let seconds = hub.take_before(u64::MAX);
    let tables = tables(&seconds.iter().collect::<Vec<_>>(), &names);
    let made: Vec<[&str; 2]> =
        tables.iter().map(|t| [&*t.dimensions[0], &*t.dimensions[1]]).collect();
    let blocks = |pair: &&[&str; 2]| matches!(pair[0], "lun" | "initiator" | "target");
    let files: Vec<[&str; 2]> = PAIRS.iter().filter(|pair| !blocks(pair)).copied().collect();
    assert_eq!(made, files);
    // One operation; in the table of phases all of its parts.
    let one = |table: &Table| if *table.dimensions[0] == *"phase" { PARTS } else { 1 };
    assert!(tables.iter().all(|table| table.total == [one(table), 0]));
}
