//! Rows and scans that the recorded outputs do not have.

use super::{ScanKind, ScanState, parse_scan, pools};

#[test]
fn a_paused_scrub() {
    let scan = parse_scan(
        "scrub paused since Sun Aug 11 07:00:00 2024 scrub started on Sun Aug 11 06:25:08 2024 \
         1.00G / 2.00G scanned, 512M / 2.00G issued 0B repaired, 25.00% done",
    );
    assert_eq!((scan.kind, scan.state), (Some(ScanKind::Scrub), ScanState::Paused));
    assert_eq!(scan.started_s, Some(1_723_357_508));
    assert_eq!(scan.thousandths, Some(250));
}

#[test]
fn a_scrub_that_was_stopped_in_words_of_zfs_fuse() {
    let scan = parse_scan("scrub stopped after 0h2m with 0 errors on Wed Nov 25 02:39:24 2026");
    assert_eq!(scan.state, ScanState::Canceled);
    assert_eq!(scan.ended_s, Some(1_795_574_364));
    assert_eq!(scan.started_s, Some(1_795_574_244));
}

#[test]
fn lists_of_files_with_errors_are_one_error_at_least() {
    let text = "  pool: tank\n state: ONLINE\nconfig:\n\n\tNAME STATE\n\ttank ONLINE\n\nerrors: \
                Permanent errors have been detected in the following files:\n\n        /tank/a\n";
    assert_eq!(pools(text)[0].errors, 1);
}
