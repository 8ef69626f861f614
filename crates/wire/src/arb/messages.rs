//! Arbitrary values of the messages that are written by hand, not by `xdr_struct!`.

use base::limits::{AUTH_SYS_GIDS_MAX, AUTH_SYS_NAME_MAX, MOUNT_FLAVORS_MAX, RPC_AUTH_MAX};

use super::{Arb, Gen};
use crate::mount3::{Flavors, List, MntRes, Mountstat3};
use crate::nfs3::*;
use crate::rpc::{Accepted, Auth, AuthSys, CallHeader, Denied, Gids, ReplyBody, ReplyHeader};
use crate::xdr::{Decode, Encode, Writer};

impl<'a> Arb<'a> for &'a [u8] {
    fn arb(g: &mut Gen<'a>) -> Self {
        g.bytes(200)
    }
}

impl Arb<'_> for Fattr3 {
    fn arb(g: &mut Gen<'_>) -> Self {
        Self {
            ftype: g.arb(),
            mode: g.arb(),
            nlink: g.arb(),
            uid: g.arb(),
            gid: g.arb(),
            size: g.arb(),
            used: g.arb(),
            rdev: g.arb(),
            fsid: g.arb(),
            fileid: g.arb(),
            atime: g.arb(),
            mtime: g.arb(),
            ctime: g.arb(),
        }
    }
}

impl Arb<'_> for SetTime {
    fn arb(g: &mut Gen<'_>) -> Self {
        match g.byte() % 3 {
            0 => Self::DontChange,
            1 => Self::ServerTime,
            _ => Self::ClientTime(g.arb()),
        }
    }
}

impl Arb<'_> for CreateHow {
    fn arb(g: &mut Gen<'_>) -> Self {
        match g.byte() % 3 {
            0 => Self::Unchecked(g.arb()),
            1 => Self::Guarded(g.arb()),
            _ => Self::Exclusive(g.arb()),
        }
    }
}

impl Arb<'_> for MknodData {
    fn arb(g: &mut Gen<'_>) -> Self {
        match g.byte() % 5 {
            0 => Self::Chr(g.arb(), g.arb()),
            1 => Self::Blk(g.arb(), g.arb()),
            2 => Self::Sock(g.arb()),
            3 => Self::Fifo(g.arb()),
            _ => Self::Other(if g.arb() { Ftype3::REG } else { Ftype3(g.arb::<u32>() | 64) }),
        }
    }
}

impl<'a, O: Arb<'a>, F: Arb<'a>> Arb<'a> for Res<O, F> {
    fn arb(g: &mut Gen<'a>) -> Self {
        if g.arb() {
            return Self::Ok(g.arb());
        }
        let status = g.arb::<Nfsstat3>();
        Self::Fail(if status.is_ok() { Nfsstat3::IO } else { status }, g.arb())
    }
}

/// Entries are kept in XDR, so they are made by encoding some. Those bytes live as long as the
/// test's process: there is nothing shorter that the list could borrow from.
impl<'a, E> Arb<'a> for DirEntries<'a, E>
where
    E: Arb<'a> + Encode + Decode<'a>,
{
    fn arb(g: &mut Gen<'a>) -> Self {
        let mut bytes = Vec::new();
        let mut w = Writer::new(&mut bytes);
        for entry in g.list::<E>(6) {
            w.bool(true);
            entry.encode(&mut w);
        }
        w.bool(false);
        crate::xdr::decode_all(bytes.leak()).expect("entries that were just encoded")
    }
}

impl<'a> Arb<'a> for Auth<'a> {
    fn arb(g: &mut Gen<'a>) -> Self {
        match g.byte() % 3 {
            0 => Self::None,
            1 => Self::Sys(g.arb()),
            _ => Self::Raw { flavor: g.arb::<u32>() | 2, body: g.bytes(RPC_AUTH_MAX) },
        }
    }
}

impl<'a> Arb<'a> for AuthSys<'a> {
    fn arb(g: &mut Gen<'a>) -> Self {
        Self {
            stamp: g.arb(),
            machine: g.bytes(AUTH_SYS_NAME_MAX),
            uid: g.arb(),
            gid: g.arb(),
            gids: Gids::new(&g.list::<u32>(AUTH_SYS_GIDS_MAX)),
        }
    }
}

impl<'a> Arb<'a> for CallHeader<'a> {
    fn arb(g: &mut Gen<'a>) -> Self {
        Self {
            xid: g.arb(),
            prog: g.arb(),
            vers: g.arb(),
            proc: g.arb(),
            cred: g.arb(),
            verf: g.arb(),
        }
    }
}

impl<'a> Arb<'a> for ReplyHeader<'a> {
    fn arb(g: &mut Gen<'a>) -> Self {
        let body = match g.byte() % 8 {
            0 => ReplyBody::Denied(Denied::RpcMismatch { low: g.arb(), high: g.arb() }),
            1 => ReplyBody::Denied(Denied::AuthError(g.arb())),
            n => {
                let stat = match n {
                    2 => Accepted::Success,
                    3 => Accepted::ProgUnavail,
                    4 => Accepted::ProgMismatch { low: g.arb(), high: g.arb() },
                    5 => Accepted::ProcUnavail,
                    6 => Accepted::GarbageArgs,
                    _ => Accepted::SystemErr,
                };
                ReplyBody::Accepted { verf: g.arb(), stat }
            }
        };
        Self { xid: g.arb(), body }
    }
}

impl Arb<'_> for Flavors {
    fn arb(g: &mut Gen<'_>) -> Self {
        Self(g.list(MOUNT_FLAVORS_MAX))
    }
}

impl<'a, T: Arb<'a>> Arb<'a> for List<T> {
    fn arb(g: &mut Gen<'a>) -> Self {
        Self(g.list(5))
    }
}

impl<'a> Arb<'a> for MntRes<'a> {
    fn arb(g: &mut Gen<'a>) -> Self {
        if g.arb() {
            return Self::Ok(g.arb());
        }
        let status = g.arb::<Mountstat3>();
        Self::Fail(if status == Mountstat3::OK { Mountstat3::IO } else { status })
    }
}
