//! Names and paths that lead anywhere but down are none.

use super::{is_name, is_path, join, split};

#[test]
fn names_lead_to_entries_of_their_directory() {
    for name in [&b"a"[..], b"...", b" ", b"-", b"\xff\xfe", b"\n", &[b'x'; 255]] {
        assert!(is_name(name), "{name:?}");
    }
    for name in [&b""[..], b".", b"..", b"a/b", b"/", b"a\0b", &[b'x'; 256]] {
        assert!(!is_name(name), "{name:?}");
    }
}

#[test]
fn paths_lead_down() {
    for path in [&b""[..], b"a", b"a/b", b".../c"] {
        assert!(is_path(path), "{path:?}");
    }
    for path in [&b"/"[..], b"/a", b"a/", b"a//b", b"a/../b", b"..", b"./a", &[b'x'; 4096]] {
        assert!(!is_path(path), "{path:?}");
    }
    assert_eq!((join(b"", b"a"), join(b"a/b", b"c")), (b"a".to_vec(), b"a/b/c".to_vec()));
    assert_eq!(split(b"a/b/c"), (&b"a/b"[..], &b"c"[..]));
    assert_eq!(split(b"c"), (&b""[..], &b"c"[..]));
}
