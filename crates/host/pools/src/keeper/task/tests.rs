//! When a scrub is due, and the sentences of results.

use super::*;

fn ended(kind: Kind, ended_s: u64) -> Ended {
    Ended { kind, started_s: 0, ended_s, complete: false, result: String::new() }
}

#[test]
fn scrubs_are_due_by_the_days_since_the_last_one() {
    let mut record = Record::new("tank", Profile::Mirror);
    let now = 100 * DAY_MS;
    assert!(!is_due(&record, &[], now), "without a schedule");
    record.scrub_every_days = Some(7);
    assert!(is_due(&record, &[], now), "never scrubbed");
    record.scrubbed_ms = Some(93 * DAY_MS);
    assert!(is_due(&record, &[], now));
    record.scrubbed_ms = Some(93 * DAY_MS + 1);
    assert!(!is_due(&record, &[], now));
    record.scrubbed_ms = None;
    let day_s = DAY_MS / 1_000;
    assert!(!is_due(&record, &[ended(Kind::Scrub, 99 * day_s)], now), "one was stopped");
    assert!(is_due(&record, &[ended(Kind::Repair, 99 * day_s)], now), "a repair is none");
    // The clock was set back.
    record.scrubbed_ms = Some(200 * DAY_MS);
    assert!(!is_due(&record, &[], now));
}

#[test]
fn results_are_sentences() {
    let good = Scrubbed { bytes: 5 << 20, ..Scrubbed::default() };
    assert_eq!(in_words(&good), "5 MiB were read without an error.");
    let bad = Scrubbed { wrong: 3, corrected: 2, uncorrectable: 1, ..good };
    let sentence = "5 MiB were read: 3 wrong blocks, 0 read errors, 2 corrected, 1 without a right \
                    copy.";
    assert_eq!(in_words(&bad), sentence);
}
