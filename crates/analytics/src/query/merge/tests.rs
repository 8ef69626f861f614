//! Answers of several servers as one.

use super::*;

fn row(key: &str, values: &[Option<f64>]) -> Row {
    let (key, label) = (key.to_owned(), format!("the {key}"));
    Row { key, label, average: average(values), values: values.to_vec(), time: None }
}

fn answer(total: &[Option<f64>], rows: Vec<Row>) -> Data {
    Data {
        stat: "nfs.ops[client]".to_owned(),
        title: "NFS operations".to_owned(),
        unit: "ops/s".to_owned(),
        from: 100,
        to: 103,
        step: 1,
        times: vec![100, 101, 102],
        total: total.to_vec(),
        rows: Some(rows),
        other: None,
        buckets: None,
        dropped: vec![0, 1, 0],
        source: Source::Store,
        exact: true,
        error_bound: 0.0,
        note: None,
    }
}

#[test]
fn values_are_added_and_missing_where_all_miss_them() {
    let a = answer(
        &[Some(3.0), None, None],
        vec![row("x", &[Some(1.0), None, None]), row("y", &[Some(2.0), None, None])],
    );
    let mut b =
        answer(&[Some(5.0), Some(7.0), None], vec![row("x", &[Some(5.0), Some(7.0), None])]);
    (b.exact, b.error_bound, b.note) = (false, 0.5, Some("a note".to_owned()));
    let sum = merge(&[a, b], 20).expect("an answer");
    assert_eq!(sum.total, [Some(8.0), Some(7.0), None]);
    let rows: Vec<_> = sum.rows().iter().map(|row| (row.key.as_str(), row.average)).collect();
    assert_eq!(rows, [("x", 6.5), ("y", 2.0)]);
    assert_eq!(sum.rows()[0].values, [Some(6.0), Some(7.0), None]);
    assert_eq!(sum.dropped, [0, 2, 0]);
    assert_eq!((sum.exact, sum.error_bound), (false, 0.5));
    assert_eq!(sum.note.as_deref(), Some("a note"));
}

/// A phase of operations, with its mean time in each step.
fn phase(key: &str, values_ns: &[Option<f64>]) -> Row {
    let time = PhaseTime { average_ns: 0.0, share: 0.0, values_ns: values_ns.to_vec() };
    Row { time: Some(time), ..row(key, &[Some(1.0); 3]) }
}

#[test]
fn times_of_phases_are_means_over_the_operations_of_all() {
    // One operation each step, then three of another server, which has no time in the queue.
    let a = answer(
        &[Some(1.0), Some(1.0), None],
        vec![
            phase("queue", &[Some(40.0), Some(80.0), None]),
            phase("pool", &[Some(20.0), Some(20.0), None]),
        ],
    );
    let b = answer(&[Some(3.0), None, None], vec![phase("pool", &[Some(60.0), None, None])]);
    let sum = merge(&[a, b], 20).expect("an answer");
    let time = |key: &str| {
        let row = sum.rows().iter().find(|row| row.key == key).expect("a row");
        row.time.clone().expect("a time")
    };
    assert_eq!(time("queue").values_ns, [Some(10.0), Some(80.0), None]);
    assert_eq!(time("pool").values_ns, [Some(50.0), Some(20.0), None]);
    // 120 ns and 220 ns of five operations.
    assert_eq!((time("queue").average_ns, time("pool").average_ns), (24.0, 44.0));
    assert_eq!((time("queue").share, time("pool").share), (24.0 / 68.0, 44.0 / 68.0));
}

#[test]
fn rows_beyond_the_top_are_added_to_other() {
    let ones = |n: f64| [Some(n), Some(n), Some(n)];
    let mut a = answer(&ones(9.0), vec![row("x", &ones(5.0)), row("y", &ones(3.0))]);
    a.other = Some(Other { average: 1.0, values: ones(1.0).to_vec() });
    let b = answer(&ones(4.0), vec![row("z", &ones(4.0))]);
    let sum = merge(&[a, b], 2).expect("an answer");
    let rows: Vec<_> = sum.rows().iter().map(|row| row.key.as_str()).collect();
    assert_eq!(rows, ["x", "z"]);
    assert_eq!(sum.other.expect("others").values, ones(4.0));
}

#[test]
fn ranges_are_added_and_in_order() {
    let bucket = |low, value: f64| {
        let values = vec![Some(value); 3];
        Bucket { low, high: low * 2, average: value, values }
    };
    let (mut a, mut b) = (answer(&[Some(1.0); 3], Vec::new()), answer(&[Some(1.0); 3], Vec::new()));
    (a.rows, a.buckets) = (None, Some(vec![bucket(8, 1.0)]));
    (b.rows, b.buckets) = (None, Some(vec![bucket(2, 4.0), bucket(8, 2.0)]));
    let sum = merge(&[a, b], 20).expect("an answer");
    assert_eq!(sum.rows, None);
    let found: Vec<_> = sum.buckets().iter().map(|one| (one.low, one.average)).collect();
    assert_eq!(found, [(2, 4.0), (8, 3.0)]);
}

#[test]
fn other_steps_and_intervals_are_refused() {
    let a = answer(&[None; 3], Vec::new());
    assert_eq!(merge(&[], 20), Err(MergeError::None));
    let later = Data { times: vec![101, 102, 103], ..a.clone() };
    assert_eq!(merge(&[a.clone(), later], 20), Err(MergeError::Interval));
    let coarse = Data { step: 60, ..a.clone() };
    assert_eq!(merge(&[a, coarse], 20), Err(MergeError::Step(60)));
}

#[test]
fn intervals_without_data_are_gaps_until_now() {
    let one = answer(&[Some(1.0), None, None], Vec::new());
    assert_eq!(gaps(&one, 1_000), [(101, 103)]);
    // What is not over yet is no gap.
    assert_eq!(gaps(&one, 102), [(101, 102)]);
    assert_eq!(
        gaps(&answer(&[None, Some(1.0), None], Vec::new()), 1_000),
        [(100, 101), (102, 103)]
    );
}
