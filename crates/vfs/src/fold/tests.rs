//! Names in another case are found; both of two that differ only in it are there.

use super::*;
use crate::attr::SetAttr;
use crate::conformance::{cx, root};
use crate::fs::CreateHow;
use crate::mem::MemFs;

#[test]
fn names_are_compared_as_windows_does() {
    assert_eq!(fold("Größe".as_bytes()), fold("GRÖßE".as_bytes()));
    assert_ne!(fold("Größe".as_bytes()), fold("GRÖSSE".as_bytes()));
    assert_eq!(fold(b"\xff"), b"\xff");
}

#[test]
fn a_name_in_another_case_is_found() {
    let fs = MemFs::new(7, 1 << 20);
    let cred = root();
    let (cx, dir) = (cx(&cred), fs.root());
    for name in ["File", "fILE", "other"] {
        let how = CreateHow::Guarded(SetAttr::default());
        fs.create(cx, &dir, name.as_bytes(), how).expect("new");
    }
    let found =
        |name: &str| find(&*fs, cx, &dir, name.as_bytes()).expect("listed").map(|(real, _)| real);
    assert_eq!(found("FILE").as_deref(), Some(&b"File"[..]));
    assert_eq!(found("OTHER").as_deref(), Some(&b"other"[..]));
    assert_eq!(found("nothing"), None);
}
