//! When a scrub is due, what is repeated for lack of room, and the sentences of results.

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
fn a_repair_that_failed_is_begun_again_after_a_pause_that_doubles() {
    let (now, first) = (400 * DAY_MS / 1_000, AGAIN.as_secs());
    let complete = Ended { complete: true, ..ended(Kind::Repair, now) };
    for history in [&[][..], &[ended(Kind::Scrub, now)], &[complete]] {
        assert!(!waits(history, now), "no repair has failed: {history:?}");
    }
    let once = [ended(Kind::Repair, now)];
    assert!(waits(&once, now) && waits(&once, now + first - 1));
    assert!(!waits(&once, now + first));
    let twice = [ended(Kind::Repair, now - first), ended(Kind::Repair, now)];
    assert!(waits(&twice, now + 2 * first - 1) && !waits(&twice, now + 2 * first));
    // It failed while the clock was ahead.
    assert!(!waits(&once, now - 1) && !waits(&once, now - 365 * DAY_MS / 1_000));
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

#[test]
fn what_lacks_room_is_repeated_after_room_was_made() {
    let full = || io::Error::from_raw_os_error(libc::ENOSPC);
    // How often it is tried, and what room is made of, if it fails this often, with this error.
    let run = |failures: usize, error: fn() -> io::Error| {
        let (mut tried, mut made) = (0, Vec::new());
        let attempt = || {
            tried += 1;
            if tried <= failures { Err(error()) } else { Ok(()) }
        };
        let done = with_room(attempt, |percent| {
            made.push(percent);
            Ok(())
        });
        (done.map_err(|e| e.raw_os_error()), tried, made)
    };
    assert_eq!(run(0, full), (Ok(()), 1, vec![]));
    assert_eq!(run(2, full), (Ok(()), 3, ROOM[..2].to_vec()));
    let all = ROOM.len() + 1;
    assert_eq!(run(all, full), (Err(Some(libc::ENOSPC)), all, ROOM.to_vec()));
    let broken = || io::Error::from_raw_os_error(libc::EIO);
    assert_eq!(run(1, broken), (Err(Some(libc::EIO)), 1, vec![]));
    let no_room = with_room(|| Err(full()), |_| Err(broken()));
    assert_eq!(no_room.map_err(|e| e.raw_os_error()), Err(Some(libc::EIO)));
}
