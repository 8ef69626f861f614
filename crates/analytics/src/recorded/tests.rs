//! Which datasets there are: bounded in number and in time, and the same after a restart.

use super::*;

const NOW: u64 = 1_800_000_000;

fn stat(n: usize) -> StatId {
    format!("nfs3.ops[op=read][share=s{n}][file]").parse().expect("an id")
}

#[test]
fn only_valid_statistics_that_are_not_always_recorded() {
    let why = |id: &str| check(&id.parse().expect("an id")).map_err(|e| e.to_string());
    assert_eq!(why("nfs3.ops[op=read][share=tank][file]"), Ok(()));
    assert_eq!(why("nfs.bytes[client=10.0.0.7][share=tank]"), Ok(()));
    let anyway = ["nfs3.ops", "nfs3.ops[client]", "nfs3.ops[op=read]", "cpu.utilization[mode]"];
    for id in anyway {
        assert!(why(id).is_err_and(|why| why.ends_with("is always recorded")), "{id}");
    }
    assert!(why("nfs3.nothing").is_err_and(|why| why.contains("unknown statistic")));
    let long = format!("nfs3.ops[share={}][user=1][file]", "x".repeat(ALERT_TEXT_MAX));
    assert!(why(&long).is_err_and(|why| why.contains("the maximum is")));
}

#[test]
fn they_expire_and_are_extended_when_requested_again() {
    let kept = DatasetTable::default();
    let first = kept.keep(&stat(1), "anna", NOW, 60).expect("kept");
    assert_eq!((first.name.as_str(), first.since, first.until), ("d1", NOW, NOW + 60));
    assert_eq!(kept.at(NOW + 59), [stat(1)]);
    assert_eq!(kept.at(NOW + 60), []);
    let again = kept.keep(&stat(1), "alert a", NOW + 30, 60).expect("kept");
    assert_eq!((again.name.as_str(), again.by.as_str(), again.until), ("d1", "anna", NOW + 90));
    assert!(kept.stop("d1", NOW + 40) && !kept.stop("d1", NOW + 41) && !kept.stop("d9", NOW));
    assert_eq!(kept.at(NOW + 40), []);
    let anew = kept.keep(&stat(1), "alert a", NOW + 50, u64::MAX).expect("kept");
    assert_eq!((anew.name.as_str(), anew.until), ("d2", NOW + 50 + KEPT_FOR_MAX_S));
    assert!(kept.forget("d1") && !kept.forget("d1"));
    assert_eq!(kept.of(&stat(1)), [anew]);
}

#[test]
fn they_are_few_and_what_has_ended_makes_room() {
    let kept = DatasetTable::default();
    for n in 0..KEPT_DATASETS_MAX {
        kept.keep(&stat(n), "anna", NOW, 60 + n as u64).expect("room");
    }
    assert_eq!(kept.keep(&stat(99), "anna", NOW + 59, 60), Err(KeepError::Full));
    let more = kept.keep(&stat(99), "anna", NOW + 61, 60).expect("two have ended");
    assert_eq!(more.name, format!("d{}", KEPT_DATASETS_MAX + 1));
    assert_eq!(kept.list().len(), KEPT_DATASETS_MAX);
    assert!(kept.named("d1").is_none() && kept.named("d2").is_some(), "the oldest has gone");
}

#[test]
fn recorded_datasets_continue_after_a_restart() {
    let kept = DatasetTable::default();
    kept.keep(&stat(1), "alert reads", NOW, 60).expect("kept");
    kept.keep(&stat(2), "anna", NOW, 90).expect("kept");
    let text = kept.to_text();
    let again = DatasetTable::default();
    again.take_text(&text).expect("ours");
    assert_eq!(again.list(), kept.list());
    assert_eq!(inspect(&text).expect("ours")["datasets"][0]["by"], "alert reads");
    let other = text.replace("nfs3.ops", "nfs9.ops");
    again.take_text(&other).expect("ours");
    assert!(again.list().is_empty(), "of another version");
    assert!(again.take_text("{}").is_err() && inspect("[]").is_none());
}
