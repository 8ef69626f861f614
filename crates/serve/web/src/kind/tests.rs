//! Types by names.

use super::*;

#[test]
fn types_are_found_and_in_order() {
    assert!(KINDS.is_sorted_by(|a, b| a.0 < b.0));
    assert_eq!(of(b"a.PDF"), "application/pdf");
    assert_eq!(of(b"archive.tar.gz"), "application/gzip");
    assert_eq!(of(b"png"), "application/octet-stream");
    assert_eq!(of(b"\xff.jpg"), "image/jpeg");
}

#[test]
fn what_could_run_a_script_is_never_shown() {
    for name in ["a.html", "a.svg", "a.xml", "a.xhtml", "a.HTM", "a.xsl", "a", "a.swf", "a.wasm"] {
        assert!(!is_passive(of(name.as_bytes())), "{name}");
    }
    assert!(is_passive(of(b"a.png")) && is_passive(of(b"a.txt")) && is_passive(of(b"a.mp4")));
}
