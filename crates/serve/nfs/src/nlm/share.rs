//! SHARE and UNSHARE: opens with a deny mode, of DOS clients.

use vfs::locks::{Owner, Refused, SHARE_READ, SHARE_WRITE, Share};
use wire::nlm4::{Nlm4Stat, ShareArgs};

use super::hosts::STATE_UNKNOWN;
use super::lock::stat;
use super::request::Request;
use super::status::Refusal;

/// `fsh4_mode` and `fsh4_access` are the same sets of bits as ours.
const ALL: u32 = (SHARE_READ | SHARE_WRITE) as u32;

impl Request<'_> {
    pub(super) fn share(&mut self, args: &ShareArgs<'_>) -> Result<Nlm4Stat, Refusal> {
        let share = &args.share;
        if share.access > ALL || share.mode > ALL {
            return Err(Nlm4Stat::FAILED.into());
        }
        let want = Share { access: share.access as u8, deny: share.mode as u8 };
        let file = self.lockable(share.fh, want.access & SHARE_WRITE != 0)?;
        self.admit_now(share.caller_name.0, args.reclaim)?;
        let nlm = self.nlm;
        let owner = self.owner(share.caller_name.0, 0, share.oh.0)?;
        self.evict_conflicting(|| nlm.locks.open_denied(file.key, &owner, want))?;
        let who = (self.caller.address, share.caller_name.0);
        nlm.with_host(who, true, self.may_block, |host, gate| {
            let owner = host.owner(0, share.oh.0).ok_or(Nlm4Stat::FAILED)?;
            gate.remember(file.handle, file.key, STATE_UNKNOWN);
            let done = match self.open(&owner, file.key, want) {
                Ok(()) => Nlm4Stat::GRANTED,
                Err(refused) => stat(&refused),
            };
            if done != Nlm4Stat::GRANTED {
                nlm.tidy(host, gate, file.handle, file.key);
            }
            Ok(done)
        })?
    }

    /// A second SHARE of an owner replaces its first.
    fn open(&self, owner: &Owner, key: vfs::locks::FileKey, want: Share) -> Result<(), Refused> {
        let locks = &self.nlm.locks;
        let has = locks.reopen(key, owner, want)?;
        if has == want { Ok(()) } else { locks.downgrade(key, owner, want) }
    }

    pub(super) fn unshare(&mut self, args: &ShareArgs<'_>) -> Result<Nlm4Stat, Refusal> {
        let share = &args.share;
        let Some((host, handle, key)) = self.held(share.caller_name.0, share.fh)? else {
            return Ok(Nlm4Stat::GRANTED);
        };
        let mut gate = host.gate.lock();
        let owner = host.owner(0, share.oh.0).ok_or(Nlm4Stat::FAILED)?;
        self.nlm.locks.close(key, &owner);
        self.nlm.tidy(&host, &mut gate, handle, key);
        Ok(Nlm4Stat::GRANTED)
    }
}
