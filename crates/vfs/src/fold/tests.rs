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
    for name in ["File", "fILE", "other", "ſ", "größe"] {
        let how = CreateHow::Guarded(SetAttr::default());
        fs.create(cx, &dir, name.as_bytes(), how).expect("new");
    }
    let index = FoldIndex::default();
    let found = |name: &str| {
        let work = Work::new(1_000);
        let found = find(&*fs, cx, (&dir, name.as_bytes()), (&index, &work));
        found.expect("listed").map(|(real, _)| real)
    };
    assert_eq!(found("FILE").as_deref(), Some(&b"File"[..]));
    assert_eq!(found("OTHER").as_deref(), Some(&b"other"[..]));
    assert_eq!(found("GRÖßE").as_deref(), Some("größe".as_bytes()));
    // A letter of ASCII and one beyond it have the same capital.
    assert_eq!(found("s").as_deref(), Some("ſ".as_bytes()));
    assert_eq!(found("nothing"), None);
}

#[test]
fn an_index_finds_the_same() {
    let fs = MemFs::new(7, 1 << 20);
    let (cred, index) = (root(), FoldIndex::default());
    let (cx, dir) = (cx(&cred), fs.root());
    let create = |name: &[u8]| {
        let how = CreateHow::Guarded(SetAttr::default());
        fs.create(cx, &dir, name, how).expect("new")
    };
    let found = |name: &[u8]| {
        let found = find(&*fs, cx, (&dir, name), (&index, &Work::new(1_000)));
        found.expect("listed").map(|(real, _)| real)
    };
    create(b"File");
    assert_eq!(found(b"none"), None);
    assert_eq!(found(b"FILE").as_deref(), Some(&b"File"[..]));
    // Created without a report to the index.
    create(b"Other");
    assert_eq!(found(b"OTHER").as_deref(), Some(&b"Other"[..]));
    // Created and reported.
    let made = create(b"Third");
    index.changed(&made.wcc, None, Some(b"Third"));
    let attr = fs.getattr(cx, &dir).expect("there");
    assert_eq!(
        index.known(FileKey::from(&attr), attr.change, b"none"),
        FoldedNames::Names(Vec::new())
    );
    assert_eq!(found(b"THIRD").as_deref(), Some(&b"Third"[..]));
}

#[test]
fn a_name_that_is_composed_otherwise_is_found_after_one_in_another_case() {
    let fs = MemFs::new(7, 1 << 20);
    let (cred, index, work) = (root(), FoldIndex::default(), Work::new(1 << 20));
    let (cx, dir) = (cx(&cred), fs.root());
    let create = |name: &str| {
        let how = CreateHow::Guarded(SetAttr::default());
        fs.create(cx, &dir, name.as_bytes(), how).expect("new");
    };
    let found = |name: &str| {
        let found = find(&*fs, cx, (&dir, name.as_bytes()), (&index, &work)).expect("listed");
        found.map(|(real, _)| String::from_utf8(real).expect("text"))
    };
    create("cafe\u{301}");
    assert_eq!(found("caf\u{e9}").as_deref(), Some("cafe\u{301}"));
    assert_eq!(found("CAF\u{c9}").as_deref(), Some("cafe\u{301}"));
    create("CAF\u{c9}");
    assert_eq!(found("caf\u{e9}").as_deref(), Some("CAF\u{c9}"));
    assert_eq!(found("cafe"), None);
}

#[test]
fn a_request_looks_at_a_limited_number_of_names() {
    let fs = MemFs::new(7, 1 << 20);
    let (cred, index) = (root(), FoldIndex::default());
    let (cx, dir) = (cx(&cred), fs.root());
    for n in 0..2_000 {
        let how = CreateHow::Guarded(SetAttr::default());
        fs.create(cx, &dir, format!("f{n}").as_bytes(), how).expect("new");
    }
    let find = |name: &str, work: &Work| {
        let found = find(&*fs, cx, (&dir, name.as_bytes()), (&index, work));
        found.map(|found| found.map(|(real, _)| real))
    };
    let little = Work::new(1_000);
    assert_eq!(find("F1999", &little), Err(Status::Busy));
    let ended = Work::new(10_000);
    ended.end();
    assert_eq!(find("F1999", &ended), Err(Status::Busy));
    let work = Work::new(3_000);
    assert_eq!(find("F1999", &work), Ok(Some(b"f1999".to_vec())));
    assert!(work.left() <= 1_000);
    // The directory is known now: no name is looked at again, be it there or not.
    let none = Work::new(0);
    assert_eq!(find("F1998", &none), Ok(Some(b"f1998".to_vec())));
    assert_eq!(find("nothing", &none), Ok(None));
}

#[test]
fn a_search_is_never_made_on_a_connections_thread() {
    let fs = MemFs::new(7, 1 << 20);
    let (cred, index, work) = (root(), FoldIndex::default(), Work::new(100));
    let inline = Context { cred: &cred, may_block: false };
    let found = find(&*fs, inline, (&fs.root(), b"none"), (&index, &work));
    assert_eq!(found.map(|_| ()), Err(Status::WouldBlock));
}
