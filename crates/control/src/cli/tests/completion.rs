//! What can be completed.

use super::fake::shell;
use crate::cli::complete::complete;

#[test]
fn every_part_of_a_line_is_completed() {
    let (mut shell, ..) = shell();
    let cases: [(&str, &[&str]); 14] = [
        ("conf", &["configuration"]),
        ("configuration s", &["services", "show", "set", "select"]),
        ("configuration services nfs set l", &["lease=", "limit="]),
        ("configuration services nfs set st", &[]),
        ("configuration services nfs get st", &["status"]),
        ("configuration services nfs set enabled=", &["enabled=on", "enabled=off"]),
        ("configuration services set project=", &["project=default"]),
        ("cd shares/de", &["shares/default"]),
        ("/shares/default/", &["/shares/default/tank"]),
        ("shares default t", &["tank", "top"]),
        ("shares default tank set nfs=read-", &["nfs=read-only", "nfs=read-write"]),
        ("shares default create new d", &["directory="]),
        ("configuration services nfs expire cl", &["client="]),
        ("nonsense ", &[]),
    ];
    for (line, texts) in cases {
        let found = complete(&shell, line);
        let found: Vec<&str> = found.iter().map(|candidate| candidate.text.as_str()).collect();
        assert_eq!(found, texts, "{line}");
    }
    shell.run("cd shares").unwrap();
    let found = complete(&shell, "select ");
    assert_eq!((found[0].text.as_str(), found[0].start), ("default", 7));
}
