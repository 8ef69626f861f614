//! Places for connections, and what one address may have of them.

use super::*;

#[test]
fn one_address_leaves_places_to_others() {
    let all: Arc<AddressPermits> = Arc::default();
    let take = |host: u8| all.take(network([192, 0, 2, host].into()), CONNECTIONS);
    let mut open: Vec<_> = (0..RDMA_CONNECTIONS_CLIENT_MAX).map_while(|_| take(1)).collect();
    assert_eq!(open.len(), RDMA_CONNECTIONS_CLIENT_MAX);
    assert!(take(1).is_none(), "it has its part");
    open.extend((open.len()..RDMA_CONNECTIONS_MAX).map_while(|_| take(2)));
    assert_eq!(open.len(), RDMA_CONNECTIONS_MAX);
    assert!(take(3).is_none(), "there are no more");
    open.remove(0);
    assert!(take(1).is_some());
    drop(open);
    assert_eq!(all.addresses(), 0, "what is gone is forgotten");
}

#[test]
fn addresses_of_one_network_of_ipv6_are_one() {
    let all: Arc<AddressPermits> = Arc::default();
    let take = |host: u16| all.take(network([0xfd00, 0, 0, 0, 0, 0, 0, host].into()), CONNECTIONS);
    let open: Vec<_> = (0..512).map_while(take).collect();
    assert_eq!(open.len(), RDMA_CONNECTIONS_CLIENT_MAX);
}
