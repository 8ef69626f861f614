//! Rates of ports as statistics that the schema has.

use probe::schema::schema;

use super::*;

#[test]
fn samples_are_those_that_the_schema_declares() {
    let mut rates = Rates { bytes: [2_048.0, 1_024.0], packets: [3.0, 0.0], ..Rates::default() };
    rates.errors[0] = 5.0;
    rates.wait = 7.0;
    let all = samples(&[("host1:1".to_owned(), rates), ("sw1:1".to_owned(), Rates::default())]);
    let totals: Vec<(&str, f64)> = all.iter().map(|sample| (sample.stat, sample.total)).collect();
    let expected =
        [("ib.kilobytes", 3.0), ("ib.packets", 3.0), ("ib.errors", 5.0), ("ib.wait", 7.0)];
    assert_eq!(totals, expected);
    let row = |port: &str, key: &str, value| (port.to_owned(), key.to_owned(), value);
    assert_eq!(all[0].rows, [row("host1:1", "in", 2.0), row("host1:1", "out", 1.0)]);
    assert_eq!(all[2].rows, [row("host1:1", "symbol", 5.0)]);
    for sample in &all {
        let (group, metric) = sample.stat.split_once('.').expect("a group");
        let declared = schema().statistic(group, metric).expect("declared");
        let dimensions: Vec<&str> =
            sample.dimensions.into_iter().filter(|name| !name.is_empty()).collect();
        assert_eq!(declared.breakdowns, dimensions, "{}", sample.stat);
    }
}

#[test]
fn a_machine_without_fabric_has_no_samples() {
    assert_eq!(FabricSampler(Arc::default()).sample(0), []);
}
