//! A bad sample of each kind is caught, and a good one is not.

use serde_json::json;

use super::*;

fn rules(path: &str, text: &str) -> Vec<&'static str> {
    let source = Source::new(path, text.to_owned());
    let mut all = sizes::check(&source);
    all.extend(words::check(&source));
    all.into_iter().map(|f| f.rule).collect()
}

fn package(name: &str, dependencies: &[(&str, &str)]) -> serde_json::Value {
    let dependencies: Vec<_> = dependencies
        .iter()
        .map(|(on, kind)| json!({ "name": on, "kind": kind, "path": format!("crates/{on}") }))
        .collect();
    json!({ "name": name, "dependencies": dependencies })
}

#[test]
fn a_forbidden_arrow_is_found() {
    let bad = json!({ "packages": [package("lab", &[("serve", "")]), package("serve", &[])] });
    assert_eq!(imports::check(&bad)[0].what, "lab may not import serve");
    let good = json!({ "packages": [package("lab", &[("wire", "")]), package("wire", &[])] });
    assert_eq!(imports::check(&good), []);
}

#[test]
fn sim_is_for_tests_only() {
    let bad = json!({ "packages": [package("vfs", &[("sim", "")]), package("sim", &[])] });
    assert_eq!(imports::check(&bad).len(), 1);
    let good = json!({ "packages": [package("vfs", &[("sim", "dev")]), package("sim", &[])] });
    assert_eq!(imports::check(&good), []);
}

#[test]
fn an_unknown_room_is_found() {
    let bad = json!({ "packages": [package("shed", &[])] });
    assert!(imports::check(&bad)[0].what.contains("not in the table"));
}

#[test]
fn long_functions_files_and_lines_are_found() {
    let long = format!("//! Doc.\nfn long() {{\n{}}}\n", "    step();\n".repeat(68));
    assert_eq!(rules("crates/vfs/src/a.rs", &long), ["function-size"]);
    let fits = format!("//! Doc.\nfn fits() {{\n{}}}\n", "    step();\n".repeat(67));
    assert!(rules("crates/vfs/src/a.rs", &fits).is_empty());
    let file = format!("//! Doc.\n{}", "const A: u8 = 1;\n".repeat(800));
    assert_eq!(rules("crates/vfs/src/a.rs", &file), ["file-size"]);
    assert!(rules("crates/vfs/src/a/tests.rs", &file).is_empty());
    let wide = format!("//! Doc.\nconst A: &str = \"{}\";\n", "a".repeat(90));
    assert_eq!(rules("crates/vfs/src/a.rs", &wide), ["width"]);
    assert_eq!(rules("crates/vfs/src/a/tests.rs", &wide), ["width"]);
    let captured = format!("//! Doc.\nconst A: &str = \"\n{}\n\";\n", "a".repeat(120));
    assert_eq!(rules("crates/vfs/src/a.rs", &captured), ["width"]);
    assert!(rules("crates/vfs/src/a/tests.rs", &captured).is_empty());
}

#[test]
fn a_file_states_what_it_is_for() {
    assert_eq!(rules("crates/vfs/src/a.rs", "use std::fmt;\n"), ["header"]);
    assert_eq!(rules("ui/src/A.svelte", "<script>\n</script>\n"), ["header"]);
    assert!(rules("ui/src/A.svelte", "<!-- A list of shares. -->\n<script>\n").is_empty());
}

#[test]
fn words_are_forbidden_per_room() {
    let cases = [
        ("crates/wire/src/a.rs", "use std::net::IpAddr;", "wire-io"),
        ("crates/lab/src/a.rs", "let t = Instant::now();", "clock"),
        ("crates/serve/nfs/src/nfs3/read.rs", "x.unwrap();", "peer-panic"),
        ("crates/serve/nfs/src/nfs3/read.rs", "use tokio::net::TcpStream;", "conn-io"),
        ("crates/serve/ftp/src/list.rs", "use tokio::net::TcpStream;", "conn-io"),
        ("crates/serve/src/echo/dispatch.rs", "use tokio::net::TcpStream;", "conn-io"),
        ("crates/serve/nfs/src/nfs3/read.rs", "use crate::nfs4::Run;", "sibling"),
        ("crates/serve/nfs/src/nfs3/read.rs", "println!(\"read\");", "log"),
        ("crates/serve/smb/src/io.rs", "core.engine.attempt(|| read())", "attempt"),
    ];
    for (path, line, rule) in cases {
        assert_eq!(rules(path, &format!("//! Doc.\n{line}\n")), [rule], "{path}: {line}");
    }
    assert_eq!(rules("ui/src/pages/A.ts", "// Doc.\nawait fetch('/x')\n"), ["fetch"]);
    let marker = concat!("//! Doc.\n// TO", "DO later\n");
    assert_eq!(rules("crates/vfs/src/a.rs", marker), ["marker"]);
}

#[test]
fn what_is_allowed_is_not_found() {
    let cases = [
        ("crates/base/src/clock.rs", "let t = Instant::now();"),
        ("crates/serve/nfs/src/nfs3/tests.rs", "x.unwrap();"),
        ("crates/serve/nfs/src/nfs3/conn.rs", "use tokio::net::TcpStream;"),
        ("crates/serve/nfs/src/nfs3/read.rs", "use crate::rpc::Caller;"),
        ("crates/serve/nfs/src/nfs3/read.rs", "x.unwrap_or_default(); // not .unwrap()"),
        ("crates/serve/nfs/src/nfs3/read.rs", "let s = \".unwrap()\";"),
        ("crates/serve/smb/src/compound.rs", "conn.core.engine.attempt_async(command)"),
    ];
    for (path, line) in cases {
        assert!(rules(path, &format!("//! Doc.\n{line}\n")).is_empty(), "{path}: {line}");
    }
    assert!(rules("ui/src/api.ts", "// Doc.\nawait fetch('/x')\n").is_empty());
    assert!(rules("ui/src/a.ts", "// Doc.\nprefetch(1)\n").is_empty());
}

#[test]
fn a_limit_gives_its_reason() {
    let text = "//! Doc.\n/// Because.\npub const A: usize = 1;\n\npub const B: usize = 2;\n";
    assert_eq!(rules("crates/base/src/limits.rs", text), ["limit-reason"]);
}

#[test]
fn literals_and_comments_do_not_confuse_the_scanner() {
    let text =
        "fn a<'x>(c: char) -> bool { c == '{' || c == '\\'' } // {\nfn b() { r#\"}\"{\"#; }\n";
    let found = scan::functions(&scan::blank(text));
    let names: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.line, f.length)).collect();
    assert_eq!(names, [("a", 1, 1), ("b", 2, 1)]);
    assert_eq!(scan::blank("a /* x /* y */ */ b"), "a                 b");
    assert_eq!(scan::functions("fn f(); fn g<T>(x: [u8; 3]) where T: A {\n}").len(), 1);
}

#[test]
fn the_list_of_exceptions_is_a_ratchet() {
    let finding =
        |line| Finding { path: "a.rs".to_owned(), line, rule: "clock", what: "x".to_owned() };
    let list = |count| {
        format!("[[allow]]\npath = \"a.rs\"\nrule = \"clock\"\ncount = {count}\nreason = \"r\"\n")
    };
    let apply = |count, there: usize| {
        exceptions::apply(&list(count), (0..there).map(finding).collect()).unwrap()
    };
    assert_eq!(apply(2, 2), []);
    assert_eq!(apply(1, 2).len(), 2, "one more than excused shows all of them");
    assert_eq!(apply(3, 2)[0].rule, "exception", "fewer than excused asks to lower the count");
    assert!(exceptions::apply("[[allow]]\nrule = 1", Vec::new()).is_err());
}

/// A registry of two protocols and the service of one, as the real one is written.
const REGISTRY: &str = r#"table! {
    pub enum Protocol: ProtocolRow {
        Gopher = 1 => ProtocolRow {
            id: "gopher",
            service: Service::Gopher,
        },
    }
}
table! {
    pub enum Service: ServiceRow {
        Menus = 0 => service!(
            "menus", "Menus", Protocol::Gopher, None, &[ports::GOPHER]
        ),
    }
}
table! {
    pub enum Scheme: SchemeRow {
        Gophers = 0 => SchemeRow {
            name: "gophers",
            protocol: Protocol::Gopher,
        },
    }
}
"#;

#[test]
fn every_way_to_name_a_protocol_is_counted_but_not_in_its_own_folders() {
    let files = [
        ("crates/base/src/protocol.rs", REGISTRY),
        ("crates/a/src/variant.rs", "match p { Protocol::Gopher => 1 }"),
        ("crates/a/src/scheme.rs", "if scheme == Scheme::Gophers {}"),
        ("crates/a/src/string.rs", "let name = \"gopher\";"),
        ("crates/a/src/constant.rs", "listen(ports::GOPHER)"),
        ("crates/a/src/service.rs", "Service::Menus.id()"),
        ("schema/sum.toml", "members = [\"gopher\"]"),
        ("ui/src/list.ts", "const all = ['gophers'];"),
        ("crates/a/src/comment.rs", "// \"gopher\" and Protocol::Gopher"),
        ("crates/a/src/path.rs", "use serve::Gopher::new; let gophers = Gopherish::Gophering;"),
        ("crates/a/src/gopher/own.rs", "Protocol::Gopher"),
        ("crates/a/src/gopher_server.rs", "Protocol::Gopher"),
        ("crates/a/src/x/tests.rs", "Protocol::Gopher"),
        ("bench/src/peers.rs", "Scheme::Gophers"),
    ];
    let sources = files.map(|(path, text)| Source::new(path, text.to_owned()));
    let places = protocols::places(&sources);
    let gopher: Vec<&str> = places["gopher"].iter().map(String::as_str).collect();
    let expected = [
        "crates/a/src/constant.rs",
        "crates/a/src/scheme.rs",
        "crates/a/src/string.rs",
        "crates/a/src/variant.rs",
        "crates/base/src/protocol.rs",
        "schema/sum.toml",
        "ui/src/list.ts",
    ];
    assert_eq!(gopher, expected);
    let menus: Vec<&str> = places["menus"].iter().map(String::as_str).collect();
    assert_eq!(menus, ["crates/a/src/service.rs", "crates/base/src/protocol.rs"]);
}

#[test]
fn a_protocol_that_many_know_and_a_list_that_is_not_true_are_found() {
    let mut sources = vec![Source::new("crates/base/src/protocol.rs", REGISTRY.to_owned())];
    let known = |n: usize| Source::new(&format!("crates/a/src/f{n}.rs"), "P::Gopher".to_owned());
    sources.extend((0..9).map(known));
    let listed = protocols::list(&protocols::places(&sources));
    sources.push(Source::new("xtask/protocol-places.txt", listed));
    assert_eq!(protocols::check(&sources), []);
    sources.push(known(9));
    let what: Vec<String> = protocols::check(&sources).into_iter().map(|f| f.what).collect();
    assert!(what[0].contains("11 files know gopher; 10 may"), "{what:?}");
    assert!(what[1].contains("the list is not what"), "{what:?}");
}

/// A table of words to avoid.
fn glossary() -> Source {
    let table = "# Glossary\n\n| Avoid | Write | Where |\n|---|---|---|\n\
                 | told, on its way | reported | everywhere |\n\
                 | whoever | a user | texts |\n\
                 | nobody, goes on | no client | comments |\n\
                 | `Told`, `Way` | Report | identifiers |\n\nend, told\n";
    Source::new("docs/glossary.md", table.to_owned())
}

/// What the rule of phrases finds in a file: lines and phrases.
fn phrases(path: &str, text: &str) -> Vec<(usize, String)> {
    let sources = [Source::new(path, text.to_owned()), glossary()];
    let found = vocabulary::check(&sources).into_iter().filter(|one| one.rule == "phrase");
    found.map(|one| (one.line, one.what.split('"').nth(1).unwrap_or("").to_owned())).collect()
}

#[test]
fn phrases_that_the_glossary_avoids_are_found_in_texts_for_users() {
    let told = |line| vec![(line, "told".to_owned())];
    let message =
        "//! Told.\nfn f() {\n    let told = \"told\"; g(\"it is \\\n        told so\");\n}\n";
    assert_eq!(phrases("crates/a/src/f.rs", message), told(3));
    assert_eq!(phrases("crates/a/src/f.rs", "fn f() { g(\"an error: {told}, untold\"); }"), []);
    assert_eq!(phrases("crates/a/src/f/tests.rs", message), []);
    assert_eq!(phrases("README.md", "one\nYou are told.\n"), told(2));
    assert_eq!(phrases("docs/decisions/one.md", "You are told.\n"), []);
    assert_eq!(phrases("schema/a.toml", "# told so\nsentence = \"what is told\"\n"), told(2));
    let page = "<!-- what is\n  told -->\n<p>It is told.</p>\n<script>const told = 1;</script>\n\
                <p title='As told before'>{told}</p>\n<style>\n  told b {}\n</style>\n";
    let found = phrases("ui/src/Page.svelte", page);
    assert_eq!(found, [told(3), told(5)].concat());
}

#[test]
fn counts_of_the_vocabulary_may_only_fall() {
    let source = |path: &str, text: &str| Source::new(path, text.to_owned());
    let mut sources = vec![
        source("docs/decisions/one.md", "It is told.\nAnd again told, on its way.\n"),
        source("crates/a/src/f.rs", "struct Told; // Report\nfn f(_: Told, _: Untold) {}\n"),
        glossary(),
    ];
    let counts = vocabulary::counts(&sources);
    assert_eq!((counts["docs/decisions/"], counts["Told"], counts.len()), (3, 2, 2));
    sources.push(source("xtask/vocabulary.txt", &vocabulary::list(&counts)));
    assert_eq!(vocabulary::check(&sources), []);
    sources[1] = source("crates/a/src/f.rs", "struct Told;\nfn f(_: Told, _: Way) {}\n");
    let what: Vec<String> = vocabulary::check(&sources).into_iter().map(|f| f.what).collect();
    assert!(what[0].contains("Way: 1, at most 0"), "{what:?}");
    assert!(what[1].contains("the list is not what"), "{what:?}");
    sources[1] = source("crates/a/src/f.rs", "struct Told;\n");
    let what: Vec<String> = vocabulary::check(&sources).into_iter().map(|f| f.what).collect();
    assert!(what.len() == 1 && what[0].contains("the list is not what"), "{what:?}");
}

#[test]
fn the_table_of_the_glossary_is_read_to_its_end() {
    let read = glossary::Glossary::of(&[glossary()]);
    let names = |entries: &[glossary::Entry]| -> Vec<String> {
        entries.iter().map(|entry| entry.phrase.clone()).collect()
    };
    assert_eq!(names(&read.texts), ["told", "on its way", "whoever"]);
    assert_eq!(names(&read.comments), ["told", "on its way", "nobody", "goes on"]);
    assert_eq!(names(&read.identifiers), ["Told", "Way"]);
    assert_eq!(read.comments[2].write, "no client");
    assert!(glossary::Glossary::of(&[]).is_empty());
    let missing = vocabulary::check(&[Source::new("README.md", "text\n".to_owned())]);
    assert!(missing[0].what.contains("is missing"), "{missing:?}");
    let own = include_str!("../../../docs/glossary.md").to_owned();
    let own = glossary::Glossary::of(&[Source::new("docs/glossary.md", own)]);
    assert!(own.texts.len() > 50 && own.comments.len() > 50 && own.identifiers.len() > 40);
}

#[test]
fn phrases_in_comments_and_names_of_functions_are_counted_for_each_crate() {
    let source = |path: &str, text: &str| Source::new(path, text.to_owned());
    let text = "//! It is told, and `told` again.\n\
                /// `told`, as code, and \"nobodys\" are not read.\n\
                fn a_file_that_nobody_has() { f(\"// nobody\"); }\n\
                /* It goes\n   on in the next line. */\n\
                // It goes\nfn on() {}\n";
    let sources = [
        source("crates/serve/a/Cargo.toml", ""),
        source("crates/serve/a/src/f.rs", text),
        source("crates/vfs/Cargo.toml", ""),
        source("crates/vfs/src/f.rs", "// Told.\n"),
        source("crates/vfs/src/locks.rs", "// Told: it goes on.\n"),
        source("crates/vfs/src/locks/a.rs", "// Nobody.\n"),
        source("crates/vfs/src/locks/b.rs", "// No client.\n"),
        source("ui/src/a.ts", "// Told.\n"),
        glossary(),
    ];
    let glossary = glossary::Glossary::of(&sources);
    let found = comments::avoided(&sources, &glossary);
    let lines: Vec<_> = found.iter().map(|one| (one.path, one.line)).collect();
    let own = "crates/serve/a/src/f.rs";
    assert_eq!(lines[..3], [(own, 1), (own, 3), (own, 4)]);
    let counts: Vec<_> = comments::counts(&sources, &glossary).into_iter().collect();
    let expected = [
        ("crates/serve/a comments", 3),
        ("crates/vfs comments", 1),
        ("crates/vfs/src/locks comments", 2),
    ];
    assert_eq!(counts, expected.map(|(part, count)| (part.to_owned(), count)));
    let what: Vec<String> = vocabulary::check(&sources).into_iter().map(|f| f.what).collect();
    assert!(what[0].starts_with("crates/serve/a comments: 3, at most 0 may remain"), "{what:?}");
}

#[test]
fn paths_in_documents_and_comments_lead_to_files() {
    let source = |path: &str, text: &str| Source::new(path, text.to_owned());
    let found = |path: &str, text: &str| -> Vec<String> {
        let sources = [
            source(path, text),
            source("crates/serve/web/src/put.rs", "//! Doc.\n"),
            source("docs/howto/start.md", "text\n"),
        ];
        paths::check(&sources).into_iter().map(|one| one.what).collect()
    };
    let good = "`web/put.rs`, `serve/web/src/put.rs`, `jobs/NAME.toml`,\n\
                `crates/serve/web/{put,put}.rs`,\n\
                `a b/c.rs`, a/b.rs, [start](../howto/start.md#x),\n\
                [all](../howto), [web](https://a/b.md)\n";
    assert_eq!(found("docs/a/one.md", good), Vec::<String>::new());
    let bad = "`http/put.rs` [start](start.md) `web/{put,get}.rs`\n";
    let expected = [
        "no file is `http/put.rs`",
        "no file is `web/get.rs`",
        "a link to start.md, which is no file",
    ];
    assert_eq!(found("docs/a/one.md", bad), expected);
    assert_eq!(found("crates/a/src/f.rs", "//! See `web/get.rs`.\n").len(), 1);
    assert_eq!(found("crates/a/src/f.rs", "const A: &str = \"`web/get.rs`\";\n").len(), 0);
}

#[test]
fn readme_shows_the_commands_that_are_used_first() {
    let missing = |text: &str| {
        let found = readme::check(&Source::new("README.md", text.to_owned()));
        found.into_iter().map(|f| f.what).collect::<Vec<_>>()
    };
    assert!(missing("```\nmake demo   # minutes\nmake test\n```\n").is_empty());
    let longer = "Use make test.\n```\nmake demo\nmake test-long\n```\nmake test\n";
    assert_eq!(missing(longer), ["`make test` is not in a code block"]);
    assert_eq!(missing("").len(), 2);
}
