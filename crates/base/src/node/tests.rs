//! Declarations: paths, values in and out of texts, forms, and what a tree has where.

use super::*;
use crate::random::{Random, SeededRandom};

static SHARE: Context =
    Context::new("share", "Share", "A directory.", "shares").properties(&[Property::setting(
        "read_only",
        "Read only",
        Kind::Bool,
        Default::Inherited,
        "No changes.",
    )]);
static NAME: Kind = Kind::Text { max: 8, shape: Shape::Name };
static SHARES: Items = Items::configured("share", "shares", &NAME, 10, &SHARE);
static LOGS: Context = Context::new("logs", "Logs", "What was.", "maintenance");
static ROOT: Context =
    Context::new("", "Appliance", "All of it.", "status").children(&[&LOGS]).items(&SHARES);

fn path(text: &str) -> Path {
    text.parse().unwrap()
}

#[test]
fn paths_are_read_and_written() {
    for text in ["/", "/a", "/shares/default/tank 1"] {
        assert_eq!(path(text).to_string(), text);
    }
    assert_eq!(path("/a/b/"), Path::of(&["a", "b"]));
    for bad in ["", "a", "//", "/a//b", "/a/../b", "/.", "/a\n"] {
        assert!(bad.parse::<Path>().is_err(), "{bad:?}");
    }
    assert!("/a".repeat(crate::limits::NODE_DEPTH_MAX + 1).parse::<Path>().is_err());
    assert!(path("/a/b").is_in(&path("/a")) && !path("/ab").is_in(&path("/a")));
    assert_eq!(path("/a/b/c").moved(&path("/a/b"), &path("/x")), path("/x/c"));
    assert_eq!(path("/a/c").moved(&path("/a/b"), &path("/x")), path("/a/c"));
}

#[test]
fn a_path_leads_to_contexts_and_items() {
    assert_eq!(ROOT.find(&path("/logs")).unwrap().context.title, "Logs");
    assert!(ROOT.find(&path("/tank")).unwrap().item.is_some());
    let lost = ROOT.find(&path("/tank/deep/er")).unwrap_err();
    assert_eq!(lost.to_string(), "/tank has no \"deep\"");
    assert!(ROOT.find(&path("/much-too-long")).is_err(), "the form of the key holds");
}

#[test]
fn texts_become_values() {
    let bytes = Kind::Bytes { min: 0, max: 1 << 40 };
    let seconds = Kind::Seconds { min: 1, max: 86_400 };
    static NUMBER: Kind = Kind::Integer { min: -5, max: 99 };
    static LINE: Kind = Kind::Text { max: 40, shape: Shape::Line };
    let texts = Kind::List { of: &LINE, max: 3 };
    let good = [
        (Kind::Bool, "on", Value::Bool(true)),
        (Kind::Bool, " no ", Value::Bool(false)),
        (NUMBER, "-5", Value::Integer(-5)),
        (bytes, "64M", Value::Integer(64 << 20)),
        (bytes, "64 MiB", Value::Integer(64 << 20)),
        (bytes, "10B", Value::Integer(10)),
        (seconds, "90", Value::Integer(90)),
        (seconds, "5m", Value::Integer(300)),
        (seconds, "1D", Value::Integer(86_400)),
        (texts, "", Value::List(vec![])),
        (texts, "a, b c", Value::texts(["a", "b c"])),
        (
            texts,
            "10.0.0.0/8(rw,sync),\"x, \\\"y\"",
            Value::texts(["10.0.0.0/8(rw,sync)", "x, \"y"]),
        ),
    ];
    for (kind, text, value) in good {
        assert_eq!(kind.parse(text).as_ref(), Ok(&value), "{text}");
        assert_eq!(kind.parse(&kind.show(&value)).as_ref(), Ok(&value), "shown: {text}");
    }
    let bad = [
        (Kind::Bool, "maybe", "\"maybe\" is not true or false"),
        (NUMBER, "100", "100 is too large; the maximum is 99"),
        (seconds, "0", "0 is too small; the minimum is 1 second"),
        (bytes, "1.5", "\"1.5\" is not bytes from 0 to 1T, for example 64M"),
        (bytes, "12Q", "\"12Q\" is not bytes from 0 to 1T, for example 64M"),
        (bytes, "+5", "\"+5\" is not bytes from 0 to 1T, for example 64M"),
        (bytes, "+5M", "\"+5M\" is not bytes from 0 to 1T, for example 64M"),
        (bytes, "16384P", "\"16384P\" is not bytes from 0 to 1T, for example 64M"),
        (NUMBER, "+5", "\"+5\" is not a number from -5 to 99"),
        (Kind::Choice(&[("ro", ""), ("rw", "")]), "wo", "\"wo\" is not one of ro, rw"),
        (texts, "a,,b", "empty element between two commas"),
        (texts, "a,a", "\"a\" appears twice"),
        (texts, "a,b,c,d", "it has 4 elements; the maximum is 3"),
        (texts, "\"a", "missing quotation mark"),
    ];
    for (kind, text, says) in bad {
        assert_eq!(kind.parse(text), Err(says.to_owned()), "{text}");
    }
    assert_eq!(
        Kind::Bool.check(&Value::text("x")).unwrap_err(),
        "it is a text; expected true or false"
    );
}

#[test]
fn any_list_is_read_as_it_is_shown() {
    static LINES: Kind = Kind::Text { max: 64, shape: Shape::Lines };
    let kind = Kind::List { of: &LINES, max: 8 };
    let mut random = SeededRandom::new(7);
    for round in 0..2_000 {
        let letters: Vec<char> = "ab ,\"\\()\n".chars().collect();
        let mut list: Vec<Value> = Vec::new();
        for _ in 0..random.below(5) {
            let length = random.below(6);
            let letter = |r: &mut SeededRandom| letters[r.below(letters.len() as u64) as usize];
            let text: String = (0..length).map(|_| letter(&mut random)).collect();
            let value = Value::Text(text);
            if !list.contains(&value) {
                list.push(value);
            }
        }
        let value = Value::List(list);
        assert_eq!(kind.parse(&kind.show(&value)), Ok(value.clone()), "round {round}: {value}");
    }
}

#[test]
fn forms_of_texts() {
    let key =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIH+4cXpgZnC0xHVUcnq0YbMsgBu5nbkHGiGVPHoDp9Rm anna";
    let cases: &[(Shape, &[&str], &[&str])] = &[
        (Shape::Line, &["", "all of it"], &["two\nlines"]),
        (Shape::Name, &["tank", "a.b-c_1", "daten-größe"], &["", "-a", ".a", "a/b", "a b"]),
        (Shape::Host, &["a", "nas.example.org", "10.0.0.1", "fd00::1"], &["", "a..b", "-a", "a b"]),
        (Shape::Address, &["10.0.0.1", "::1"], &["10.0.0", "host"]),
        (
            Shape::Network,
            &["10.0.0.0/8", "fd00::/64"],
            &["10.0.0.0", "10.0.0.0/33", "10.0.0.0/+8", "a/8"],
        ),
        (Shape::Domain, &["example.org"], &["ex ample", ""]),
        (Shape::Path, &["/", "/srv/a b"], &["srv", "", "/srv/../etc"]),
        (Shape::Email, &["anna@example.org"], &["anna", "@example.org", "a b@c"]),
        (Shape::Url, &["https://h:1/x?y"], &["ftp://h", "https://", "https://u:p@h/"]),
        (Shape::SshKey, &[key], &["", "ssh-ed25519", "ssh-ed25519 AAAA", "ssh-rsa !!!!"]),
        (
            Shape::ExportRule,
            &["*", "10.0.0.0/24(rw,sync)", "@g()"],
            &["", "(rw)", "a(rw", "a b(rw)"],
        ),
        (Shape::Permission, &["*", "shares:read", "*:read"], &["", "shares", "a:write", ":read"]),
        (Shape::Pem, &["-----BEGIN X-----\nAA\n-----END X-----\n"], &["", "AA"]),
    ];
    for (shape, good, bad) in cases {
        for text in *good {
            assert_eq!(shape.check(text), Ok(()), "{shape:?} {text:?}");
        }
        for text in *bad {
            assert!(shape.check(text).is_err(), "{shape:?} {text:?}");
        }
    }
}
