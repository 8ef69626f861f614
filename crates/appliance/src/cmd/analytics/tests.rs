//! Times, suggestions, tables: how they read.

use analytics::query::{Bucket, Data, Other, PhaseTime, Row, Source};

use super::{LocalClock, near, point_of_time, table};

/// 1970-01-02 03:46:40 UTC.
const CLOCK: LocalClock = LocalClock { now: 100_000, offset: |_| 0 };

fn data() -> Data {
    Data {
        stat: "nfs3.ops[client]".into(),
        title: "NFSv3 operations per second broken down by client".into(),
        unit: "ops/s".into(),
        from: 1000,
        to: 1004,
        step: 1,
        times: vec![1000, 1001, 1002, 1003],
        total: vec![Some(4.0), Some(8.0), None, Some(0.0)],
        rows: Some(vec![Row {
            key: "10.0.0.7".into(),
            label: "10.0.0.7, \"lab\"".into(),
            average: 4.0,
            values: vec![Some(4.0), Some(8.0), None, Some(0.0)],
            time: None,
        }]),
        other: None,
        buckets: None,
        dropped: Vec::new(),
        source: Source::Store,
        exact: true,
        error_bound: 0.0,
        note: None,
    }
}

#[test]
fn points_of_time() {
    let case = |text| point_of_time(text, &CLOCK).ok();
    assert_eq!(case("now"), Some(None));
    assert_eq!(case("12"), Some(Some(12)));
    assert_eq!(case("-90"), Some(Some(-90)));
    assert_eq!(case("-90s"), Some(Some(-90)));
    assert_eq!(case("-15m"), Some(Some(-900)));
    assert_eq!(case("-2h"), Some(Some(-7200)));
    assert_eq!(case("-1d"), Some(Some(-86_400)));
    // What is not relative to the server's now.
    assert_eq!(case("yesterday 09:00"), Some(Some(9 * 3600)));
    assert_eq!(case("1970-01-01T09:00:00+01:00"), Some(Some(8 * 3600)));
    assert_eq!(case("+1h"), Some(Some(103_600)));
    for bad in ["", "-", "tomorrow", "-5y", "--5", "1.5", "-m", "-9223372036854775807d"] {
        assert_eq!(case(bad), None, "{bad}");
    }
}

#[test]
fn near_names_nearest_first() {
    let known: Vec<String> =
        ["nfs3.ops", "nfs3.ops[op]", "nfs3.bytes", "cpu.utilization"].map(String::from).to_vec();
    assert_eq!(near("nfs3.op", &known)[0], "nfs3.ops");
    assert_eq!(near("nfs.ops[op]", &known)[0], "nfs3.ops[op]");
    assert_eq!(near("cpu.utilisation", &known), ["cpu.utilization"]);
    assert!(near("zfs.arc", &known).is_empty());
}

#[test]
fn a_table_distinguishes_nothing_from_no_data() {
    let text = table::show(&data(), &CLOCK);
    let row = text.lines().find(|l| l.contains("lab")).unwrap();
    assert!(row.contains("4  ▄█· "), "{row:?}");
    assert!(text.contains("1970-01-01 00:16:40 to 1970-01-01 00:16:44 UTC"), "{text}");
    assert!(text.contains("1 of 4 points"), "{text}");
}

#[test]
fn a_heat_map_shows_single_outliers_and_the_highest_on_top() {
    let bucket = |low: u64, values: [f64; 2]| Bucket {
        low,
        high: 2 * low,
        average: values.iter().sum::<f64>() / 2.0,
        values: values.map(Some).to_vec(),
    };
    let data = Data {
        stat: "nfs3.ops[latency]".into(),
        rows: None,
        buckets: Some(vec![bucket(100_000, [9999.0, 9999.0]), bucket(1_000_000_000, [0.0, 1.0])]),
        ..data()
    };
    let text = table::show(&data, &CLOCK);
    let low = text.lines().position(|l| l.contains("██") && l.contains("65.5 µs")).unwrap();
    let high = text.lines().position(|l| l.contains(" ░") && l.contains("537 ms")).unwrap();
    assert!(high < low, "{text}");
    // Four orders of magnitude: a row for each power of two, also for those without operations.
    assert_eq!(low - high, 13, "{text}");
}

#[test]
fn phases_have_their_part_of_the_latency() {
    let phase = |label: &str, average: f64, average_ns: f64| Row {
        key: label.into(),
        label: label.into(),
        average,
        values: vec![Some(average); 4],
        time: Some(PhaseTime {
            average_ns,
            share: average_ns / 5e6,
            values_ns: vec![Some(average_ns); 4],
        }),
    };
    let rows = Some(vec![phase("flush", 3.0, 4e6), phase("inline", 1.0, 1e6)]);
    let text = table::show(&Data { stat: "nfs3.ops[phase]".into(), rows, ..data() }, &CLOCK);
    let row = |name: &str| text.lines().find(|l| l.contains(name)).unwrap().to_owned();
    assert!(row("flush").contains("4 ms  80.0%  flush"), "{text}");
    assert!(row("inline").contains("1 ms  20.0%  inline"), "{text}");
    assert!(row("total").contains("5 ms         total"), "{text}");
    assert!(row("latency").contains("share  ops/s"), "{text}");
}

#[test]
fn a_bound_has_the_direction_in_which_a_row_may_err() {
    let text = table::show(&Data { exact: false, error_bound: 3.0, ..data() }, &CLOCK);
    assert!(text.contains("up to 3 too low, never too high"), "{text}");
}

#[test]
fn long_intervals_are_shrunk_to_their_peaks() {
    let mut values = vec![Some(0.0); 600];
    values[305] = Some(7.0);
    let line = table::spark(&values);
    assert_eq!(line.chars().count(), 60);
    assert_eq!(line.chars().filter(|c| *c == '█').count(), 1);
}

#[test]
fn csv_follows_rfc_4180() {
    let data = Data { other: Some(Other { average: 0.0, values: vec![None; 4] }), ..data() };
    let text = data.csv(true);
    let lines: Vec<&str> = text.split("\r\n").collect();
    assert_eq!(lines[0], r#"time,total,"10.0.0.7, ""lab""",other"#);
    assert_eq!(lines[1], "1000,4,4,");
    assert_eq!(lines[3], "1002,,,");
    assert_eq!(lines.len(), 6, "a line end after each line");
}
