//! Leases and breaks, encoded and decoded.

use super::*;

const KEY: LeaseKey = [7; 16];
const FILE: FileId = FileId { persistent: 3, volatile: 4 };

fn message(body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = vec![0; HEADER];
    body(&mut out);
    out
}

#[test]
fn contexts_round_trip() {
    let v2 = LeaseV2 { parent: [9; 16], epoch: 258, reserved: 0 };
    for (v2, length) in [(None, 32), (Some(v2), 52)] {
        let lease = Lease { key: KEY, state: 7, flags: 4, duration: 0, v2 };
        let mut out = Vec::new();
        lease.put(&mut out);
        assert_eq!(out.len(), length);
        assert_eq!(Lease::decode(&out), Ok(lease));
        out.push(0);
        assert_eq!(Lease::decode(&out), Err(SmbError::Value("lease")));
        assert!(Lease::decode(&out[..20]).is_err());
    }
}

#[test]
fn breaks_round_trip() {
    let oplock = OplockBreak { level: level::II, reserved: 0, reserved2: 0, file: FILE };
    let ack = LeaseAck { reserved: 0, flags: 0, key: KEY, state: 3, duration: 0 };
    for one in [Ack::Oplock(oplock), Ack::Lease(ack)] {
        let bytes = message(|out| one.put(out));
        assert_eq!(Ack::decode(&bytes), Ok(one));
        assert_eq!(Notice::decode(&bytes), Ok(Notice::Other(one)));
    }
    let broken = LeaseBreak { epoch: 2, flags: 1, key: KEY, from: 7, to: 3, hints: [0; 12] };
    let bytes = message(|out| broken.put_body(out));
    assert_eq!(bytes.len(), HEADER + 44);
    assert_eq!(Notice::decode(&bytes), Ok(Notice::Lease(broken)));
    assert!(Ack::decode(&bytes).is_err(), "no client sends a notification");
}
