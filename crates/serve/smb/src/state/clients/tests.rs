//! Clients and the cores of their connections, and which connections fit a session.

use super::*;

#[test]
fn connections_of_a_client_are_on_one_core_while_there_are_any() {
    let clients = Arc::new(Clients::default());
    let first = clients.enter([1; 16], 2).ok();
    assert!(first.is_some());
    assert_eq!(clients.enter([1; 16], 0).err(), Some(2));
    let second = clients.enter([1; 16], 2).ok();
    assert!(clients.enter([2; 16], 0).is_ok(), "another client");
    drop(first);
    assert_eq!(clients.enter([1; 16], 0).err(), Some(2), "one is left");
    drop(second);
    assert!(clients.enter([1; 16], 0).is_ok());
    assert!(clients.cores().is_empty());
}

#[test]
fn a_key_of_gmac_signs_nothing_else() {
    let of =
        |signing| ChannelFacts { dialect: Dialect::SMB311, signing, cipher: None, client: [0; 16] };
    let (gmac, cmac, hmac) = (of(Signing::AesGmac), of(Signing::AesCmac), of(Signing::HmacSha256));
    assert_eq!(gmac.permits(&cmac), Err(NtStatus::REQUEST_OUT_OF_SEQUENCE));
    assert_eq!(hmac.permits(&gmac), Err(NtStatus::NOT_SUPPORTED));
    assert_eq!((hmac.permits(&cmac), gmac.permits(&gmac)), (Ok(()), Ok(())));
}
