//! The share of a target is found by the URLs that the server shows of it.

use super::*;

#[test]
fn the_share_of_a_target_is_that_of_the_longest_url() {
    let share = |name: &str, urls: &[&str]| {
        let access: Vec<Value> = urls.iter().map(|url| json!({ "url": url })).collect();
        json!({ "name": name, "access": access })
    };
    let shares = [
        share("lab", &["nfs://127.0.0.1:12049/export/lab?version=3", "https://h:10443/lab/"]),
        share("lab-2", &["nfs://127.0.0.1:12049/export/lab-2"]),
        share("below", &["nfs://127.0.0.1:12049/export/lab/below"]),
        share("root", &["ftp://127.0.0.1:10021/"]),
    ];
    let found = |url: &str| {
        let (share, rest) = share_of(&shares, path_of(url)?)?;
        Some((share["name"].as_str()?.to_owned(), rest.to_owned()))
    };
    let some = |name: &str, rest: &str| Some((name.to_owned(), rest.to_owned()));
    assert_eq!(found("nfs3://h:1/export/lab/plimsoll-lab-1?port=2"), some("lab", "plimsoll-lab-1"));
    assert_eq!(found("nfs4://h:1/export/lab-2"), some("lab-2", ""));
    assert_eq!(found("https://u:p@h:1/lab/a/b/"), some("lab", "a/b"));
    assert_eq!(found("nfs3://h:1/export/lab/below/x"), some("below", "x"));
    assert_eq!(found("nfs3://h:1/export/other"), None);
    assert_eq!(found("null:"), None);
    assert_eq!(encoded("my data/é"), "my%20data%2F%C3%A9");
}
