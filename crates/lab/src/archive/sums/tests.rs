//! Lists of `sha256sum` are read, and paths that lead out are refused.

use super::*;

#[test]
fn a_list_is_written_as_sha256sum_reads_it() {
    let mut sums = Sums::default();
    sums.add("b", b"");
    sums.add("a/c", b"abc");
    let text = sums.text();
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert!(text.ends_with(&format!("{empty}  b\n")) && text.lines().count() == 2, "{text}");
    assert_eq!(Sums::parse(&text).unwrap(), sums);
    assert_eq!(Sums::parse(&text.replace("  b", "  ./b")).unwrap(), sums);
}

#[test]
fn paths_that_lead_out_and_lines_that_are_none_are_refused() {
    let hash = sha256(b"");
    for path in ["/etc/passwd", "../x", "a/../../x", ""] {
        let line = format!("{hash}  {path}");
        assert_eq!(Sums::parse(&line), Err(line.clone()), "{path}");
    }
    assert!(Sums::parse("no checksum").is_err() && Sums::parse("00  a").is_err());
}
