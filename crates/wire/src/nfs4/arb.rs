//! Arbitrary values of the messages that are written by hand.

use super::*;
use crate::arb::{Arb, Gen};

impl Arb<'_> for Bitmap4 {
    fn arb(g: &mut Gen<'_>) -> Self {
        let numbers: Vec<u32> = g.list::<u32>(5).into_iter().map(|n| n % 127).collect();
        Self::of(&numbers)
    }
}

/// A failure's status: any but NFS4_OK and those that bring something along.
fn failure(g: &mut Gen<'_>) -> Nfsstat4 {
    let with_more =
        [Nfsstat4::OK, Nfsstat4::DENIED, Nfsstat4::CLID_INUSE, Nfsstat4::OFFLOAD_NO_REQS];
    let status = g.arb::<Nfsstat4>();
    if with_more.contains(&status) { Nfsstat4::DELAY } else { status }
}

impl<'a, O: Arb<'a>, F: Arb<'a>> Arb<'a> for Res4<O, F> {
    fn arb(g: &mut Gen<'a>) -> Self {
        if g.arb() { Self::Ok(g.arb()) } else { Self::Fail(failure(g), g.arb()) }
    }
}

impl<'a, O: Arb<'a>> Arb<'a> for LockRes4<'a, O> {
    fn arb(g: &mut Gen<'a>) -> Self {
        match g.byte() % 3 {
            0 => Self::Ok(g.arb()),
            1 => Self::Denied(g.arb()),
            _ => Self::Fail(failure(g)),
        }
    }
}

impl Arb<'_> for CopyRes4 {
    fn arb(g: &mut Gen<'_>) -> Self {
        match g.byte() % 3 {
            0 => Self::Ok(g.arb()),
            1 => Self::NoReqs(g.arb()),
            _ => Self::Fail(failure(g)),
        }
    }
}

impl<'a> Arb<'a> for SetclientidRes4<'a> {
    fn arb(g: &mut Gen<'a>) -> Self {
        match g.byte() % 3 {
            0 => Self::Ok(g.arb()),
            1 => Self::InUse(g.arb()),
            _ => Self::Fail(failure(g)),
        }
    }
}

impl Arb<'_> for OffloadInfo4 {
    fn arb(g: &mut Gen<'_>) -> Self {
        if g.arb() { Self::Ok(g.arb()) } else { Self::Fail(failure(g), g.arb()) }
    }
}

impl<'a> Arb<'a> for Createtype4<'a> {
    fn arb(g: &mut Gen<'a>) -> Self {
        match g.byte() % 4 {
            0 => Self::Link(g.arb()),
            1 => Self::Block(g.arb()),
            2 => Self::Character(g.arb()),
            _ => Self::Other(if g.arb() { Ftype4::DIR } else { Ftype4::REG }),
        }
    }
}

impl<'a> Arb<'a> for Secinfo4<'a> {
    fn arb(g: &mut Gen<'a>) -> Self {
        if g.arb() { Self::Gss(g.arb()) } else { Self::Flavor(u32::from(g.byte() % 6)) }
    }
}

impl Arb<'_> for OpenNoneDelegation4 {
    fn arb(g: &mut Gen<'_>) -> Self {
        let why = u32::from(g.byte() % 9);
        let has_signal =
            why == why_no_delegation4::CONTENTION || why == why_no_delegation4::RESOURCE;
        Self { why, will_tell: has_signal && g.arb() }
    }
}
