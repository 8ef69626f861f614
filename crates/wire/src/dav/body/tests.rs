//! Bodies as the RFC and real clients write them.

use super::*;

const HEAD: &str = r#"<?xml version="1.0" encoding="utf-8"?>"#;

fn find(inside: &str) -> Result<Find, BodyError> {
    Find::parse(format!("{HEAD}<D:propfind xmlns:D=\"DAV:\">{inside}</D:propfind>").as_bytes())
}

fn dav(local: &str) -> Name {
    Name::new(DAV, local)
}

#[test]
fn propfind_requests_are_parsed() {
    assert_eq!(Find::parse(b""), Ok(Find::All(Vec::new())));
    assert_eq!(find("<D:allprop/>"), Ok(Find::All(Vec::new())));
    let include = "<D:allprop/><D:include><D:owner/></D:include>";
    assert_eq!(find(include), Ok(Find::All(vec![dav("owner")])));
    assert_eq!(find("<D:propname/>"), Ok(Find::Names));
    let these = "<x:new xmlns:x=\"u:\"/><D:prop><D:getetag/><a xmlns=\"u:\"/><D:getetag/></D:prop>";
    assert_eq!(find(these), Ok(Find::These(vec![dav("getetag"), Name::new("u:", "a")])));
    assert_eq!(find("<D:prop/><D:allprop/>"), Err(BodyError::Unexpected));
    assert_eq!(find(""), Err(BodyError::Unexpected));
    assert_eq!(Find::parse(b"<propfind/>"), Err(BodyError::Unexpected));
    assert!(matches!(Find::parse(b"x"), Err(BodyError::Xml(_))));
    let many: String = (0..=DAV_PROPS_ASKED_MAX).map(|n| format!("<p{n}/>")).collect();
    assert_eq!(find(&format!("<D:prop>{many}</D:prop>")), Err(BodyError::TooMany));
}

#[test]
fn changes_come_in_their_order_with_their_language() {
    let body = r#"<D:propertyupdate xmlns:D="DAV:" xml:lang="de"><D:set><D:prop>
        <a xmlns="u:">1</a><b xmlns="u:" xml:lang="en">2</b></D:prop></D:set>
        <D:remove><D:prop><a xmlns="u:"/></D:prop></D:remove></D:propertyupdate>"#;
    let patches = Patch::parse(body.as_bytes()).expect("body");
    assert_eq!(patches.len(), 3);
    let written = |patch: &Patch| match patch {
        Patch::Set(element) => {
            let mut out = String::new();
            Writer::new(&mut out).element(element);
            out
        }
        Patch::Remove(name) => format!("-{}", name.local),
    };
    let all: Vec<_> = patches.iter().map(written).collect();
    let expected =
        ["<a xmlns=\"u:\" xml:lang=\"de\">1</a>", "<b xmlns=\"u:\" xml:lang=\"en\">2</b>", "-a"];
    assert_eq!(all, expected);
    assert_eq!(patches[2].name(), &Name::new("u:", "a"));
    let empty = b"<propertyupdate xmlns='DAV:'><set><prop/></set></propertyupdate>";
    assert_eq!(Patch::parse(empty), Err(BodyError::Unexpected));
}

#[test]
fn lock_requests_are_parsed() {
    let body = |scope: &str, owner: &str| {
        let inside =
            format!("<D:lockscope>{scope}</D:lockscope><D:locktype><D:write/></D:locktype>");
        format!("{HEAD}<D:lockinfo xmlns:D='DAV:'>{inside}{owner}</D:lockinfo>")
    };
    let owner = "<D:owner>\n <D:href>http://me/</D:href>\n</D:owner>";
    let info = LockInfo::parse(body("<D:exclusive/>", owner).as_bytes()).expect("body");
    assert!(info.exclusive);
    assert_eq!(info.owner, "<owner xmlns=\"DAV:\"><href>http://me/</href></owner>");
    let info = LockInfo::parse(body("<D:shared/>", "").as_bytes()).expect("body");
    assert_eq!(info, LockInfo { exclusive: false, owner: String::new() });
    for scope in ["", "<D:shared/><D:exclusive/>"] {
        let refused = LockInfo::parse(body(scope, "").as_bytes());
        assert_eq!(refused, Err(BodyError::Unexpected));
    }
    let long = format!("<D:owner>{}</D:owner>", "x".repeat(DAV_LOCK_OWNER_MAX));
    let refused = LockInfo::parse(body("<D:shared/>", &long).as_bytes());
    assert_eq!(refused, Err(BodyError::TooMany));
}
