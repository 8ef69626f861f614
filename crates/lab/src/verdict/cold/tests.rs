//! Each planted fault is named: a pretended drop, a mapping that stays, another disk's counters.

use super::*;

fn cold() -> ColdEvidence {
    ColdEvidence {
        resident: Some((10, 24_576)),
        share_device: Some("vdb".into()),
        device: Some(("vdb".into(), 100 << 20)),
        payload: 100 << 20,
        ..ColdEvidence::default()
    }
}

fn names(evidence: &ColdEvidence, part: &str) {
    let doubts = doubts(evidence);
    assert!(doubts.iter().any(|doubt| doubt.contains(part)), "{part}: {doubts:?}");
}

#[test]
fn a_cold_read_has_no_doubt() {
    assert_eq!(doubts(&cold()), Vec::<String>::new());
}

#[test]
fn a_pretended_drop_is_named() {
    // Nothing was dropped: all is resident, and the device reads nothing.
    let pretended = ColdEvidence {
        resident: Some((24_576, 24_576)),
        device: Some(("vdb".into(), 0)),
        ..cold()
    };
    names(&pretended, "100.0 % of the pages were resident");
    names(&pretended, "vdb read 0.0 %");
}

#[test]
fn a_mapping_that_stays_is_named() {
    // 12 windows of 8 MiB stayed; the rest was dropped.
    let kept = ColdEvidence { resident: Some((12 * 2_048, 262_144)), ..cold() };
    names(&kept, "9.4 % of the pages were resident");
}

#[test]
fn read_ahead_that_warms_the_set_is_named() {
    // Random reads: 128 KiB came for each 4 KiB at first, then all was in memory.
    let device = Some(("vdb".into(), 400 << 20));
    let warmed = ColdEvidence { device, later: Some((3 << 20, 50 << 20)), ..cold() };
    names(&warmed, "vdb read 6.0 % of the later half");
    let later = |bytes| doubts(&ColdEvidence { later: Some((bytes, 1_000)), ..cold() });
    assert!(later(500).is_empty() && later(499)[0].contains("49.9 %"));
}

#[test]
fn a_set_that_was_read_ahead_in_a_short_step_is_named() {
    // All of the set came while clients read a tenth of it, and no counters were read between.
    let set = Some((1 << 30) / page_size());
    let device = |mib: u64| Some(("vdb".into(), mib << 20));
    let ahead = ColdEvidence { device: device(1_000), set, ..cold() };
    names(&ahead, "vdb read 87.9 % of the set beyond what clients did");
    let little = ColdEvidence { device: device(200), set, ..cold() };
    assert_eq!(doubts(&little), Vec::<String>::new());
    // The set was read to its end, and what follows it in the logical unit, too.
    let whole = ColdEvidence { device: device(1_200), payload: 1 << 30, set, ..cold() };
    assert_eq!(doubts(&whole), Vec::<String>::new());
}

#[test]
fn other_files_do_not_lessen_its_share() {
    // All of a small set in a large logical unit.
    let beside = ColdEvidence { resident: Some((1_024, 1 << 24)), set: Some(1_024), ..cold() };
    names(&beside, "100.0 % of the pages were resident");
    let larger = ColdEvidence { resident: Some((1_024, 2_048)), set: Some(1 << 24), ..cold() };
    names(&larger, "50.0 % of the pages were resident");
}

#[test]
fn a_proof_has_its_figures() {
    let sentence = proof(&cold());
    assert_eq!(
        sentence,
        "0.0 % of the pages were resident before, vdb read 100.0 % of what clients did"
    );
}

#[test]
fn counters_of_another_disk_are_named() {
    let other = ColdEvidence { device: Some(("vda".into(), 100 << 20)), ..cold() };
    names(&other, "the counters are those of vda, the share is on vdb");
}

/// The thresholds, written out.
#[test]
fn rules_trigger_at_their_thresholds() {
    let resident = |pages| doubts(&ColdEvidence { resident: Some((pages, 100_000)), ..cold() });
    assert!(resident(999).is_empty() && resident(1_000)[0].starts_with("1.0 %"));
    let read = |bytes| {
        let device = Some(("vdb".into(), bytes));
        doubts(&ColdEvidence { device, payload: 100_000, ..cold() })
    };
    assert!(read(95_000).is_empty() && read(94_900)[0].contains("94.9 %"));
}

#[test]
fn what_was_not_seen_is_not_cold() {
    names(&ColdEvidence { resident: None, ..cold() }, "not counted");
    names(&ColdEvidence { device: None, ..cold() }, "not observed");
    names(&ColdEvidence { share_device: None, ..cold() }, "not observed");
    names(&ColdEvidence { resident: Some((0, 0)), ..cold() }, "no pages");
    names(&ColdEvidence { payload: 0, ..cold() }, "clients read nothing");
}
