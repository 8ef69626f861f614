//! Which ports are opened, and which side chooses them.

use super::*;

/// A port that is free now.
fn free() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

fn port(wished: u16, ports: Option<(u16, u16)>) -> Result<u32, SyncError> {
    let (low, high) = (u32::from(wished), u32::from(wished));
    let at = Reachable { address: Some(Ipv4Addr::LOCALHOST.into()), ports };
    Answerer::open_at(&StreamRequest { low, high, most: 1 }, at).map(|(_open, offer)| offer.port)
}

#[test]
fn the_side_with_more_rights_chooses_the_ports() {
    let (wished, chosen) = (free(), free());
    assert_eq!(port(wished, None).unwrap(), u32::from(wished));
    assert_eq!(port(wished, Some((chosen, chosen))).unwrap(), u32::from(chosen));
    assert_ne!(port(wished, Some((0, 0))).unwrap(), u32::from(wished));
    // Below 1024, where only a privileged side may listen.
    assert!(port(81, Some((0, 0))).unwrap() >= 1024);
    assert!(port(70, Some((2, 1))).is_err(), "a range of nothing");
}
