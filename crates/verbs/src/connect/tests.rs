//! The message for each event with which establishing a connection fails.

use super::*;

#[test]
fn each_event_has_its_reason() {
    let message = |kind, status| reason(kind, status).to_string();
    let no_route = "no RDMA device of this machine has a route to this address";
    assert_eq!(message(event::ADDR_ERROR, -libc::ENODEV), no_route);
    assert_eq!(message(event::ADDR_ERROR, -libc::ENETUNREACH), no_route);
    let silent = "the server does not respond over RDMA";
    assert_eq!(message(event::ADDR_ERROR, -libc::ETIMEDOUT), silent);
    assert_eq!(message(7, -libc::ETIMEDOUT), silent, "UNREACHABLE");
    let refused = "the server does not accept connections over RDMA on this port";
    // InfiniBand gives a reason of its own (8: invalid service id), iWARP an error number.
    assert_eq!(message(event::REJECTED, 8), refused);
    assert_eq!(message(event::REJECTED, -libc::ECONNREFUSED), refused);
    assert_eq!(message(6, -libc::ECONNREFUSED), refused, "CONNECT_ERROR");
    assert_eq!(message(event::DEVICE_REMOVAL, 0), "the device was removed");
}
