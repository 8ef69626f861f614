//! What is recognised by its content, and what is not.

use super::*;

fn of(name: &str, bytes: &[u8]) -> Option<String> {
    recognise(Path::new(name), bytes).map(|found| found.text)
}

#[test]
fn secrets_are_described_and_not_shown() {
    let text = of("api-token", b"0123456789abcdef\n").expect("a token");
    assert!(text.contains("bearer token") && !text.contains("0123"), "{text}");
    let once = b"  sign in   https://x/l?t=1  (works once)\n  user admin, password geheim\n";
    let text = of("first-sign-in", once).expect("a first sign-in");
    assert!(text.contains("admin") && !text.contains("geheim") && !text.contains("t=1"), "{text}");
    let text = of("users.json", br#"{"anna": "$argon2id$v=19$secret"}"#).expect("users");
    assert!(text.contains("anna") && !text.contains("secret"), "{text}");
}

#[test]
fn a_summary_is_read_from_its_page_too() {
    let summary = ::lab::limits::summarise(&[]);
    let json = serde_json::to_string(&summary).expect("JSON");
    assert!(of("summary.json", json.as_bytes()).expect("a summary").starts_with("Performance"));
    let page = ::lab::report::summary_page(&summary);
    let text = of("index.html", page.as_bytes()).expect("a page");
    assert!(text.starts_with("report of a Performance Limit Summary"), "{text}");
}

#[test]
fn a_damaged_table_of_handles_says_so() {
    let text = of("handles-00000001-table.redb", b"redb and nothing else").expect("recognised");
    assert!(text.contains("damaged"), "{text}");
}

#[test]
fn other_files_are_none_of_ours() {
    for (name, bytes) in [
        ("notes.txt", &b"hello"[..]),
        ("page.html", b"<!doctype html><p>hello"),
        ("package.json", b"{\"name\": \"x\", \"steps\": 3}"),
        ("handle-secret", b"short"),
        ("other.redb", b"redb of somebody else"),
    ] {
        assert!(of(name, bytes).is_none(), "{name}");
    }
}
