//! Peers that send bytes that are no records, stop in the middle, or do nothing at all; others
//! notice nothing.

use std::net::TcpStream;
use std::sync::atomic::Ordering::Relaxed;

use base::limits::RPC_FRAGMENTS_MAX;
use base::random::{Random, SeededRandom};
use wire::nfs3::*;

use crate::client::stream::Stream;
use crate::client::{Client, PATIENCE};
use crate::procedures::getattr;
use crate::server::{Server, wait_for};

#[test]
fn random_bytes_end_only_their_connection() {
    let server = Server::fresh();
    let (mut other, root) = server.client();
    let mut random = SeededRandom::new(4);
    for _ in 0..50 {
        let mut bytes = vec![0; 1 + random.below(2000) as usize];
        random.fill(&mut bytes);
        let mut peer = Client::connect(server.addr);
        // The server may have closed it before all is sent.
        let _ = std::io::Write::write_all(&mut peer.stream, &bytes);
        peer.stream.shutdown(std::net::Shutdown::Write).ok();
        assert!(peer.is_closed());
        getattr(&mut other, &root).unwrap();
    }
    assert!(server.service().budgets().bad_records.load(Relaxed) > 0);
}

#[test]
fn oversized_and_endless_records_are_refused_at_once() {
    let server = Server::fresh();
    let huge = 0x8fff_ffff_u32.to_be_bytes().to_vec();
    let many_huge = 0x0fff_ffff_u32.to_be_bytes().to_vec();
    let empty_ones = [0; 4 * (RPC_FRAGMENTS_MAX + 1)].to_vec();
    let empty_record = (1_u32 << 31).to_be_bytes().to_vec();
    let reply = [0x8000_000c_u32, 9, 1, 0].iter().flat_map(|w| w.to_be_bytes()).collect();
    let cut_header = [0x8000_0008_u32, 9, 0].iter().flat_map(|w| w.to_be_bytes()).collect();
    for bytes in [huge, many_huge, empty_ones, empty_record, reply, cut_header] {
        let before = server.service().budgets().bad_records.load(Relaxed);
        let mut peer = Client::connect(server.addr);
        peer.send(&bytes);
        assert!(peer.is_closed(), "{bytes:x?}");
        wait_for("it is counted", || {
            (server.service().budgets().bad_records.load(Relaxed) > before).then_some(())
        });
    }
}

#[test]
fn silence_in_the_middle_of_a_record_affects_no_other_client() {
    let server = Server::fresh();
    let (mut other, root) = server.client();
    let record = other.nfs(Proc::GETATTR, &GetattrArgs { object: Fh3(&root) });
    let large = (0x8000_0000_u32 | (1 << 20)).to_be_bytes();
    let mut peers: Vec<_> = (0..100).map(|_| Client::connect(server.addr)).collect();
    for (n, peer) in peers.iter_mut().enumerate() {
        peer.send(&record[..n % record.len()]);
        if n % 10 == 0 {
            peer.send(&large);
        }
    }
    for _ in 0..100 {
        getattr(&mut other, &root).unwrap();
    }
}

#[test]
fn two_thousand_idle_connections_hold_no_buffers() {
    serve::transport::raise_descriptor_limit().unwrap();
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let idle: Vec<_> = (0..2000).map(|_| TcpStream::connect(server.addr).unwrap()).collect();
    let budgets = server.service().budgets();
    wait_for("all are accepted", || (budgets.connections() == 2001).then_some(()));
    for _ in 0..500 {
        getattr(&mut client, &root).unwrap();
    }
    wait_for("no buffers are held", || (budgets.bytes() == 0).then_some(()));
    // And they are alive.
    let stream = Stream::over(idle.into_iter().next_back().unwrap(), PATIENCE);
    let mut one = Client { stream, xid: 0, uid: 0, gid: 0 };
    getattr(&mut one, &root).unwrap();
}
