//! What people and programs read.

use super::{far, progress_json, shown};
use crate::Counts;
use crate::load::{Limiter, Progress};

fn progress(limiter: Option<Limiter>, left_ns: Option<u64>) -> Progress {
    let counts = Counts {
        entries: 7,
        changes: 0,
        files: 5,
        bytes: 9_000_000,
        files_done: 2,
        bytes_done: 3_000_000,
        bytes_received: 3_000_000,
        bytes_cloned: 0,
        bytes_copied: 0,
        devices_skipped: 0,
        set_id_dropped: 0,
        failures: 0,
        scanned: left_ns.is_some(),
    };
    Progress { counts, rate: 2_000_000, left_ns, limiter }
}

#[test]
fn the_line_shows_the_rate_the_time_and_the_limit() {
    let text = far(&progress(Some(Limiter::SourceDisk), Some(3_000_000_000)));
    assert!(text.starts_with("7 entries, 2 of 5 files, "), "{text}");
    assert!(text.contains("/s, 3") && text.ends_with(" left, limited by source disk"), "{text}");
    let text = far(&progress(None, None));
    assert!(text.ends_with("/s"), "{text}");
    let json = progress_json(&progress(Some(Limiter::Link), Some(3_000_000_000)), 1.5);
    assert_eq!((&json["event"], &json["limiter"]), (&"progress".into(), &"link".into()));
    assert_eq!((&json["rate"], &json["left_seconds"]), (&2_000_000.into(), &3.0.into()));
    let json = progress_json(&progress(None, None), 1.5);
    assert!(json["limiter"].is_null() && json["left_seconds"].is_null(), "{json}");
}

#[test]
fn a_path_stays_on_its_line() {
    assert_eq!(shown(b""), ".");
    assert_eq!(shown(b"a\nb\x1b[2J"), "a\\nb\\u001b[2J");
}
