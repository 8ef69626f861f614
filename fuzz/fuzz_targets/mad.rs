//! Management datagrams of InfiniBand: an error, or a datagram that survives being written; read as
//! any attribute, the bytes survive as well.

#![no_main]

use host_fabric::attribute::{self, ExtendedCounters, NodeInfo, PortCounters, PortInfo};
use host_fabric::mad::Mad;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(mad) = Mad::decode(data) {
        assert_eq!(Mad::decode(&mad.encode()), Ok(mad));
    }
    let node = NodeInfo::decode(data);
    assert_eq!(NodeInfo::decode(&node.encode()), node);
    let port = PortInfo::decode(data);
    assert_eq!(PortInfo::decode(&port.encode()), port);
    let _ = (port.speed(), port.speed_max(), port.lanes_max(), port.bytes_per_second());
    let counters = PortCounters::decode(data);
    assert_eq!(PortCounters::decode(&counters.encode()), counters);
    let extended = ExtendedCounters::decode(data);
    assert_eq!(ExtendedCounters::decode(&extended.encode()), extended);
    let _ = (attribute::description(data), attribute::pkeys(data), attribute::sm_state(data));
});
