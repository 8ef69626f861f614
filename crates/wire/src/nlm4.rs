//! Network Lock Manager, version 4 (X/Open XNFS, chapter 14 as amended for NFSv3; RFC 1813,
//! appendix II): byte-range locks and DOS shares of NFSv3 clients, and the calls back to them.

use base::limits::NLM_STRING_MAX;

use crate::xdr::{Decode, DecodeError, Encode, Reader, Writer};

#[cfg(test)]
mod tests;

/// RPC program number of the lock manager.
pub const NLM_PROGRAM: u32 = 100_021;
/// The version for NFSv3.
pub const NLM_V4: u32 = 4;

xdr_enum! {
    /// A procedure number. Each `*_MSG` is answered by a call of the `*_RES` with the same name in
    /// the other direction.
    pub enum Proc {
        /// Do nothing.
        NULL = 0 "null",
        /// Test for a conflicting lock; returns its holder.
        TEST = 1 "test",
        /// Take a lock, or wait for it.
        LOCK = 2 "lock",
        /// End waiting.
        CANCEL = 3 "cancel",
        /// Let go of a lock.
        UNLOCK = 4 "unlock",
        /// From server to client: the lock that was waited for is held.
        GRANTED = 5 "granted",
        /// As TEST.
        TEST_MSG = 6 "test_msg",
        /// As LOCK.
        LOCK_MSG = 7 "lock_msg",
        /// As CANCEL.
        CANCEL_MSG = 8 "cancel_msg",
        /// As UNLOCK.
        UNLOCK_MSG = 9 "unlock_msg",
        /// As GRANTED.
        GRANTED_MSG = 10 "granted_msg",
        /// The answer to TEST_MSG.
        TEST_RES = 11 "test_res",
        /// The answer to LOCK_MSG.
        LOCK_RES = 12 "lock_res",
        /// The answer to CANCEL_MSG.
        CANCEL_RES = 13 "cancel_res",
        /// The answer to UNLOCK_MSG.
        UNLOCK_RES = 14 "unlock_res",
        /// The answer to GRANTED_MSG.
        GRANTED_RES = 15 "granted_res",
        /// Open with a deny mode.
        SHARE = 20 "share",
        /// End such an open.
        UNSHARE = 21 "unshare",
        /// Take a lock of a host that is not monitored.
        NM_LOCK = 22 "nm_lock",
        /// Let go of everything that a host has.
        FREE_ALL = 23 "free_all",
    }
}

xdr_enum! {
    /// `nlm4_stats`.
    pub enum Nlm4Stat {
        /// The call succeeded.
        GRANTED = 0 "NLM4_GRANTED",
        /// A lock is in the way.
        DENIED = 1 "NLM4_DENIED",
        /// The server has no room.
        DENIED_NOLOCKS = 2 "NLM4_DENIED_NOLOCKS",
        /// The call waits; the server will call back.
        BLOCKED = 3 "NLM4_BLOCKED",
        /// Only what was held before the server's restart can be had now.
        DENIED_GRACE_PERIOD = 4 "NLM4_DENIED_GRACE_PERIOD",
        /// To wait would never end.
        DEADLCK = 5 "NLM4_DEADLCK",
        /// The share is read-only.
        ROFS = 6 "NLM4_ROFS",
        /// The file is gone.
        STALE_FH = 7 "NLM4_STALE_FH",
        /// Offset and length are too large.
        FBIG = 8 "NLM4_FBIG",
        /// Something else is wrong.
        FAILED = 9 "NLM4_FAILED",
    }
}

xdr_bytes! {
    /// `netobj`: a cookie, a handle, an owner.
    pub struct Netobj, NLM_STRING_MAX, "netobj"
}

xdr_bytes! {
    /// The name of a host (`caller_name`).
    pub struct HostName, NLM_STRING_MAX, "caller_name"
}

xdr_structs! {
    /// A lock (`nlm4_lock`); a length of 0 is to the end of the file.
    #[derive(Copy)]
    Nlm4Lock<'a> {
        caller_name: HostName<'a>, fh: Netobj<'a>, oh: Netobj<'a>, svid: u32, l_offset: u64,
        l_len: u64,
    }

    /// The lock that is in the way (`nlm4_holder`).
    #[derive(Copy)]
    Nlm4Holder<'a> { exclusive: bool, svid: u32, oh: Netobj<'a>, l_offset: u64, l_len: u64 }

    /// Arguments of TEST and GRANTED (`nlm4_testargs`).
    #[derive(Copy)]
    TestArgs<'a> { cookie: Netobj<'a>, exclusive: bool, alock: Nlm4Lock<'a> }

    /// Arguments of LOCK and NM_LOCK (`nlm4_lockargs`).
    #[derive(Copy)]
    LockArgs<'a> {
        cookie: Netobj<'a>, block: bool, exclusive: bool, alock: Nlm4Lock<'a>, reclaim: bool,
        state: u32,
    }

    /// Arguments of CANCEL (`nlm4_cancargs`).
    #[derive(Copy)]
    CancelArgs<'a> { cookie: Netobj<'a>, block: bool, exclusive: bool, alock: Nlm4Lock<'a> }

    /// Arguments of UNLOCK (`nlm4_unlockargs`).
    #[derive(Copy)]
    UnlockArgs<'a> { cookie: Netobj<'a>, alock: Nlm4Lock<'a> }

    /// Results of all but TEST, SHARE and UNSHARE (`nlm4_res`).
    #[derive(Copy)]
    Nlm4Res<'a> { cookie: Netobj<'a>, stat: Nlm4Stat }

    /// Results of TEST (`nlm4_testres`).
    #[derive(Copy)]
    TestRes<'a> { cookie: Netobj<'a>, stat: TestReply<'a> }

    /// A share (`nlm4_share`): `mode` is what it denies, `access` what it is for.
    #[derive(Copy)]
    Nlm4Share<'a> {
        caller_name: HostName<'a>, fh: Netobj<'a>, oh: Netobj<'a>, mode: u32, access: u32,
    }

    /// Arguments of SHARE and UNSHARE (`nlm4_shareargs`).
    #[derive(Copy)]
    ShareArgs<'a> { cookie: Netobj<'a>, share: Nlm4Share<'a>, reclaim: bool }

    /// Results of SHARE and UNSHARE (`nlm4_shareres`).
    #[derive(Copy)]
    ShareRes<'a> { cookie: Netobj<'a>, stat: Nlm4Stat, sequence: u32 }

    /// Arguments of FREE_ALL (`nlm4_notify`).
    #[derive(Copy)]
    NotifyArgs<'a> { name: HostName<'a>, state: u32 }
}

/// `nlm4_testrply`: with NLM4_DENIED comes the lock that is in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestReply<'a> {
    /// NLM4_DENIED.
    Denied(Nlm4Holder<'a>),
    /// Any other status. With [`Nlm4Stat::DENIED`] it cannot be sent.
    Other(Nlm4Stat),
}

impl TestReply<'_> {
    /// The status.
    pub const fn stat(&self) -> Nlm4Stat {
        match self {
            Self::Denied(_) => Nlm4Stat::DENIED,
            Self::Other(stat) => *stat,
        }
    }
}

impl Encode for TestReply<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        self.stat().encode(w);
        match self {
            Self::Denied(holder) => holder.encode(w),
            Self::Other(stat) => debug_assert!(*stat != Nlm4Stat::DENIED, "by host"),
        }
    }
}

impl<'a> Decode<'a> for TestReply<'a> {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(match Nlm4Stat::decode(r)? {
            Nlm4Stat::DENIED => Self::Denied(Nlm4Holder::decode(r)?),
            other => Self::Other(other),
        })
    }
}

/// The handle in the arguments of a procedure that has one: what a server looks at first.
pub fn handle_in(proc: Proc, args: &[u8]) -> Option<&[u8]> {
    let mut r = Reader::new(args);
    let r = &mut r;
    let fh = match proc {
        Proc::TEST | Proc::TEST_MSG | Proc::GRANTED | Proc::GRANTED_MSG => {
            TestArgs::decode(r).ok()?.alock.fh
        }
        Proc::LOCK | Proc::LOCK_MSG | Proc::NM_LOCK => LockArgs::decode(r).ok()?.alock.fh,
        Proc::CANCEL | Proc::CANCEL_MSG => CancelArgs::decode(r).ok()?.alock.fh,
        Proc::UNLOCK | Proc::UNLOCK_MSG => UnlockArgs::decode(r).ok()?.alock.fh,
        Proc::SHARE | Proc::UNSHARE => ShareArgs::decode(r).ok()?.share.fh,
        _ => return None,
    };
    Some(fh.0)
}
