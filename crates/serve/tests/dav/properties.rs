//! PROPFIND and PROPPATCH.

use vfs::host::{HostFs, HostOptions};
use vfs::share::tag;
use wire::dav::DAV;

use crate::scene::Scratch;
use crate::site::{Answer, over, with_site};

fn patch(inside: &str) -> String {
    format!("<D:propertyupdate xmlns:D='DAV:' xmlns:x='u:x'>{inside}</D:propertyupdate>")
}

/// The names of the properties of each status, in the first response.
fn by_status(answer: &Answer) -> Vec<(String, Vec<String>)> {
    let xml = answer.xml();
    let response = xml.dav("response").expect("response");
    let stats = response.elements().filter(|e| e.name.is(DAV, "propstat"));
    let one = |stat: &wire::dav::xml::Element| {
        let names = stat.dav("prop").expect("prop").elements();
        let code = stat.dav("status").expect("status").text();
        let code = code.split(' ').nth(1).expect("code").to_owned();
        (code, names.map(|e| e.name.local.to_string()).collect())
    };
    stats.map(one).collect()
}

#[test]
fn members_are_listed_with_what_was_asked() {
    with_site(|site, alice, _| async move {
        site.status(&alice, "MKCOL /share/d", &[], "").await;
        site.put(&alice, "/share/d/a%b \u{e9}.txt", &[], "12345").await;
        let ask = "<propfind xmlns='DAV:'><prop><getcontentlength/><resourcetype/><getetag/>\
                   <x xmlns='u:'/></prop></propfind>";
        let answer = site.ask(&alice, "PROPFIND /share/d", &["depth: 1"], ask).await;
        assert_eq!(answer.status, 207);
        assert_eq!(answer.hrefs(), ["/share/d/", "/share/d/a%25b%20%C3%A9.txt"]);
        assert!(answer.body.contains("<D:getcontentlength>5</D:getcontentlength>"));
        assert!(answer.body.contains("<D:resourcetype><D:collection/></D:resourcetype>"));
        let missing = ["getcontentlength", "getetag", "x"].map(str::to_owned).to_vec();
        let expected =
            [("200".to_owned(), vec!["resourcetype".to_owned()]), ("404".into(), missing)];
        assert_eq!(by_status(&answer), expected);
        let answer = site.ask(&alice, "PROPFIND /share/d", &["depth: 0"], "").await;
        assert_eq!(answer.hrefs(), ["/share/d/"]);
    });
}

#[test]
fn the_whole_tree_is_refused() {
    with_site(|site, alice, _| async move {
        for headers in [&["depth: infinity"][..], &[]] {
            let answer = site.ask(&alice, "PROPFIND /share", headers, "").await;
            assert_eq!(answer.status, 403);
            assert!(answer.xml().dav("propfind-finite-depth").is_some());
        }
        assert_eq!(site.status(&alice, "PROPFIND /share", &["depth: 2"], "").await, 400);
        assert_eq!(site.status(&alice, "PROPFIND /none", &["depth: 0"], "").await, 404);
        site.put(&alice, "/share/f", &[], "x").await;
        let answer = site.ask(&alice, "PROPFIND /share/f", &[], "").await;
        assert_eq!((answer.status, answer.hrefs()), (207, vec!["/share/f".to_owned()]));
    });
}

#[test]
fn long_listings_are_sent_while_they_are_made() {
    with_site(|site, alice, _| async move {
        for n in 0..1_500 {
            assert_eq!(site.put(&alice, &format!("/share/f{n}"), &[], "").await, 201);
        }
        let answer = site.ask(&alice, "PROPFIND /share", &["depth: 1"], "").await;
        let mut hrefs: Vec<_> = answer.body.matches("<D:href>/share/f").collect();
        assert_eq!(hrefs.len(), 1_500);
        hrefs.dedup();
        assert!(answer.body.ends_with("</D:multistatus>\n"));
    });
}

#[test]
fn nonsense_is_refused() {
    with_site(|site, alice, _| async move {
        for body in ["<x", "<x/>", "<!DOCTYPE x><propfind xmlns='DAV:'><allprop/></propfind>"] {
            for method in ["PROPFIND", "PROPPATCH", "LOCK"] {
                let line = format!("{method} /share");
                assert_eq!(site.status(&alice, &line, &["depth: 0"], body).await, 400, "{line}");
            }
        }
        let long = format!("<propfind xmlns='DAV:'>{}<allprop/></propfind>", " ".repeat(300_000));
        assert_eq!(site.status(&alice, "PROPFIND /share", &["depth: 0"], &long).await, 413);
    });
}

#[test]
fn dead_properties_live() {
    with_site(|site, alice, _| async move {
        site.put(&alice, "/share/f", &[], "x").await;
        let set = patch(
            "<D:set><D:prop><x:a>1</x:a><x:b><x:c y='z'>&lt;</x:c></x:b><n/></D:prop></D:set>\
             <D:remove><D:prop><x:a/></D:prop></D:remove>",
        );
        let answer = site.ask(&alice, "PROPPATCH /share/f", &[], &set).await;
        assert_eq!(answer.status, 207);
        let all = ["a", "b", "n"].map(str::to_owned).to_vec();
        assert_eq!(by_status(&answer), [("200".to_owned(), all)]);
        let answer = site.ask(&alice, "PROPFIND /share/f", &["depth: 0"], "").await;
        assert!(
            answer.body.contains("<b xmlns=\"u:x\"><c y=\"z\">&lt;</c></b>"),
            "{}",
            answer.body
        );
        assert!(answer.body.contains("<n xmlns=\"\"/>"));
        let names = "<propfind xmlns='DAV:'><propname/></propfind>";
        let answer = site.ask(&alice, "PROPFIND /share/f", &["depth: 0"], names).await;
        let properties = by_status(&answer);
        assert!(
            properties[0].1.contains(&"b".to_owned()) && !properties[0].1.contains(&"a".to_owned())
        );
        let remove = patch("<D:remove><D:prop><x:b/><n/></D:prop></D:remove>");
        site.ask(&alice, "PROPPATCH /share/f", &[], &remove).await;
        let ask = "<propfind xmlns='DAV:'><prop><b xmlns='u:x'/></prop></propfind>";
        let answer = site.ask(&alice, "PROPFIND /share/f", &["depth: 0"], ask).await;
        assert_eq!(by_status(&answer), [("404".to_owned(), vec!["b".to_owned()])]);
    });
}

#[test]
fn all_changes_or_none() {
    with_site(|site, alice, _| async move {
        site.put(&alice, "/share/f", &[], "x").await;
        let set = patch("<D:set><D:prop><x:a>1</x:a><D:getetag>2</D:getetag></D:prop></D:set>");
        let answer = site.ask(&alice, "PROPPATCH /share/f", &[], &set).await;
        let expected =
            [("403".to_owned(), vec!["getetag".to_owned()]), ("424".into(), vec!["a".into()])];
        assert_eq!(by_status(&answer), expected);
        let answer = site.ask(&alice, "PROPFIND /share/f", &["depth: 0"], "").await;
        assert!(!answer.body.contains("u:x"));
        // More than a file has room for.
        let long = "y".repeat(70_000);
        let set = patch(&format!("<D:set><D:prop><x:a>{long}</x:a></D:prop></D:set>"));
        let answer = site.ask(&alice, "PROPPATCH /share/f", &[], &set).await;
        assert_eq!(by_status(&answer), [("507".to_owned(), vec!["a".to_owned()])]);
        assert_eq!(
            site.status(
                &alice,
                "PROPPATCH /",
                &[],
                &patch("<D:set><D:prop><x:a/></D:prop></D:set>")
            )
            .await,
            403
        );
    });
}

#[test]
fn quota_is_returned_when_it_is_requested() {
    with_site(|site, alice, _| async move {
        let ask = "<propfind xmlns='DAV:'><prop><quota-available-bytes/><quota-used-bytes/></prop>\
                   </propfind>";
        let answer = site.ask(&alice, "PROPFIND /share", &["depth: 0"], ask).await;
        assert_eq!(by_status(&answer)[0].0, "200");
        let answer = site.ask(&alice, "PROPFIND /share", &["depth: 0"], "").await;
        assert!(!answer.body.contains("quota"), "not by allprop (RFC 4331)");
    });
}

#[test]
fn the_list_of_shares_is_a_collection() {
    with_site(|site, alice, _| async move {
        let answer = site.ask(&alice, "PROPFIND /", &["depth: 1"], "").await;
        assert_eq!(answer.hrefs(), ["/", "/other/", "/share/"]);
        let answer = site.ask(&alice, "PROPFIND /", &["depth: 0"], "").await;
        assert_eq!(answer.hrefs(), ["/"]);
    });
}

#[test]
fn an_answer_is_made_in_parts_however_much_is_asked_of_many() {
    with_site(|site, alice, _| async move {
        site.status(&alice, "MKCOL /share/d", &[], "").await;
        for n in 0..300 {
            assert_eq!(site.put(&alice, &format!("/share/d/f{n}"), &[], "x").await, 201);
        }
        // Each member's answer has all these names.
        let (long, most) = ("n".repeat(500), 200);
        let names: String = (0..most).map(|n| format!("<x:{long}{n}/>")).collect();
        let body = format!(
            "<D:propfind xmlns:D='DAV:' xmlns:x='urn:x'><D:prop>{names}</D:prop></D:propfind>"
        );
        let parts = site.parts(&alice, "PROPFIND /share/d", &["depth: 1"], &body).await;
        let longest = parts.iter().copied().max().unwrap_or(0);
        assert!(parts.iter().sum::<usize>() > 300 * most * long.len(), "{parts:?}");
        let one = most * (long.len() + 100);
        assert!(longest < base::limits::HTTP_PIECE + one, "{longest} bytes at once");
        // Small ones leave together.
        let small = "<D:propfind xmlns:D='DAV:'><D:prop><D:getetag/></D:prop></D:propfind>";
        let header = ["depth: 1"];
        let all = site.ask(&alice, "PROPFIND /share/d", &header, small).await;
        assert_eq!(all.hrefs().len(), 301);
    });
}

#[test]
fn no_member_is_looked_for_by_its_handle_alone() {
    let scratch = Scratch::new();
    let share = scratch.0.join("share");
    for n in 0..2_000 {
        std::fs::write(share.join(format!("f{n}")), "x").expect("a file");
    }
    let options = HostOptions::new(tag("share"), [7; 32]);
    let fs = HostFs::open(&share, options).expect("a share");
    over(&[("share", fs.clone())], |site, alice, _| async move {
        let set = patch("<D:set><D:prop><x:colour>blue</x:colour></D:prop></D:set>");
        let patched = site.status(&alice, "PROPPATCH /share/f77", &[], &set).await;
        assert_eq!(patched, 207);
        let all = site.ask(&alice, "PROPFIND /share", &["depth: 1"], "").await;
        assert_eq!(all.body.matches("<D:response>").count(), 2_001);
        // Some file systems keep no properties.
        assert!(!fs_has_xattrs(&*fs) || all.body.contains(">blue<"));
        let counts = fs.counts();
        assert_eq!((counts.cold_found, counts.cold_stale), (0, 0));
    });
}

fn fs_has_xattrs(fs: &dyn vfs::fs::FileSystem) -> bool {
    fs.features().xattrs
}
