//! The examples of RFC 4918 §10.4, and what must be refused.

use super::*;

fn parse(value: &str) -> If<'_> {
    If::parse(value).unwrap_or_else(|error| panic!("{value}: {error}"))
}

#[test]
fn a_list_without_a_tag() {
    let header = parse(r#"(<urn:uuid:1> ["I am an ETag"]) (["I am another ETag"])"#);
    assert_eq!(header.lists.len(), 2);
    let first = &header.lists[0];
    assert_eq!(first.resource, None);
    assert_eq!(first.conditions[1].state, State::ETag("\"I am an ETag\""));
    assert_eq!(header.tokens().collect::<Vec<_>>(), ["urn:uuid:1"]);
}

#[test]
fn negations_hold_when_the_thing_is_absent() {
    let header = parse("(Not <urn:uuid:1> <urn:uuid:2>)");
    let has = |which: &str| {
        let which = which.to_owned();
        move |_: Option<&str>, state: &State<'_>| *state == State::Token(&which)
    };
    assert!(header.holds(has("urn:uuid:2")));
    assert!(!header.holds(has("urn:uuid:1")));
    let always = parse("(<urn:uuid:1>) (Not <DAV:no-lock>)");
    assert!(always.holds(|_, _| false));
}

#[test]
fn tags_are_for_the_lists_that_follow() {
    let header = parse("</a> (<t:1>) (<t:2>) <http://h/b> ([W/\"x]y\"])");
    let tags: Vec<_> = header.lists.iter().map(|list| list.resource).collect();
    assert_eq!(tags, [Some("/a"), Some("/a"), Some("http://h/b")]);
    assert_eq!(header.lists[2].conditions[0].state, State::ETag("W/\"x]y\""));
    let mut asked = Vec::new();
    assert!(!header.holds(|resource, _| {
        asked.push(resource.map(str::to_owned));
        false
    }));
    assert_eq!(asked.len(), 3);
}

#[test]
fn microsoft_office_writes_without_spaces() {
    let header = parse("(<opaquelocktoken:1>)(Not<a:b>[\"e\"])");
    assert_eq!(header.lists.len(), 2);
    assert!(header.lists[1].conditions[0].not);
}

#[test]
fn nonsense_is_refused() {
    let bad = [
        "",
        "()",
        "(",
        "<a>",
        "(<a>",
        "(<a>) <b> (<c>)",
        "<a> <b> (<c>)",
        "(a)",
        "([e])",
        "(Not)",
        "([\"e\")",
        "(<>)",
        "x",
        "(<a>) x",
        "(<a b>)",
        "(<a<b>)",
        "No",
    ];
    for value in bad {
        assert_eq!(If::parse(value), Err(IfError::Malformed), "{value}");
    }
    let many = "(<a>)".repeat(DAV_IF_CONDITIONS_MAX + 1);
    assert_eq!(If::parse(&many), Err(IfError::TooLarge));
    let long = format!("(<{}>)", "a".repeat(DAV_IF_MAX));
    assert_eq!(If::parse(&long), Err(IfError::TooLarge));
}

#[test]
fn what_is_written_means_the_same() {
    for value in ["(<a> Not [\"e\"])(<b>)", "</a> (<t:1>) (<t:2>) <http://h/b> ([W/\"x\"])"] {
        let header = parse(value);
        let text = header.to_string();
        assert_eq!(parse(&text), header, "{text}");
    }
}
