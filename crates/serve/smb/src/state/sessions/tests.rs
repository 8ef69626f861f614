//! A session is listed as long as it lives, and ended by its own user.

use std::net::Ipv4Addr;

use super::*;

#[test]
fn sessions_come_and_go() {
    let sessions = Arc::<Sessions>::default();
    let id = sessions.new_id();
    let row = Row {
        id,
        user: "anna".to_owned(),
        from: IpAddr::V4(Ipv4Addr::LOCALHOST),
        dialect: "3.1.1",
        encrypted: false,
    };
    let listed = sessions.add(row, &Arc::new(Notify::new()));
    assert_eq!(sessions.rows_now().len(), 1);
    assert!(!sessions.end(id, Some("bert")) && !listed.has_ended());
    assert!(sessions.end(id, Some("anna")) && listed.has_ended());
    drop(listed);
    assert!(sessions.rows_now().is_empty() && !sessions.end(id, None));
}
