//! The announcement of a server becomes a target; a server that does not start reports the reason.

use super::*;
use serde_json::json;

#[test]
fn the_url_is_that_of_the_protocol() {
    let way = |protocol: &str, url: &str| json!({ "protocol": protocol, "url": url });
    let ways = [way("nfs3", "nfs3://127.0.0.1:7/export/ab"), way("nfs4", "nfs4://127.0.0.1:7/ab")];
    let announced = json!({ "access": { "ab": ways } });
    assert_eq!(url(&announced, "nfs4").as_deref(), Some("nfs4://127.0.0.1:7/ab"));
    assert_eq!(url(&announced, "smb"), None);
}

#[test]
fn a_program_that_serves_nothing_is_named_and_leaves_nothing() {
    let why = Served::start(Path::new("/bin/false"), "nfs3").expect_err("it serves nothing");
    assert!(why.starts_with("/bin/false serve did not get ready"), "{why}");
    let why = Served::start(Path::new("/no/such/program"), "nfs3").expect_err("it is missing");
    assert!(why.starts_with("cannot start /no/such/program"), "{why}");
}
