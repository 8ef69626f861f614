//! What is shown is text, whatever it is called.

use super::*;

#[test]
fn nothing_that_is_shown_is_markup() {
    assert_eq!(escape("<a href=\"x\">'&\u{7}"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;\u{fffd}");
    let path = VPath::parse(b"/s/<script>alert(1)<\\script>").unwrap();
    let mut out = String::new();
    let (appliance, who, nonce) = ("<b>", "\"><i>", "N");
    head(&mut out, &Frame { appliance, nonce, path: &path, who, writable: true, uploads: true });
    for evil in ["<b>", "<i>", "<script>"] {
        assert!(!out.contains(evil), "{evil} in {out}");
    }
}

#[test]
fn sizes_are_short() {
    for (bytes, text) in [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 KiB"),
        (10 << 10, "10 KiB"),
        (1536 << 10, "1.5 MiB"),
        (10 << 30, "10 GiB"),
        (u64::MAX, "16384.0 PiB"),
    ] {
        assert_eq!(size(bytes), text);
    }
}
