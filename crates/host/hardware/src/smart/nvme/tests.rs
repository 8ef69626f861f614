//! Pages of NVMe disks as smartctl shows them, and pages of noise.

use base::random::{Random, SeededRandom};
use serde_json::Value;

use super::*;
use crate::smart::report::{Report, Verdict};

/// The page that QEMU's disk has, of which smartctl has made `tests/smartctl/nvme.json`: 50 °C, one
/// unit read by two commands.
fn qemu() -> [u8; PAGE_BYTES] {
    let mut page = [0; PAGE_BYTES];
    page[1..3].copy_from_slice(&323_u16.to_le_bytes());
    (page[32], page[64]) = (1, 2);
    page
}

fn capture() -> Output {
    let text = include_str!("../../../tests/smartctl/nvme.json").to_owned();
    Output { status: 0, text }
}

#[test]
fn a_page_gives_the_report_that_smartctl_gives() {
    let (ours, theirs) = (output(&qemu()), capture());
    let (a, b): (Value, Value) = (
        serde_json::from_str(&ours.text).expect("JSON"),
        serde_json::from_str(&theirs.text).expect("JSON"),
    );
    let log = "nvme_smart_health_information_log";
    for (name, value) in a[log].as_object().expect("a log") {
        assert_eq!(*value, b[log][name], "{name}");
    }
    let theirs = Report { model: None, serial: None, ..Report::read(&theirs) };
    assert_eq!(Report::read(&ours), theirs);
}

#[test]
fn warnings_errors_and_wear_are_read() {
    let mut page = qemu();
    (page[3], page[4], page[5]) = (3, 10, 101);
    page[128..136].copy_from_slice(&31_022_u64.to_le_bytes());
    page[160] = 7;
    let report = Report::read(&output(&page));
    assert_eq!((report.verdict, report.hours), (Verdict::PreFailure, Some(31_022)));
    assert_eq!((report.wear_percent, report.temperature_c), (Some(101), Some(50)));
    assert_eq!(
        report.sentence,
        "the disk will fail: 3 % spare capacity, below 10 %, 7 media errors, 101 % of its \
         endurance used"
    );
    page[0] = 1 << 3;
    let report = Report::read(&output(&page));
    assert_eq!(report.verdict, Verdict::Failing);
    assert_eq!(report.sentence, "the disk reports its own failure: the disk is read-only");
}

#[test]
fn a_temperature_of_zero_is_not_reported() {
    assert_eq!(Report::read(&output(&[0; PAGE_BYTES])).temperature_c, None);
}

#[test]
fn noise_is_a_report() {
    let mut random = SeededRandom::new(42);
    for _ in 0..10_000 {
        let mut page = [0; PAGE_BYTES];
        random.fill(&mut page);
        let report = Report::read(&output(&page));
        assert!(!report.sentence.is_empty());
    }
    let report = Report::read(&output(&[u8::MAX; PAGE_BYTES]));
    assert_eq!((report.verdict, report.hours), (Verdict::Failing, Some(u64::MAX)));
}

#[test]
fn the_structure_has_the_size_of_the_request() {
    assert_eq!(size_of::<Command>() as u64, ADMIN_COMMAND >> 16 & 0x3fff);
}
