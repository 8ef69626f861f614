//! Figures next to the model; what is not as the model has it is stated, what is condemned has no
//! figure.

use super::*;
use crate::record::provenance::Provenance;
use crate::report::tests::schema::all_faults;

const SCHEMA: &str = include_str!("../../../../../../docs/formats/iozone-over.schema.json");

fn plan() -> OverPlan {
    OverPlan {
        rtt_ms: vec![0.0, 2.0],
        threads: vec![1, 4, 8, 16],
        encrypt: vec![false, true],
        rate: 100_000_000,
        record: 64 << 10,
        size: None,
        repeats: 1,
        seed: 1,
    }
}

/// As the model has it, but for a factor of writes and reads.
fn made_up(of: impl Fn(&OverPoint) -> [f64; 2]) -> OverResult {
    let plan = plan();
    let sweep = plan.sweep();
    let point = |at: At| {
        let mut point = OverPoint::new(at.clone());
        let rtt_s = at.rtt_ms / 1e3;
        let [write, read] = of(&point).map(|factor| factor * sweep.predicted(&at, rtt_s));
        let (write_bytes_s, read_bytes_s) = (write, read);
        point.samples = vec![OverSample { round: 0, rtt_s, write_bytes_s, read_bytes_s }];
        point
    };
    let mut result = OverResult {
        provenance: Provenance::new(KIND, VERSION, 1_700_000_000.0, vec!["lab".into()]),
        link_bytes_s: sweep.link(),
        points: sweep.points().into_iter().map(point).collect(),
        plan,
        degraded: Vec::new(),
        failed: None,
    };
    result.derive();
    result
}

#[test]
fn figures_as_the_model_has_them_have_no_reservation() {
    let result = made_up(|_| [1.0, 1.0]);
    assert_eq!(result.degraded, [""; 0]);
    assert_eq!(result.points.len(), 16);
    let of = |rtt: f64, threads: u32| {
        let same = |p: &&OverPoint| p.rtt_ms == rtt && p.threads == threads && !p.encrypt;
        result.points.iter().find(same).and_then(|p| p.figures).expect("figures").predicted
    };
    // A record of 64 KiB takes 5.4 ms on the line: a child waits for 2 ms of 7.4.
    let alone = of(2.0, 1) / of(0.0, 1);
    assert!((alone - 5.43 / 7.43).abs() < 0.01, "{alone}");
    assert!((of(2.0, 8) / result.link_bytes_s - 1.0).abs() < 0.02, "up to the link");
    let text = result.text();
    assert!(text.contains("writes off") && text.contains("+0.0 %"), "{text}");
}

#[test]
fn what_is_off_is_stated() {
    let result = made_up(|point| match (point.rtt_ms, point.threads, point.encrypt) {
        (2.0, 1, false) => [1.0, 0.85],
        (0.0, 8, false) => [0.8, 1.0],
        _ => [1.0, 1.0],
    });
    let all = result.degraded.join("\n");
    assert!(all.contains("2 ms, 1 children: reads are -15.0 % off the model"), "{all}");
    assert!(all.contains("0 ms, 8 children: writes are not flat"), "{all}");
    assert!(all.contains("0 ms, 8 children, encrypted: encryption changes writes by +25.0 %"));
    assert!(all.contains("2 ms, 1 children, encrypted: encryption changes reads by +17.6 %"));
    assert_eq!(result.degraded.len(), 4, "{all}");
}

#[test]
fn what_the_link_has_condemned_is_no_figure() {
    let mut result = made_up(|_| [1.0, 1.0]);
    result.points[0].samples.clear();
    result.points[0].spoiled = vec!["forth: packets were late </script>".into()];
    result.derive();
    assert_eq!(result.points[0].figures, None);
    assert!(result.degraded[0].contains("no valid sample: forth: packets were late"));
    let files = crate::report::over_files(&result).expect("files");
    let file = |name: &str| &files.iter().find(|(n, _)| *n == name).expect(name).1;
    assert!(!file("report.html").contains("late </script>"));
    assert!(file("result.csv").lines().count() == 17 && file("result.csv").contains("spoiled"));
    let read: OverResult = serde_json::from_str(file("result.json")).expect("a result");
    assert_eq!(read.degraded, result.degraded);
}

#[test]
fn a_result_matches_its_schema_and_is_read_as_it_was_written() {
    let mut result = made_up(|_| [1.0, 1.0]);
    result.points[1].samples.clear();
    result.points[1].spoiled = vec!["the link was late".to_owned()];
    result.points[2].failed = Some("no server".to_owned());
    result.derive();
    let mut value = serde_json::to_value(&result).expect("JSON");
    assert_eq!(all_faults(SCHEMA, &value), [""; 0]);
    assert_eq!(serde_json::from_value::<OverResult>(value.clone()).expect("read"), result);
    value["points"][0]["samples"][0]["late"] = 1.into();
    value["plan"]["rate"] = "fast".into();
    assert_eq!(all_faults(SCHEMA, &value).len(), 2);
}
