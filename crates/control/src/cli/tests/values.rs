//! Words, values, and changes that join.

use serde_json::{Value as Json, json};

use crate::cli::declared::{Context, Kind, did_you_mean};
use crate::cli::pending::{Before, Change, Pending};
use crate::cli::place::NodePath;
use crate::cli::value::{parse, print};
use crate::cli::words::{Unfinished, quote, split};

fn words(line: &str) -> Vec<String> {
    split(line).unwrap().into_iter().map(|word| word.text).collect()
}

#[test]
fn words_are_taken_apart_as_a_shell_does() {
    assert_eq!(words("set  a=1\tb=2 # why"), ["set", "a=1", "b=2"]);
    assert_eq!(words(r#"set a="x \"y\" \z" b='c d'\''e'"#), ["set", r#"a=x "y" \z"#, "b=c d'e"]);
}

#[test]
fn open_quotes_want_more() {
    for line in ["set a='x", "set a=\"x", "set a=x \\"] {
        assert_eq!(split(line), Err(Unfinished), "{line}");
    }
    assert_eq!(words("set a='x\ny'"), ["set", "a=x\ny"]);
    assert_eq!(words("set \\\na=1"), ["set", "a=1"]);
    assert!(words("  # nothing").is_empty());
    assert_eq!(words("a#b ''"), ["a#b", ""]);
}

#[test]
fn what_is_quoted_is_one_word_again() {
    for word in ["plain", "two words", "it's", "", "a\"b", "#x", "10.0.0.0/8(rw)", "a\\b", "é ü"]
    {
        assert_eq!(words(&quote(word)), [word], "{}", quote(word));
    }
}

fn kind(json: Json) -> Kind {
    serde_json::from_value(json).unwrap()
}

#[test]
fn values_from_text() {
    let cases = [
        ("bool", "on", Some(json!(true))),
        ("bool", "no", Some(json!(false))),
        ("bool", "1", None),
        ("integer", "-5", Some(json!(-5))),
        ("integer", "5k", None),
        ("bytes", "64M", Some(json!(64 << 20))),
        ("bytes", "64MiB", Some(json!(64 << 20))),
        ("bytes", "1kb", Some(json!(1024))),
        ("bytes", "512", Some(json!(512))),
        ("bytes", "99999999999P", None),
        ("bytes", "M", None),
        ("seconds", "90s", Some(json!(90))),
        ("seconds", "15m", Some(json!(900))),
        ("seconds", "2 h", Some(json!(7200))),
        ("seconds", "2x", None),
        ("time", "1763683199", Some(json!(1_763_683_199))),
        ("time", "2025-11-20 23:59:59 UTC", Some(json!(1_763_683_199))),
        ("time", "2024-02-29T00:00Z", Some(json!(1_709_164_800))),
        ("time", "1970-01-01 00:00 UTC", Some(json!(0))),
        ("time", "2025-13-01", None),
        ("time", "tomorrow", None),
        ("text", "anything, really", Some(json!("anything, really"))),
    ];
    for (base, text, value) in cases {
        assert_eq!(parse(&kind(json!({"type": base})), text).ok(), value, "{base} {text}");
    }
    let choice =
        kind(json!({"type": "choice", "choices": [{"value": "sys", "meaning": ""}, ["krb5", ""]]}));
    assert_eq!(parse(&choice, "krb5"), Ok(json!("krb5")));
    let wrong = parse(&choice, "syss").unwrap_err();
    assert_eq!(wrong, "'syss' is not one of sys, krb5; did you mean 'sys'?");
}

#[test]
fn lists_from_text() {
    let list = kind(json!({"type": "list", "of": {"type": "text"}}));
    let cases = [
        ("10.0.0.0/8(rw,sync),*(ro)", json!(["10.0.0.0/8(rw,sync)", "*(ro)"])),
        (r#"["a,b","c"]"#, json!(["a,b", "c"])),
        ("[a, b]", json!(["a", "b"])),
        ("[::1]", json!(["[::1]"])),
        ("", json!([])),
        ("[]", json!([])),
        ("a,,b,", json!(["a", "b"])),
        (r#""a, \"b\"" , c"#, json!(["a, \"b\"", "c"])),
    ];
    for (text, value) in cases {
        assert_eq!(parse(&list, text), Ok(value), "{text}");
    }
    let sizes = kind(json!({"type": "list", "of": {"type": "bytes"}}));
    assert_eq!(parse(&sizes, "1K,2K"), Ok(json!([1024, 2048])));
    assert!(parse(&sizes, "1K,x").is_err());
}

#[test]
fn values_are_printed_as_they_can_be_typed() {
    let cases = [
        ("bool", json!(true), "on"),
        ("bytes", json!(64 << 20), "64M"),
        ("bytes", json!(1025), "1025"),
        ("bytes", json!(0), "0"),
        ("seconds", json!(90), "90s"),
        ("text", json!("x y"), "x y"),
        ("text", Json::Null, "-"),
        ("list", json!(["a(b,c)", "d"]), "a(b,c),d"),
        ("list", json!(["a, \"b\"", "\"c"]), r#""a, \"b\"","\"c""#),
    ];
    for (base, value, text) in cases {
        let kind = kind(json!({"type": base}));
        assert_eq!(print(&kind, &value), text);
        if !value.is_null() {
            assert_eq!(parse(&kind, text), Ok(value), "{text}");
        }
    }
}

#[test]
fn a_printed_time_can_be_typed() {
    let (kind, second) = (kind(json!({"type": "time"})), json!(1_763_683_199));
    assert_eq!(parse(&kind, &print(&kind, &second)), Ok(second));
}

#[test]
fn near_names_are_guessed() {
    let names = ["set", "show", "lease", "limit"];
    assert_eq!(did_you_mean("leese", names.into_iter()), "did you mean 'lease'?");
    assert_eq!(did_you_mean("shwo", names.into_iter()), "did you mean 'show'?");
    assert_eq!(did_you_mean("banana", names.into_iter()), "");
}

fn at(path: &str) -> NodePath {
    NodePath::parse(path)
}

fn set(path: &str, property: &str, value: i64) -> Change {
    Change::Set { at: at(path), property: property.to_owned(), value: value.into() }
}

fn create(parent: &str, name: &str) -> Change {
    Change::Create { parent: at(parent), name: name.to_owned(), properties: Default::default() }
}

fn destroy(path: &str) -> Change {
    Change::Destroy { at: at(path), confirm: true }
}

fn rename(path: &str, to: &str) -> Change {
    Change::Rename { at: at(path), to: to.to_owned() }
}

fn all(changes: impl IntoIterator<Item = Change>) -> Pending {
    changes.into_iter().fold(Pending::default(), Pending::with)
}

#[test]
fn a_later_value_takes_the_place_of_an_earlier_one() {
    let unset = Change::Unset { at: at("/a"), property: "p".to_owned() };
    assert_eq!(
        all([set("/a", "p", 1), set("/a", "q", 1), set("/a", "p", 2)]).changes(),
        [set("/a", "q", 1), set("/a", "p", 2)]
    );
    assert_eq!(all([set("/a", "p", 1), unset.clone()]).changes(), [unset]);
}

#[test]
fn what_is_set_on_a_new_item_is_part_of_its_creation() {
    let pending =
        all([create("/a", "n"), set("/a/n", "p", 1), rename("/a/n", "m"), set("/a/m", "q", 2)]);
    let [Change::Create { name, properties, .. }] = pending.changes() else {
        panic!("{pending:?}")
    };
    assert_eq!(name, "m");
    assert_eq!(json!(properties), json!({"p": 1, "q": 2}));
    assert_eq!(pending.before(&at("/a/m/x")), Before::New);
    assert_eq!(pending.before(&at("/a/n")), Before::Server(at("/a/n")));
    assert!(all([create("/a", "n"), create("/a/n", "x"), destroy("/a/n")]).is_empty());
}

#[test]
fn places_are_followed_through_renames() {
    let pending = all([rename("/a/x", "y"), create("/a", "x")]);
    assert_eq!(pending.before(&at("/a/y/z")), Before::Server(at("/a/x/z")));
    assert_eq!(pending.before(&at("/a/x")), Before::New);
    assert_eq!(all([rename("/a/x", "y")]).before(&at("/a/x")), Before::Gone);
    let names = ["w", "x"].map(str::to_owned).to_vec();
    assert_eq!(pending.items(&at("/a"), names), ["w", "x", "y"]);
}

#[test]
fn what_goes_needs_no_changes_but_may_come_again() {
    let pending = all([set("/a/x", "p", 1), destroy("/a/x")]);
    assert_eq!(pending.changes(), [destroy("/a/x")]);
    let anew = all([destroy("/a/x"), create("/a", "x")]);
    assert_eq!(anew.before(&at("/a/x")), Before::New);
    // The old one is still destroyed when the new one is dropped.
    assert_eq!(anew.with(destroy("/a/x")).changes(), [destroy("/a/x")]);
}

#[test]
fn a_declaration_is_read() {
    let tree: Context = serde_json::from_value(super::fake::tree()).unwrap();
    let share = tree.find(&at("/shares/default/tank")).unwrap();
    assert_eq!(share.item_of.unwrap().noun, "share");
    assert!(share.context.property("directory").unwrap().is_at_create());
    assert!(tree.find(&at("/configuration/nothing")).is_none());
}
