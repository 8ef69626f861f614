//! The stored value contains what was set.

use wire::dav::xml::Element;

use super::*;

fn set(xml: &str) -> Patch {
    Patch::Set(Element::parse(xml.as_bytes()).expect("XML"))
}

#[test]
fn properties_come_back_as_they_were() {
    let mut dead = Dead::default();
    dead.apply(&set("<a xmlns='u:1'>x</a>"));
    dead.apply(&set("<p:a xmlns:p='u:2' xml:lang='en'><p:b/></p:a>"));
    dead.apply(&set("<a xmlns='u:1'>y</a>"));
    dead.apply(&set("<a/>"));
    dead.apply(&Patch::Remove(Name::new("", "a")));
    let again = Dead::decode(&dead.encode()).expect("ours");
    assert_eq!(again, dead);
    let all: Vec<_> = again.0.values().map(String::as_str).collect();
    let expected = ["<a xmlns=\"u:1\">y</a>", "<a xmlns=\"u:2\" xml:lang=\"en\"><b/></a>"];
    assert_eq!(all, expected);
}

#[test]
fn what_is_not_ours_is_none() {
    let mut dead = Dead::default();
    dead.apply(&set("<a xmlns='u:1'>x</a>"));
    let value = dead.encode();
    for cut in (0..value.len()).filter(|cut| *cut != 1) {
        assert_eq!(Dead::decode(&value[..cut]), None, "cut at {cut}");
    }
    assert_eq!(Dead::decode(&[2]), None);
}
