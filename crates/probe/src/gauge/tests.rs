//! Every gauge is declared in `schema/`, and everything declared as a gauge exists.

use std::collections::BTreeSet;

use super::*;
use crate::schema::{Source, schema};

#[test]
fn gauges_and_schema_agree() {
    let gauges = Gauges::default();
    let have: BTreeSet<String> = gauges.iter().map(|(id, _)| id.to_owned()).collect();
    let mut declared = BTreeSet::new();
    for group in schema().groups() {
        let gauges = group.statistics.iter().filter(|s| s.source == Source::Gauge);
        declared.extend(gauges.map(|s| format!("{}.{}", group.group, s.id)));
    }
    assert_eq!(have, declared);
}

#[test]
fn a_budget_is_never_overdrawn() {
    let gauge = Gauge::default();
    assert!(gauge.try_add(6, 10));
    assert!(!gauge.try_add(5, 10));
    assert!(gauge.try_add(4, 10));
    gauge.sub(1);
    assert_eq!(gauge.get(), 9);
}
