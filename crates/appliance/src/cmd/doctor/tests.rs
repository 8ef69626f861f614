//! What a report says, and how sockets are found.

use std::io::Error;

use super::finding::{Finding, State};
use super::ports::listeners;
use super::{Report, table};

const TCP: &str =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid
   0: 0100007F:2F11 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1
   1: 0100007F:2F11 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 4712 1
   2: 00000000:0801 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1
";

#[test]
fn only_listeners_on_the_port_are_found() {
    assert_eq!(listeners(TCP, 12049), [4711]);
    assert_eq!(listeners(TCP, 2049), [4713]);
    assert!(listeners(TCP, 111).is_empty());
    assert!(listeners("nothing of the kind\n1: x:006F\n", 111).is_empty());
}

fn report(findings: Vec<Finding>) -> Report {
    let degraded = findings.iter().any(Finding::degrades);
    Report { directory: "/srv".into(), state: "/var/lib/plimsoll".into(), degraded, findings }
}

#[test]
fn what_serving_does_not_use_degrades_nothing() {
    let one = || Finding::new("one", "a purpose", "another way", "a package");
    let denied = || Err(Error::from_raw_os_error(libc::EACCES));
    assert!(!report(vec![one().not_used().tried(denied()), one().unknown("no try")]).degraded);
    assert!(!report(vec![one().optional().tried(denied())]).degraded);
    let bad = report(vec![one().tried(Ok(())), one().tried(denied())]);
    assert!(bad.degraded);
    let text = table(&bad);
    for line in ["not allowed for this user", "for: a purpose", "instead: another way"] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert!(text.contains("to get it: a package"), "{text}");
    assert!(text.ends_with("Missing, and serving uses it: one.\n"), "{text}");
    assert_eq!(bad.findings[0].state, State::Yes);
}
