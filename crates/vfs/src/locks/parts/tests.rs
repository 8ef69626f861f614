//! However many come, the next one from another address finds room; and the account is exact.

use std::net::{IpAddr, Ipv4Addr};

use super::*;
use crate::locks::{FileKey, Kind, LockTable, Protocol, Range, Refused, Share};

const KEY: FileKey = FileKey { fsid: 1, fileid: 2, generation: 3 };

fn address(n: u8) -> IpAddr {
    Ipv4Addr::new(192, 0, 2, n).into()
}

fn owner(client: u64, n: u32, from: u8) -> Owner {
    let client = ClientKey { protocol: Protocol::Smb, id: client };
    Owner::new(client, &n.to_be_bytes()).expect("short").at(address(from))
}

#[test]
fn each_newcomer_finds_room() {
    let most = 1_000_000;
    let (mut used, mut parts) = (0, Vec::new());
    for _ in 0..5 {
        let mut address = 0;
        for _ in 0..3 {
            let mut own = PartOf { address, client: 0 };
            while (Limit { most, used }).permits(own, 1) {
                own = PartOf { address: own.address + 1, client: own.client + 1 };
                used += 1;
            }
            address = own.address;
            assert!(own.client > 100, "{parts:?}");
            parts.push(own.client);
        }
    }
    assert!(used < most, "{used}");
    assert_eq!(parts[0], 562_500, "three quarters of three quarters");
    assert!(parts[0] + parts[1] + parts[2] <= 750_000, "an address: {parts:?}");
}

#[test]
fn little_is_permitted_without_an_account() {
    assert!(Limit { most: 100, used: 20 }.is_ample(1));
    assert!(!Limit { most: 100, used: 60 }.is_ample(1));
    assert!(!Limit { most: 100, used: 100 }.permits(PartOf::default(), 1));
}

/// One client takes all ranges and opens of a file that it can get, then the others of its address;
/// another address finds room, for each of them.
#[test]
fn a_file_has_room_for_another_address() {
    let table = LockTable::default();
    let range = |at: u64| Range { start: at, end: at };
    let share = Share { access: 1, deny: 0 };
    let (mut locks, mut opens) = (0, 0);
    for client in 0..4 {
        for n in 0..20_000_u32 {
            let who = owner(client, n % 8, 1);
            match table.lock(KEY, &who, range(locks * 2), Kind::Write) {
                Ok(()) => locks += 1,
                Err(refused) => {
                    assert_eq!(refused, Refused::Full);
                    break;
                }
            }
        }
        for n in 0..20_000_u32 {
            match table.open(KEY, &owner(client, n, 1), share) {
                Ok(_) => opens += 1,
                Err(refused) => {
                    assert_eq!(refused, Refused::Full);
                    break;
                }
            }
        }
    }
    assert!((5_000..=6_144).contains(&locks), "three quarters: {locks}");
    assert!((6_000..=7_500).contains(&opens), "three quarters: {opens}");
    let newcomer = owner(9, 0, 2);
    table.lock(KEY, &newcomer, range(1_000_001), Kind::Write).expect("another address");
    table.open(KEY, &newcomer, share).expect("another address");
    assert_eq!(table.parts.addresses(), 2);
    (0..4).for_each(|id| table.release_client(ClientKey { protocol: Protocol::Smb, id }));
    table.release(KEY, &newcomer);
    assert_eq!(table.parts.addresses(), 0, "what is not held is not counted");
    assert_eq!((table.counts().locks, table.counts().opens), (0, 0));
}
