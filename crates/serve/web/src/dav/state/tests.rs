//! What locks exclude, cover and end.

use super::*;

/// A file for each path.
fn file(path: &str) -> FileKey {
    let hash = blake3::hash(path.as_bytes());
    let [a, b, c, d, ..] = *hash.as_bytes();
    FileKey { fsid: 1, fileid: u64::from(u32::from_le_bytes([a, b, c, d])), generation: 5 }
}

fn lock(token: &str, root: &str, exclusive: bool, deep: bool) -> Lock {
    Lock {
        token: token.into(),
        root: root.as_bytes().to_vec(),
        file: file(root),
        above: Vec::new(),
        user: "anna".into(),
        client: "192.0.2.7".into(),
        since_s: 0,
        exclusive,
        deep,
        owner: String::new(),
        timeout_s: 100,
        expires_s: 1_000,
    }
}

fn tokens<'a>(locks: impl IntoIterator<Item = &'a Arc<Lock>>) -> Vec<&'a str> {
    let mut all: Vec<_> = locks.into_iter().map(|lock| lock.token.as_str()).collect();
    all.sort_unstable();
    all
}

fn touched(path: &str) -> Touched<'_> {
    Touched { path: path.as_bytes(), of: Lineage::UNKNOWN, name: false, tree: false }
}

#[test]
fn exclusive_locks_exclude_all_and_shared_ones_their_like_not() {
    let mut table = Table::default();
    table.add(lock("1", "/s/a", false, false)).expect("free");
    table.add(lock("2", "/s/a", false, false)).expect("shared");
    let refused = table.add(lock("3", "/s/a", true, false));
    assert!(matches!(refused, Err(Refused::Locked(_))));
    table.add(lock("4", "/s/b", true, false)).expect("free");
    for exclusive in [true, false] {
        let refused = table.add(lock("5", "/s/b", exclusive, false));
        assert!(matches!(refused, Err(Refused::Locked(other)) if other.token == "4"));
    }
    assert_eq!(table.len(), 3);
}

#[test]
fn deep_locks_meet_what_is_below_and_above() {
    let mut table = Table::default();
    table.add(lock("file", "/s/d/e/f", true, false)).expect("free");
    // Another name that begins the same is not below.
    table.add(lock("beside", "/s/d-x", true, true)).expect("free");
    let refused = table.add(lock("deep", "/s/d", false, true));
    assert!(matches!(refused, Err(Refused::Locked(other)) if other.token == "file"));
    table.add(lock("flat", "/s/d", true, false)).expect("it does not cover members");
    table.remove("file");
    table.remove("flat");
    table.add(lock("deep", "/s/d", true, true)).expect("free now");
    let refused = table.add(lock("under", "/s/d/e/f", false, false));
    assert!(matches!(refused, Err(Refused::Locked(other)) if other.token == "deep"));
    assert_eq!(tokens(table.covering(b"/s/d/e/f", Lineage::UNKNOWN)), ["deep"]);
    assert_eq!(tokens(table.covering(b"/s/dd", Lineage::UNKNOWN)), [""; 0]);
    assert_eq!(tokens(table.below(b"/s", Lineage::UNKNOWN)), ["beside", "deep"]);
    assert_eq!(tokens(table.below(b"/s/d", Lineage::UNKNOWN)), [""; 0]);
}

#[test]
fn a_change_needs_the_tokens_of_what_it_touches() {
    let mut table = Table::default();
    table.add(lock("dir", "/s/d", true, false)).expect("free");
    table.add(lock("file", "/s/d/f", true, false)).expect("free");
    table.add(lock("one", "/s/d/g", false, false)).expect("free");
    table.add(lock("two", "/s/d/g", false, false)).expect("free");
    let needs = |touched: Touched<'_>, held: &[&str]| {
        let missing = table.missing(touched, |lock| held.contains(&lock.token.as_str()));
        tokens(&missing).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let none = [""; 0];
    assert_eq!(needs(touched("/s/d/f"), &[]), ["file"]);
    assert_eq!(needs(touched("/s/d/f"), &["file"]), none);
    // A new name, or one that goes, changes the collection.
    let name = |path| Touched { name: true, ..touched(path) };
    assert_eq!(needs(name("/s/d/f"), &["file"]), ["dir"]);
    assert_eq!(needs(name("/s/d/new"), &["dir"]), none);
    assert_eq!(needs(name("/s/d"), &["dir"]), none);
    // Of shared locks one is enough.
    assert_eq!(needs(touched("/s/d/g"), &[]), ["one", "two"]);
    assert_eq!(needs(touched("/s/d/g"), &["two"]), none);
    // A tree: each of them.
    let tree = |path| Touched { tree: true, ..name(path) };
    assert_eq!(needs(tree("/s/d"), &["dir"]), ["file", "one", "two"]);
    assert_eq!(needs(tree("/s/d"), &["dir", "file", "one"]), none);
    assert_eq!(needs(tree("/s"), &["file", "one"]), ["dir"]);
}

#[test]
fn locks_end() {
    let mut table = Table::default();
    table.add(lock("1", "/s/a", true, false)).expect("free");
    table.add(Lock { expires_s: 500, ..lock("2", "/s/b", true, false) }).expect("free");
    assert_eq!(table.expire(499).len(), 0);
    assert_eq!(tokens(&table.expire(500)), ["2"]);
    let longer = Lock { expires_s: 2_000, ..lock("1", "/s/a", true, false) };
    assert!(table.replace(longer).is_some());
    assert_eq!(table.expire(1_999).len(), 0);
    assert_eq!(tokens(&table.expire(2_000)), ["1"]);
    assert!(
        table.is_empty()
            && table.by_root.is_empty()
            && table.by_file.is_empty()
            && table.by_user.is_empty()
    );
    assert!(table.replace(lock("1", "/s/a", true, false)).is_none(), "too late for a refresh");
}

#[test]
fn no_user_takes_all_locks() {
    let mut table = Table::default();
    for n in 0..DAV_LOCKS_PER_USER_MAX {
        table.add(lock(&n.to_string(), &format!("/s/{n}"), true, false)).expect("free");
    }
    assert_eq!(table.add(lock("x", "/s/x", true, false)), Err(Refused::Full));
    let other = Lock { user: "otto".into(), ..lock("x", "/s/x", true, false) };
    assert!(table.add(other).is_ok());
    let mut table = Table::default();
    for n in 0..DAV_LOCKS_PER_ADDRESS_MAX {
        let user = format!("user {}", n / 1_000);
        let one = Lock { user, ..lock(&n.to_string(), &format!("/s/{n}"), true, false) };
        table.add(one).expect("free");
    }
    let more = Lock { user: "otto".into(), ..lock("x", "/s/x", true, false) };
    assert_eq!(table.add(more.clone()), Err(Refused::Full), "of one address");
    table.add(Lock { client: "192.0.2.8".into(), ..more.clone() }).expect("of another one");
    table.remove("0");
    table
        .add(Lock { token: "y".into(), root: b"/s/y".into(), file: file("/s/y"), ..more })
        .expect("it has room again");
    let mut table = Table::default();
    let site = |n: usize| Lock {
        user: format!("user {}", n / 1_000),
        client: format!("fd00::{n:x}"),
        ..lock(&n.to_string(), &format!("/s/{n}"), true, false)
    };
    (0..DAV_LOCKS_PER_ADDRESS_MAX).for_each(|n| drop(table.add(site(n)).expect("free")));
    let more = site(DAV_LOCKS_PER_ADDRESS_MAX);
    assert_eq!(table.add(more), Err(Refused::Full), "of one /64");
    let mut table = Table::default();
    for n in 0..DAV_LOCKS_SHARED_MAX {
        table.add(lock(&n.to_string(), "/s/a", false, false)).expect("shared");
    }
    assert_eq!(table.add(lock("x", "/s/a", false, false)), Err(Refused::Full));
}

/// The identities of a path and of these directories above it.
fn lineage(path: &str, above: &[&str]) -> Lineage {
    Lineage { file: Some(file(path)), above: above.iter().copied().map(file).collect() }
}

#[test]
fn a_lock_covers_its_file_by_every_path() {
    let mut table = Table::default();
    let above = |dirs: &[&str]| dirs.iter().map(|dir| file(dir).fileid).collect();
    let here = Lock { above: above(&["/s/d", "/s"]), ..lock("file", "/s/d/f", true, true) };
    table.add(here).expect("free");
    // As a link to the directory, or a share that overlaps, has it.
    let of = lineage("/s/d/f", &["/s/d", "/s"]);
    assert_eq!(tokens(table.covering(b"/t/f", &of)), ["file"]);
    let again = Lock { file: file("/s/d/f"), ..lock("2", "/t/f", false, false) };
    assert!(matches!(table.add(again), Err(Refused::Locked(other)) if other.token == "file"));
    // Another file with its number, later.
    let file_now = FileKey { generation: 6, ..file("/s/d/f") };
    let later = Lineage { file: Some(file_now), ..of.clone() };
    assert!(table.covering(b"/t/f", &later).is_empty());
    // What is above it, by a path that is not above its own.
    let dir = lineage("/s/d", &["/s"]);
    assert_eq!(tokens(table.below(b"/t", &dir)), ["file"]);
    let tree = Touched { path: b"/t", of: &dir, name: true, tree: true };
    assert_eq!(tokens(&table.missing(tree, |_| false)), ["file"]);
    assert!(table.missing(Touched { tree: false, ..tree }, |_| false).is_empty());
}

#[test]
fn a_collection_is_locked_for_members_by_every_path() {
    let mut table = Table::default();
    table.add(lock("flat", "/s/d", true, false)).expect("free");
    table.add(lock("deep", "/s/e", true, true)).expect("free");
    let new = |dirs: &[&str]| Lineage { file: None, ..lineage("", dirs) };
    let needs = |of: &Lineage, name| {
        let touched = Touched { path: b"/t/x", of, name, tree: false };
        tokens(&table.missing(touched, |_| false)).join(" ")
    };
    let flat = new(&["/s/d", "/s"]);
    assert_eq!((needs(&flat, true).as_str(), needs(&flat, false).as_str()), ("flat", ""));
    let deep = new(&["/s/e/g", "/s/e", "/s"]);
    assert_eq!((needs(&deep, true).as_str(), needs(&deep, false).as_str()), ("deep", "deep"));
}
