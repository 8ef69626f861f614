//! The target of FTP: what the control connection and a listing may bring.

use crate::ftp::ascii::Ends;
use crate::ftp::facts::{self, Facts};
use crate::ftp::line::Lines;
use crate::ftp::{addr, date, reply, request};
use crate::xdr::Reader;

/// Commands, a reply, facts, text or an address, selected by the first number.
pub fn any(data: &[u8]) -> bool {
    let mut r = Reader::new(data);
    let Ok(which) = r.u32("which") else { return false };
    let rest = r.rest();
    match which {
        0 => commands(rest),
        1 => replies(rest),
        2 => entry(rest),
        3 => text(rest),
        4 => address(rest),
        _ => false,
    }
}

/// Lines are the same however they are cut on the way, and a command means the same once more.
fn commands(data: &[u8]) -> bool {
    let (mut whole, mut pieces) = (Lines::new(), Lines::new());
    whole.push(data);
    let mut all = true;
    let mut from_pieces = Vec::new();
    for piece in data.chunks(7) {
        pieces.push(piece);
        from_pieces.extend(std::iter::from_fn(|| pieces.cut()));
    }
    let lines: Vec<_> = std::iter::from_fn(|| whole.cut()).collect();
    assert_eq!(lines, from_pieces);
    for line in &lines {
        let Ok(line) = line else {
            all = false;
            continue;
        };
        let parsed = request::parse(line);
        let Ok(request) = parsed.request else {
            all = false;
            continue;
        };
        let mut sent = Vec::new();
        request.encode(&mut sent);
        let mut again = Lines::new();
        again.push(&sent);
        let again = again.cut().expect("a line").expect("no longer than it was");
        assert_eq!(request::parse(&again), parsed);
    }
    all && !lines.is_empty()
}

fn replies(data: &[u8]) -> bool {
    match reply::decode(data) {
        Ok(Some((first, taken))) => {
            assert!(taken <= data.len());
            let mut sent = Vec::new();
            first.encode(&mut sent);
            assert_eq!(reply::decode(&sent), Ok(Some((first, sent.len()))));
            true
        }
        _ => false,
    }
}

fn entry(line: &[u8]) -> bool {
    let Ok(first) = facts::entry(line) else { return false };
    let mut sent = Vec::new();
    first.encode(Facts::default(), &mut sent);
    assert_eq!(facts::entry(&sent).as_ref(), Ok(&first));
    true
}

/// What a file has comes back, but for line ends that were those of the wire already.
fn text(file: &[u8]) -> bool {
    let (mut wire, mut back, mut len) = (Vec::new(), Vec::new(), 0);
    let (mut out, mut count, mut ends) = (Ends::default(), Ends::default(), Ends::default());
    for piece in file.chunks(5) {
        out.outward(piece, &mut wire);
        len += count.wire_len(piece);
    }
    assert_eq!(wire.len() as u64, len);
    for piece in wire.chunks(3) {
        ends.inward(piece, &mut back);
    }
    ends.finish(&mut back);
    if !file.contains(&b'\r') {
        assert_eq!(back, file);
    }
    true
}

/// Where data connections go, and times: what is taken means the same once more.
fn address(said: &[u8]) -> bool {
    let (passive, extended) = (addr::pasv_reply(said), addr::epsv_reply(said));
    if let Ok(at) = passive {
        assert_eq!(addr::pasv_reply(format!("({})", addr::port_text(at)).as_bytes()), Ok(at));
    }
    if let Ok(port) = extended {
        assert_eq!(addr::epsv_reply(format!("({})", addr::epsv_text(port)).as_bytes()), Ok(port));
    }
    let port = addr::port(said);
    if let Ok(at) = port {
        assert_eq!(addr::port(addr::port_text(at).as_bytes()), Ok(at));
    }
    let eprt = addr::eprt(said);
    if let Ok(at) = eprt {
        assert_eq!(addr::eprt(addr::eprt_text(at).as_bytes()), Ok(at));
    }
    let time = date::time(said);
    passive.is_ok() || extended.is_ok() || port.is_ok() || eprt.is_ok() || time.is_ok()
}
