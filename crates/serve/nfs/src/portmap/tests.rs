//! Tests of the port mapper: its replies to each caller, by each of its three versions.

use wire::rpc::{Accepted, Auth, ReplyBody, ReplyHeader};
use wire::xdr::{Encode, Writer, decode_all};

use super::*;

const NLM: u32 = 100_021;
const STREAM: Origin =
    Origin { address: IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), port: 40_000, connected: true };
const DATAGRAM: Origin = Origin { connected: false, ..STREAM };

fn map(address: &str) -> PortMap {
    let programs = vec![
        Entry { prog: NLM, vers: 4, udp: false, port: 2049 },
        Entry { prog: 100_024, vers: 1, udp: true, port: 2050 },
    ];
    PortMap::new(address.parse().unwrap(), 111, programs)
}

/// The results of a call; how it failed otherwise.
fn ask(
    map: &PortMap,
    origin: Origin,
    (vers, proc): (u32, u32),
    args: &impl Encode,
) -> Result<Vec<u8>, Accepted> {
    let mut call = Vec::new();
    let w = &mut Writer::new(&mut call);
    let (cred, verf) = (Auth::None, Auth::None);
    CallHeader { xid: 5, prog: PMAP_PROGRAM, vers, proc, cred, verf }.encode(w);
    args.encode(w);
    let Answer::Now(reply) = map.answer(&call, origin) else { panic!("an answer at once") };
    let mut r = Reader::new(&reply);
    let header = ReplyHeader::decode(&mut r).unwrap();
    assert_eq!(header.xid, 5);
    match header.body {
        ReplyBody::Accepted { stat: Accepted::Success, .. } => Ok(r.rest().to_vec()),
        ReplyBody::Accepted { stat, .. } => Err(stat),
        ReplyBody::Denied(_) => panic!("denied"),
    }
}

fn port(prog: u32, vers: u32, prot: u32) -> u32 {
    let asked = Mapping { prog, vers, prot, port: 0 };
    let reply = ask(&map("0.0.0.0"), DATAGRAM, (2, 3), &asked).unwrap();
    Reader::new(&reply).u32("port").unwrap()
}

#[test]
fn getport_knows_our_programs() {
    assert_eq!(port(NLM, 4, IPPROTO_TCP), 2049);
    assert_eq!(port(NLM, 4, IPPROTO_UDP), 0);
    assert_eq!(port(NLM, 1, IPPROTO_TCP), 2049, "the program itself says which version it has");
    assert_eq!(port(100_024, 1, IPPROTO_UDP), 2050);
    assert_eq!(port(PMAP_PROGRAM, 2, IPPROTO_UDP), 111);
    assert_eq!(port(100_007, 2, IPPROTO_TCP), 0);
    assert_eq!(port(NLM, 4, 1), 0);
}

fn address(at: &str, netid: &str, hint: &str, (vers, proc): (u32, u32), of: u32) -> String {
    let (netid, addr) = (RpcbString(netid.as_bytes()), RpcbString(hint.as_bytes()));
    let asked = Rpcb { prog: NLM, vers: of, netid, addr, owner: RpcbString(b"") };
    let reply = ask(&map(at), STREAM, (vers, proc), &asked).unwrap();
    let text: RpcbString<'_> = decode_all(&reply).unwrap();
    String::from_utf8(text.0.to_vec()).unwrap()
}

#[test]
fn getaddr_answers_with_the_address_that_was_asked() {
    for vers in [3, 4] {
        let getaddr = (vers, rpcb::GETADDR);
        assert_eq!(address("::", "tcp6", "fe80::1.0.111", getaddr, 4), "fe80::1.8.1");
        assert_eq!(address("10.0.0.1", "tcp", "10.9.9.9.0.111", getaddr, 4), "10.0.0.1.8.1");
        assert_eq!(address("0.0.0.0", "", "rubbish", getaddr, 4), "0.0.0.0.8.1");
        assert_eq!(address("0.0.0.0", "udp", "", getaddr, 4), "");
        assert_eq!(address("0.0.0.0", "ticotsord", "", getaddr, 4), "");
        assert_eq!(address("10.0.0.1", "tcp", "", getaddr, 1), "10.0.0.1.8.1");
    }
    let exact = (4, rpcb::GETVERSADDR);
    assert_eq!(address("10.0.0.1", "tcp", "", exact, 4), "10.0.0.1.8.1");
    assert_eq!(address("10.0.0.1", "tcp", "", exact, 1), "");
}

#[test]
fn lists_are_for_connections_only() {
    let map = map("10.0.0.1");
    for vers in [2, 3, 4] {
        assert_eq!(ask(&map, DATAGRAM, (vers, 4), &()), Err(Accepted::ProcUnavail));
        assert!(ask(&map, STREAM, (vers, 4), &()).is_ok());
    }
    let reply = ask(&map, STREAM, (2, 4), &()).unwrap();
    let list: List<Mapping> = decode_all(&reply).unwrap();
    assert_eq!(list.0.len(), 8);
    assert!(list.0.contains(&Mapping { prog: NLM, vers: 4, prot: IPPROTO_TCP, port: 2049 }));
    let reply = ask(&map, STREAM, (4, 4), &()).unwrap();
    let list: List<Rpcb<'_>> = decode_all(&reply).unwrap();
    assert_eq!(list.0.len(), 8);
    assert!(list.0.iter().any(|r| r.netid.0 == b"udp" && r.addr.0 == b"10.0.0.1.8.2"));
}

#[test]
fn no_client_registers_or_calls_through() {
    let map = map("10.0.0.1");
    let mapping = Mapping { prog: 1, vers: 1, prot: IPPROTO_TCP, port: 7 };
    for proc in [1, 2] {
        assert_eq!(ask(&map, STREAM, (2, proc), &mapping), Ok(vec![0; 4]));
    }
    for vers in [2, 3, 4] {
        assert_eq!(ask(&map, STREAM, (vers, 5), &mapping), Err(Accepted::ProcUnavail));
    }
    assert_eq!(ask(&map, STREAM, (2, 3), &7u32), Err(Accepted::GarbageArgs));
    assert_eq!(ask(&map, STREAM, (5, 0), &()), Err(Accepted::ProgMismatch { low: 2, high: 4 }));
    assert!(matches!(map.answer(b"rubbish", DATAGRAM), Answer::Nothing));
}
