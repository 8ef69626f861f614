//! Datagrams: both directions, and the specification's bytes.

use std::path::Path;

use base::random::{Random, SeededRandom};

use super::*;
use crate::attribute::{self, ExtendedCounters, NodeInfo, PortCounters, PortInfo};

fn some(random: &mut SeededRandom) -> Mad {
    let class = Class::ALL[random.next_u64() as usize % 3];
    let hops = random.next_u64() as usize % (HOPS_MAX + 1);
    let ports: Vec<u8> = (0..hops).map(|_| random.next_u64() as u8).collect();
    let route = if class == Class::SubnetByRoute { Route::new(&ports) } else { Route::new(&[]) };
    let mut data = vec![0; data_bytes(class)];
    data.iter_mut().for_each(|byte| *byte = random.next_u64() as u8);
    if class == Class::SubnetByRoute {
        data.truncate(SMP_DATA_BYTES);
    }
    // The highest bit of a directed route's is its direction.
    let is_by_route = class == Class::SubnetByRoute;
    let status = random.next_u64() as u16 & if is_by_route { 0x7fff } else { u16::MAX };
    Mad {
        class,
        method: [Method::Get, Method::Set, Method::GetResponse][random.next_u64() as usize % 3],
        status,
        transaction: random.next_u64(),
        attribute: random.next_u64() as u16,
        modifier: random.next_u64() as u32,
        route: route.expect("a route within its limit"),
        data,
    }
}

#[test]
fn a_datagram_survives_encode_and_decode() {
    let mut random = SeededRandom::new(1);
    for _ in 0..2_000 {
        let mad = some(&mut random);
        assert_eq!(Mad::decode(&mad.encode()), Ok(mad));
    }
}

#[test]
fn bytes_are_as_in_the_specification() {
    let mut mad = Mad::get(Class::SubnetByRoute, 0x11, 7);
    mad.route = Route::new(&[1, 33]).expect("a route");
    mad.transaction = 0x1122_3344;
    let bytes = mad.encode();
    assert_eq!(bytes[..8], [1, 0x81, 1, 1, 0, 0, 0, 2]);
    assert_eq!(bytes[8..24], [0, 0, 0, 0, 0x11, 0x22, 0x33, 0x44, 0, 0x11, 0, 0, 0, 0, 0, 7]);
    assert_eq!(bytes[32..36], [0xff; 4]);
    assert_eq!(bytes[128..132], [0, 1, 33, 0]);
}

#[test]
fn what_is_not_a_datagram_is_refused() {
    let good = Mad::get(Class::Performance, 1, 0).encode();
    assert_eq!(Mad::decode(&good[..255]), Err(NotMad::Short(255)));
    let with = |at: usize, byte: u8| {
        let mut bytes = good;
        bytes[at] = byte;
        Mad::decode(&bytes)
    };
    assert_eq!(with(0, 2), Err(NotMad::Version(2)));
    assert_eq!(with(1, 7), Err(NotMad::Class(7)));
    assert_eq!(with(3, 9), Err(NotMad::Method(9)));
    let mut route = Mad::get(Class::SubnetByRoute, 1, 0).encode();
    route[7] = 64;
    assert_eq!(Mad::decode(&route), Err(NotMad::Hops(64)));
}

/// The seeds of the fuzz target.
fn seeds() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/mad");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("seeds").flatten().map(|entry| entry.path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).expect("a seed")).collect()
}

/// What the fuzz target checks: an error, or a datagram that survives; and every attribute is read.
fn check(bytes: &[u8]) -> bool {
    let node = NodeInfo::decode(bytes);
    assert_eq!(NodeInfo::decode(&node.encode()), node);
    let port = PortInfo::decode(bytes);
    assert_eq!(PortInfo::decode(&port.encode()), port);
    let _ = (port.speed(), port.speed_max(), port.lanes_max(), port.bytes_per_second());
    let counters = PortCounters::decode(bytes);
    assert_eq!(PortCounters::decode(&counters.encode()), counters);
    let extended = ExtendedCounters::decode(bytes);
    assert_eq!(ExtendedCounters::decode(&extended.encode()), extended);
    let _ = (attribute::description(bytes), attribute::pkeys(bytes), attribute::sm_state(bytes));
    let Ok(mad) = Mad::decode(bytes) else { return false };
    assert_eq!(Mad::decode(&mad.encode()), Ok(mad));
    true
}

#[test]
fn mutated_datagrams() {
    let seeds = seeds();
    assert!(seeds.len() >= 4 && seeds.iter().all(|seed| check(seed)), "{} seeds", seeds.len());
    let mut random = SeededRandom::new(42);
    let mut read = 0;
    for _ in 0..20_000 {
        let mut bytes = seeds[random.below(seeds.len() as u64) as usize].clone();
        for _ in 0..=random.below(6) {
            let at = random.below(bytes.len() as u64) as usize;
            match random.below(8) {
                0 => bytes.truncate(at.max(1)),
                1 => bytes.insert(at, random.below(256) as u8),
                2..=4 => bytes[at] = random.below(256) as u8,
                _ => bytes[at] ^= 1 << random.below(8),
            }
        }
        read += u32::from(check(&bytes));
    }
    assert!((2_000..20_000).contains(&read), "{read}");
}
