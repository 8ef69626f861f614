//! Pages stand alone, and what comes from outside cannot break out of its place.

use super::*;
use crate::job::Job;
use crate::limit::{Evidence, judge};
use crate::record::{Step, WindowRecord};

/// A run with three steps, made up.
pub(crate) fn made_up() -> RunResult {
    let step = |n: u32| Step {
        number: n,
        clients: 8,
        threads: n,
        window_s: 0.25,
        windows: vec![WindowRecord { ops: 100, heat: vec![(60, 100)], ..Default::default() }; 6],
        used: (1, 6),
        ops_s: 400.0 * f64::from(n),
        ..Default::default()
    };
    RunResult {
        format: record::VERSION,
        program: "plimsoll".into(),
        started: 1_700_000_000.25,
        ended: 1_700_000_030.0,
        job: Job::load("iops-4k", &[]).unwrap(),
        target: "nfs3://nas</script><b>/x".into(),
        command: vec!["plimsoll".into(), "lab".into()],
        conductor: serde_json::Value::Null,
        server: Default::default(),
        clients: vec![Default::default()],
        checked_share: 1.0,
        null_ops_s: Some(1e6),
        steps: vec![step(1), step(2), step(3)],
        best: Some(2),
        levelled: true,
        limit: Some(judge(&Evidence::default())),
        demands: None,
        scaling: None,
        degraded: vec!["lost client 1: <killed>".into()],
        failed: None,
    }
}

#[test]
fn pages_ask_nobody_for_anything() {
    let result = made_up();
    let summary = crate::limits::summarise(std::slice::from_ref(&result));
    for page in [page(&result), summary_page(&summary)] {
        assert!(!page.contains("{{") && !page.contains("/*STYLE*/"));
        for outside in ["src=", "@import", "url(", "fetch(", "https://"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert_eq!(page.matches("</script>").count(), 2, "data cannot end its element");
    }
}

#[test]
fn the_page_carries_the_record() {
    let page = page(&made_up());
    let data = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let read: RunResult = serde_json::from_str(data).unwrap();
    assert_eq!(read.target, made_up().target);
    assert_eq!(read.steps.len(), 3);
}

#[test]
fn the_page_links_every_step_when_the_server_is_known() {
    let mut result = made_up();
    assert!(!page(&result).contains("\"analytics\":"));
    let services = serde_json::json!([{"name": "admin", "listen": "10.0.0.2:10215"}]);
    result.server.status = Some(serde_json::json!({"services": services}));
    let page = page(&result);
    assert_eq!(page.matches("https://10.0.0.2:10215/analytics?w=nfs3.ops%5Bclient%5D").count(), 3);
}

#[test]
fn text_names_steps_limiter_and_what_degrades() {
    let text = text(&made_up());
    for part in ["8 × 3", "1.2 K ops/s", "limit: ", "degraded: lost client 1"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn a_run_that_fails_before_its_first_step_has_a_reason_and_no_table() {
    let mut result = made_up();
    result.steps.clear();
    result.failed = Some("client 2: mount /export/a: the server returned MNT3ERR_ACCES".into());
    let text = text(&result);
    assert!(!text.contains("throughput"), "{text}");
    assert!(text.contains("do not admit the address of this client"), "{text}");
}

#[test]
fn a_run_equals_itself_and_differs_when_it_is_faster() {
    let a = made_up();
    let same = compare(&a, &a);
    assert_eq!(same.ratio, 1.0);
    assert!(!same.significant && same.differences.is_empty());
    let mut b = a.clone();
    b.steps[2].ops_s *= 1.5;
    b.job.block = 8192;
    let other = compare(&a, &b);
    assert!(other.significant && other.text().contains("block: 4096 | 8192"), "{}", other.text());
}
