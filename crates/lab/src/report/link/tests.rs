//! Links are full where the server is known, and nothing else gets into them.

use super::*;
use crate::report::tests::made_up;
use serde_json::json;

fn known(listen: &str, target: &str) -> Option<String> {
    let mut result = made_up();
    result.server.status = Some(json!({"services": [
        {"name": "nfs", "listen": "127.0.0.1:12049"},
        {"name": "admin", "listen": listen},
    ]}));
    result.target = target.into();
    admin(&result)
}

#[test]
fn the_server_reports_where_its_interface_is() {
    let url = |listen, target| known(listen, target).unwrap_or_default();
    assert_eq!(url("10.0.0.2:215", "nfs3://nas/x"), "https://10.0.0.2:215");
    assert_eq!(url("0.0.0.0:10215", "nfs3://nas.lab:2049/x"), "https://nas.lab:10215");
    assert_eq!(url("0.0.0.0:10215", "nfs3://10.0.0.2/x"), "https://10.0.0.2:10215");
    assert_eq!(url("[::]:10215", "nfs3://[fd00::1]:2049/x"), "https://[fd00::1]:10215");
    assert_eq!(known("0.0.0.0:10215", "nfs3://a\"b<c/x"), None);
    assert_eq!(known("nowhere", "nfs3://nas/x"), None);
}

#[test]
fn an_unknown_server_has_a_path() {
    let result = made_up();
    let (from, to) = interval(&result, result.best_step());
    let link = worksheet(&result, result.best_step());
    assert!(
        link.starts_with("/analytics?w=nfs3.ops%5Bclient%5D&w=nfs3.ops%5Blatency%5D&"),
        "{link}"
    );
    assert!(link.ends_with(&format!("&from={from}&to={to}")) && to > from, "{link}");
}
