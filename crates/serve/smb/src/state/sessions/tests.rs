//! A session is listed as long as it lives, and ended by its own user.

use std::net::Ipv4Addr;

use super::*;
use wire::smb::negotiate::{Dialect, Signing};

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
    let facts = ChannelFacts {
        dialect: Dialect::SMB311,
        signing: Signing::AesGmac,
        cipher: None,
        client: [1; 16],
    };
    let signer = Signer::new(Signing::AesCmac, &[1; 16]).expect("a key");
    let listed = sessions.add((row, facts, signer), &Arc::new(Notify::new()));
    assert_eq!((sessions.facts(id), sessions.facts(id ^ 1)), (Some(facts), None));
    assert_eq!(sessions.rows_now().len(), 1);
    assert!(!sessions.end(id, Some("bert"), End::Closed) && !listed.has_ended());
    assert!(sessions.end(id, Some("anna"), End::Closed) && listed.has_ended());
    drop(listed);
    assert!(sessions.rows_now().is_empty() && !sessions.end(id, None, End::Closed));
}
