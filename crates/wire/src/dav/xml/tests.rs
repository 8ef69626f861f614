//! Documents that are taken, those that are not, and that writing keeps the meaning.

use base::limits::{DAV_XML_ATTRIBUTES_MAX, DAV_XML_DEPTH_MAX, DAV_XML_NODES_MAX};
use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> Element {
    Element::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn written(element: &Element) -> String {
    let mut out = String::new();
    Writer::new(&mut out).element(element);
    out
}

#[test]
fn names_have_their_namespaces() {
    let root = parse("<a:x xmlns:a='u:1' xmlns='u:2'><y a:z='1' z='2'/><a:y xmlns:a='u:3'/></a:x>");
    assert!(root.name.is("u:1", "x"));
    let inner: Vec<_> = root.elements().collect();
    assert!(inner[0].name.is("u:2", "y") && inner[1].name.is("u:3", "y"));
    assert!(inner[0].attributes[0].0.is("u:1", "z") && inner[0].attributes[1].0.is("", "z"));
    assert!(parse("<x xmlns=''/>").name.is("", "x"));
    assert!(parse("<xml:x/>").name.is(XML, "x"));
}

#[test]
fn text_is_resolved() {
    let root = parse("<a b='&quot;\n&#10;'>1 &lt;&#x41;<!-- c -->\r\n<![CDATA[<&]]></a>");
    assert_eq!(root.text(), "1 <A\n<&");
    assert_eq!(root.attributes[0].1, "\" \n");
    assert_eq!(root.children.len(), 1, "no two texts in a row");
}

#[test]
fn all_encodings_of_xml_are_taken() {
    let text = "<?xml version='1.0'?>\n<!-- é --><a>é</a>\n";
    let mut with_mark = vec![0xef, 0xbb, 0xbf];
    with_mark.extend(text.as_bytes());
    let mut little = vec![0xff, 0xfe];
    little.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    let mut big = vec![0xfe, 0xff];
    big.extend(text.encode_utf16().flat_map(u16::to_be_bytes));
    for bytes in [text.as_bytes(), &with_mark, &little, &big] {
        assert_eq!(Element::parse(bytes).map(|root| root.text()), Ok("é".to_owned()));
    }
    assert_eq!(Element::parse(b"<a>\xe9</a>"), Err(XmlError::Encoding));
    assert_eq!(Element::parse(&little[..little.len() - 1]), Err(XmlError::Encoding));
}

#[test]
fn what_is_not_well_formed_is_refused() {
    let bad = [
        "",
        " ",
        "x",
        "<a",
        "<a>",
        "</a>",
        "<a></b>",
        "<a/><b/>",
        "<a/>x",
        "<a b/>",
        "<a b=c/>",
        "<a b='1'b='2'/>",
        "<a b='1' b='2'/>",
        "<a b='<'/>",
        "<a>]]></a>",
        "<a>&</a>",
        "<a>& ;</a>",
        "<a>&#0;</a>",
        "<a>&#xd800;</a>",
        "<a>&#+5;</a>",
        "<a>\u{1}</a>",
        "<a><!-- -- --></a>",
        "<a><!--x</a>",
        "<1/>",
        "<a:/>",
        "<:a/>",
        "<a:b:c xmlns:a='u:'/>",
        "< a/>",
        "<a><?xml?></a>",
        "<a><?",
        "<a><![CDATA[x</a>",
        "<![CDATA[]]><a/>",
        "<a xmlns='u:' xmlns='v:'/>",
        "<a xmlns:p='u:' xmlns:q='u:' p:x='' q:x=''/>",
    ];
    for text in bad {
        assert_eq!(Element::parse(text.as_bytes()), Err(XmlError::Malformed), "{text}");
    }
    let bad = [
        "<a:b/>",
        "<a b:c=''/>",
        "<a xmlns:b=''/>",
        "<a xmlns:xml='u:'/>",
        "<a xmlns:xmlns='u:'/>",
        "<a xmlns:b='http://www.w3.org/2000/xmlns/'/>",
        "<a xmlns:b='http://www.w3.org/XML/1998/namespace'/>",
        "<a><b xmlns:c='u:'/><c:d/></a>",
    ];
    for text in bad {
        assert_eq!(Element::parse(text.as_bytes()), Err(XmlError::Namespace), "{text}");
    }
}

#[test]
fn entities_and_document_types_are_refused() {
    let laughs = "<!DOCTYPE l [<!ENTITY a 'ha'>]><l>&a;</l>";
    assert_eq!(Element::parse(laughs.as_bytes()), Err(XmlError::Entity));
    assert_eq!(Element::parse(b"<a>&nbsp;</a>"), Err(XmlError::Entity));
    assert_eq!(Element::parse(b"<a><!ELEMENT b></a>"), Err(XmlError::Entity));
}

#[test]
fn sizes_are_bounded() {
    let deep = |n: usize| format!("{}{}", "<a>".repeat(n), "</a>".repeat(n));
    parse(&deep(DAV_XML_DEPTH_MAX));
    let wide = |n: usize| format!("<a>{}</a>", "<b/>".repeat(n));
    parse(&wide(DAV_XML_NODES_MAX - 1));
    let attributes = |n: usize| {
        let all: String = (0..n).map(|i| format!(" a{i}=''")).collect();
        format!("<a{all}/>")
    };
    parse(&attributes(DAV_XML_ATTRIBUTES_MAX));
    let too_large = [
        deep(DAV_XML_DEPTH_MAX + 1),
        wide(DAV_XML_NODES_MAX),
        attributes(DAV_XML_ATTRIBUTES_MAX + 1),
        format!("<{}/>", "a".repeat(2000)),
        format!("<a xmlns='{}'/>", "a".repeat(2000)),
        format!("<a>{}</a>", " ".repeat(DAV_BODY_MAX)),
    ];
    for text in too_large {
        assert_eq!(Element::parse(text.as_bytes()), Err(XmlError::TooLarge), "{:.40}", text);
    }
}

#[test]
fn writing_declares_what_it_needs() {
    let root =
        parse("<p:a xmlns:p='u:' xmlns:q='v:' q:b='&#10;&#9;\"' xml:lang='en'><c/><p:d/></p:a>");
    let text = written(&root);
    let expected = "<a xmlns=\"u:\" xmlns:a0=\"v:\" a0:b=\"&#10;&#9;&quot;\" xml:lang=\"en\">\
                    <c xmlns=\"\"/><d/></a>";
    assert_eq!(text, expected);
    assert_eq!(parse(&text), root);
    let of_xml = parse("<a xmlns='u:'><xml:b><c/></xml:b></a>");
    assert_eq!(parse(&written(&of_xml)), of_xml);
    let lines = parse("<a xmlns='n:&#10;1' xmlns:q='q:&#xa;' q:b=''><q:c/></a>");
    assert_eq!(parse(&written(&lines)), lines);
}

fn name() -> impl Strategy<Value = Name> {
    let ns = prop::sample::select(vec!["", "DAV:", "u:&\"<'x", "n:\n\t\r", XML]);
    (ns, "[a-zé_][a-z0-9.-]{0,5}").prop_map(|(ns, local)| Name::new(ns, &local))
}

fn element() -> impl Strategy<Value = Element> {
    let attributes = prop::collection::vec((name(), "[ -~\n\t\ré]{0,8}"), 0..3).prop_map(|all| {
        let mut once: Vec<(Name, String)> = Vec::new();
        for (name, value) in all {
            // Declarations are no attributes.
            let declares = &*name.local == "xmlns";
            if !declares && !once.iter().any(|(other, _)| *other == name) {
                once.push((name, value));
            }
        }
        once
    });
    let leaf = (name(), attributes, "[ -~\n\t\ré]{0,8}").prop_map(|(name, attributes, text)| {
        let children = if text.is_empty() { Vec::new() } else { vec![Node::Text(text)] };
        Element { name, attributes, children }
    });
    leaf.prop_recursive(4, 24, 3, |inner| {
        let children = prop::collection::vec(inner, 0..3);
        (name(), children).prop_map(|(name, children)| Element {
            name,
            attributes: Vec::new(),
            children: children.into_iter().map(Node::Element).collect(),
        })
    })
}

proptest! {
    #[test]
    fn what_is_written_reads_as_the_same(element in element()) {
        let text = written(&element);
        prop_assert_eq!(Element::parse(text.as_bytes()), Ok(element), "{}", text);
    }

    #[test]
    fn whatever_comes_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Element::parse(&bytes);
    }
}
