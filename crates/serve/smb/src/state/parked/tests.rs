//! Opens that wait for their client: for which, until when, and how many.

use std::net::Ipv4Addr;

use vfs::locks::{ClientKey, Protocol};

use super::*;

fn lease(number: u8) -> Owner {
    Owner::new(ClientKey { protocol: Protocol::Smb, id: 1 }, &[number]).expect("an owner")
}

fn key(host: u8, client: u8, number: u8, until_ns: u64) -> ParkedKey {
    let address = IpAddr::V4(Ipv4Addr::new(10, 0, 0, host));
    ParkedKey { address, client: [client; 16], lease: Some(lease(number)), until_ns }
}

fn parked(all: &Arc<ParkedOpens<u32>>, key: ParkedKey, what: u32) -> DurableId<u32> {
    let id = all.new_id();
    all.park(id.number, key, what).expect("room");
    id
}

#[test]
fn one_is_taken_once_and_by_its_client_only() {
    let all = Arc::new(ParkedOpens::<u32>::default());
    let id = parked(&all, key(1, 1, 1, 100), 7);
    let number = id.number;
    assert_eq!(all.take(number + 1, |_, _| Ok(()), "none"), Err("none"));
    assert_eq!(all.take(number, |_, _| Err("another's"), "none"), Err("another's"));
    assert_eq!(all.inner().parked.len(), 1, "a refused attempt takes nothing");
    assert_eq!(all.take(number, |_, what| if *what == 7 { Ok(()) } else { Err("") }, ""), Ok(7));
    assert_eq!(all.take(number, |_, _| Ok(()), "connected"), Err("connected"));
    assert_eq!(all.inner().parked.len(), 0);
    drop(id);
    assert!(all.inner().connected.is_empty() && all.inner().by_address.is_empty());
}

#[test]
fn deadlines_end_what_waits_and_nothing_earlier() {
    let all = Arc::new(ParkedOpens::<u32>::default());
    let ids = [parked(&all, key(1, 1, 1, 100), 1), parked(&all, key(1, 1, 2, 200), 2)];
    assert_eq!(all.take_late(99), Vec::<u32>::new());
    assert_eq!(all.take_late(100), [1]);
    assert_eq!(all.rows(150, 9, |_, what, left| (*what, left)), [(2, 50)]);
    assert_eq!(all.take_if(|what| *what == 2), [2], "its user is removed");
    drop(ids);
    assert!(all.inner().by_lease.is_empty() && all.inner().by_time.is_empty());
}

#[test]
fn all_are_gone_through_in_pieces_between_which_others_can_be_taken() {
    let all = Arc::new(ParkedOpens::<u32>::default());
    let ids: Vec<_> = (0..10).map(|what| parked(&all, key(1, 1, 1, 100), what)).collect();
    let (mut last, mut met) = (None, Vec::new());
    loop {
        let some = all.after(last, 3, |what| *what);
        let Some((number, _)) = some.last() else { break };
        last = Some(*number);
        assert!(some.len() <= 3);
        for (id, what) in some {
            met.push(what);
            assert_eq!(all.take_any(id), Some(what), "the lock is free");
        }
    }
    met.sort_unstable();
    assert_eq!(met, (0..10).collect::<Vec<u32>>());
    assert!(all.by_address().is_empty() && all.inner().by_time.is_empty());
    drop(ids);
}

#[test]
fn a_broken_lease_ends_all_that_share_it() {
    let all = Arc::new(ParkedOpens::<u32>::default());
    let lives = [
        parked(&all, key(1, 1, 1, 100), 1),
        parked(&all, key(1, 1, 1, 100), 2),
        parked(&all, key(1, 1, 2, 100), 3),
    ];
    let mut ended = all.take_lease(&lease(1), |_| true);
    ended.sort_unstable();
    assert_eq!((ended, all.inner().parked.len()), (vec![1, 2], 1));
    assert_eq!(all.take_lease(&lease(1), |_| true), Vec::<u32>::new());
    drop(lives);
}

#[test]
fn one_client_and_one_address_leave_a_part_to_others() {
    let all = Arc::new(ParkedOpens::<u32>::default());
    let mut ids = Vec::new();
    let mut fill = |host, client| {
        let before = ids.len();
        loop {
            let id = all.new_id();
            if all.park(id.number, key(host, client, 1, 100), 0).is_err() {
                return ids.len() - before;
            }
            ids.push(id);
        }
    };
    let first = fill(1, 1);
    assert!(first > 0 && (first as u64) < SMB_PARKED_MAX * 3 / 4, "{first}");
    assert!(fill(1, 2) > 0, "another client of that address");
    let other = fill(2, 1) as u64;
    assert!(other > 0, "another address");
    let mut counts = all.by_address();
    counts.sort_unstable();
    assert_eq!(counts.iter().map(|(_, count)| *count).sum::<u64>(), ids.len() as u64);
    assert_eq!(counts.last().map(|(_, count)| *count), Some(other));
}

#[test]
fn nothing_waits_for_a_service_that_has_ended() {
    let all = Arc::new(ParkedOpens::<u32>::default());
    let id = parked(&all, key(1, 1, 1, u64::MAX), 1);
    assert_eq!(all.set_open(false), [1]);
    let other = all.new_id();
    assert_eq!(all.park(other.number, key(1, 1, 1, 100), 2), Err(2));
    all.set_open(true);
    assert_eq!(all.park(other.number, key(1, 1, 1, 100), 2), Ok(()));
    drop(id);
}

#[tokio::test]
async fn a_client_waits_until_the_lost_connection_is_noticed() {
    let all = Arc::new(ParkedOpens::<u32>::default());
    let id = all.new_id();
    let number = id.number;
    let mut waits = std::pin::pin!(all.parked(number));
    let polled =
        std::future::poll_fn(|cx| std::task::Poll::Ready(waits.as_mut().poll(cx).is_pending()));
    assert!(polled.await, "it has a connection");
    all.park(number, key(1, 1, 1, 100), 1).expect("room");
    waits.await;
    all.parked(number + 1).await;
}
