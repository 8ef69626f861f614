//! Tests of the order of requests.

use super::*;

fn path(text: &str) -> Rc<VPath> {
    Rc::new(VPath::parse(text.as_bytes()).expect("a path"))
}

fn part(file: u64, at: &str, start: u64, end: u64, write: bool) -> Footprint {
    let file = FileKey { fsid: 1, fileid: file, generation: 0 };
    Footprint::file(FileUse { file, path: path(at), start, end, write })
}

fn look(at: &str) -> Footprint {
    Footprint::path(&path(at), false)
}

fn change(at: &str) -> Footprint {
    Footprint::path(&path(at), true)
}

#[test]
fn what_meets_what() {
    let cases = [
        // Bytes of one file meet if they overlap and one is written.
        (part(1, "/s/f", 0, 10, true), part(1, "/s/f", 9, 20, false), true),
        (part(1, "/s/f", 0, 10, true), part(1, "/s/f", 10, 20, true), false),
        (part(1, "/s/f", 0, 10, false), part(1, "/s/f", 0, 10, false), false),
        (part(1, "/s/f", 0, 10, true), part(2, "/s/g", 0, 10, true), false),
        // Two paths to one file are one file.
        (part(1, "/s/f", 0, 10, true), part(1, "/s/g", 0, 10, false), true),
        // Looking at a path waits for what is written to its file, not for what is read.
        (part(1, "/s/f", 0, 10, true), look("/s/f"), true),
        (part(1, "/s/f", 0, 10, false), look("/s/f"), false),
        (part(1, "/s/f", 0, 10, true), look("/s"), false),
        // A change of a path waits for all requests at it, above it and below it.
        (part(1, "/s/d/f", 0, 10, false), change("/s/d"), true),
        (part(1, "/s/d/f", 0, 10, false), change("/s/d/g"), false),
        (look("/s/d/f"), change("/s/d"), true),
        (look("/s/d"), change("/s/d/f"), true),
        (change("/s/d/f"), change("/s/d/g"), false),
        (change("/s/d"), change("/s/dd"), false),
        (look("/s/d"), look("/s/d"), false),
        (Footprint::two_paths(&path("/s/a"), &path("/s/b")), look("/s/b/c"), true),
        (Footprint::default(), change("/"), false),
    ];
    for (one, other, expect) in cases {
        assert_eq!(one.meets(&other), expect, "{one:?} before {other:?}");
        assert_eq!(other.meets(&one), expect, "{other:?} before {one:?}");
    }
}

#[test]
fn a_request_waits_for_all_that_it_meets() {
    let mut order = Order::default();
    let (a, job) = order.enter(part(1, "/s/f", 0, 10, false), 'a');
    assert_eq!(job, Some('a'));
    let (b, job) = order.enter(part(1, "/s/f", 10, 20, false), 'b');
    assert_eq!(job, Some('b'));
    let (c, job) = order.enter(part(1, "/s/f", 0, u64::MAX, true), 'c');
    assert_eq!(job, None);
    assert_eq!(order.last_waiting(), Some(&mut 'c'));
    let (d, job) = order.enter(look("/s/f"), 'd');
    assert_eq!(job, None);
    assert!(order.leave(b).is_empty());
    assert_eq!(order.leave(a), [(c, 'c')]);
    assert_eq!(order.leave(c), [(d, 'd')]);
    assert_eq!(order.last_waiting(), None);
    assert!(order.leave(d).is_empty());
    assert_eq!(order.len(), 0);
}

#[test]
fn what_came_between_is_not_overtaken() {
    // A write waits for a read; a later read waits for the write, though the bytes are free.
    let mut order = Order::default();
    let (first, _) = order.enter(part(1, "/s/f", 0, 10, false), 1);
    let (write, waits) = order.enter(part(1, "/s/f", 0, 10, true), 2);
    assert_eq!(waits, None);
    let (_, waits) = order.enter(part(1, "/s/f", 0, 10, false), 3);
    assert_eq!(waits, None);
    assert_eq!(order.leave(first), [(write, 2)]);
}
