//! Between which reports of a run it counts.

use super::*;

fn report_lines(reports: &[(f64, u64)]) -> String {
    let line = |(seconds, bytes): &(f64, u64)| {
        let event = if *bytes == 1 { "streams" } else { "progress" };
        serde_json::json!({"event": event, "seconds": seconds, "bytes_received": bytes}).to_string()
            + "\n"
    };
    reports.iter().map(line).collect()
}

#[test]
fn it_counts_from_warm_on_for_the_whole_time() {
    // Nothing has come yet; another event; the first bytes; then 1000 a second.
    let text =
        report_lines(&[(0.5, 0), (1.0, 1), (2.0, 500), (2.4, 900), (2.6, 1100), (3.1, 1600)]);
    let (begin, end) = follow(text.as_bytes(), (0.5, 0.5), || None).unwrap();
    assert_eq!((begin.seconds, begin.bytes), (2.6, 1100.0));
    assert_eq!((end.seconds, end.bytes), (3.1, 1600.0));
    assert_eq!(streams(&begin, &end, 1), None, "nobody has seen them");
}

#[test]
fn a_run_that_ends_early_has_no_figure() {
    let text = report_lines(&[(2.0, 500), (2.6, 1100), (2.9, 1300)]);
    assert!(follow(text.as_bytes(), (0.5, 0.5), || None).is_none());
    assert!(follow("no JSON\n".as_bytes(), (0.5, 0.5), || None).is_none());
}
