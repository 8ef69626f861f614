//! The reader of XML.

use super::{Fault, Item, Reader};
use crate::limits::{ATTRIBUTES_MAX, DEPTH_MAX, ELEMENTS_MAX, TEXT_MAX};

/// Elements with their depth, or the fault.
fn walk(text: &str) -> Result<Vec<(usize, String)>, Fault> {
    let mut reader = Reader::new(text)?;
    let (mut depth, mut out) = (0, Vec::new());
    while let Some(item) = reader.next_item()? {
        match item {
            Item::Open { name, .. } => {
                out.push((depth, name));
                depth += 1;
            }
            Item::Close => depth -= 1,
        }
    }
    Ok(out)
}

#[test]
fn elements_attributes_and_lines_are_read() {
    let text = "<?xml version=\"1.0\"?>\n<!-- <a> -->\n<P x='1'\n  y=\"a &lt; b\n c\"><q/></p>\n";
    let mut reader = Reader::new(text).expect("reader");
    let Some(Item::Open { name, attributes, line }) = reader.next_item().expect("item") else {
        panic!("no element");
    };
    assert_eq!((name.as_str(), line), ("p", 3));
    let values: Vec<_> = attributes.iter().map(|a| (a.value.as_str(), a.line)).collect();
    assert_eq!(values, [("1", 3), ("a < b\n c", 4)]);
    assert_eq!(walk(text).expect("walk"), [(0, "p".to_owned()), (1, "q".to_owned())]);
}

#[test]
fn faults_have_their_line() {
    for (text, line, what) in [
        ("<a>\n<b>\n</a>", 3, "</a> does not close <b> of line 2"),
        ("<a>\n", 2, "<a> of line 1 is not closed"),
        ("<a>\nx</a>", 2, "text \"x</a>\" between elements"),
        ("<a/>\n<b/>", 2, "follows the end"),
        ("<a/>\n</a>", 2, "closes no element"),
        ("<a b=c/>", 1, "is not quoted"),
        ("<a\nb='1' b='2'/>", 2, "has b twice"),
        ("<a b='\n", 1, "does not end"),
        ("<!-- x", 1, "a comment does not end"),
        ("<a b='&x;'/>", 1, "entity \"&x\""),
        ("<a\n b='&#x;'/>", 2, "malformed reference"),
        ("<a\n\nb='1'\nB='2'/>", 4, "has b twice"),
        ("<a b='1'\nc/>", 2, "no value"),
        ("\n<a\nb='<'/>", 3, "'<' in the value of b"),
        ("<a>\n<b", 2, "does not end"),
        ("<a>\n&lt;</a>", 2, "between elements"),
        ("<a>\n<![CDATA[x]]></a>", 2, "CDATA"),
        ("<!DOCTYPE a [<!ENTITY x 'y'>]><a/>", 1, "document types"),
    ] {
        let fault = walk(text).expect_err(text);
        assert_eq!(fault.line, line, "{text:?}: {fault:?}");
        assert!(fault.what.contains(what), "{text:?}: {fault:?}");
    }
}

#[test]
fn depth_and_number_are_bounded() {
    assert!(walk(&"<a>".repeat(DEPTH_MAX + 1)).expect_err("deep").what.contains("within each"));
    let many = format!("<a>{}</a>", "<b/>".repeat(ELEMENTS_MAX));
    assert!(walk(&many).expect_err("many").what.contains("elements"));
}

#[test]
fn attributes_are_bounded() {
    let attributes =
        |count: usize| -> String { (0..count).map(|n| format!(" a{n}='1'")).collect() };
    assert!(walk(&format!("<a{}/>", attributes(ATTRIBUTES_MAX))).is_ok());
    let fault = walk(&format!("<a{}/>", attributes(ATTRIBUTES_MAX + 1))).expect_err("many");
    assert!(fault.what.contains("attributes"), "{fault:?}");
    assert!(walk(&" ".repeat(TEXT_MAX + 1)).expect_err("long").what.contains("longer"));
}
